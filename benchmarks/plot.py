#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Draws a result file of the program throughput as a bar chart: for each kind of frame what share of the
limit each way of doing it reaches, with the frames a second beside the bar.

usage: plot.py FILE.json CHART.svg|CHART.png

An SVG needs nothing but Python; a PNG needs matplotlib.
"""
import json
import sys
from xml.sax.saxutils import escape

from table import QUEUE, UPLOAD, cases, label, rounded

SERIES = [
    # name, colour, value of a row
    ("cudastreamfilter, 3 streams", "#2a7f3f", lambda row: row["value"]),
    ("plain CUDA loop, 3 streams", "#8f8f8f", lambda row: row["peers"].get("plain loop")),
    (QUEUE, "#d08a2e", lambda row: row["peers"].get(QUEUE)),
    (UPLOAD, "#b9463c", lambda row: row["peers"].get(UPLOAD)),
]
WIDTH, LEFT, RIGHT = 760, 110, 120
BAR, GAP, TOP, BOTTOM = 16, 18, 92, 24
SPAN = WIDTH - LEFT - RIGHT


def groups(result):
    """[(label, limit, [(series index, fps)])] of the cases with three streams and a limit."""
    found = []
    for case, row in cases(result):
        if case["streams"] != "3" or not row["limit"]:
            continue
        what = label(case) if case["kernel"] == "copy" else f"{label(case)} {case['kernel']}"
        bars = [(i, value(row)) for i, (_, _, value) in enumerate(SERIES) if value(row)]
        found.append((what, row["limit"], bars))
    return found


def title(result):
    return f"{result['device']}, GStreamer {result['gstreamer']}, {result['date'][:10]}"


def text(x, y, content, extra=""):
    return f'<text x="{x}" y="{y}" {extra}>{escape(content)}</text>'


def svg(result):
    parts = [text(LEFT, 22, "Share of what bus and GPU allow (frames a second)", 'font-weight="bold"'),
             text(LEFT, 40, title(result), 'fill="#555"')]
    for i, (name, colour, _) in enumerate(SERIES):
        x, y = LEFT + (i % 2) * 290, 58 + (i // 2) * 16
        parts.append(f'<rect x="{x}" y="{y - 9}" width="10" height="10" fill="{colour}"/>')
        parts.append(text(x + 15, y, name))
    y = TOP
    for what, limit, bars in groups(result):
        parts.append(text(LEFT - 8, y + len(bars) * BAR / 2 + 4, what, 'text-anchor="end"'))
        for series, fps in bars:
            width = SPAN * min(fps / limit, 1.1)
            parts.append(f'<rect x="{LEFT}" y="{y}" width="{width:.1f}" height="{BAR - 3}" '
                         f'fill="{SERIES[series][1]}"/>')
            parts.append(text(f"{LEFT + width + 6:.1f}", y + 11,
                              f"{rounded(fps)} ({100 * fps / limit:.0f} %)"))
            y += BAR
        y += GAP
    for percent in (0, 25, 50, 75, 100):
        x = LEFT + SPAN * percent / 100
        parts.insert(0, f'<line x1="{x:.1f}" y1="{TOP - 4}" x2="{x:.1f}" y2="{y - GAP + 6}" stroke="#ddd"/>')
        parts.append(text(f"{x:.1f}", y + 6, f"{percent} %", 'text-anchor="middle" fill="#555"'))
    height = y + BOTTOM
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
            f'viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12">\n'
            f'<rect width="{WIDTH}" height="{height}" fill="white"/>\n' + "\n".join(parts) + "\n</svg>\n")


def png(result, path):
    try:
        import matplotlib
    except ImportError:
        sys.stderr.write("plot.py: a PNG needs matplotlib; name an .svg instead\n")
        return 1
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(9, 6))
    y, ticks = 0.0, []
    for what, limit, bars in groups(result):
        ticks.append((y + (len(bars) - 1) / 2, what))
        for series, fps in bars:
            name, colour, _ = SERIES[series]
            axes.barh(y, 100 * fps / limit, color=colour, label=name if len(ticks) == 1 else None)
            axes.text(100 * fps / limit + 1, y, rounded(fps), va="center", fontsize=8)
            y += 1
        y += 1
    axes.set_yticks([t[0] for t in ticks], [t[1] for t in ticks])
    axes.invert_yaxis()
    axes.set_xlabel("% of what bus and GPU allow")
    axes.set_title(title(result))
    axes.legend(loc="lower right")
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    return 0


def main(arguments):
    if len(arguments) != 2 or not arguments[1].endswith((".svg", ".png")):
        sys.stderr.write(__doc__)
        return 2
    with open(arguments[0], encoding="utf-8") as file:
        result = json.load(file)
    if not groups(result):
        sys.stderr.write("plot.py: no case with three streams and a limit in there\n")
        return 1
    if arguments[1].endswith(".png"):
        return png(result, arguments[1])
    with open(arguments[1], "w", encoding="utf-8") as file:
        file.write(svg(result))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
