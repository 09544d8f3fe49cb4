#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The demo: sets the project up, then sends a video through cudastreamfilter and shows the throughput while
# it runs.  Opens a window where there is a display, otherwise writes the result to a file and names it.
set -euo pipefail
# shellcheck source=pipelines/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage()
{
  cat <<'USAGE'
usage: pipelines/demo.sh [OPTION ...] [FILE|URI|/dev/videoN] [-- PROPERTY=VALUE ...]

  --kernel NAME   what to do with each frame (default: sobel); gst-inspect-1.0 cudastreamfilter lists them
  --output FILE   write the result here (.mkv, .mp4, .avi) even where there is a display
  --frames N      end after N frames; for a camera and for the made picture
  -h, --help      this text

Without an input a moving picture is made.  What follows -- are properties of cudastreamfilter, for example
  pipelines/demo.sh film.mp4 --kernel gaussianblur -- num-streams=4 kernel-params=sigma=5.0
CSF_BUILD_DIR=DIR takes the build in DIR as it is: nothing is installed or built.
USAGE
}

kernel=sobel
input=
output=
frames=
while [ $# -gt 0 ]; do
  case $1 in
    --kernel | --output | --frames)
      [ $# -gt 1 ] || usage_error "$1 needs a value"
      printf -v "${1#--}" %s "$2"
      shift 2 ;;
    -h | --help) usage; exit 0 ;;
    --) shift; break ;;
    -?*) usage_error "unknown option '$1'" ;;
    *)
      [ -z "$input" ] || usage_error "one input at a time: '$input' or '$1'"
      [ -n "$1" ] || usage_error "the input's name is empty"
      input=$1
      shift ;;
  esac
done
for word; do
  [[ $word =~ ^[a-z-]+=.+ ]] || usage_error "'$word' is not of the form PROPERTY=VALUE"
done
[ -z "$frames" ] || is_number "$frames" || usage_error "--frames: '$frames' is not a number of frames"
if [[ -n $frames && -n $input && $input != /dev/* ]]; then
  usage_error "--frames is for a camera and for the made picture"
fi
check_kernel "$kernel"
# A wrong name should not cost a build first.
if [[ -n $input && $input != /dev/* && $input != *://* && ! -e $input ]]; then
  die "there is no file '$input'"
fi

set_up

to_window=no
if [ -z "$output" ] && have_display; then to_window=yes; fi
if [ -n "$input" ]; then
  video_source "$input" ${frames:+"num-buffers=$frames"}
  if [[ $input == /dev/* ]]; then say "Ctrl-C ends it"; fi
else
  say "no input named: making a moving picture"
  if [ -z "$frames" ] && [ $to_window = no ]; then frames=600; fi
  source_words=(videotestsrc pattern=ball ${frames:+"num-buffers=$frames"} '!'
    'video/x-raw,format=NV12,width=1280,height=720,framerate=30/1')
fi
if [ $to_window = yes ]; then
  window_sink
else
  if [ -z "$output" ]; then
    output=$(dirname "$plugin_path")
    if ! [ -w "$output" ]; then output=$PWD; fi
    output=$output/demo-$kernel.mkv
    say "no display: the result goes to a file"
  fi
  file_sink "$output"
fi

pipeline=("${source_words[@]}" '!' videoconvert '!' cudastreamfilter "kernel=$kernel" "$@" '!' "${sink_words[@]}")
print_line "${pipeline[@]}"
if ! run_pipeline "${pipeline[@]}"; then
  if [ -n "$input" ]; then die "the pipeline failed, see above (is '$input' a video?)"; fi
  die "the pipeline failed, see above"
fi
summary "$output"
