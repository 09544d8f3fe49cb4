#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs a gst-launch line that has a cudastreamfilter and shows in the terminal, while it runs, how long the stages of
a frame take, what bounds the throughput and what to do about it.  Knows GStreamer and the statistics that the element
posts, nothing else of this project; every field may be missing.  Rich draws."""

import collections
import itertools
import os
import re
import signal
import sys
import textwrap
import threading
import time

try:
    import gi
    gi.require_version('Gst', '1.0')
    from gi.repository import GLib, Gst
except (ImportError, ValueError) as problem:
    sys.exit(f'live-view.py: error: {sys.executable} cannot use GStreamer ({problem}); the packages are python3-gi '
             'and gir1.2-gstreamer-1.0, for the python3 in /usr/bin')

try:
    from rich.console import Console, Group
    from rich.live import Live
    from rich.panel import Panel
    from rich.text import Text
except ImportError:
    Console = None

USAGE = """\
usage: pipelines/live-view.py [-e] [-v] PIPELINE...

Runs a pipeline as gst-launch-1.0 does and shows live what each cudastreamfilter in it does: the stages of a frame
against the time from frame to frame, throughput, what bounds it with a line of advice, and the GPU.  Where output is
not a terminal it prints a line at each update instead.

  PIPELINE      as for gst-launch-1.0; the shell needs \\! or '!' where it takes ! for itself
  -e, -v        as in gst-launch-1.0 lines, without effect: it always ends in good order, and always shows more
  --gst-...     GStreamer's own options; gst-launch-1.0 --help-gst lists them
  -h, --help    this text

Ctrl-C (or SIGTERM) ends the pipeline as gst-launch-1.0 -e does: end of stream, so that a file being written is
complete, then at most 10 seconds for the last frames.  A second one stops at once.  What elements print is shown below
the view; 2> FILE keeps what goes to standard error.

Exit status: 0 at the end of the stream and after Ctrl-C, 1 after an error, 2 for a line that cannot be run, 130
(SIGTERM: 143) when the end was not waited for.

Examples, after export GST_PLUGIN_PATH=$PWD/build/gst:
  pipelines/live-view.py videotestsrc ! video/x-raw,width=1920,height=1080 ! cudastreamfilter kernel=sobel ! fakesink
  pipelines/live-view.py filesrc location=in.mp4 ! decodebin ! videoconvert ! cudastreamfilter ! autovideosink
  pipelines/live-view.py v4l2src ! videoconvert ! cudastreamfilter ! videoconvert ! autovideosink
  pipelines/live-view.py videotestsrc num-buffers=2000 ! cudastreamfilter num-streams=1 ! fakesink | tee lines.txt
