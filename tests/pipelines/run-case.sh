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

# Sets python to one that can do the import; skips the test when there is none.  Another one may be first on PATH
# than the one that the system's packages are for.
need_python_with() # IMPORT PACKAGE ...
{
  local import=$1
  shift
  for python in python3 /usr/bin/python3; do
    if "$python" -c "$import" > python.log 2>&1; then return; fi
  done
  printf 'skipped: no python3 that has %s\n' "$*"
  exit 77
}

import_gst='import gi; gi.require_version("Gst", "1.0"); from gi.repository import Gst'
need_python() { need_python_with "$import_gst" python3-gi gir1.2-gstreamer-1.0; }

# Sets program to the example in that language.
use_detections() # py|c
{
  export GST_PLUGIN_PATH=$CSF_BUILD_DIR/gst
  case $1 in
    py) need_python; program=("$python" "$pipelines/detections.py") ;;
    c) program=("$CSF_BUILD_DIR/pipelines/detections") ;;
  esac
}

need_rich()
{
  if ! "$python" -c 'import rich' > python.log 2>&1; then
    printf 'skipped: no Rich (python3-rich)\n'
    exit 77
  fi
}

# Runs the live view; its output is kept in the file output.
view() # STATUS WORD OF THE PIPELINE ...
{
  local expected=$1 status=0
  shift
  timeout 100 "$python" "$pipelines/live-view.py" "$@" > output 2>&1 < /dev/null || status=$?
  [ "$status" -eq "$expected" ] || fail "live-view.py $*: exit status $status, expected $expected"
}

# The same in a terminal of 80 columns, which must be left as it was.
view_in_terminal() # STATUS ROWS TEXT KEYS WORD OF THE PIPELINE ...: the keys are typed when the text is there
{
  local expected=$1 status=0
  shift
  # Ended by KILL: TERM would not reach the other terminal.
  timeout -s KILL 100 "$python" "$root/tests/pipelines/in-a-terminal.py" 80 "$1" "$2" "$3" \
    "$python" "$pipelines/live-view.py" "${@:4}" > output 2>&1 || status=$?
  [ "$status" -eq "$expected" ] || fail "live-view.py ${*:4}: exit status $status, expected $expected"
  ! grep -F Traceback output || fail "live-view.py ${*:4}: a traceback"
}

# Runs the example on the CPU; its lines are kept in the file lines, what it says in the file output.
detect() # STATUS ARGUMENT ...
{
  local expected=$1 status=0
  shift
  timeout 100 "${program[@]}" --backend cpu "$@" > lines 2> output < /dev/null || status=$?
  [ "$status" -eq "$expected" ] || fail "${program[*]} $*: exit status $status, expected $expected"
}

has_lines() # COUNT: each of valid JSON, numbered from 0, at a later time than the one before
{
  python3 - "$1" <<'PYTHON' || fail "not $1 good lines"
import json, sys
frames = [json.loads(line) for line in open('lines', encoding='utf-8')]
assert len(frames) == int(sys.argv[1]), f'{len(frames)} lines'
assert [frame['frame'] for frame in frames] == list(range(len(frames)))
assert all(a['pts'] < b['pts'] for a, b in zip(frames, frames[1:]))
assert all(isinstance(frame['records'], list) for frame in frames)
PYTHON
}

# How many records each 25th of the lines has, in lines of FILE FRAME COUNT.
sample_counts() # FILE
{
  python3 - "$1" <<'PYTHON' || fail "not lines of JSON, of $1"
import json, sys
for frame in map(json.loads, open('lines', encoding='utf-8')):
    if frame['frame'] % 25 == 0:
        print(sys.argv[1], frame['frame'], len(frame['records']))
PYTHON
}

one_line() { [ "$(wc -l < output)" -eq 1 ] || fail "expected one line of output"; }

# A film of 10 small grey frames whose first pixels say, to the tests' kernels, that there is frame 0: nothing,
# frame 1: one thing, and so on, in frame 9 with some that cannot be.
make_told_film() # FILE
{
  local i
  for i in 0 1 2 3 4 5 6 7 8 9; do
    # shellcheck disable=SC2059
    printf "\\x$i\\x0\\x$((i == 9))\\x$i"
    head -c $((320 * 64 - 4)) /dev/zero
  done > told.raw
  gst-launch-1.0 -q filesrc location=told.raw ! rawvideoparse width=320 height=64 format=gray8 framerate=25/1 \
    ! matroskamux ! filesink location="$1" || fail "cannot make a film"
}

