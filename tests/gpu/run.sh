#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The suites on a real GPU: kernels, engine and element on the real driver, CUDA memory on its pads,
# compute-sanitizer, and a short throughput table.  A test that skips has failed here.  The last line printed
# is "N passed, N failed, N skipped"; the exit status is 0 when some passed and none failed.
set -uo pipefail

usage()
{
  cat <<'USAGE'
usage: tests/gpu/run.sh [OPTION ...]

  --build DIR       a build folder with the tests, made here or elsewhere; default: build, made now
  --bundle DIR      a GStreamer brought along, for a host without: DIR/env.sh is sourced
  --out DIR         logs and results (default: a folder in /tmp)
  --only NAME,...   only these of: kernels engine element cudamemory memcheck racecheck synccheck
                    throughput userkernels video figures
  --commit TEXT     recorded in the results (default: what git says)
  --jobs N          programs that share the GPU at once (default: half the processors)
  -h, --help        this text
USAGE
}

name=$(basename "$0")
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=benchmarks/gpuhost.sh
. "$root/benchmarks/gpuhost.sh"

build_arg='' bundle='' out='' commit='' jobs=$(( ($(nproc) + 1) / 2 ))
only=kernels,engine,element,userkernels,video,figures,cudamemory,memcheck,racecheck,synccheck,throughput
while [ $# -gt 0 ]; do
  case $1 in -h | --help) usage; exit 0 ;; esac
  [ $# -gt 1 ] || { usage >&2; die "unknown argument, or one without its value: '$1'"; }
  case $1 in
    --build) build_arg=$2 ;;
    --bundle) bundle=$2 ;;
    --out) out=$2 ;;
    --only) only=$2 ;;
    --commit) commit=$2 ;;
    --jobs) jobs=$2 ;;
    *) usage >&2; die "unknown argument '$1'" ;;
  esac
  shift 2
done
[[ $jobs =~ ^[1-9][0-9]*$ ]] || die "--jobs needs a number, not '$jobs'"
for part in ${only//,/ }; do
  case $part in
    kernels | engine | element | userkernels | video | figures | cudamemory | memcheck | racecheck | synccheck \
      | throughput) ;;
    *) usage >&2; die "there is no part '$part'" ;;
  esac
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ -z "$out" ]; then out=$(mktemp -d -t csf-gpu-tests.XXXXXX); fi
mkdir -p "$out"
out=$(absolute "$out")
use_build "$build_arg"
use_gstreamer "$bundle" "$work"
find_driver
scan_plugins
passed=0
failed=0
begun=$SECONDS

wanted() { case ",$only," in *",$1,"*) return 0 ;; *) return 1 ;; esac; }

# Runs one test; its output goes to a log.  Leaves status and seconds for report.
run_test() # NAME SECONDS COMMAND ...
{
  local title=$1 limit=$2 begin=$SECONDS status=0
  shift 2
  timeout --kill-after=10 "$limit" "$@" > "$out/$title.log" 2>&1 < /dev/null || status=$?
  printf '%d %d %d\n' $status $((SECONDS - begin)) "$limit" > "$work/$title.status"
}

# Counts a test that has run; of one that failed the end of its log is shown.
report() # NAME
{
  local title=$1 status=1 seconds=0 limit=0 why
  read -r status seconds limit < "$work/$title.status"
  if [ "$status" -eq 0 ]; then
    passed=$((passed + 1))
    printf 'ok      %-36s %4d s\n' "$title" "$seconds"
    return
  fi
  failed=$((failed + 1))
  case $status in
    77) why='skipped, which is a failure here' ;;
    124 | 137) why="not done within $limit s" ;;
    126 | 127) why='the program is missing or does not start' ;;
    *) why="exit status $status" ;;
  esac
  printf 'FAILED  %-36s %4d s: %s\n' "$title" "$seconds" "$why"
  tail -n 20 "$out/$title.log" | sed 's/^/        /'
}

check() { run_test "$@"; report "$1"; }

# Starts a test beside others; finish_started reports them in their order.
started=()
start() # NAME SECONDS COMMAND ...
{
  while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n; done
  run_test "$@" &
  started+=("$1")
}

finish_started()
{
  local title
  wait
  for title in "${started[@]}"; do report "$title"; done
  started=()
}

# ---- what may share the GPU: right or wrong does not depend on time -----------------------------------

