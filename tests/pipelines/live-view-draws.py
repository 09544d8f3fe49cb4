#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What live-view.py draws of statistics made here, as a GPU gives them.  live-view-draws.py FOLDER, that of
live-view.py; with --show COLUMNS ROWS it prints a picture instead.  Exits with 77 where there is no Rich."""

import importlib.util
import io
import os
import sys

US = 1000
GB = 10 ** 9


def load(folder):
    spec = importlib.util.spec_from_file_location('live_view', os.path.join(folder, 'live-view.py'))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if module.Console is None:
        print('skipped: no Rich (python3-rich)')
        sys.exit(77)
    return module


def gpu_fields(count, **changes):
    """Of an upload-bound element; a change of None leaves a field out."""
    fields = {
        'backend': 'cuda', 'device': 'NVIDIA H200', 'kernel': 'sobel', 'bound-by': 'upload', 'num-streams': 3,
        'processed': count, 'dropped': 0, 'records': 0, 'host-copies': 0, 'pinned-bytes': 24883200,
        'device-bytes': 24883200, 'upstream-time': 4 * US, 'staging-time': 0, 'staging-time-p99': 0,
        'submit-time': 9 * US, 'submit-time-p99': 14 * US, 'upload-time': 62 * US, 'upload-time-p99': 71 * US,
        'kernel-time': 11 * US, 'kernel-time-p99': 12 * US, 'records-time': 0, 'records-time-p99': 0,
        'download-time': 58 * US, 'download-time-p99': 81 * US, 'downstream-time': 3 * US, 'latency': 214 * US,
        'latency-p99': 287 * US, 'frame-time': 68400, 'fps': 14620.0 + count % 7000, 'avg-fps': 14380.2,
        'in-flight': 2.9, 'overlap': 1.92, 'efficiency': 0.96, 'gpu-utilization': 41.0,
        'gpu-memory-used': 12 * GB // 10, 'gpu-memory-total': 150 * GB, 'gpu-clock': 1980, 'gpu-memory-clock': 3201}
    fields.update(changes)
    return {name: value for name, value in fields.items() if value is not None}


def filter_of(module, name='cudastreamfilter0', updates=30, **changes):
    one = module.Filter(name)
    for number in range(1, updates + 1):
        one.update(gpu_fields(number * 7310, **changes))
    one.caps = module.Caps('RGBA', 1920, 1080, 60.0)
    return one


def drawn(module, filters, columns, rows, encoding='utf-8', notes=()):
    view = module.View(filters)
    view.state = '12.3 s, running; Ctrl-C ends it'
    view.notes.extend(notes)
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    console = module.Console(file=file, width=columns, height=rows, force_terminal=False)
    console.print(view, height=rows)
    file.flush()
    return file.buffer.getvalue().decode(encoding)


def check(module):
    fields = gpu_fields(7310)
    picture = drawn(module, [filter_of(module)], 80, 24)
    for text in ('upload        62.0     71.0', 'kernel        11.0     12.0', 'download      58.0', 'submit ',
                 'frame time 68.4 us', 'sobel on NVIDIA H200', '1920x1080 RGBA', 'overlap 1.92', 'efficiency 96 %',
                 'upload-bound: ', 'nvh264dec', 'NV12', '41 % in use', '1980 MHz', '12.3 s', '2.9 in flight'):
        assert text in picture, f"no '{text}' in\n{picture}"
    assert 'records' not in picture, 'a stage that does not run is drawn'
    unknown = {name: None for name in fields if name.startswith('gpu-')}
    assert ' GPU  ' in picture and ' GPU  ' not in drawn(module, [filter_of(module, **unknown)], 80, 24)

    # Whatever the terminal's size, and whichever field is missing.
    several = [filter_of(module, f'filter{number}') for number in range(4)]
    empty = module.Filter('none\x1b[2Jyet')
    for filters in ([filter_of(module)], several, [empty], [filter_of(module, fps=0.0, **{'frame-time': 0})],
                    *([filter_of(module, **{name: None})] for name in fields),
                    [filter_of(module, **{name: None for name in fields})]):
        for columns, rows in ((80, 24), (120, 40), (50, 10), (24, 6), (300, 100), (10, 3), (1, 1), (80, 2)):
            picture = drawn(module, filters, columns, rows, notes=['a warning of many words ' * 20] * 3)
            lines = picture.splitlines()
            assert '\x1b' not in picture
            assert len(lines) <= max(rows, 2), f'{len(lines)} lines of {rows}:\n{picture}'
            assert all(len(text) <= columns for text in lines), f'wider than {columns}:\n{picture}'
    assert all(f'filter{number}' in drawn(module, several, 80, 24) for number in range(4))
    drawn(module, several, 80, 24, encoding='ascii')

    # Each verdict has its advice, on the GPU and on the CPU, and it is short.
    for backend in ('cuda', 'cpu'):
        for verdict in ('upstream', 'submit', 'upload', 'kernel', 'download', 'downstream'):
            one = filter_of(module, backend=backend, **{'bound-by': verdict})
            assert 20 < len(one.advice()) < 170, (backend, verdict, one.advice())
    one = filter_of(module, **{'num-streams': 1})
    assert 'num-streams=3' in one.advice()
    one.update(gpu_fields(one.get('processed') + 100, **{'host-copies': 100}))
    assert 'pageable' in one.advice()
    assert 'pageable' in filter_of(module, **{'staging-time': 400 * US}).advice()
    one = filter_of(module, fps=60.0, **{'bound-by': 'downstream'})
    assert 'sync=false' not in one.advice()
    one.clocked = True
    assert 'sync=false' in one.advice()
    assert filter_of(module, **{'bound-by': 'something new'}).advice() == ''


if __name__ == '__main__':
    live_view = load(sys.argv[1])
    if sys.argv[2:3] == ['--show']:
        print(drawn(live_view, [filter_of(live_view)], int(sys.argv[3]), int(sys.argv[4])), end='')
    else:
        check(live_view)