"""

STATS = 'cudastreamfilter-stats'
STAGES = {'staging': 'yellow', 'submit': 'bright_yellow', 'upload': 'cyan', 'kernel': 'green', 'records': 'blue',
          'download': 'magenta'}
BYTES_A_PIXEL = {'YUY2': 2, 'UYVY': 2, 'RGB': 3, 'BGR': 3, 'P010_10LE': 3,
                 'RGBx': 4, 'BGRx': 4, 'RGBA': 4, 'BGRA': 4}
INTERVAL_MS = 500       # for elements whose own is off
REFRESH_MS = 250
END_SECONDS = 10

# What is drawn with: parts of a cell from empty to full, along and upwards, the 99th percentile, the frame time.
Glyphs = collections.namedtuple('Glyphs', 'along upwards tail marker arrow')
BLOCKS = Glyphs(' ▏▎▍▌▋▊▉█', ' ▁▂▃▄▅▆▇█', '─', '│', '▼')
ASCII = Glyphs(' #', ' .-=#', '-', '|', 'v')

Caps = collections.namedtuple('Caps', 'format width height rate')


def printable(text):
    """In one line, and without what would steer the terminal, such as colours."""
    text = re.sub(r'\x1b\[[0-9;]*[A-Za-z]', '', str(text))
    return ''.join(c if c.isprintable() else '?' for c in ' '.join(text.split()))


def microseconds(ns):
    value = ns / 1e3
    return f'{value:.2f}' if value < 10 else f'{value:.1f}' if value < 1000 else f'{value:,.0f}'


def rate(fps):
    return f'{fps:.1f}' if fps < 1000 else f'{fps:,.0f}'


def size(count):
    for unit in ('bytes', 'KB', 'MB'):
        if count < 1000:
            return f'{count:.3g} {unit}'
        count /= 1000
    return f'{count:.3g} GB'


# ---- what is known of an element ------------------------------------------------------------------


class Filter:
    """A cudastreamfilter: its latest statistics, those before, and where it stands."""

    def __init__(self, name):
        self.name = printable(name)
        self.fields = {}
        self.history = collections.deque(maxlen=1000)
        self.caps = None            # of its input
        self.live = False           # is the source?
        self.clocked = False        # does a sink of the pipeline keep to the clock?
        self.copied = 0             # share of the last interval's frames

    def update(self, fields):
        frames = fields.get('processed', 0) - self.get('processed')
        copies = fields.get('host-copies', 0) - self.get('host-copies')
        self.copied = min(copies / frames, 1) if frames > 0 else 0
        self.fields = fields
        self.history.append(self.get('fps'))

    def get(self, name):
        return self.fields.get(name, 0)

    def frame_time(self):
        """Nanoseconds from frame to frame; 0 where there was none."""
        return self.get('frame-time') or (1e9 / self.get('fps') if self.get('fps') > 0 else 0)

    def stages(self):
        """Name, mean and 99th percentile (0: not known) of those that there are."""
        on_cpu = self.get('backend') == 'cpu'
        for name in STAGES:
            mean = self.fields.get(f'{name}-time')
            # The CPU backend copies nothing.
            if mean is not None and (mean > 0 or not (on_cpu or name == 'records')):
                yield name, mean, self.get(f'{name}-time-p99')

    def title(self):
        parts = [self.name]
        if self.fields:
            where = self.get('device') or self.get('backend')
            parts += [f"{self.get('kernel') or 'kernel'} on {printable(where)}"]
            if self.get('num-streams'):
                parts += [f"{self.get('num-streams')} stream{'s' * (self.get('num-streams') > 1)}"]
        if self.caps is not None:
            parts += [f'{self.caps.width}x{self.caps.height} {self.caps.format}']
        return ', '.join(parts)

    def verdict(self):
        return printable(self.get('bound-by') or 'unknown')

    def advice(self):
        """One sentence on what bounds the throughput and what helps."""
        verdict, on_gpu = self.verdict(), self.get('backend') == 'cuda'
        staged = verdict == 'upload' and self.get('staging-time') > self.get('upload-time')
        if staged or verdict in ('submit', 'upload', 'download') and self.copied > 0.1:
            return ('frames lie in pageable memory and are copied once more: let a decoder or converter right before '
                    'the filter write into its pinned buffers, or raise max-pinned-memory')
        if on_gpu and verdict in ('upload', 'kernel', 'download') and self.get('num-streams') == 1:
            return 'with one stream upload, kernel and download wait for each other; num-streams=3 overlaps them'
        known = {'upstream': self.upstream_advice, 'submit': self.submit_advice, 'upload': self.upload_advice,
                 'kernel': self.kernel_advice, 'download': self.download_advice,
                 'downstream': self.downstream_advice}
        return known[verdict]() if verdict in known else ''

    def upstream_advice(self):
        fps = rate(self.get('fps'))
        if self.live:
            return f'the live source gives {fps} frames a second, and the filter keeps up'
        decoder = 'decode on the GPU (nvh264dec), or ' if self.get('backend') == 'cuda' else ''
        return (f'the source gives {fps} frames a second, and the filter waits for it: {decoder}put a queue between '
                'the elements before the filter')

    def submit_advice(self):
        cost = ('the driver calls for each take longer than its copies and its kernel'
                if self.get('backend') == 'cuda' else 'handing each to the workers takes longer than its kernel')
        return f'frames are small: {cost}; fewer and larger frames help'

    def upload_advice(self):
        return f'copying frames to the GPU takes longest: decode there (nvh264dec){self.fewer_bytes()}'

    def download_advice(self):
        return ('copying results back takes longest: keep them in CUDA memory (nvh264enc, or cudadownload later)'
                + self.fewer_bytes())

    def fewer_bytes(self):
        count = BYTES_A_PIXEL.get(self.caps.format) if self.caps is not None else None
        return f', or use NV12 (1.5 bytes a pixel, {self.caps.format} has {count})' if count else ''

    def kernel_advice(self):
        if self.get('backend') == 'cuda':
            return 'the kernel takes longest: smaller frames, a lighter kernel or a faster GPU help'
        workers, processors = self.get('num-streams'), len(os.sched_getaffinity(0))
        if 0 < workers < processors:
            return f'the kernel takes longest, on {workers} of {processors} processors; num-streams=0 uses all'
        return 'the kernel takes longest, on the CPU: a GPU (backend=cuda), smaller frames or a lighter kernel help'

    def downstream_advice(self):
        own_speed = self.caps is not None and self.caps.rate > 0 and self.get('fps') > 0.9 * self.caps.rate
        if self.clocked and own_speed:
            return ("the sink keeps to the clock, at the video's own speed"
                    + (', and the filter keeps up' if self.live else '; with sync=false it runs as fast as it can'))
        encoder = ', or encode on the GPU (nvh264enc)' if self.get('backend') == 'cuda' else ''
        return ('what follows the filter takes longest: put a queue between the elements after it, or make them '
                'faster (smaller frames, a faster preset)' + encoder)


# ---- drawing --------------------------------------------------------------------------------------

LABEL, FIGURE = 9, 9    # columns


def line(*parts):
    """Of texts and (text, style) pairs, in one row."""
    return Text.assemble(*parts, no_wrap=True, overflow='ellipsis')


def bar(width, full, mean, p99, frame, style, glyphs):
    """A stage's mean with a tail to its 99th percentile, and where the frame time is."""
    steps = len(glyphs.along) - 1
    filled = min(max(round(mean / full * width * steps), mean > 0), width * steps)
    cells = [(glyphs.along[min(max(filled - cell * steps, 0), steps)], style) for cell in range(width)]
    for cell in range(-(-filled // steps), min(round(p99 / full * width), width)):
        cells[cell] = (glyphs.tail, f'dim {style}')
    if frame:
        cells[int(frame / full * width)] = (glyphs.marker, 'bold')
    return [(''.join(text for text, _ in run), one) for one, run in itertools.groupby(cells, key=lambda cell: cell[1])]


def chart(values, width, rows, glyphs):
    """The latest values as columns from 0 to the highest."""
    values = list(values)[-width:]
    steps, top = len(glyphs.upwards) - 1, max(values) or 1
    heights = [max(round(value / top * rows * steps), value > 0) for value in values]
    return [''.join(glyphs.upwards[min(max(height - row * steps, 0), steps)] for height in heights)
            for row in reversed(range(rows))]


def stage_lines(one, width, glyphs):
    stages, frame = list(one.stages()), one.frame_time()
    if not stages:
        return []
    tails = any(p99 for _, _, p99 in stages) and width >= 45
    left = LABEL + FIGURE * (1 + tails) + 2
    room = width - left
    full = max(frame * 1.25, max(mean for _, mean, _ in stages) * 1.05, 1)
    head = f"{'stage':{LABEL}}{'mean us':>{FIGURE}}" + (f"{'p99 us':>{FIGURE}}" if tails else '') + '  '
    told = f'frame time {microseconds(frame)} us'
    at = int(frame / full * max(room, 0))
    if frame and room >= len(told) + 2:
        told = f'{told} {glyphs.arrow}'.rjust(at + 1) if at > len(told) else f"{' ' * at}{glyphs.arrow} {told}"
    else:
        told = ''
    lines = [(6, line((head, 'dim'), told))]
    for name, mean, p99 in stages:
        bold = 'bold ' if name == one.verdict() else ''
        figures = f'{microseconds(mean):>{FIGURE}}'
        if tails:
            figures += f"{microseconds(p99) if p99 else '':>{FIGURE}}"
        cells = bar(room, full, mean, p99, frame, STAGES[name], glyphs) if room >= 4 else []
        lines.append((2 if name in ('upload', 'kernel', 'download') else 5,
                      line((f'{name:{LABEL}}', bold + STAGES[name]), (figures, bold.strip()), '  ', *cells)))
    return lines


def gpu_lines(one):
    words = []
    if 'gpu-utilization' in one.fields:
        words.append(f"{one.get('gpu-utilization'):.0f} % in use")
    if 'gpu-memory-used' in one.fields:
        of_all = f" of {size(one.get('gpu-memory-total'))}" if one.get('gpu-memory-total') else ''
        words.append(f"memory {size(one.get('gpu-memory-used'))}{of_all}")
    clocks = [f'{what}{one.get(name)} MHz' for what, name in (('', 'gpu-clock'), ('memory ', 'gpu-memory-clock'))
              if one.get(name)]
    if clocks:
        words.append(', '.join(clocks))
    lines = [(5, line(f"{'GPU':{LABEL}}", '; '.join(words)))] if words else []
    buffers = [f'{size(one.get(name))} {what}' for what, name in
               (('pinned', 'pinned-bytes'), ('on the device', 'device-bytes')) if one.get(name)]
    if buffers:
        lines.append((9, line(f"{'buffers':{LABEL}}", ', '.join(buffers))))
    return lines


def explanation(one):
    """What overlap and efficiency mean; on the CPU only kernels overlap."""
    at_once = 'frames' if one.get('backend') == 'cpu' else 'stages'
    return line(('overlap ', 'dim'), f"{one.get('overlap'):.2f}", (f' = {at_once} at work at once; ', 'dim'),
                ('efficiency ', 'dim'), f"{one.get('efficiency') * 100:.0f} %", (' = longest stage busy', 'dim'))


def filter_lines(one, width, height, glyphs):
    """The inside of an element's panel: rows by rank, those of the highest rank left out where height is short."""
    if not one.fields:
        return [line('no frame yet')][:height]
    verdict = f'{one.verdict()}-bound'
    advice = textwrap.wrap(f'{verdict}: {one.advice()}' if one.advice() else verdict, max(width, 20))
    counts = [f"{one.get('processed'):,} processed", f"{one.get('dropped'):,} dropped"]
    if one.get('records'):
        counts.append(f"{one.get('records'):,} records")
    if 'latency' in one.fields:
        p99 = f" (p99 {microseconds(one.get('latency-p99'))})" if one.get('latency-p99') else ''
        counts.append(f"latency {microseconds(one.get('latency'))}{p99} us")
    if one.get('in-flight'):
        counts.append(f"{one.get('in-flight'):.1f} in flight")
    rows = [(0, line((f"{rate(one.get('fps'))} frames a second", 'bold'), f", {rate(one.get('avg-fps'))} on average")),
            (3, line(', '.join(counts)))]
    after = stage_lines(one, width, glyphs)
    after.append((7, explanation(one)))
    for rank, text in zip((1, 3, 8, 8), advice):
        after.append((rank, line((text[:len(verdict)], 'bold yellow'), text[len(verdict):])
                      if rank == 1 else line(text)))
    after += gpu_lines(one)
    # What is left of the height is for the history.
    deep = min(max(height - len(rows) - len(after), 1), 5)
    left = LABEL + FIGURE + 2
    if width - left >= 8:
        for number, columns in enumerate(chart(one.history, width - left, deep, glyphs)):
            label, figure = ('history', rate(max(one.history))) if number == 0 else ('', '')
            if number == deep - 1 and deep > 1:
                figure = '0'
            rows.append((4 if number == 0 else 10, line((f'{label:{LABEL}}{figure:>{FIGURE}}  ', 'dim'),
                                                        (columns, 'green'))))
    rows += after
    while len(rows) > height:
        rows.remove(max(reversed(rows), key=lambda row: row[0]))
    return [row for _, row in rows]


class View:
    """All that is on the screen, as large as Rich says it may be."""

    def __init__(self, filters):
        self.filters = filters
        self.notes = collections.deque(maxlen=3)    # warnings and what elements print, the latest
        self.state = ''

    def note_lines(self, width, height):
        """The latest, and of those before as many as there is room for."""
        lines = []
        for note in reversed(self.notes):
            lines = textwrap.wrap(note, max(width - 1, 20), subsequent_indent='  ')[:height - len(lines)] + lines
        return lines

    def __rich_console__(self, console, options):
        width, height = options.max_width, options.height or console.size.height - 1
        glyphs = ASCII if options.ascii_only else BLOCKS
        notes = self.note_lines(width, height // 6 if height > 3 else 0)
        height -= len(notes) + 1
        count = max(len(self.filters), 1)
        if height // count >= 4 and width >= 24:
            for one in self.filters:
                title = line((one.title(), 'bold'))
                title.truncate(width - 6, overflow='ellipsis')
                inside = filter_lines(one, width - 4, height // count - 2, glyphs)
                yield Panel(Group(*inside), title=title, title_align='left', border_style='dim', width=width,
                            height=len(inside) + 2)
        else:
            for one in self.filters[:max(height, 1)]:
                yield line((one.name, 'bold'), f" {rate(one.get('fps'))} fps", (f' {one.verdict()}-bound', 'yellow'))
        for note in notes:
            yield line((note, 'yellow'))
        yield line((self.state, 'dim'))


class Terminal:
    """The view on the terminal's other screen.  What elements print meanwhile, with standard output and with standard
    error where that is a terminal, comes through a pipe to the notes."""

    def __init__(self, filters):
        sys.stdout.flush()
        self.saved = {fd: os.dup(fd) for fd in (1, 2) if os.isatty(fd)}
        self.file = open(os.dup(1), 'w', encoding=sys.stdout.encoding, errors='replace')
        self.console = Console(file=self.file)
        self.view = View(filters)
        self.live = Live(self.view, console=self.console, screen=True, auto_refresh=False,
                         redirect_stdout=False, redirect_stderr=False)
        reading, writing = os.pipe()
        for fd in self.saved:
            os.dup2(writing, fd)
        os.close(writing)
        self.reader = threading.Thread(target=self.read, args=(reading,), daemon=True)
        self.reader.start()
        self.fit()
        self.live.start(refresh=True)

    def read(self, reading):
        rest = b''
        while data := os.read(reading, 65536):
            *lines, rest = (rest + data).split(b'\n')
            rest = rest[-65536:]
            # There may be far more of it than anybody sees, and no element must wait for this.
            for text in [text for text in lines if text.strip()][-self.view.notes.maxlen:]:
                self.note(text.decode(errors='replace'))
        os.close(reading)
        if rest.strip():
            self.note(rest.decode(errors='replace'))

    def note(self, text):
        self.view.notes.append(printable(text))

    def updated(self, one):
        """It is drawn at the next refresh."""

    def fit(self):
        """Rich asks standard input, output and error for the size, and these may lead elsewhere."""
        columns, rows = os.get_terminal_size(self.file.fileno())
        self.console.size = (columns or 80, rows or 24)

    def refresh(self, state):
        self.fit()
        self.view.state = state
        self.live.refresh()

    def close(self, state):
        """Leaves the last picture on the terminal's usual screen."""
        self.live.stop()
        for fd, saved in self.saved.items():
            os.dup2(saved, fd)
            os.close(saved)
        self.reader.join(timeout=1)
        self.view.state = state
        self.console.print(self.view)
        self.file.close()


class Lines:
    """A line at each update, where there is no terminal or nothing to draw with."""

    def __init__(self):
        self.start = time.monotonic()
        self.told = {}

    def print(self, text):
        print(f'{time.monotonic() - self.start:7.1f} s  {text}', flush=True)

    def note(self, text):
        say('warning', text)

    def updated(self, one):
        stages = ', '.join(f'{name} {microseconds(mean)}' for name, mean, _ in one.stages())
        self.print(f"{one.name}: {one.get('fps'):.1f} fps, {stages} us, bound-by {one.verdict()}")
        if self.told.get(one.name) != one.verdict():
            self.told[one.name] = one.verdict()
            if one.advice():
                self.print(f'{one.name}: {one.verdict()}-bound: {one.advice()}')

    def refresh(self, state):
        """There is nothing to refresh."""

    def close(self, state):
        """All is printed."""


# ---- the pipeline ---------------------------------------------------------------------------------


class Refused(Exception):
    """A line that cannot be run."""


def say(kind, text):
    print(f'live-view.py: {kind}: {text}', file=sys.stderr, flush=True)


def elements_of(pipeline):
    """All, inside bins too.  Works without gst-python's overrides."""
    found, more = [], pipeline.iterate_recurse()
    while True:
        result, element = more.next()
        if result == Gst.IteratorResult.RESYNC:
            found.clear()
            more.resync()
        elif result != Gst.IteratorResult.OK:
            return found
        else:
            found.append(element)


def is_filter(element):
    factory = element.get_factory()
    return factory is not None and factory.get_name() == 'cudastreamfilter'


def build(words):
    try:
        pipeline = Gst.parse_launchv(words)
    except GLib.Error as error:
        hint = ''
        if 'cudastreamfilter' in error.message and Gst.ElementFactory.find('cudastreamfilter') is None:
            hint = '; GST_PLUGIN_PATH must name the folder of libgstcudastream.so, such as build/gst'
        raise Refused(f'{error.message}{hint}') from error
    if not isinstance(pipeline, Gst.Pipeline):
        whole = Gst.Pipeline.new(None)
        whole.add(pipeline)
        return whole
    return pipeline


class Run:
    """The pipeline and its main loop, in which everything here is called."""

    def __init__(self, words):
        self.pipeline = build(words)
        elements = elements_of(self.pipeline)
        self.elements = [element for element in elements if is_filter(element)]
        if not self.elements:
            raise Refused('there is no cudastreamfilter in this pipeline, so there is nothing to show')
        # By name, in the order of the line; the iterator begins with what was added last.
        self.elements.reverse()
        self.filters = {element: Filter(element.get_name()) for element in self.elements}
        self.sinks = [element for element in elements if element.find_property('sync') is not None
                      and element.get_static_pad('src') is None]
        self.loop = GLib.MainLoop()
        self.start = time.monotonic()
        self.live = self.prerolled = self.buffering = False
        self.percent = 100
        self.signal = 0             # the one that is ending the pipeline
        self.status, self.error = 0, ''
        self.out = None

    def run(self):
        on_terminal = sys.stdout.isatty() and os.environ.get('TERM', 'dumb') != 'dumb'
        if on_terminal and Console is None:
            say('warning', 'printing lines, since the live view needs Rich (Debian and Ubuntu: python3-rich, pip and '
                           f'conda: rich), which {sys.executable} does not have')
        self.out = Terminal(list(self.filters.values())) if on_terminal and Console is not None else Lines()
        try:
            for number in (signal.SIGINT, signal.SIGTERM):
                # By way of the loop, which may not run yet.
                signal.signal(number, lambda number, _frame: GLib.idle_add(self.interrupt, number,
                                                                           priority=GLib.PRIORITY_HIGH))
            self.turn_on_stats()
            bus = self.pipeline.get_bus()
            bus.add_signal_watch()
            bus.connect('message', self.guarded(self.on_message))
            GLib.timeout_add(REFRESH_MS, self.guarded(self.on_refresh))
            self.change_state(Gst.State.PAUSED)
            self.loop.run()
        finally:
            self.out.close(self.state())
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_DFL)
            self.pipeline.set_state(Gst.State.NULL)
        if self.error:
            say('error', self.error)
        self.summary()
        return self.status

    def turn_on_stats(self):
        for element in self.elements:
            if element.get_property('fps-update-interval') == 0:
                element.set_property('fps-update-interval', INTERVAL_MS)
                self.out.note(f'{element.get_name()}: fps-update-interval=0 gives no figures; it is {INTERVAL_MS} here')

    def guarded(self, function):
        """PyGObject would print an exception and go on."""
        def call(*args):
            try:
                return function(*args)
            except Exception as error:  # pylint: disable=broad-except
                self.fail(f'live-view.py itself: {error!r}')
                return False
        return call

    def fail(self, text):
        self.error, self.status = self.error or text, 1
        self.loop.quit()

    def change_state(self, state):
        result = self.pipeline.set_state(state)
        if result == Gst.StateChangeReturn.FAILURE:
            # The element's own error, which says more, is on the bus already and comes before this.
            GLib.idle_add(self.fail, 'the pipeline does not start, and no element says why')
        elif result == Gst.StateChangeReturn.NO_PREROLL:
            self.live = True
        if state == Gst.State.PAUSED and result in (Gst.StateChangeReturn.NO_PREROLL, Gst.StateChangeReturn.SUCCESS):
            self.on_preroll()

    def on_preroll(self):
        if not self.prerolled:
            self.prerolled = True
            if not self.buffering:
                self.change_state(Gst.State.PLAYING)

    # -- messages --

    def on_message(self, _bus, message):
        kind, own = message.type, message.src == self.pipeline
        if kind == Gst.MessageType.ELEMENT:
            structure = message.get_structure()
            if structure is not None and structure.get_name() == STATS and message.src in self.filters:
                self.on_stats(message.src, structure)
        elif kind == Gst.MessageType.ERROR:
            error, debug = message.parse_error()
            # A pipeline that fails says so through several elements: the first one knows why.
            self.fail(f'{message.src.get_path_string()}: {error.message}' + (f'\n{debug}' if debug else ''))
        elif kind == Gst.MessageType.WARNING:
            error, debug = message.parse_warning()
            # That of the parser alone, "Delayed linking failed", names nothing.
            more = f' ({debug.splitlines()[-1]})' if debug and 'linking' in error.message else ''
            self.out.note(f'{message.src.get_name()}: {error.message}{more}')
        elif kind == Gst.MessageType.EOS and own:
            self.loop.quit()
        elif kind == Gst.MessageType.ASYNC_DONE and own:
            self.on_preroll()
        elif kind == Gst.MessageType.BUFFERING:
            self.on_buffering(message.parse_buffering())
        elif kind == Gst.MessageType.LATENCY:
            self.pipeline.recalculate_latency()
        elif kind == Gst.MessageType.CLOCK_LOST:
            self.pipeline.set_state(Gst.State.PAUSED)
            self.pipeline.set_state(Gst.State.PLAYING)
        elif kind == Gst.MessageType.REQUEST_STATE:
            self.pipeline.set_state(message.parse_request_state())

    def on_stats(self, element, structure):
        one = self.filters[element]
        names = [structure.nth_field_name(number) for number in range(structure.n_fields())]
        fields = {name: structure.get_value(name) for name in names}
        fields.setdefault('num-streams', element.get_property('num-streams'))
        caps = element.get_static_pad('sink').get_current_caps()
        if caps is not None:
            video = caps.get_structure(0)
            known, numerator, denominator = video.get_fraction('framerate')
            one.caps = Caps(video.get_string('format'), video.get_value('width'), video.get_value('height'),
                            numerator / denominator if known else 0)
        one.live = self.live
        one.clocked = any(sink.get_property('sync') for sink in self.sinks)
        one.update(fields)
        self.out.updated(one)

    def on_buffering(self, percent):
        self.percent = percent
        if self.live or self.signal:
            return
        if percent < 100 and not self.buffering:
            self.buffering = True
            if self.prerolled:
                self.change_state(Gst.State.PAUSED)
        elif percent == 100 and self.buffering:
            self.buffering = False
            if self.prerolled:
                self.change_state(Gst.State.PLAYING)

    # -- the end --

    def interrupt(self, number):
        """The first one ends the stream in good order, a second one, and one before it plays, at once."""
        if self.signal or self.pipeline.get_state(0)[1] != Gst.State.PLAYING:
            self.status = self.status or 128 + number
            self.loop.quit()
        else:
            self.pipeline.send_event(Gst.Event.new_eos())
            GLib.timeout_add_seconds(END_SECONDS, self.on_late_end)
        self.signal = self.signal or number

    def on_late_end(self):
        self.out.note(f'the end did not come within {END_SECONDS} seconds: stopped without it')
        self.status = 128 + self.signal
        self.loop.quit()
        return False

    def state(self):
        """For the last line of the view."""
        if not self.loop.is_running():
            what = 'failed' if self.error else 'stopped' if self.status else 'ended'
        elif self.signal:
            what = 'ending: waiting for the last frames; Ctrl-C stops at once'
        elif self.buffering:
            what = f'buffering, {self.percent} %'
        else:
            what = 'running; Ctrl-C ends it' if self.prerolled else 'starting'
        return f'{time.monotonic() - self.start:.1f} s, {what}'

    def on_refresh(self):
        self.out.refresh(self.state())
        return True

    def summary(self):
        for one in self.filters.values():
            if one.fields:
                print(f"live-view.py: {one.name}: {one.get('processed')} frames processed, {one.get('dropped')} "
                      f"dropped, {one.get('avg-fps'):.1f} frames a second (backend {one.get('backend')})", flush=True)


# ---- the command line -----------------------------------------------------------------------------


def words_of(arguments):
    """The pipeline, after the options; None when help was asked for."""
    while arguments and arguments[0].startswith('-'):
        option = arguments.pop(0)
        if option in ('-h', '--help'):
            return None
        if option == '--':
            break
        if option not in ('-e', '-v'):
            raise Refused(f"unknown option '{option}'")
    if not arguments:
        raise Refused('expected a pipeline, such as: videotestsrc ! cudastreamfilter ! fakesink')
    return arguments


def main():
    # Ends like any other program when nobody reads its lines any more.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if sys.stdout is None:
        say('error', 'standard output is closed')
        return 1
    sys.stdout.reconfigure(errors='replace')
    try:
        _, rest = Gst.init_check(sys.argv)
        words = words_of(rest[1:])
        if words is None:
            print(USAGE, end='')
            return 0
        run = Run(words)
    except (Refused, GLib.Error) as refused:
        say('error', f'{printable(refused)}; --help tells how it is used')
        return 2
    return run.run()


if __name__ == '__main__':
    sys.exit(main())
