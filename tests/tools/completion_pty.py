# SPDX-License-Identifier: MIT
"""Types command lines into an interactive shell and prints what each becomes after TAB.

    python3 completion_pty.py SHELL SETUP < LINES

SHELL: a command such as "bash --norc -i"; SETUP: its first line. Each line of standard input is typed,
completed by one TAB, and printed.
"""
import os
import pty
import re
import select
import sys
import time

PATIENCE_S = 60


class Terminal:
    def __init__(self, shell):
        self.text = ""
        pid, self.fd = pty.fork()
        if pid == 0:
            os.environ.update(TERM="dumb", PS1="READY> ", INPUTRC="/dev/null")
            os.execvp(shell[0], shell)

    def wait(self, pattern):
        """Returns the first match of the pattern in what is printed from now on."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            if found := re.search(pattern, self.text):
                self.text = self.text[found.end():]
                return found
            if select.select([self.fd], [], [], 1)[0]:
                self.text += os.read(self.fd, 65536).decode(errors="replace")
        sys.exit(f"no {pattern!r} within {PATIENCE_S} s in {self.text!r}")

    def type(self, text):
        os.write(self.fd, text.encode())


terminal = Terminal(sys.argv[1].split())
terminal.wait("READY> ")
terminal.type(sys.argv[2] + "; echo set''up\r")
terminal.wait("setup\r?\n")
for number, line in enumerate(sys.stdin.read().splitlines()):
    # The whole line becomes an argument of echo: Ctrl-A goes to its begin, Ctrl-E to its end.
    terminal.type(f"{line}\t\x05'\x01echo {number}'':'\r")
    print(terminal.wait(rf"\n{number}:(.*?)\r?\n").group(1))
