#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Prints the README's tables of figures from a result file of the program throughput or cudamemory.

usage: table.py [--cuda] [--all] [--goals] FILE.json

  --cuda   the file is of the program cudamemory: frames in CUDA memory
  --all    a second table with every number of streams (not with --cuda)
  --goals  say which of the project's goals the figures reach; exit status 1 when one is missed
"""
import json
import re
import sys

UPLOAD = "cudaupload ! cudadownload"
QUEUE = "cudaupload ! queue ! cudadownload"
SIZES = {"1920x1080": "1080p", "3840x2160": "4K"}
CASE = re.compile(r"throughput/system/(?P<kernel>\w+)/(?P<size>\w+)/(?P<format>\w+)/streams=(?P<streams>\d+)$")

CUDA_CASE = re.compile(r"throughput/cuda/(?P<kernel>\w+)/(?P<size>\w+)/(?P<format>\w+)/streams=(?P<streams>\d+)$")
DECODE_CASE = re.compile(r"decode/h264/(?P<size>\w+)/(?P<kernel>\w+)(?P<system>/system)?$")

# Of the kernel alone where a frame takes it so many microseconds; of the decoder alone.
CUDA_GOAL, CUDA_GOAL_US = 0.95, 200
DECODE_GOAL = 0.97

# Goals, for 1080p NV12 through kernel=copy with three streams.
GOAL_RATIO = 0.85
GOAL_GAIN = 7.0


def rounded(fps):
    """Three significant digits, thousands separated; "-" for what was not measured."""
    if not fps:
        return "-"
    digits = len(str(int(fps)))
    unit = 10 ** max(digits - 3, 0)
    return f"{int(round(fps / unit) * unit):,}"


def times(fps, peer):
    return f"{rounded(peer)} ({fps / peer:.1f} x)" if peer else "-"


def share(row):
    return f"{100 * row['ratio']:.0f} %" if row["ratio"] else "-"


def cases(result):
    for row in result["rows"]:
        match = CASE.match(row["case"])
        if match:
            yield match.groupdict(), row


def label(case):
    return f"{SIZES.get(case['size'], case['size'])} {case['format']}"


def print_table(head, rows):
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(row) + " |")


def main_table(result):
    rows = []
    for case, row in cases(result):
        if case["streams"] != "3":
            continue
        peers = row["peers"]
        what = label(case) if case["kernel"] == "copy" else f"{label(case)}, {case['kernel']}"
        rows.append([what, f"**{rounded(row['value'])}**", rounded(row["limit"]), share(row),
                     rounded(peers.get("plain loop")), times(row["value"], peers.get(UPLOAD)),
                     times(row["value"], peers.get(QUEUE))])
    print_table(["frames", "cudastreamfilter, 3 streams", "limit", "of the limit", "plain CUDA loop",
                 f"`{UPLOAD}`", f"`{QUEUE}`"], rows)


def streams_table(result):
    table, streams = {}, []
    for case, row in cases(result):
        if case["streams"] not in streams:
            streams.append(case["streams"])
        table.setdefault(f"{case['kernel']}, {label(case)}", {})[case["streams"]] = row
    rows = []
    for what, by_streams in table.items():
        cells = [f"{rounded(by_streams[n]['value'])}, {share(by_streams[n])}, "
                 f"{by_streams[n].get('cpu-us', 0):.0f} us" if n in by_streams else "-"
                 for n in streams]
        rows.append([what] + cells)
    print_table(["frames a second, of the limit, CPU a frame"] +
                [f"{n} stream" + ("s" if n != "1" else "") for n in streams], rows)


def goals(result):
    missed = False
    found = False
    for case, row in cases(result):
        clean = row.get("host-copies", -1) == 0 and row.get("pool-growths", -1) == 0
        if not clean:
            print(f"missed: {row['case']}: {row.get('host-copies')} host copies, "
                  f"{row.get('pool-growths')} pool growths, expected none")
            missed = True
        if case != {"kernel": "copy", "size": "1920x1080", "format": "NV12", "streams": "3"}:
            continue
        found = True
        ratio, peer = row["ratio"] or 0, row["peers"].get(UPLOAD)
        gain = row["value"] / peer if peer else 0
        for what, value, goal in (("of the limit", ratio, GOAL_RATIO), (f"times {UPLOAD}", gain, GOAL_GAIN)):
            good = value >= goal
            missed |= not good
            print(f"{'reached' if good else 'missed'}: {value:.2f} {what}, goal {goal}")
    if not found:
        print("missed: 1080p NV12 with 3 streams was not measured")
    return not missed and found


def describe_cuda(case, row):
    """What a row of the program cudamemory measured and what its limit is, or None."""
    match = CUDA_CASE.match(case)
    if match:
        part = match.groupdict()
        sigma = f" (sigma {row['sigma']:.0f})" if row.get("sigma") else ""
        streams = part["streams"] + (" stream" if part["streams"] == "1" else " streams")
        return f"{label(part)}, CUDA to CUDA, {part['kernel']}{sigma}, {streams}", "kernel alone"
    match = DECODE_CASE.match(case)
    if match:
        part = match.groupdict()
        out = "system memory out" if part["system"] else "`cudadownload`"
        return (f"{SIZES.get(part['size'], part['size'])} `nvh264dec` ! {part['kernel']} ! {out}",
                "decoder alone")
    return None


def cuda_table(result):
    rows = []
    for row in result["rows"]:
        what = describe_cuda(row["case"], row)
        if what:
            rows.append([what[0], f"**{rounded(row['value'])}**", f"{rounded(row['limit'])} ({what[1]})",
                         share_exact(row), f"{row.get('cost-us', 0):.1f} us"])
    print_table(["frames", "cudastreamfilter", "limit", "of the limit", "cost a frame"], rows)


def share_exact(row):
    return f"{100 * row['ratio']:.1f} %" if row["ratio"] else "-"


def cuda_goals(result):
    reached = {"kernel": None, "decoder": None}
    for row in result["rows"]:
        ratio = row["ratio"] or 0
        match = CUDA_CASE.match(row["case"])
        if match and match["streams"] == "3" and row.get("kernel-us", 0) >= CUDA_GOAL_US:
            reached["kernel"] = judge(f"{ratio:.3f} of the kernel alone ({row['kernel-us']:.0f} us)",
                                      ratio >= CUDA_GOAL, CUDA_GOAL)
        match = DECODE_CASE.match(row["case"])
        if match and not match["system"]:
            reached["decoder"] = judge(f"{ratio:.3f} of the decoder's rate", ratio >= DECODE_GOAL, DECODE_GOAL)
    for what, good in reached.items():
        if good is None:
            print(f"missed: nothing was measured beside the {what} alone")
    return all(reached.values())


def judge(what, good, goal):
    print(f"{'reached' if good else 'missed'}: {what}, goal {goal}")
    return good


def main(arguments):
    files = [a for a in arguments if not a.startswith("--")]
    options = [a for a in arguments if a.startswith("--")]
    if len(files) != 1 or any(o not in ("--cuda", "--all", "--goals") for o in options):
        sys.stderr.write(__doc__)
        return 2
    with open(files[0], encoding="utf-8") as file:
        result = json.load(file)
    print(f"{result['device']}, driver {result['driver']} (CUDA {result['cuda']}), GStreamer "
          f"{result['gstreamer']}, {result['date'][:10]}, commit {result['commit']}; frames a second\n")
    if "--cuda" in options:
        cuda_table(result)
        if "--goals" not in options:
            return 0
        print()
        return 0 if cuda_goals(result) else 1
    main_table(result)
    if "--all" in options:
        print()
        streams_table(result)
    if "--goals" in options:
        print()
        return 0 if goals(result) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
