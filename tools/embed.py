#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
# Turns a file into a C source that defines it as `const csfk_blob csfk_blob_NAME`, eight-byte
# aligned as the driver wants a fatbin.  `--text` ends it with a zero byte, `--dummy` makes a few bytes
# that only a fake driver takes, `--empty` none.
import argparse
import pathlib


def c_source(name, content, toolkit):
    lines = [
        "/* SPDX-License-Identifier: LGPL-2.1-or-later */",
        "/* Written by tools/embed.py. */",
        '#include "kernels/kernel.h"',
        "",
        f"extern const csfk_blob csfk_blob_{name};",
        "",
    ]
    if content:
        lines.append("static const unsigned char data[] __attribute__ ((aligned (8))) = {")
        for start in range(0, len(content), 24):
            lines.append(",".join(str(byte) for byte in content[start:start + 24]) + ",")
        lines += ["};", "", f"const csfk_blob csfk_blob_{name} = {{ data, sizeof data, {toolkit} }};"]
    else:
        lines.append(f"const csfk_blob csfk_blob_{name} = {{ 0, 0, 0 }};")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser()
    kind = parser.add_mutually_exclusive_group(required=True)
    kind.add_argument("--from", dest="source", type=pathlib.Path)
    kind.add_argument("--text", type=pathlib.Path)
    kind.add_argument("--dummy", action="store_true")
    kind.add_argument("--empty", action="store_true")
    parser.add_argument("--toolkit", type=int, default=0)
    parser.add_argument("name")
    parser.add_argument("output", type=pathlib.Path)
    args = parser.parse_args()

    if args.source:
        content = args.source.read_bytes()
        if not content:
            parser.error(f"{args.source} is empty")
    elif args.text:
        content = args.text.read_bytes() + b"\0"
    else:
        content = b"no device code: for a fake driver\0" if args.dummy else b""
    args.output.write_text(c_source(args.name, content, args.toolkit))


if __name__ == "__main__":
    main()
