#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Live video: a camera, or a test source that keeps real time, through cudastreamfilter to a window.
# Where there is no display frames go to a sink that keeps time and shows nothing.
set -euo pipefail
# shellcheck source=pipelines/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage()
{
  cat <<'USAGE'
usage: pipelines/live.sh [--kernel NAME] [--frames N] [/dev/videoN | test] [-- PROPERTY=VALUE ...]

  /dev/videoN     a camera (default: the first one that is here, otherwise the test source)
  test            the test source: 1280x720, 30 frames a second
  --kernel NAME   what to do with each frame (default: sobel)
  --frames N      end after N frames (default: Ctrl-C ends it)
  -h, --help      this text
USAGE
}

kernel=sobel
frames=
input=
while [ $# -gt 0 ]; do
  case $1 in
    --kernel | --frames)
      [ $# -gt 1 ] || usage_error "$1 needs a value"
      printf -v "${1#--}" %s "$2"
      shift 2 ;;
    -h | --help) usage; exit 0 ;;
    --) shift; break ;;
    /dev/* | test) input=$1; shift ;;
    *) usage_error "unknown argument '$1'; expected a /dev/videoN or the word test" ;;
  esac
done
[ -z "$frames" ] || is_number "$frames" || usage_error "--frames: '$frames' is not a number of frames"
check_kernel "$kernel"

set_up
if [ -z "$input" ]; then
  input='test'
  for device in /dev/video*; do
    if [ -c "$device" ] && [ -r "$device" ]; then input=$device; break; fi
  done
  say "input: $input"
fi
if [ "$input" = test ]; then
  source_words=(videotestsrc is-live=true pattern=ball ${frames:+"num-buffers=$frames"} '!'
    'video/x-raw,format=NV12,width=1280,height=720,framerate=30/1')
else
  video_source "$input" ${frames:+"num-buffers=$frames"}
fi
if have_display; then window_sink; else sink_words=(fakesink sync=true); fi
[ -n "$frames" ] || say "Ctrl-C ends it"

pipeline=("${source_words[@]}" '!' videoconvert '!' cudastreamfilter "kernel=$kernel" "$@" '!' "${sink_words[@]}")
print_line "${pipeline[@]}"
run_pipeline "${pipeline[@]}" || die "the pipeline failed, see above"
summary ''
