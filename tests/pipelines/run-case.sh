#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# One test of the scripts in pipelines/, named by the argument.  Runs them against the build that
# CSF_BUILD_DIR names, so nothing is installed or built, and counts frames by decoding what they wrote.
set -euo pipefail

case_name=${1:?usage: run-case.sh CASE}
: "${CSF_BUILD_DIR:?names the build to test}"
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
pipelines=$root/pipelines
media=${CSF_TEST_MEDIA:-$root/../shared/media}
scratch=$(mktemp -d)
group=          # a process group that must not outlive the test
clean_up()
{
  if [ -n "$group" ]; then kill -KILL -- "-$group" 2> /dev/null || true; fi
  rm -rf "$scratch"
}
trap clean_up EXIT
trap 'exit 1' TERM INT
cd "$scratch"

fail()
{
  printf 'FAILED: %s\n' "$*" >&2
  if [ -e output ]; then sed 's/^/  | /' output >&2; fi
  exit 1
}

# A file of the test media; skips the test when it is not there.
need() # NAME
{
  if [ ! -e "$media/video/$1" ]; then
    printf 'skipped: no %s (CSF_TEST_MEDIA names the folder with video/ in it)\n' "$media/video/$1"
    exit 77
  fi
}

# Runs a script; its output is kept in the file output.  No case may hang.
try() # STATUS SCRIPT ARGUMENT ...
{
  local expected=$1 script=$2 status=0
  shift 2
  timeout 100 "$pipelines/$script" "$@" > output 2>&1 < /dev/null || status=$?
  [ "$status" -eq "$expected" ] || fail "$script $*: exit status $status, expected $expected"
}

said() { grep -qE -- "$1" output || fail "the output lacks '$1'"; }

# The frames in a file, by decoding it: each becomes a picture of 16x16 bytes.
count_frames() # FILE
{
  cp "$1" counted
  gst-launch-1.0 -q filesrc location=counted ! decodebin ! videoconvert ! videoscale \
    ! video/x-raw,format=GRAY8,width=16,height=16 ! filesink location=frames.raw > count.log 2>&1 \
    || { cat count.log >&2; fail "cannot decode $1"; }
  printf '%s\n' $(($(stat -c %s frames.raw) / 256))
}

holds() # FILE FRAMES
{
  local found
  found=$(count_frames "$1")
  [ "$found" -eq "$2" ] || fail "$1 holds $found frames, expected $2"
}

# A short video of 25 frames with sound.
make_film() # FILE
{
  gst-launch-1.0 -q videotestsrc num-buffers=25 ! video/x-raw,width=161,height=121,framerate=25/1 \
    ! videoconvert ! jpegenc ! matroskamux name=mux ! filesink location=made.mkv \
    audiotestsrc num-buffers=43 ! audio/x-raw,rate=44100,channels=1 ! queue ! mux. \
    || fail "cannot make a film"
  mv made.mkv "$1"
}

