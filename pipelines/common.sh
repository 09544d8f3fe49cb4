# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# What the pipeline scripts share, to be sourced: finding or making the build, describing where pictures
# come from and where they go, running gst-launch-1.0 with a live line, and the summary.

# shellcheck disable=SC2034  # source_words and sink_words are for the scripts that source this
name=$(basename "$0")
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

say() { printf '%s: %s\n' "$name" "$*"; }
warn() { printf '%s: warning: %s\n' "$name" "$*" >&2; }
die() { printf '%s: error: %s\n' "$name" "$*" >&2; exit 1; }
usage_error() { printf '%s: error: %s\n%s: --help tells how it is used\n' "$name" "$*" "$name" >&2; exit 2; }

is_number() { [[ $1 =~ ^[1-9][0-9]{0,8}$ ]]; }

have_element() { gst-inspect-1.0 "$1" > /dev/null 2>&1; }

# Is there a display, and something that draws on it?
have_display()
{
  local sink
  [ -n "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ] || return 1
  for sink in xvimagesink ximagesink glimagesink ${WAYLAND_DISPLAY:+waylandsink}; do
    if have_element "$sink"; then return 0; fi
  done
  warn "there is a display, but GStreamer has no video sink to draw on it"
  return 1
}

# Makes the plugin usable: builds it, or takes the build in CSF_BUILD_DIR as it is.  Sets plugin_path.
set_up()
{
  local build_dir=${CSF_BUILD_DIR:-}
  if [ -n "$build_dir" ]; then
    [ -e "$build_dir/gst/libgstcudastream.so" ] || die "CSF_BUILD_DIR: no plugin in $build_dir/gst"
    build_dir=$(cd "$build_dir" && pwd)
  else
    build_dir=$root/build
    "$root/tools/setup.sh" --build-dir "$build_dir" || die "set-up failed, see above"
  fi
  plugin_path=$build_dir/gst
  export GST_PLUGIN_PATH=$plugin_path${GST_PLUGIN_PATH:+:$GST_PLUGIN_PATH}
  have_element cudastreamfilter \
    || die "GStreamer does not load the plugin in $plugin_path; gst-inspect-1.0 cudastreamfilter tells why"
}

check_kernel() # NAME
{
  [[ $1 =~ ^[A-Za-z0-9_-]+$ ]] || die "'$1' is not a kernel's name"
}

# One property for a gst-launch line, whatever characters the value holds.
property() # NAME VALUE
{
  local value=$2
  if ! [[ $value =~ ^[A-Za-z0-9_./:-]+$ ]]; then
    value=${value//\\/\\\\}
    value="\"${value//\"/\\\"}\""
  fi
  printf '%s=%s' "$1" "$value"
}

# Sets source_words to what brings decoded video from a file, URI or camera, after checking it.
video_source() # FILE|URI|DEVICE [PROPERTY OF THE SOURCE ...]
{
  local input=$1
  shift
  case $input in
    /dev/*)
      [ -e "$input" ] || die "there is no device $input; ls /dev/video* shows the cameras"
      [ -c "$input" ] || die "$input is not a device"
      [ -r "$input" ] || die "no permission to read $input; add yourself to its group: $(stat -c %G "$input")"
      have_element v4l2src || die "GStreamer's v4l2src is missing (gst-plugins-good)"
      source_words=(v4l2src "$(property device "$input")" "$@" '!' decodebin) ;;
    [A-Za-z]*://*)
      source_words=(uridecodebin "$(property uri "$input")" "$@") ;;
    *)
      [ -e "$input" ] || die "there is no file '$input'"
      [ -f "$input" ] || die "'$input' is not a file"
      [ -r "$input" ] || die "no permission to read '$input'"
      [ -s "$input" ] || die "'$input' is empty"
      source_words=(filesrc "$(property location "$input")" "$@" '!' decodebin) ;;
  esac
}

# Sets sink_words to what encodes and writes a file; the container goes by the file's ending.
file_sink() # FILE
{
  local file=$1 muxer encoder
  # H.264 encoders want even sizes; this changes a picture only where it is odd.
  local even='video/x-raw,format=I420,width=[2,16384,2],height=[2,16384,2]'
  case $file in
    *.mkv) muxer=(matroskamux) ;;
    *.mp4) muxer=(mp4mux) ;;
    *.avi) muxer=(avimux) ;;
    *) die "'$file': the result's name must end in .mkv, .mp4 or .avi" ;;
  esac
  if have_element x264enc; then
    encoder=(videoscale '!' "$even" '!' x264enc speed-preset=veryfast)
  elif have_element openh264enc && have_element h264parse; then
    encoder=(videoscale '!' "$even" '!' openh264enc bitrate=4000000 '!' h264parse)
  elif have_element jpegenc; then
    encoder=(jpegenc)
  else
    die "no video encoder: GStreamer has neither x264enc nor openh264enc nor jpegenc"
  fi
  have_element "${muxer[0]}" || die "GStreamer's ${muxer[0]} is missing (gst-plugins-good)"
  sink_words=(videoconvert '!' "${encoder[@]}" '!' "${muxer[@]}" '!' filesink "$(property location "$file")")
}

window_sink() { sink_words=(videoconvert '!' autovideosink); }

# Words as one would type them in a shell.
quoted()
{
  local word out=''
  for word; do
    if ! [[ $word =~ ^[A-Za-z0-9_./:=,+@%!-]+$ ]]; then
      word="'${word//\'/\'\\\'\'}'"
    fi
    out+=" $word"
  done
  printf '%s' "${out# }"
}

print_line() # WORD ...
{
  say "the pipeline, to be typed by hand:"
  printf '\n  export GST_PLUGIN_PATH=%s\n  gst-launch-1.0 -e -v %s\n\n' "$(quoted "$plugin_path")" "$(quoted "$@")"
}

# The value after "NAME: " in an element's line.
field() # LINE NAME
{
  local rest=", $1"
  case $rest in
    *", $2: "*) rest=${rest#*", $2: "}; printf '%s' "${rest%%,*}" ;;
  esac
}

show_live() # ELEMENT LINE
{
  local text=$2
  if [ ${#last_line[@]} -gt 1 ]; then text="$1  $2"; fi
  if [ -t 1 ]; then
    # One line that refreshes, cut to the terminal's width.
    printf '\r\033[K%.*s' "$((${COLUMNS:-80} - 1))" "$text"
    on_live_line=yes
  else
    printf '%s\n' "$text"
  fi
}

# Runs a pipeline.  Shows each cudastreamfilter's last-message as it changes, and errors and warnings.
# Sets last_line[ELEMENT] to its final line; returns gst-launch's status.  Ctrl-C ends the pipeline in
# good order, so a file that is being written is complete.
run_pipeline() # WORD ...
{
  local text element status='' kind='' got launcher='' stopped=no children
  local -A told=()
  declare -gA last_line=()
  on_live_line=no
  if [ -t 1 ] && [ -z "${COLUMNS:-}" ]; then COLUMNS=$(tput cols 2> /dev/null || echo 80); fi
  trap ':' INT
  while [ -z "$status" ]; do
    got=0
    launcher=$!
    IFS= read -r text || got=$?
    if [ $got -gt 128 ]; then continue; fi # a signal, not the end
    if [ $got -ne 0 ]; then break; fi
    case $text in
      */GstCudaStreamFilter:*': last-message = '*)
        element=${text##*/GstCudaStreamFilter:}
        element=${element%%:*}
        text=${text#*': last-message = '}
        last_line[$element]=$text
        show_live "$element" "$text"
        continue ;;
      "exit status "*) status=${text#exit status } ;;
      *"doesn't want to preroll"*) ;;
      ERROR:* | WARNING:* | *'WARNING **'* | *'CRITICAL **'* | Additional\ debug* | *' failed'* | *.c\(*)
        # Where in the source it was is of use with an error only.
        case $text in
          WARNING:*) kind=warning ;;
          ERROR:*) kind=error ;;
          *) if [ "$kind" = warning ]; then continue; fi ;;
        esac
        if [ -n "${told[$text]:-}" ]; then continue; fi
        told[$text]=yes
        if [ $on_live_line = yes ]; then printf '\n'; on_live_line=no; fi
        printf '%s\n' "$text" >&2
        # Nothing of the input fits the pipeline: it would wait for ever.
        if [[ $text == *'Delayed linking failed'* ]]; then
          children=$(cat "/proc/$launcher/task/$launcher/children" 2> /dev/null) || true
          stopped=yes
          # shellcheck disable=SC2086
          kill $children 2> /dev/null || true
        fi ;;
    esac
  done < <(
    trap ':' INT
    LC_ALL=C gst-launch-1.0 -e -v "$@" 2>&1 < /dev/null && status=0 || status=$?
    printf '\nexit status %s\n' "$status"
  )
  trap - INT
  if [ $on_live_line = yes ]; then printf '\n'; fi
  # 255 is gst-launch's own for a pipeline that does not start.
  if [ "${status:-1}" -gt 128 ] && [ "$status" -lt 255 ] && [ $stopped = no ]; then
    warn "gst-launch-1.0 was ended by signal $((status - 128))"
  fi
  return "${status:-1}"
}

# Adds up the final lines and prints the summary; fails when nothing was processed.
summary() # RESULT FILE, or nothing
{
  local line='' one processed=0 dropped=0
  for line in "${last_line[@]}"; do
    one=$(field "$line" processed)
    processed=$((processed + ${one:-0}))
    one=$(field "$line" dropped)
    dropped=$((dropped + ${one:-0}))
  done
  [ "$processed" -gt 0 ] || die "no frame was processed"
  if [ ${#last_line[@]} -eq 1 ]; then
    say "$processed frames processed, $dropped dropped, $(field "$line" avg-fps) frames a second" \
      "(backend $(field "$line" backend))"
  else
    say "$processed frames processed by ${#last_line[@]} elements, $dropped dropped"
  fi
  if [ -n "$1" ]; then
    [ -s "$1" ] || die "nothing was written to '$1'"
    say "result: $1"
  fi
}
