#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# What overlapping gains: the same frames through cudastreamfilter with num-streams=1 and with 3, one after
# the other, and how the two throughputs compare.
set -euo pipefail
# shellcheck source=pipelines/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage()
{
  cat <<'USAGE'
usage: pipelines/compare-streams.sh [--kernel NAME] [--frames N] [--size WxH] [-- PROPERTY=VALUE ...]

  --kernel NAME   what to do with each frame (default: gaussianblur)
  --frames N      frames in each run (default: 1000)
  --size WxH      of the frames, which are NV12 (default: 1920x1080)
  -h, --help      this text
USAGE
}

kernel=gaussianblur
frames=1000
size=1920x1080
while [ $# -gt 0 ]; do
  case $1 in
    --kernel | --frames | --size)
      [ $# -gt 1 ] || usage_error "$1 needs a value"
      printf -v "${1#--}" %s "$2"
      shift 2 ;;
    -h | --help) usage; exit 0 ;;
    --) shift; break ;;
    *) usage_error "unknown argument '$1'" ;;
  esac
done
is_number "$frames" || usage_error "--frames: '$frames' is not a number of frames"
[[ $size =~ ^([1-9][0-9]{0,4})x([1-9][0-9]{0,4})$ ]] || usage_error "--size: '$size' is not of the form 1920x1080"
width=${BASH_REMATCH[1]}
height=${BASH_REMATCH[2]}
check_kernel "$kernel"

set_up
declare -A fps=()
for streams in 1 3; do
  # One picture, repeated: the source then costs nothing and the element is what is measured.
  pipeline=(videotestsrc num-buffers=1 '!' "video/x-raw,format=NV12,width=$width,height=$height,framerate=30/1"
    '!' imagefreeze "num-buffers=$frames"
    '!' cudastreamfilter "num-streams=$streams" "kernel=$kernel" "$@" '!' fakesink sync=false)
  print_line "${pipeline[@]}"
  run_pipeline "${pipeline[@]}" || die "the pipeline failed, see above"
  summary ''
  for line in "${last_line[@]}"; do fps[$streams]=$(field "$line" avg-fps); done
done
awk -v one="${fps[1]}" -v three="${fps[3]}" -v name="$name" 'BEGIN {
  if (one <= 0) exit 1
  printf "%s: 1 stream: %s, 3 streams: %s frames a second; ratio %.2f\n", name, one, three, three / one }' \
  || die "no throughput was measured"