# A trace of 60 frames in three streams, a frame of which takes 10 us to upload, 4 us in the kernel and 10 us to
# download.
make_trace() # FILE
{
  python3 - "$1" <<'PYTHON'
import json, sys
events = [{'ph': 'M', 'pid': 1, 'tid': lane, 'name': 'thread_name', 'args': {'name': name}}
          for lane, name in ((3, 'submit'), (4, 'downstream'))]
for stream in range(3):
    events += [{'ph': 'M', 'pid': 1, 'tid': 10 + 4 * stream + lane, 'name': 'thread_name',
                'args': {'name': f'stream {stream} {stage}'}}
               for lane, stage in ((0, 'upload'), (1, 'kernel'), (3, 'download'))]
for frame in range(60):
    for lane, cat, name, begin, length in ((3, 'host', 'submit', 0, 1), (10, 'device', 'upload', 1, 10),
                                           (11, 'device', 'kernel', 11, 4), (13, 'device', 'download', 15, 10),
                                           (4, 'host', 'push', 26, 1)):
        device = cat == 'device'
        events.append({'ph': 'X', 'pid': 1, 'tid': lane + (4 * (frame % 3) if device else 0), 'cat': cat, 'name': name,
                       'ts': 10 * frame + begin, 'dur': length,
                       'args': {'frame': frame, **({'stream': frame % 3} if device else {})}})
about = {'backend': 'cuda', 'device': 'A GPU', 'kernel': 'copy', 'num-streams': '3'}
with open(sys.argv[1], 'w', encoding='utf-8') as file:
    json.dump({'otherData': about, 'traceEvents': events}, file)
PYTHON
}

# Runs one of the programs in Python in tools/; what it says is kept in the file output.
tool() # STATUS TOOL ARGUMENT ...
{
  local expected=$1 command=$2 status=0
  shift 2
  timeout 100 "$python" "$root/tools/$command" "$@" > output 2>&1 < /dev/null || status=$?
  [ "$status" -eq "$expected" ] || fail "$command $*: exit status $status, expected $expected"
}

