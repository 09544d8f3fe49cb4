#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Many videos in one process: N sources, each with its own cudastreamfilter, sharing one GPU (or the CPU).
# Prints what each of them reached.
set -euo pipefail
# shellcheck source=pipelines/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage()
{
  cat <<'USAGE'
usage: pipelines/many-streams.sh [--kernel NAME] [--frames N] [COUNT [FILE]] [-- PROPERTY=VALUE ...]

  COUNT           how many videos at once (default: 4, at most 64)
  FILE            read by each of them (default: a made picture)
  --kernel NAME   what to do with each frame (default: sobel)
  --frames N      frames of each made picture (default: 300)
  -h, --help      this text
USAGE
}

kernel=sobel
frames=300
arguments=()
while [ $# -gt 0 ]; do
  case $1 in
    --kernel | --frames)
      [ $# -gt 1 ] || usage_error "$1 needs a value"
      printf -v "${1#--}" %s "$2"
      shift 2 ;;
    -h | --help) usage; exit 0 ;;
    --) shift; break ;;
    -?*) usage_error "unknown option '$1'" ;;
    *) arguments+=("$1"); shift ;;
  esac
done
[ ${#arguments[@]} -le 2 ] || usage_error "too many arguments"
count=${arguments[0]:-4}
file=${arguments[1]:-}
if ! is_number "$count" || [ "$count" -gt 64 ]; then
  usage_error "COUNT: '$count' is not a number from 1 to 64"
fi
is_number "$frames" || usage_error "--frames: '$frames' is not a number of frames"
check_kernel "$kernel"

set_up
pipeline=()
for ((i = 0; i < count; i++)); do
  if [ -n "$file" ]; then
    video_source "$file"
  else
    source_words=(videotestsrc "pattern=$((i % 2 ? 18 : 0))" "num-buffers=$frames" '!'
      'video/x-raw,format=NV12,width=1280,height=720,framerate=30/1')
  fi
  pipeline+=("${source_words[@]}" '!' videoconvert '!' cudastreamfilter "name=stream$i" "kernel=$kernel" "$@"
    '!' fakesink sync=false)
done
print_line "${pipeline[@]}"
run_pipeline "${pipeline[@]}" || die "the pipeline failed, see above"
for ((i = 0; i < count; i++)); do
  line=${last_line[stream$i]:-}
  [ -n "$line" ] || die "stream$i told nothing"
  say "stream$i: $(field "$line" processed) frames, $(field "$line" avg-fps) frames a second"
done
summary ''
