#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# File to file: sends every frame of a video through cudastreamfilter, as fast as it goes, and writes the
# picture (not the sound) to another file.
set -euo pipefail
# shellcheck source=pipelines/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage()
{
  cat <<'USAGE'
usage: pipelines/transcode.sh [--kernel NAME] [--force] IN OUT [-- PROPERTY=VALUE ...]

  IN              a file or URI
  OUT             the result: .mkv, .mp4 or .avi
  --kernel NAME   what to do with each frame (default: gaussianblur)
  --force         overwrite OUT
  -h, --help      this text
USAGE
}

kernel=gaussianblur
force=no
files=()
while [ $# -gt 0 ]; do
  case $1 in
    --kernel) [ $# -gt 1 ] || usage_error "$1 needs a value"; kernel=$2; shift 2 ;;
    --force) force=yes; shift ;;
    -h | --help) usage; exit 0 ;;
    --) shift; break ;;
    -?*) usage_error "unknown option '$1'" ;;
    *) files+=("$1"); shift ;;
  esac
done
[ ${#files[@]} -eq 2 ] || usage_error "expected two files, IN and OUT; got ${#files[@]}"
check_kernel "$kernel"
in=${files[0]}
out=${files[1]}
if [ -e "$out" ]; then
  [ $force = yes ] || die "'$out' exists; --force overwrites it"
  ! [ "$in" -ef "$out" ] || die "IN and OUT are the same file"
fi
[ -d "$(dirname "$out")" ] || die "there is no folder '$(dirname "$out")'"

set_up
video_source "$in"
file_sink "$out"
pipeline=("${source_words[@]}" '!' videoconvert '!' cudastreamfilter "kernel=$kernel" "$@" '!' "${sink_words[@]}")
print_line "${pipeline[@]}"
run_pipeline "${pipeline[@]}" || die "the pipeline failed, see above (is '$in' a video?)"
summary "$out"
