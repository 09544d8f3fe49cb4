#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs the benchmark programs on a host with a GPU, writes what they measured to benchmarks/results/ and
# prints the README's tables.
set -euo pipefail

usage()
{
  cat <<'USAGE'
usage: benchmarks/run.sh [OPTION ...]

  --name NAME      results are NAME.json and NAME-PART.json (default: the GPU's name)
  --out DIR        in this folder (default: benchmarks/results)
  --build DIR      a build folder with the programs; default: build, made or brought up to date
  --bundle DIR     a GStreamer brought along: DIR/env.sh is sourced
  --commit TEXT    recorded in the results (default: what git says)
  --only PART,...  of the parts below (default: all)
  --quick          shorter measurements
  -h, --help       this text

Parts, each one file:
  throughput   NAME.json          the element against limit, plain loop, engine and its peers; kernel copy
  cached       NAME-cached.json   the same, 3 streams, from the few buffers that downstream asks for, which stay
                                  in the processor's caches: the best case for elements that copy on the host
  spatial      NAME-spatial.json  the same with the other kernels, 3 streams
  trace        NAME-trace.json    what trace-location costs
  engine       NAME-engine.json   the stream engine without GStreamer
  bus          NAME-bus.json      what bus and GPU allow, and the plain loop with 1 to 8 streams
  kernels      NAME-kernels.json  bandwidth of each kernel
  metadata     NAME-metadata.json what a kernel's records cost a frame, 1 KB to 4 MB of them in each kind of memory
  cuda         NAME-cuda.json     CUDA memory in and out against the kernel alone, and behind nvh264dec against the
                                  decoder alone; left out where the element was built without libgstcuda
USAGE
}

name=$(basename "$0")
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=benchmarks/gpuhost.sh
. "$root/benchmarks/gpuhost.sh"

result='' out=$root/benchmarks/results build_arg='' bundle='' commit='' quick=()
only=throughput,cached,spatial,trace,engine,bus,kernels,metadata,cuda
while [ $# -gt 0 ]; do
  case $1 in
    --quick) quick=(--quick); shift; continue ;;
    -h | --help) usage; exit 0 ;;
  esac
  [ $# -gt 1 ] || { usage >&2; die "unknown argument, or one without its value: '$1'"; }
  case $1 in
    --name) result=$2 ;;
    --out) out=$2 ;;
    --build) build_arg=$2 ;;
    --bundle) bundle=$2 ;;
    --commit) commit=$2 ;;
    --only) only=$2 ;;
    *) usage >&2; die "unknown argument '$1'" ;;
  esac
  shift 2
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"
use_build "$build_arg"
use_gstreamer "$bundle" "$work"
find_driver
scan_plugins
driver=$(gpu_property driver_version)
if [ -z "$commit" ]; then commit=$(current_commit); fi
if [ -z "$result" ]; then
  result=$(gpu_property name | tr '[:upper:] ' '[:lower:]-' | tr -cd 'a-z0-9-')
fi
common=(--commit "$commit" --driver "$driver" "${quick[@]}")
failed=0

wanted() { case ",$only," in *",$1,"*) return 0 ;; *) return 1 ;; esac; }

part() # NAME FILE COMMAND ...
{
  local title=$1 file=$2 status=0
  shift 2
  wanted "$title" || return 0
  printf '\n== %s\n' "$title"
  "$@" --json "$out/$file" || status=$?
  case $title:$status in
    *:0) ;;
    cuda:77) printf '%s: %s left out, see above\n' "$name" "$title" >&2 ;;
    *)
      failed=1
      printf '%s: error: %s failed\n' "$name" "$title" >&2
      ;;
  esac
}

part throughput "$result.json" "$build/benchmarks/throughput" "${common[@]}" --check
part cached "$result-cached.json" "$build/benchmarks/throughput" "${common[@]}" --check \
  --source-buffers 0 --streams 3
part spatial "$result-spatial.json" "$build/benchmarks/throughput" "${common[@]}" --check \
  --no-peers --streams 3 \
  --kernel sobel,gaussianblur,videobalance,convertscale,temporaldenoise,motiondetect,anonymize,drawregions,histogram,cornerdetect
part trace "$result-trace.json" "$build/benchmarks/throughput" "${common[@]}" --check \
  --no-peers --streams 1,3 --trace
part engine "$result-engine.json" "$build/benchmarks/engineloop" "${common[@]}"
part bus "$result-bus.json" "$build/benchmarks/busloop" "${common[@]}"
part kernels "$result-kernels.json" "$build/tests/kernels/checkkernels" --bench
part metadata "$result-metadata.json" "$build/benchmarks/metadata" "${common[@]}"
part cuda "$result-cuda.json" "$build/benchmarks/cudamemory" "${common[@]}" --check \
  --kernel copy,gaussianblur --streams 1,3

if [ -e "$out/$result.json" ] && wanted throughput; then
  printf '\n'
  python3 "$root/benchmarks/table.py" "$out/$result.json" || failed=1
fi
if [ -e "$out/$result-cuda.json" ] && wanted cuda; then
  printf '\n'
  python3 "$root/benchmarks/table.py" --cuda "$out/$result-cuda.json" || failed=1
fi
exit $failed
