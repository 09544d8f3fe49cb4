#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a kernel finds in a video, from Python: one line of JSON a frame, and on request a copy of the video with
boxes drawn.  An example of cudastreamfilter inside an application; detections.c is the same in C, to the byte.
Knows GStreamer and the structures of cudastreamfilter/kernel.h, nothing else of this project."""

import argparse
import base64
import json
import math
import os
import re
import signal
import struct
import sys

try:
    import gi
    gi.require_version('Gst', '1.0')
    from gi.repository import GLib, Gst
except (ImportError, ValueError) as problem:
    sys.exit(f'detections.py: error: {sys.executable} cannot use GStreamer ({problem}); the packages are python3-gi '
             'and gir1.2-gstreamer-1.0, for the python3 in /usr/bin')

RECORDS = 'cudastreamfilter-records'
OBJECT = struct.Struct('5f2if')     # csfk_object: x y width height confidence, label track_id, score
POINT = struct.Struct('3fi')        # csfk_point: x y score, level
MUXERS = {'.mkv': 'matroskamux', '.mp4': 'mp4mux', '.avi': 'avimux'}
# H.264 encoders want even sizes; this changes a picture only where it is odd.
EVEN = 'videoscale ! video/x-raw,format=I420,width=[2,16384,2],height=[2,16384,2] ! '
ENCODERS = (('x264enc', EVEN + 'x264enc speed-preset=veryfast'),
            ('openh264enc', EVEN + 'openh264enc bitrate=4000000 ! h264parse'),
            ('jpegenc', 'jpegenc'))


class Failure(Exception):
    """What goes wrong, in one line for the user."""


# ---- what is on a frame ---------------------------------------------------------------------------


def number(value, digits=7):
    """A number of so many digits, as many as the samples have, so that it reads 0.9 and not 0.8999999761581421."""
    if not math.isfinite(value):
        return None
    value = float(f'{value:.{digits}g}')
    return int(value) if value.is_integer() else value


def describe_object(name, labels, fields):
    x, y, width, height, confidence, label, track_id, score = fields
    record = {'x': number(x), 'y': number(y), 'width': number(width), 'height': number(height),
              'label': labels[label] if 0 <= label < len(labels) else name}
    if confidence >= 0:
        record['confidence'] = number(confidence)
    if track_id >= 0:
        record['track_id'] = track_id
    record['score'] = number(score)
    return record


def read_records(buffer):
    """The records of a frame, as dictionaries; none where the kernel finds nothing."""
    meta = buffer.get_custom_meta(RECORDS)
    if meta is None:
        return []
    fields = meta.get_structure()
    kind, name, size = (fields.get_value(key) for key in ('kind', 'name', 'record-size'))
    data = fields.get_value('data').get_data() or b''
    places = range(0, len(data), size)
    if kind == 'object':
        labels = fields.get_value('labels') or []
        return [describe_object(name, labels, OBJECT.unpack_from(data, at)) for at in places]
    if kind == 'point':
        return [{'x': number(x), 'y': number(y), 'score': number(score), 'level': level}
                for x, y, score, level in (POINT.unpack_from(data, at) for at in places)]
    return [{'name': name, 'record_size': size, 'bytes': base64.b64encode(data[at:at + size]).decode()}
            for at in places]


# ---- the pipeline ---------------------------------------------------------------------------------


def have(element):
    return Gst.ElementFactory.find(element) is not None


def drawing(options):
    """The end of the pipeline that draws, encodes and writes a file."""
    muxer = MUXERS[os.path.splitext(options.draw)[1]]
    encoder = next((words for name, words in ENCODERS if have(name)), None)
    if encoder is None:
        raise Failure('no video encoder: GStreamer has neither x264enc nor openh264enc nor jpegenc')
    return (f'cudastreamfilter backend={options.backend} kernel=drawregions kernel-params=color=0 ! videoconvert ! '
            f'{encoder} ! {muxer} ! filesink name=file')


def uri_of(text):
    """The URI of a file or URI, after checking it."""
    if not os.path.exists(text) and '://' in text:
        return text
    if not os.path.exists(text):
        raise Failure(f"there is no file '{text}'")
    if not os.path.isfile(text):
        raise Failure(f"'{text}' is not a file")
    if not os.access(text, os.R_OK):
        raise Failure(f"no permission to read '{text}'")
    if os.path.getsize(text) == 0:
        raise Failure(f"'{text}' is empty")
    return Gst.filename_to_uri(text)


class Detections:
    """The pipeline and its main loop.  on_frame() and the on_pad() functions are called by threads of GStreamer's,
    on_message() by the loop."""

    def __init__(self, options):
        self.options, self.frame = options, 0
        self.problem, self.told = None, set()   # of the loop
        self.loop = GLib.MainLoop()
        uri = uri_of(options.input)
        if not have('cudastreamfilter'):
            raise Failure('GStreamer has no cudastreamfilter: GST_PLUGIN_PATH must name the folder of '
                          'libgstcudastream.so, such as build/gst')
        if options.draw and os.path.exists(options.draw) and os.path.exists(options.input) \
                and os.path.samefile(options.draw, options.input):
            raise Failure(f"'{options.draw}' is the input: --draw needs another name")
        end = drawing(options) if options.draw else 'fakesink sync=false enable-last-sample=false'
        try:
            self.pipeline = Gst.parse_launch_full(
                'uridecodebin name=source videoconvert name=convert ! '
                f'cudastreamfilter name=filter backend={options.backend} ! {end}',
                None, Gst.ParseFlags.FATAL_ERRORS)
        except GLib.Error as error:
            raise Failure(error.message) from error
        self.set_properties(uri)
        source = self.pipeline.get_by_name('source')
        source.connect('pad-added', self.on_pad)
        source.connect('no-more-pads', self.on_last_pad)
        self.pipeline.get_by_name('filter').get_static_pad('src').add_probe(Gst.PadProbeType.BUFFER, self.on_frame)
        bus = self.pipeline.get_bus()
        bus.add_signal_watch()
        bus.connect('message', self.on_message)

    def set_properties(self, uri):
        options, by_name = self.options, self.pipeline.get_by_name
        by_name('source').set_property('uri', uri)
        for name in ('kernel', 'kernel-library', 'kernel-function', 'kernel-params'):
            value = getattr(options, name.replace('-', '_'))
            if value is not None:
                by_name('filter').set_property(name, value)
        if options.draw:
            by_name('file').set_property('location', options.draw)

    def on_pad(self, _source, pad):
        caps = pad.query_caps(None)
        sink = self.pipeline.get_by_name('convert').get_static_pad('sink')
        if caps.get_size() > 0 and caps.get_structure(0).get_name().startswith('video/') and not sink.is_linked():
            pad.link(sink)

    def on_last_pad(self, source):
        if not self.pipeline.get_by_name('convert').get_static_pad('sink').is_linked():
            self.fail(f"there is no video in '{self.options.input}'")

    def on_frame(self, pad, info):
        try:
            if self.frame == self.options.frames:
                pad.push_event(Gst.Event.new_eos())
                return Gst.PadProbeReturn.DROP
            buffer = info.get_buffer()
            pts = None if buffer.pts == Gst.CLOCK_TIME_NONE else number(buffer.pts / Gst.SECOND, 15)
            line = {'frame': self.frame, 'pts': pts, 'records': read_records(buffer)}
            self.frame += 1
            print(json.dumps(line, ensure_ascii=False), flush=True)
        except OSError as error:
            self.fail(f'cannot write a line: {error.strerror}')
        except Exception as error:  # pylint: disable=broad-except
            # It would get lost in GStreamer's thread.
            self.fail(f'frame {self.frame}: {error!r}')
        return Gst.PadProbeReturn.OK

    def fail(self, text):
        """From any thread: ends the run."""
        what = Gst.Structure.new_empty('failed')
        what.set_value('text', text.encode('utf-8', 'replace').decode())
        self.pipeline.post_message(Gst.Message.new_application(self.pipeline, what))

    def on_message(self, _bus, message):
        if message.type == Gst.MessageType.ERROR:
            error, debug = message.parse_error()
            # "Internal data stream error" says little: its reason is the last line of what is for debugging.
            reason = (debug or '').split('\n')[-1]
            more = f' ({reason})' if 'reason' in reason else ''
            self.stop(f'{message.src.get_name()}: {error.message}{more}')
        elif message.type == Gst.MessageType.WARNING:
            text = message.parse_warning()[0].message
            if text not in self.told:
                self.told.add(text)
                say('warning', text)
        elif message.type == Gst.MessageType.APPLICATION:
            self.stop(message.get_structure().get_value('text'))
        elif message.type == Gst.MessageType.EOS:
            self.stop(None)

    def stop(self, problem):
        self.problem = self.problem or problem
        self.loop.quit()

    def run(self):
        """Until the end of the video, a failure, or Ctrl-C, which ends the video early and in good order.  A second
        one, and one before the video has begun, is not caught."""
        try:
            self.pipeline.set_state(Gst.State.PLAYING)
            try:
                self.loop.run()
            except KeyboardInterrupt:
                if self.frame == 0:
                    raise
                self.pipeline.send_event(Gst.Event.new_eos())
                self.loop.run()
        finally:
            self.pipeline.set_state(Gst.State.NULL)
        if self.problem is not None:
            raise Failure(self.problem)


# ---- the command line -----------------------------------------------------------------------------


def say(kind, text):
    print(f'detections.py: {kind}:', ' '.join(text.split()), file=sys.stderr)


class Parser(argparse.ArgumentParser):
    def error(self, message):
        say('error', f'{message}; --help tells how it is used')
        sys.exit(2)


def frame_count(text):
    if not re.fullmatch(r'[1-9][0-9]{0,8}', text):
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of frames")
    return int(text)


def video_name(text):
    if os.path.splitext(text)[1] not in MUXERS:
        raise argparse.ArgumentTypeError(f"'{text}' must end in .mkv, .mp4 or .avi")
    return text


def parse_options():
    parser = Parser(prog='detections.py', allow_abbrev=False, description='Prints what a kernel of cudastreamfilter '
                    'finds in a video, one line of JSON a frame.  Ctrl-C ends it in good order, a second one at once.')
    parser.add_argument('input', metavar='FILE|URI')
    parser.add_argument('--kernel', metavar='NAME', help='what looks at each frame (default: motiondetect)')
    parser.add_argument('--kernel-params', metavar='TEXT', help='its parameters (default, of motiondetect: show=frame)')
    parser.add_argument('--kernel-library', metavar='PATH',
                        help='a library of kernels of your own, instead of --kernel')
    parser.add_argument('--kernel-function', metavar='NAME', help='which of its kernels')
    parser.add_argument('--draw', metavar='OUT', type=video_name,
                        help='write the video with boxes drawn (.mkv, .mp4, .avi), over what is there')
    parser.add_argument('--backend', choices=('auto', 'cuda', 'cpu'), default='auto', help='where kernels run')
    parser.add_argument('--frames', metavar='N', type=frame_count, help='end after so many frames')
    options = parser.parse_args()
    if '' in (options.kernel, options.kernel_library):
        parser.error('--kernel and --kernel-library: expected a name, got an empty text')
    if options.kernel_library and options.kernel:
        parser.error('--kernel or --kernel-library, not both')
    if options.kernel_function and not options.kernel_library:
        parser.error('--kernel-function is for --kernel-library')
    if not options.kernel and not options.kernel_library:
        options.kernel = 'motiondetect'
    # Its picture is a mask unless told otherwise.
    if options.kernel == 'motiondetect' and options.kernel_params is None:
        options.kernel_params = 'show=frame'
    return options


def main():
    options = parse_options()
    # Ends like any other program when nobody reads its lines any more.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if sys.stdout is None:
        say('error', 'standard output is closed')
        return 1
    sys.stdout.reconfigure(encoding='utf-8')
    Gst.init(None)
    try:
        Detections(options).run()
    except Failure as failure:
        say('error', str(failure))
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == '__main__':
    sys.exit(main())
