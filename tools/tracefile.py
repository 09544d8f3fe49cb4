# SPDX-License-Identifier: LGPL-2.1-or-later
"""Reads a trace that cudastreamfilter wrote (property trace-location), picks a part of it and draws that as a
timeline.  Times are microseconds since the trace began.  Knows the names of the element's lanes; of matplotlib
only the axes that it is given, so that reading needs nothing but Python."""
import bisect
import collections
import json

# Rows and legend in this order: what the host does around a frame, then the way of a frame through the device.
STAGES = {
    # name of the event: colour
    "wait for upstream": "#c9c9c9",
    "wake": "#e3a8a8",
    "stage": "#9c7bb8",
    "submit": "#6f6f6f",
    "finish": "#a8c3e3",
    "push": "#b5a58a",
    "upload": "#3b78b5",
    "kernel": "#d0732e",
    "records": "#e0b040",
    "download": "#2a8f4f",
}
OTHER_COLOUR = "#dd88aa"
HOST_STAGES = ("wait for upstream", "wake", "stage", "submit", "finish", "push")
# The stage that ends a frame, of those that a trace has: its ends are what is counted.
LAST_STAGES = ("download", "kernel", "push")
STEADY_FRAMES = 12
WIDTH_INCHES, LEFT_INCHES, ROW_INCHES = 12.0, 1.35, 0.24
PANEL_INCHES, LEGEND_INCHES = 0.85, 0.3     # a panel's title and time axis; the legend below all
STAGE_GAP = 0.35                            # rows between two stages
NUMBER_POINTS = 7
LONGEST_US = 1e15

Event = collections.namedtuple("Event", "stage lane stream frame begin end")


class TraceError(Exception):
    """Why this is no trace, or why there is nothing to show, in one line for the user."""


