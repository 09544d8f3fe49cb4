#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs a command in a terminal of its own: in-a-terminal.py COLUMNS ROWS TEXT KEYS COMMAND...  Once the command has
written TEXT it types KEYS (^C: Ctrl-C) or, for COLUMNSxROWS, changes the terminal's size; both may be empty.  Prints
what the command wrote and exits with its status; the terminal must be as it was, with the cursor on."""

import fcntl
import os
import pty
import re
import signal
import struct
import sys
import termios


def resize(fd, columns, rows):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack('HHHH', rows, columns, 0, 0))


def main():
    columns, rows, text, keys = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3].encode(), sys.argv[4]
    master, slave = pty.openpty()
    resize(master, columns, rows)
    modes = termios.tcgetattr(slave)
    child = os.fork()
    if child == 0:
        os.setsid()
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
        for fd in (0, 1, 2):
            os.dup2(slave, fd)
        os.closerange(3, max(master, slave) + 1)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.environ['TERM'] = 'xterm-256color'
        os.execvp(sys.argv[5], sys.argv[5:])
    os.close(slave)
    wrote = b''
    try:
        while True:
            wrote += os.read(master, 65536)
            if keys and text in wrote:
                if re.fullmatch('[0-9]+x[0-9]+', keys):
                    resize(master, *map(int, keys.split('x')))
                else:
                    os.write(master, keys.replace('^C', '\x03').encode())
                keys = ''
    except OSError:     # nobody has the terminal any more
        pass
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    sys.stdout.buffer.write(wrote)
    sys.stdout.flush()
    if termios.tcgetattr(master) != modes:
        sys.exit('in-a-terminal.py: the terminal is not as it was')
    if wrote.rfind(b'\x1b[?25l') > wrote.rfind(b'\x1b[?25h'):
        sys.exit('in-a-terminal.py: the cursor is off')
    return status if status >= 0 else 128 - status


if __name__ == '__main__':
    sys.exit(main())
