# SPDX-License-Identifier: MIT
"""A receiver at its nominal rate for a long time: pnradar reads config/receiver.conf's FIFO, one subscriber is killed
and started again every 20 s, and another is stopped from its first second on.
usage: soak.py BIN WORK [SECONDS] [KEY=VALUE ...]; prints TAP. The memory after the first minute (or quarter) must stay
within 1 MB, the number of descriptors must not grow, no sample is lost, and the account closes."""
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "faults"))
from driver import account_of  # noqa: E402

bin_folder, work = sys.argv[1], sys.argv[2]
seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 60
overrides = [word for setting in sys.argv[4:] for word in ("-s", setting)]
RATE_HZ, PERIOD = 1e6, 1023
RESTART_S, POLL_S, END_S, LEAST_KB = 20, 1, 3, 1000  # END_S: the end of the input, where pnradar closes its sockets
root = pathlib.Path(__file__).parent.parent.parent
config = ["-c", f"{root}/config/receiver.conf", "-s", f"source.input={work}/samples",
          "-s", f"publisher.endpoint=ipc://{work}/soak", "-s", f"echo.periods={int(seconds * RATE_HZ / PERIOD)}",
          *overrides]


def start(program, *words, output=subprocess.DEVNULL, error=subprocess.DEVNULL):
    return subprocess.Popen([f"{bin_folder}/{program}", *config, *words], stdout=output, stderr=error)


def of_the_process(pid):
    """(resident kB, open descriptors), with the workers that the process has started."""
    pids = [pid, *map(int, pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]
    resident = sum(int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{p}/status").read_text())[1]) for p in pids)
    return resident, len(os.listdir(f"/proc/{pid}/fd"))


def watch(radar, echo):
    """Polls until the generator has ended. Returns [(seconds, resident kB, descriptors)] and the number of restarts."""
    stopped, subscriber = start("pnradar-listen"), start("pnradar-listen")
    begin, next_restart, restarts, seen = time.monotonic(), RESTART_S, 0, []
    while echo.poll() is None and radar.poll() is None:
        time.sleep(POLL_S)
        now = time.monotonic() - begin
        if not seen:
            stopped.send_signal(signal.SIGSTOP)
        if now > next_restart:
            subscriber.kill()
            subscriber.wait()
            subscriber, restarts, next_restart = start("pnradar-listen"), restarts + 1, next_restart + RESTART_S
        try:
            seen.append((now, *of_the_process(radar.pid)))
        except (OSError, TypeError):
            break  # the program has just ended
    for peer in (stopped, subscriber):
        peer.kill()
        peer.wait()
    return seen, restarts


def judge(name, good, what):
    print(f"{'ok' if good else 'not ok'} - {name}: {what}", flush=True)
    return good


os.mkfifo(f"{work}/samples")
with open(f"{work}/log", "w", encoding="utf-8") as log:
    radar = start("pnradar", "--print", "json", output=subprocess.DEVNULL, error=log)
    echo = start("pnradar-echo", f"{work}/samples", error=log)
    seen, restarts = watch(radar, echo)
    status = radar.wait(timeout=60)
parts, closes = account_of(pathlib.Path(f"{work}/log").read_text(encoding="utf-8"))
later = [row for row in seen if min(60, seconds / 4) <= row[0] < seconds - END_S]
resident, descriptors = [row[1] for row in later], [row[2] for row in later]
good = [
    judge("the whole time", status == 0 and seen[-1][0] > 0.95 * seconds, f"status {status}, {seen[-1][0]:.0f} s"),
    judge("memory is flat", max(resident) - min(resident) <= LEAST_KB,
          f"{min(resident)} .. {max(resident)} kB after {later[0][0]:.0f} s"),
    judge("descriptors are constant", max(descriptors) - min(descriptors) <= 2,
          f"{min(descriptors)} .. {max(descriptors)} in {restarts} restarts of a subscriber"),
    judge("the account closes without a loss", closes and parts and not parts.get("lost", 0), str(parts)),
]
print(f"1..{len(good)}")
sys.exit(0 if all(good) else 1)