class Trace:
    """about: the trace's own words on itself (backend, device, kernel ...); events: by begin; lanes: rows of the
    drawing from top to bottom; ends: when each frame was done."""

    def __init__(self, about, events):
        self.about = about
        self.events = sorted(events, key=lambda event: event.begin)
        self.begin = self.events[0].begin
        self.end = max(event.end for event in self.events)
        last = next((stage for stage in LAST_STAGES if any(e.stage == stage for e in self.events)), None)
        self.ends = sorted(event.end for event in self.events if event.stage == last)
        order = list(STAGES)
        rows = {(order.index(e.stage) if e.stage in order else len(order), e.stage, e.stream, e.lane)
                for e in self.events}
        self.lanes = [(stage, lane) for _, stage, _, lane in sorted(rows)]

    @property
    def streams(self):
        said = str(self.about.get("num-streams", ""))
        return int(said) if said.isascii() and said.isdecimal() else len({e.stream for e in self.events if e.stream >= 0})

    def fps(self, begin, end):
        """Frames a second between the first and the last frame done in a window; None for fewer than two."""
        ends = self.ends[bisect.bisect_left(self.ends, begin):bisect.bisect_right(self.ends, end)]
        return (len(ends) - 1) / (ends[-1] - ends[0]) * 1e6 if len(ends) > 1 and ends[-1] > ends[0] else None

    def steady(self, frames=STEADY_FRAMES):
        """(begin, end) of so many frames around the middle.  Of the windows in the middle half of the trace it is one
        of median length: neither a hiccup nor a lucky moment is shown for the rule."""
        last = len(self.ends) - 1
        if last < frames:
            return self.begin, self.end
        middle = (last - frames) // 2
        reach = min(middle, last // 4)
        starts = range(middle - reach, middle + reach + 1)
        lengths = {start: self.ends[start + frames] - self.ends[start] for start in starts}
        median = sorted(lengths.values())[len(lengths) // 2]
        start = min((s for s in starts if lengths[s] == median), key=lambda s: abs(s - middle))
        return self.ends[start], self.ends[start + frames]

    def window(self, begin=None, duration=None, frames=None):
        """(begin, end) of what is asked for; of what is not asked for, a steady part from the middle."""
        if begin is None and duration is None:
            begin, end = self.steady(frames or STEADY_FRAMES)
        elif duration is not None:
            if begin is None:
                begin = max(self.begin, (self.begin + self.end - duration) / 2)
            end = begin + duration
        else:
            to = bisect.bisect_right(self.ends, begin) + (frames or STEADY_FRAMES) - 1
            end = self.ends[to] if to < len(self.ends) else self.end
        if end <= begin or not any(e.begin < end and e.end > begin for e in self.events):
            raise TraceError(f"nothing happens at {begin / 1000:g} ms: the trace goes from {self.begin / 1000:g} to "
                             f"{self.end / 1000:g} ms")
        return begin, end

    def title(self, begin, end):
        kernel, streams, fps = self.about.get("kernel"), self.streams, self.fps(begin, end)
        words = [self.about.get("device"),
                 kernel and f"kernel {kernel}",
                 streams and f"{streams} stream{'s' if streams > 1 else ''}",
                 fps and f"{fps:,.0f} frames a second"]
        return ", ".join(str(word) for word in words if word)


def number(event, key):
    value = event.get(key)
    # Of either sign up to thirty years: nan fails as well.
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not -LONGEST_US < value < LONGEST_US:
        raise TraceError(f"an event has {json.dumps(value)} for '{key}', expected a number")
    return value


def lane_of(event):
    return str(event.get("pid")), str(event.get("tid"))


def read_event(event, names):
    args = event.get("args")
    args = args if isinstance(args, dict) else {}
    begin, duration = number(event, "ts"), number(event, "dur")
    if duration < 0:
        raise TraceError(f"an event at {begin:g} us lasts {duration:g} us")
    lane = lane_of(event)
    stage, stream = str(event.get("name", "")), args.get("stream")
    stream = stream if isinstance(stream, int) else -1
    return Event(stage, names.get(lane, f"{stage} {lane[1]}"), stream, args.get("frame"), begin, begin + duration)


def load(path):
    """The Trace in a file.  TraceError says what is wrong with it, OSError that it cannot be read."""
    with open(path, encoding="utf-8") as file:
        try:
            content = json.load(file)
        except (ValueError, RecursionError) as problem:
            raise TraceError(f"not JSON ({problem}); expected what trace-location writes, whole: it is complete once "
                             "the element has stopped") from problem
    events = content.get("traceEvents") if isinstance(content, dict) else None
    if not isinstance(events, list) or not all(isinstance(event, dict) for event in events):
        raise TraceError("JSON, but no trace: expected an object with a list 'traceEvents', as trace-location writes")
    names = {}
    for event in events:
        args = event.get("args")
        if event.get("ph") == "M" and event.get("name") == "thread_name" and isinstance(args, dict):
            names[lane_of(event)] = str(args.get("name", ""))
    spans = [read_event(event, names) for event in events if event.get("ph") == "X"]
    if not spans:
        raise TraceError("a trace without events: did the element handle any frame?")
    about = content.get("otherData")
    return Trace(about if isinstance(about, dict) else {}, spans)


def number_frames(axes, y, events, begin, end, scale):
    """Frame numbers into those boxes that are wide enough for them, as much of a box as is seen."""
    inches = axes.figure.get_figwidth() * axes.get_position().width
    digit = 0.66 * NUMBER_POINTS / 72 / inches * (end - begin)
    for event in events:
        left, right = max(event.begin, begin), min(event.end, end)
        if event.frame is not None and right - left > digit * (len(str(event.frame)) + 0.5):
            axes.text(((left + right) / 2 - begin) * scale, y, str(event.frame), ha="center", va="center",
                      fontsize=NUMBER_POINTS, color="white", parse_math=False)


def draw(axes, trace, begin, end, title=None):
    """Draws a window of a trace: a row a lane, the rows of a stage together, a box an event with the number of its
    frame in it where there is room.  The axes must have their place in the figure: it decides what has room.
    Returns what a legend needs: the boxes by stage."""
    unit, scale = ("ms", 1e-3) if end - begin >= 2000 else ("us", 1.0)
    inside = collections.defaultdict(list)
    for event in trace.events:
        if event.begin < end and event.end > begin:
            inside[event.stage, event.lane].append(event)
    ticks, legend, y = [], {}, 0.0
    for stage, lane in trace.lanes:
        if legend and stage not in legend and stage not in HOST_STAGES:
            y += STAGE_GAP
        events, colour = inside[stage, lane], STAGES.get(stage, OTHER_COLOUR)
        # A white edge parts two boxes that touch; of a thin box nothing else would be seen.
        edges = ["white" if event.end - event.begin > 0.005 * (end - begin) else colour for event in events]
        boxes = axes.broken_barh([((event.begin - begin) * scale, (event.end - event.begin) * scale)
                                  for event in events], (y - 0.44, 0.88), facecolors=colour, edgecolors=edges,
                                 linewidth=0.5)
        number_frames(axes, y, events, begin, end, scale)
        legend.setdefault(stage, boxes)
        ticks.append((y, lane))
        y += 1
    axes.set_yticks([at for at, _ in ticks], [lane for _, lane in ticks], fontsize=8, parse_math=False)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", labelsize=8)
    axes.set_xlim(0, (end - begin) * scale)
    axes.set_ylim(y - 0.4, -0.6)
    axes.set_xlabel(f"{unit} (0 is {begin / 1000:,.3f} ms after the begin of the trace)", fontsize=8)
    axes.set_title(trace.title(begin, end) if title is None else title, fontsize=10, parse_math=False)
    axes.grid(axis="x", color="#e4e4e4", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    return legend


def figure(*panels):
    """A figure of windows of traces, one below the other.  A panel holds the arguments of draw() after the axes."""
    from matplotlib.figure import Figure

    heights = [ROW_INCHES * (len(panel[0].lanes) + 3 * STAGE_GAP) for panel in panels]
    total = sum(heights) + PANEL_INCHES * len(panels) + LEGEND_INCHES
    made = Figure(figsize=(WIDTH_INCHES, total), dpi=110)
    top, legend = total, {}
    for panel, height in zip(panels, heights):
        bottom = top - PANEL_INCHES * 0.45 - height
        place = (LEFT_INCHES / WIDTH_INCHES, bottom / total, 1 - (LEFT_INCHES + 0.2) / WIDTH_INCHES, height / total)
        legend.update(draw(made.add_axes(place), *panel))
        top -= height + PANEL_INCHES
    stages = sorted(legend, key=lambda stage: (stage not in STAGES, *[s == stage for s in reversed(STAGES)]))
    made.legend([legend[stage] for stage in stages], stages, loc="lower center", ncol=len(stages), fontsize=8,
                frameon=False, handlelength=1, columnspacing=1.4)
    return made