case $case_name in
  demo-handles-every-frame)
    need one-by-one-person-detection.mp4
    film=$media/video/one-by-one-person-detection.mp4
    expected=$(count_frames "$film")
    [ "$expected" -gt 1000 ] || fail "only $expected frames decoded from $film"
    try 0 demo.sh "$film" --output result.mkv
    said "$expected frames processed, 0 dropped"
    said '^processed: [0-9]+, dropped: [0-9]+, fps: '
    said 'gst-launch-1.0 .*cudastreamfilter kernel=sobel'
    said 'export GST_PLUGIN_PATH='
    said 'result: result.mkv'
    holds result.mkv "$expected"
    ;;

  demo-makes-its-own-picture)
    try 0 demo.sh --frames 40 --kernel copy --output result.mp4 -- num-streams=2
    said '40 frames processed, 0 dropped'
    said 'kernel=copy num-streams=2'
    holds result.mp4 40
    ;;

  demo-takes-odd-names-and-sound)
    name="it's a \"film\" \\ with ! and (no) sense.mkv"
    make_film "$name"
    try 0 demo.sh "$name" --output "the result of $name"
    said '25 frames processed'
    holds "the result of $name" 25
    make_film film.mkv
    try 0 demo.sh "file://$scratch/film.mkv" --output result.mkv
    said '25 frames processed'
    try 1 demo.sh "file://$scratch/missing.mkv" --output result.mkv
    ;;

  demo-refuses-what-is-no-video)
    try 1 demo.sh missing.mp4
    said "there is no file 'missing.mp4'"
    try 1 demo.sh .
    said "'.' is not a file"
    : > empty.mp4
    try 1 demo.sh empty.mp4
    said "'empty.mp4' is empty"
    try 1 demo.sh /dev/video-none
    said 'there is no device /dev/video-none'
    printf 'hello\n' > text.mp4
    try 1 demo.sh text.mp4
    said "is 'text.mp4' a video"
    head -c 100000 /dev/urandom > noise.mp4
    try 1 demo.sh noise.mp4
    gst-launch-1.0 -q audiotestsrc num-buffers=20 ! wavenc ! filesink location=sound.wav
    try 1 demo.sh sound.wav
    if [ "$(id -u)" -ne 0 ]; then
      printf 'x' > secret.mp4
      chmod 000 secret.mp4
      try 1 demo.sh secret.mp4
      said 'no permission to read'
    fi
    ;;

  scripts-refuse-wrong-arguments)
    try 2 demo.sh --nonsense
    try 2 demo.sh --kernel
    try 2 demo.sh one two
    try 2 demo.sh --frames many
    try 2 demo.sh -- no-equals-sign
    try 1 demo.sh --kernel 'two words'
    try 1 demo.sh --frames 5 --output result.txt
    said 'must end in'
    try 1 demo.sh --frames 5 --kernel no-such-kernel
    said 'no-such-kernel'
    try 1 demo.sh --frames 5 -- no-such-property=1
    said 'no-such-property'
    try 2 live.sh nonsense
    try 2 transcode.sh only-one
    try 1 transcode.sh missing.mkv result.mkv
    try 1 transcode.sh missing.mkv no-such-folder/result.mkv
    try 2 many-streams.sh 0
    try 2 many-streams.sh 65
    try 2 compare-streams.sh --size large
    for script in demo live transcode many-streams compare-streams; do
      try 0 "$script.sh" --help
      said '^usage: '
    done
    CSF_BUILD_DIR=$scratch
    export CSF_BUILD_DIR
    try 1 demo.sh
    said 'no plugin in'
    ;;

  live-keeps-time-and-ends-on-interrupt)
    try 0 live.sh test --frames 30
    said '30 frames processed, 0 dropped'
    # A process group of its own, so that the signal reaches the script and the pipeline as Ctrl-C does.
    mkfifo lines
    setsid timeout --foreground -s INT 60 "$pipelines/live.sh" test > lines 2>&1 < /dev/null &
    group=$!
    interrupted=no
    while IFS= read -r line; do
      printf '%s\n' "$line" >> output
      if [[ $line == processed:* && $interrupted = no ]]; then
        interrupted=yes
        kill -INT -- "-$group"
      fi
    done < lines
    wait "$group" || fail "live.sh ended with status $? after the interrupt"
    group=
    said ' frames processed, 0 dropped'
    ;;

  transcode-writes-every-container)
    make_film film.mkv
    for ending in mkv mp4 avi; do
      try 0 transcode.sh film.mkv "result.$ending" --kernel gaussianblur
      said '25 frames processed'
      holds "result.$ending" 25
    done
    try 1 transcode.sh film.mkv result.mkv
    said 'exists'
    try 0 transcode.sh --force film.mkv result.mkv
    try 1 transcode.sh --force film.mkv ./film.mkv
    said 'same file'
    holds film.mkv 25
    ;;

  many-streams-all-finish)
    try 0 many-streams.sh 5 --frames 20
    for i in 0 1 2 3 4; do said "stream$i: 20 frames, "; done
    said '100 frames processed by 5 elements, 0 dropped'
    make_film film.mkv
    try 0 many-streams.sh 2 film.mkv
    said '50 frames processed by 2 elements'
    ;;

  compare-streams-prints-a-ratio)
    try 0 compare-streams.sh --frames 50 --size 640x360
    said 'num-streams=1 '
    said 'num-streams=3 '
    said '1 stream: [0-9.]+, 3 streams: [0-9.]+ frames a second; ratio [0-9]+\.[0-9]{2}$'
    ;;

  printed-line-can-be-typed)
    name="a 'quoted' name.mkv"
    make_film "$name"
    try 0 demo.sh "$name" --output "first result.mkv"
    { grep '^  export ' output; grep '^  gst-launch-1.0 ' output; } > typed
    [ "$(wc -l < typed)" -eq 2 ] || fail "expected one export and one gst-launch line"
    rm "first result.mkv"
    # In a shell that knows nothing of this test's settings.
    env -u GST_PLUGIN_PATH bash typed > typed.log 2>&1 < /dev/null || { cat typed.log >&2; fail "the line fails"; }
    holds "first result.mkv" 25
    ;;

  *) fail "there is no case '$case_name'" ;;
esac