# A picture as wide as one would show it, with pixels of all the colours named (as 3b78b5).
has_colours() # FILE COLOUR ...
{
  "$python" - "$@" > output 2>&1 <<'PYTHON' || fail "$1: not the picture expected"
import sys
import matplotlib.image
pixels = (matplotlib.image.imread(sys.argv[1])[..., :3] * 255).round().astype(int)
assert pixels.shape[1] > 500, f'{pixels.shape[1]} pixels wide'
for colour in sys.argv[2:]:
    wanted = [int(colour[i:i + 2], 16) for i in (0, 2, 4)]
    count = (pixels == wanted).all(axis=-1).sum()
    assert count > 20, f'{count} pixels of {colour}'
PYTHON
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

  detections-py | detections-c)
    need bottle-detection.mp4
    film=$media/video/bottle-detection.mp4
    use_detections "${case_name#detections-}"
    detect 0 "$film"
    has_lines "$(count_frames "$film")"
    detect 0 "$film" --frames 50 --draw result.mkv
    has_lines 50
    holds result.mkv 50
    name="it's a \"film\" \\ with ! and (no) sense.mkv"
    make_film "$name"
    for ending in mp4 avi; do
      detect 0 "$name" --kernel copy --draw "the result of $name.$ending"
      has_lines 25
      holds "the result of $name.$ending" 25
    done
    detect 0 "file://$film" --kernel sobel --frames 3
    has_lines 3
    ! grep -v '"records": \[\]}$' lines || fail "sobel found something"

    # Ctrl-C, once: the program gets it alone, since timeout would send it on a second time.
    mkfifo pipe
    setsid env --default-signal=INT "${program[@]}" --backend cpu "$film" --draw short.mkv \
      > pipe 2> output < /dev/null &
    group=$!
    interrupted=no
    while IFS= read -r line; do
      printf '%s\n' "$line"
      if [ $interrupted = no ]; then interrupted=yes; kill -INT "$group"; fi
    done < pipe > lines
    wait "$group" || fail "it ended with status $? after the interrupt"
    group=
    has_lines "$(wc -l < lines)"
    holds short.mkv "$(wc -l < lines)"

    detect 1 missing.mp4
    said "there is no file 'missing.mp4'"
    one_line
    detect 1 .
    detect 1 file:///missing.mp4
    one_line
    printf 'hello\n' > text.mp4
    detect 1 text.mp4
    one_line
    gst-launch-1.0 -q audiotestsrc num-buffers=20 ! wavenc ! filesink location=sound.wav
    detect 1 sound.wav
    said 'there is no video in'
    one_line
    detect 1 "$film" --kernel no-such-kernel
    said 'no-such-kernel'
    one_line
    detect 1 "$film" --kernel-params no-such-parameter=1
    one_line
    detect 1 "$film" --draw no-such-folder/result.mkv
    one_line
    detect 1 "$name" --draw "./$name"
    said 'is the input'
    holds "$name" 25
    detect 2
    one_line
    detect 2 one two
    detect 2 "$film" --nonsense
    detect 2 "$film" --frames many
    detect 2 "$film" --frames 0
    detect 2 "$film" --draw result.txt
    detect 2 "$film" --backend gpu
    detect 2 "$film" --kernel copy --kernel-library one.so
    one_line
    detect 0 --help
    ;;

  detections-agree)
    need_python
    # The same of both, byte by byte.
    both() # ARGUMENT ...
    {
      use_detections py
      detect 0 "$@"
      mv lines lines.py
      use_detections c
      detect 0 "$@"
      cmp lines.py lines || fail "Python's and C's lines are not the same: $*"
    }
    make_told_film told.mkv
    tests=$CSF_BUILD_DIR/tests
    both told.mkv --kernel-library "$tests/element/libcsf-test-kernels.so" --kernel-function find
    has_lines 10
    objects=('{"x": 2, "y": 0, "width": 4, "height": 4, "label": "cat", "confidence": 0.25, "track_id": 0, "score": 0}'
      '{"x": 10, "y": 0, "width": 4, "height": 4, "label": "dog", "confidence": 0.25, "track_id": 1, "score": 1}')
    grep -qxF '{"frame": 0, "pts": 0, "records": []}' lines || fail "something was found in frame 0"
    grep -qxF "{\"frame\": 2, \"pts\": 0.08, \"records\": [${objects[0]}, ${objects[1]}]}" lines || {
      cat lines
      fail "not what the picture says in frame 2"
    }
    both told.mkv --kernel-library "$tests/pipelines/libcsf-test-kinds.so" --kernel-function points
    has_lines 10
    grep -qF '"records": [{"x": 0.1, "y": 0.9, "score": 0, "level": 0}, ' lines || fail "not the points"
    both told.mkv --kernel-library "$tests/pipelines/libcsf-test-kinds.so" --kernel-function bytes
    has_lines 10
    grep -qF '"record_size": 8, "bytes": "HyAhIiMkJSY="}]}' lines || { cat lines; fail "not the bytes of frame 1"; }
    need bottle-detection.mp4
    both "$media/video/bottle-detection.mp4" --frames 200
    has_lines 200
    ;;

  detections-match-golden)
    golden=$root/tests/pipelines/motiondetect-counts.txt
    use_detections c
    for film in car-detection.mp4 one-by-one-person-detection.mp4; do
      need "$film"
      detect 0 "$media/video/$film"
      has_lines "$(count_frames "$media/video/$film")"
      sample_counts "$film" >> counts
    done
    { grep '^#' "$golden"; cat counts; } > found.txt
    diff -u --label motiondetect-counts.txt --label found "$golden" found.txt > output \
      || fail "motiondetect does not find as many regions as motiondetect-counts.txt says"
    ;;

  live-view-plain-lines)
    need_python
    export GST_PLUGIN_PATH=$CSF_BUILD_DIR/gst
    small=video/x-raw,format=NV12,width=320,height=240
    # Parts of a line in one word and one in several are taken as gst-launch-1.0 takes them.
    view 0 -e -v videotestsrc is-live=true num-buffers=45 ! $small,framerate=30/1 ! \
      cudastreamfilter backend=cpu "name=a filter" fps-update-interval=200 ! fakesink sync=true
    said '^ *[0-9.]+ s  a filter: [0-9.]+ fps, .*kernel [0-9.]+ us, bound-by (up|down)stream$'
    said 's  a filter: (up|down)stream-bound: the .* keeps'
    said '^live-view.py: a filter: 45 frames processed, 0 dropped, '
    [ "$(grep -c ' fps, ' output)" -ge 4 ] || fail "expected a line each 200 ms"
    ! grep -q $'\x1b' output || fail "control sequences without a terminal"
    view 0 videotestsrc num-buffers=20 ! $small ! cudastreamfilter backend=cpu fps-update-interval=0 ! \
      cudastreamfilter backend=cpu ! fakesink
    said 'warning: cudastreamfilter[0-9]+: fps-update-interval=0 gives no figures'
    [ "$(grep -c ': 20 frames processed' output)" -eq 2 ] || fail "expected a summary of two elements"
    view 0 --help
    said '^usage: '

    # The end on TERM, in good order: the file is complete.  Then the end that never comes, and a second TERM.
    mkfifo pipe
    for line in "jpegenc ! matroskamux ! filesink location=result.mkv" "fakesink fakesink async=false"; do
      # shellcheck disable=SC2086
      setsid "$python" "$pipelines/live-view.py" videotestsrc is-live=true ! $small,framerate=30/1 ! \
        cudastreamfilter backend=cpu fps-update-interval=100 ! videoconvert ! $line > pipe 2>&1 < /dev/null &
      group=$!
      while IFS= read -r text; do
        printf '%s\n' "$text"
        # Each line of an update, so that the second one comes after the first was dealt with.
        if [[ $text == *' fps, '* ]]; then kill -TERM "$group" 2> /dev/null || true; fi
        if [[ $line == jpegenc* ]]; then cat; fi
      done < pipe > output
      status=0
      wait "$group" || status=$?
      group=
      if [[ $line == jpegenc* ]]; then
        [ $status -eq 0 ] || fail "exit status $status after TERM"
        holds result.mkv "$(sed -n 's/.*: \([0-9]*\) frames processed.*/\1/p' output)"
      else
        [ $status -eq 143 ] || fail "exit status $status after the second TERM"
      fi
    done
    ;;

  live-view-in-a-terminal)
    need_python
    need_rich
    export GST_PLUGIN_PATH=$CSF_BUILD_DIR/gst
    line=(videotestsrc is-live=true ! 'video/x-raw,format=NV12,width=320,height=240,framerate=30/1' !
      cudastreamfilter backend=cpu fps-update-interval=100)
    view_in_terminal 0 24 '' '' videotestsrc num-buffers=40 "${line[@]:2}" ! fakesink
    said 'frame time '
    said 'kernel .*█'
    said 'frames a second.* on average'
    said '-bound'
    said ': 40 frames processed, 0 dropped'
    view_in_terminal 0 24 'kernel ' ^C "${line[@]}" ! fakesink
    said ' ended'
    said ' frames processed, 0 dropped'
    view_in_terminal 0 24 'kernel ' 30x5 videotestsrc is-live=true num-buffers=30 "${line[@]:2}" ! fakesink
    said ': 30 frames processed'
    view_in_terminal 130 24 'kernel ' ^C "${line[@]}" ! queue ! fakesink fakesink async=false
    said 'did not come'
    view_in_terminal 1 24 '' '' "${line[@]}" ! identity error-after=10 ! fakesink
    said ' failed'
    said '^live-view.py: error: /.*Failed after iterations as requested'
    view_in_terminal 0 24 '' '' videotestsrc num-buffers=2 "${line[@]:2}" ! identity ! fakesink dump=true
    view_in_terminal 2 24 '' '' videotestsrc ! fakesink
    ;;

  live-view-draws-what-a-gpu-says)
    need_python
    "$python" "$root/tests/pipelines/live-view-draws.py" "$pipelines" > output 2>&1 || {
      status=$?
      [ $status -ne 77 ] || { cat output; exit 77; }
      fail "not what was expected"
    }
    ;;

  live-view-refuses-what-cannot-run)
    need_python
    export GST_PLUGIN_PATH=$CSF_BUILD_DIR/gst
    refused() { view "$@"; ! grep -F Traceback output || fail "a traceback"; }
    refused 2
    said 'expected a pipeline'
    refused 2 --nonsense videotestsrc ! cudastreamfilter ! fakesink
    said "unknown option '--nonsense'"
    refused 2 videotestsrc ! fakesink
    said 'there is no cudastreamfilter'
    refused 2 videotestsrc ! no-such-element ! cudastreamfilter ! fakesink
    said 'no-such-element'
    refused 2 videotestsrc ! cudastreamfilter no-such-property=1 ! fakesink
    said 'no-such-property'
    refused 2 videotestsrc ! ! cudastreamfilter
    refused 2 audiotestsrc ! cudastreamfilter ! fakesink
    refused 1 videotestsrc ! cudastreamfilter kernel=no-such-kernel ! fakesink
    said 'no-such-kernel'
    refused 1 filesrc location=missing.mkv ! decodebin ! cudastreamfilter ! fakesink
    said 'No such file'
    GST_PLUGIN_PATH=$scratch
    refused 2 videotestsrc ! cudastreamfilter ! fakesink
    said 'GST_PLUGIN_PATH must name'
    # Without Rich there are lines, and a word on what is missing.
    GST_PLUGIN_PATH=$CSF_BUILD_DIR/gst
    mkdir rich
    printf 'raise ImportError("none")\n' > rich/__init__.py
    export PYTHONPATH=$scratch
    view_in_terminal 0 24 '' '' videotestsrc num-buffers=20 ! cudastreamfilter backend=cpu ! fakesink
    said 'warning: .*python3-rich'
    said ' fps, .*bound-by'
    said ': 20 frames processed'
    ;;

  plot-trace-draws)
    need_python_with 'import matplotlib' python3-matplotlib
    make_trace trace.json
    tool 0 plot-trace trace.json
    said '^trace.png: 0.120 ms of trace.json, from '    # a dozen frames
    has_colours trace.png 3b78b5 d0732e 2a8f4f 6f6f6f
    tool 0 plot-trace trace.json -o trace.svg
    for words in svg 'stream 2 download' 'A GPU, kernel copy, 3 streams, 100,000 frames a second'; do
      grep -qF "$words" trace.svg || fail "the SVG lacks '$words'"
    done
    "$python" -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' trace.svg || fail "the SVG is no XML"
    # The same trace makes the same file, and what is asked for is what is shown.
    tool 0 plot-trace trace.json -o again.svg
    cmp trace.svg again.svg || fail "drawn twice it is not the same"
    tool 0 plot-trace trace.json -o part.svg --from 0.1 --duration 0.05 --title 'fifty microseconds'
    grep -qF 'fifty microseconds' part.svg || fail "the SVG lacks its title"
    said '0.050 ms of trace.json, from 0.100 ms on'
    tool 0 plot-trace trace.json -o part.png --from 0.1 --frames 3
    said '0.025 ms of trace.json, from 0.100 ms on'
    tool 0 plot-trace trace.json -o part.png --frames 1000
    has_colours part.png 3b78b5
    ;;

  plot-trace-refuses-what-is-no-trace)
    need_python_with 'import matplotlib' python3-matplotlib
    make_trace trace.json
    refused() # WORDS ARGUMENT ...: in one line
    {
      local words=$1
      shift
      tool 1 plot-trace -o result.png "$@"
      said "$words"
      one_line
      [ ! -e result.png ] || fail "it drew something"
    }
    refused 'No such file' missing.json
    refused 'Is a directory' .
    : > empty.json
    refused 'not JSON' empty.json
    head -c 1000 /dev/urandom > noise.json
    refused 'not JSON' noise.json
    head -c 5000 trace.json > short.json
    refused 'not JSON .* once the element has stopped' short.json
    printf '{"frames": 3}\n' > other.json
    refused 'no trace: expected an object' other.json
    printf '{"traceEvents": []}\n' > none.json
    refused 'without events' none.json
    printf '{"traceEvents": [{"ph": "X", "name": "kernel", "ts": "now", "dur": 1}]}\n' > words.json
    refused '"now" for .ts., expected a number' words.json
    refused 'nothing happens at 9000 ms: the trace goes from 0 to 0.617 ms' --from 9000 trace.json
    tool 1 plot-trace trace.json -o no-such-folder/result.png
    said 'no-such-folder/result.png'
    tool 2 plot-trace
    tool 2 plot-trace trace.json -o result.jpg
    tool 2 plot-trace trace.json --frames 0
    tool 2 plot-trace trace.json --duration -1
    tool 2 plot-trace trace.json --frames 3 --duration 1
    cp trace.json trace.png
    tool 1 plot-trace trace.png
    said 'is the trace itself'
    cmp trace.json trace.png || fail "the trace was overwritten"
    ;;

  trace-of-a-run-is-drawn)
    need_python_with 'import matplotlib' python3-matplotlib
    GST_PLUGIN_PATH=$CSF_BUILD_DIR/gst gst-launch-1.0 -q videotestsrc num-buffers=60 \
      ! video/x-raw,width=640,height=480 ! cudastreamfilter kernel=gaussianblur backend=cpu num-streams=2 \
        trace-location=trace.json ! fakesink \
      || fail "the pipeline fails"
    tool 0 plot-trace trace.json -o trace.svg
    grep -qF 'CPU, kernel gaussianblur, 2 streams' trace.svg || fail "the SVG lacks its title"
    grep -qF 'stream 1 kernel' trace.svg || fail "the SVG lacks the second stream"
    ;;

  notebook-runs)
    need_python_with "$import_gst; import ipykernel, matplotlib, nbclient" python3-gi gir1.2-gstreamer-1.0 \
      python3-ipykernel python3-matplotlib python3-nbclient
    notebook=$pipelines/overlap.ipynb
    "$python" - "$notebook" <<'PYTHON' || fail "$notebook is not as it should be committed: without outputs"
