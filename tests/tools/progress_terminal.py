# SPDX-License-Identifier: MIT
"""Runs a command with standard error, or both outputs, on a terminal, and shows what the terminal shows at the end.
usage: progress_terminal.py err|both FOLDER COMMAND...
Writes FOLDER/out (standard output, if it is a file), FOLDER/raw (the terminal's bytes) and FOLDER/screen (its lines)."""
import fcntl
import os
import pty
import struct
import sys
import termios

which, folder, command = sys.argv[1], sys.argv[2], sys.argv[3:]
outer, inner = pty.openpty()
fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
pid = os.fork()
if pid == 0:
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(inner if which == "both" else os.open(folder + "/out", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 1)
    os.dup2(inner, 2)
    os.closerange(3, 64)
    os.execvpe(command[0], command, dict(os.environ, TERM="xterm"))
os.close(inner)
raw = b""
while True:
    try:
        part = os.read(outer, 65536)
    except OSError:  # the last writer has closed the terminal
        break
    if not part:
        break
    raw += part
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

# A terminal: carriage return, erase to the end of the line, newline.
lines, column, text = [""], 0, raw.decode()
while text:
    if text.startswith("\033[K"):
        lines[-1] = lines[-1][:column]
        text = text[3:]
        continue
    c, text = text[0], text[1:]
    if c == "\r":
        column = 0
    elif c == "\n":
        lines.append("")
        column = 0
    else:
        lines[-1] = lines[-1][:column] + c + lines[-1][column + 1:]
        column += 1
with open(folder + "/raw", "wb") as out:
    out.write(raw)
with open(folder + "/screen", "w") as out:
    out.write("\n".join(lines))
sys.exit(status)