kernels=$build/tests/kernels/checkkernels
engine=$build/tests/gpu/checkengine
kernel_names=()
for folder in "$root"/kernels/*/; do kernel_names+=("$(basename "$folder")"); done

sanitizer=$(command -v compute-sanitizer || true)
if [ -z "$sanitizer" ]; then sanitizer=/usr/local/cuda/bin/compute-sanitizer; fi

# The registry is there already: no plugin but those used is loaded under the sanitizer, and nothing forks.
sanitized() # NAME SECONDS TOOL [SANITIZER OPTION ...] -- COMMAND ...
{
  local title=$1 limit=$2 tool=$3 options=()
  shift 3
  while [ "$1" != -- ]; do options+=("$1"); shift; done
  shift
  start "$title" "$limit" env GST_REGISTRY_FORK=no GST_REGISTRY_UPDATE=no \
    "$sanitizer" --tool "$tool" --error-exitcode 9 --target-processes all "${options[@]}" "$@"
}

# A pipeline whose output has a line of that pattern.
memcheck_launch() # NAME PATTERN ELEMENT ...
{
  local title=$1 pattern=$2
  shift 2
  # shellcheck disable=SC2016
  sanitized "memcheck-pipeline-$title" 120 memcheck -- bash -c \
    'set -o pipefail; p=$1; shift; gst-launch-1.0 -v "$@" | tee /dev/stderr | grep "$p" > /dev/null' \
    pipeline "$pattern" "$@"
}

memcheck_pipeline() # KERNEL FORMAT
{
  memcheck_launch "$1-$2" 'processed: 24,' \
    videotestsrc num-buffers=24 pattern=ball '!' "video/x-raw,format=$2,width=641,height=363" '!' \
    cudastreamfilter backend=cuda num-streams=3 "kernel=$1" '!' fakesink
}

# System memory, CUDA memory between two of the element, and system memory again.
memcheck_cuda_memory() # FORMAT
{
  memcheck_launch "cudamemory-$1" 'second: .*processed: 24,' \
    videotestsrc num-buffers=24 pattern=ball '!' "video/x-raw,format=$1,width=641,height=363" '!' \
    cudastreamfilter backend=cuda num-streams=3 kernel=gaussianblur '!' \
    "video/x-raw(memory:CUDAMemory)" '!' \
    cudastreamfilter name=second backend=cuda num-streams=3 kernel=sobel '!' video/x-raw '!' fakesink
}

for kernel in "${kernel_names[@]}"; do
  if wanted memcheck; then
    # Each third frame: what is left out differs in content, not in shape.
    sanitized "memcheck-kernel-$kernel" 240 memcheck --leak-check full -- \
      "$kernels" --cuda --kernel "$kernel" --every 3
  fi
  if wanted racecheck; then
    # It follows every access to shared memory: several blocks across and down are enough.
    sanitized "racecheck-kernel-$kernel" 240 racecheck -- \
      "$kernels" --cuda --kernel "$kernel" --most-pixels 10000 --every 24
  fi
  if wanted synccheck; then
    sanitized "synccheck-kernel-$kernel" 240 synccheck -- "$kernels" --cuda --kernel "$kernel" --every 3
  fi
done
if wanted memcheck; then
  # Those of its tests that open few engines: loading a module is slow under the sanitizer.
  sanitized memcheck-engine 180 memcheck --leak-check full -- "$engine" transfers_change_nothing \
    discarded_frames_say_so frames_in_flight_are_released host_memory_outlives_its_makers
  memcheck_pipeline copy RGBA
  memcheck_pipeline sobel I420
  memcheck_pipeline gaussianblur NV12
fi
if wanted cudamemory; then memcheck_cuda_memory NV12; fi
if wanted kernels; then start kernels 180 "$kernels" --cuda; fi
finish_started

# ---- what needs the GPU for itself ------------------------------------------------------------------

if wanted engine; then
  check engine 120 "$engine"
  check records 240 "$build/tests/gpu/checkrecords" "${CSF_TEST_FRAMES:-2000}"
fi

if wanted element; then
  # All but the one about machines without a driver, the one that needs a profiler, and those that compare with
  # other elements: that the GPU gives what the CPU gives is shown above.
  programs=$(find "$build/tests/element" -maxdepth 1 -type f -name 'element-*' ! -name '*-nodriver' \
    ! -name '*-peers_*' ! -name '*-profiler' -executable 2> /dev/null | sort)
  for program in ${programs:-"$build/tests/element/element-frames"}; do
    check "$(basename "$program")" 240 env CSF_TEST_BACKEND=cuda CK_DEFAULT_TIMEOUT=60 "$program"
  done
fi

if wanted figures; then
  for case in parts-add-up known-kernel bounds; do
    check "figures-$case" 120 "$root/tests/gpu/figures" "$case"
  done
fi

if wanted userkernels; then
  check userkernels 240 "$root/tests/gpu/userkernels.sh" "$build"
  for way in source code library library-cuda; do
    check "readme-kernel-$way" 120 env "PATH=$PATH:/usr/local/cuda/bin" \
      "$root/tests/pipelines/readme-kernels" --build "$build" --gpu "$way"
  done
fi

if wanted video; then
  mkdir -p "$out/pictures"
  check video 300 "$build/tests/gpu/checkvideo" "$out/pictures"
  # The same regions on the GPU and on the CPU, in whole films.
  for film in car-detection one-by-one-person-detection; do
    # shellcheck disable=SC2016
    check "detections-$film" 240 bash -euc 'for backend in cuda cpu; do
        "$1/pipelines/detections" --backend $backend "$2" > "$3.$backend"; done
      grep -q track_id "$3.cuda"; cmp "$3.cuda" "$3.cpu"; wc -l "$3.cuda"' - \
      "$build" "${CSF_TEST_MEDIA:-$root/../shared/media}/video/$film.mp4" "$out/$film"
  done
fi

if wanted cudamemory; then check cudamemory 240 "$build/tests/gpu/checkcudamemory"; fi

if wanted throughput; then
  if [ -z "$commit" ]; then commit=$(current_commit); fi
  check throughput 150 "$build/benchmarks/throughput" --quick --check --commit "$commit" \
    --driver "$(gpu_property driver_version)" --json "$out/throughput.json"
  if [ -s "$out/throughput.json" ]; then
    printf '\n'
    python3 "$root/benchmarks/table.py" --all --goals "$out/throughput.json"
  fi
fi

printf '\n%s, driver %s; %d s; logs in %s\n' "$(gpu_property name)" "$(gpu_property driver_version)" \
  $((SECONDS - begun)) "$out"
printf '%d passed, %d failed, 0 skipped\n' $passed $failed
[ $failed -eq 0 ] && [ $passed -gt 0 ]