import nbformat, sys
notebook = nbformat.read(sys.argv[1], as_version=4)
nbformat.validate(notebook)
assert not any(cell.get('outputs') or cell.get('execution_count') for cell in notebook.cells)
PYTHON
    # No device, so that it is the CPU here and the same on every machine.
    export GST_PLUGIN_PATH=$CSF_BUILD_DIR/gst CUDA_VISIBLE_DEVICES=
    tool 0 run-notebook "$notebook" result.ipynb
    cat output
    has_colours result-1.png d0732e     # the throughput
    has_colours result-2.png d0732e     # the timeline
    GST_PLUGIN_PATH=$scratch tool 1 run-notebook "$notebook" result.ipynb
    said "GStreamer has no cudastreamfilter; GST_PLUGIN_PATH is $scratch"
    ;;

  readme-exporter)
    need_python_with "$import_gst; import prometheus_client" python3-gi python3-prometheus-client
    export GST_PLUGIN_PATH=$CSF_BUILD_DIR/gst
    sed -n '/^<!-- file: exporter.py -->/,/^[^ <]/s/^    //p' "$root/README.md" > exporter.py
    [ "$(wc -l < exporter.py)" -gt 15 ] || fail "the README has no exporter.py"
    port=$((20000 + $$ % 20000))
    "$python" exporter.py "$port" videotestsrc is-live=true num-buffers=300 ! \
      video/x-raw,format=NV12,width=160,height=120,framerate=60/1 ! \
      cudastreamfilter name=x backend=cpu fps-update-interval=100 ! fakesink > output 2>&1 &
    for ((i = 0; i < 100; i++)); do
      sleep 0.1
      "$python" -c 'import http.client as h, sys; c = h.HTTPConnection("127.0.0.1", int(sys.argv[1]))
c.request("GET", "/metrics"); print(c.getresponse().read().decode())' "$port" > metrics 2> fetching || continue
      if grep -q '^cudastreamfilter_processed{element="x"} [1-9]' metrics; then break; fi
    done
    wait
    for name in fps kernel_time kernel_time_p99 latency efficiency num_streams; do
      grep -q "^cudastreamfilter_$name{element=\"x\"} [0-9]" metrics || fail "no metric $name: $(cat output fetching)"
    done
    ;;

  *) fail "there is no case '$case_name'" ;;
esac
