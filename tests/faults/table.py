# SPDX-License-Identifier: MIT
"""The table of faults: what is injected, into which command, and what the run must then report."""
import functools
import glob
import os
import random
import signal
import sqlite3
import struct
import subprocess
import time

import peers
from driver import Row

RADAR = "pnradar -c radar.conf --print csv echo.ci16"
LIVE = "pnradar -c radar.conf -s source.pace=real-time --print csv echo.ci16"
FLOAT = "pnradar -c radar.conf -s source.format=cf32 --print csv echo.cf32"
SOUND = "pnradar -c radar.conf -s source.format=auto -s source.rate_hz=100000 --print csv echo.wav"
ZERO = ("pnradar -c radar.conf -s radar.zero=direct-path -s radar.zero_state_path=zero.json "
        "-s radar.min_range_m=5000 --print csv leak.ci16")
CELLS = "pnradar -c radar.conf --profile cells.npy --print csv echo.ci16"
PUBLISHED = "pnradar -c radar.conf -s publisher.endpoint=ipc://socket --print csv echo.ci16"
LONG = LIVE.replace("--print", "-s source.rate_hz=12500 -s ring.seconds=30 --print")
WORKER = LONG.replace("--print", "-s engine.isolate=yes -s engine.deadline_hang=0.5 --print")
FAULT = "pnradar -c radar.conf -s engine.name=fault -s engine.batch=1 --print csv echo.ci16"
RECORD = RADAR.replace("echo.ci16", "-s recorder.samples=rec -s recorder.results=new.csv echo.ci16")
ECHO = "pnradar-echo -c radar.conf --truth new.csv new."
PLOT = "pnradar -c radar.conf --plot new.png echo.ci16"
CODE = "pnradar -c radar.conf -s code.type=file -s code.path=code.txt --print csv echo.ci16"

N, PERIODS = 127, 200
CONFIGS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../config")
ALL = N * PERIODS
USED = {"samples": ALL, "used": ALL, "windows": PERIODS, "results": PERIODS}
BUILD = ""  # folder of the build, which `run` sets
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# A python that has h5py; None: there is none.
H5PY = next((python for python in ("python3", "/usr/bin/python3")
             if subprocess.run([python, "-c", "import h5py"], capture_output=True).returncode == 0), None)
MOST = 1 << 20  # steps of a walk, which ends before
REC_FILES = ("new.csv", "new.jsonl", "new.sqlite.*", "new.h5.*", r"rec(\.partial)?\.sigmf-(data|meta)", r"rec\..*")
CHANNEL = RADAR.replace("echo.ci16", "-s recorder.format=digital-rf -s recorder.rotate_s=0.02 -s recorder.samples=rec "
                        "echo.ci16")
CELL_FILES = ("cells.npy", "cells.jsonl")

CONFIG = """[source]
rate_hz = 100000
format = ci16
[code]
type = m-sequence
degree = 7
[engine]
name = reference
deadline = 1000
[publisher]
endpoint =
[echo]
periods = 200
noise_rms = 0.05
[target.1]
range_m = 60000
amplitude = 0.1
"""


def make_base(build, folder):
    """Recordings, configuration and files that every row finds in its folder."""
    with open(f"{folder}/radar.conf", "w") as file:
        file.write(CONFIG)

    def echo(*arguments):
        subprocess.run([f"{build}/bin/pnradar-echo", "-c", "radar.conf", *arguments], cwd=folder, check=True,
                       stderr=subprocess.DEVNULL)

    echo("--truth", "truth.csv", "echo.ci16")
    echo("echo.wav")
    echo("echo.flac")
    echo("-s", "source.format=cf32", "echo.cf32")
    echo("-s", "echo.leak_amplitude=0.3", "leak.ci16")
    chips = m_sequence()
    with open(f"{folder}/code.txt", "w") as file:
        file.writelines(f"{chip}\n" for chip in chips)
    with open(f"{folder}/code.csv", "w") as file:
        file.writelines(f"{chip},0\n" for chip in chips)
    head = "{'descr': '<f4', 'fortran_order': False, 'shape': (127,), }".ljust(117) + "\n"
    with open(f"{folder}/code.npy", "wb") as file:
        file.write(b"\x93NUMPY\x01\0" + struct.pack("<H", len(head)) + head.encode())
        file.write(struct.pack("<127f", *chips))


def m_sequence():
    """x^7 + x + 1, 127 chips of 1 and -1."""
    state, chips = [1] * 7, []
    for _ in range(N):
        chips.append(1 - 2 * state[6])
        state = [state[6] ^ state[0]] + state[:6]
    return chips


# --- what a row prepares, does and looks at ---

def spoil(value, first, count):
    """Sets I and Q of samples of echo.cf32."""
    def prepare(folder, _):
        with open(f"{folder}/echo.cf32", "r+b") as file:
            file.seek(8 * first)
            file.write(struct.pack("<2f", value, value) * count)
    return prepare


def cut(name):
    """Leaves the first n bytes of a file."""
    return lambda folder, n: os.truncate(f"{folder}/{name}", n)


def cut_small(name, periods):
    """Leaves `periods` of a recording, and of these all but the last n bytes."""
    return lambda folder, n: os.truncate(f"{folder}/{name}", periods * N * 4 - n)


def state_file(folder, n=0):
    """A state that an earlier run wrote."""
    del n
    run = subprocess.run([f"{BUILD}/bin/" + ZERO.split()[0], *ZERO.split()[1:]], cwd=folder, capture_output=True,
                         check=True, env=dict(os.environ, PNR_LOG="quiet"))
    assert os.path.exists(f"{folder}/zero.json"), run


def cut_state(folder, n):
    state_file(folder)
    os.truncate(f"{folder}/zero.json", n)


def state_is_whole(folder, _, outcome):
    del outcome
    text = open(f"{folder}/zero.json").read() if os.path.exists(f"{folder}/zero.json") else "{}\n"
    return None if text.startswith("{") and text.endswith("}\n") else f"the state is cut: {text}"


def stopped_reader(folder, _):
    """A pipe that nobody reads; its end stays open as long as the process that is returned."""
    os.mkfifo(f"{folder}/fifo")
    holder = subprocess.Popen(["sleep", "100"], stdin=os.open(f"{folder}/fifo", os.O_RDWR))
    return [holder]


def listener(act):
    """A subscriber of the run, with which `act` does something, again and again."""
    def during(process, folder, _):
        deadline = time.monotonic() + 30
        while process.poll() is None and time.monotonic() < deadline:
            peer = subprocess.Popen([f"{BUILD}/bin/pnradar-listen", "--timeout", "20", "ipc://socket"], cwd=folder,
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(0.05)
            act(peer)
            try:
                process.wait(0.05)
            except subprocess.TimeoutExpired:
                pass
            peer.kill()
            peer.wait()
    return during


def step_clock(*offsets):
    """Steps the clock of the run, through libfaketime's file."""
    def during(process, folder, _):
        for offset in offsets:
            time.sleep(0.05)
            with open(f"{folder}/new-clock", "w") as file:
                file.write(offset + "\n")
            os.rename(f"{folder}/new-clock", f"{folder}/clock")
    return during


def start_clock(folder, _):
    with open(f"{folder}/clock", "w") as file:
        file.write("+0\n")


def old_files(folder, _):
    """Files of an earlier run, which a failed one leaves as they are."""
    for name in ("wav", "flac", "ci16"):
        os.rename(f"{folder}/echo.{name}", f"{folder}/new.{name}")
    os.rename(f"{folder}/truth.csv", f"{folder}/new.csv")


def old_files_are(folder, _, outcome):
    del outcome
    for name, size in (("new.ci16", 4 * ALL), ("new.wav", 44 + 4 * ALL), ("new.csv", 1000)):
        if os.path.getsize(f"{folder}/{name}") < size:
            return f"{name} has {os.path.getsize(f'{folder}/{name}')} bytes"
    return None


def recorded(folder, _, outcome, is_sure=True):
    """Recorded results are whole lines in order, but for a last one that was cut by SIGKILL; recorded samples begin as
    the input; what is not recorded is counted. Not is_sure: so are results that may not be on the disk."""
    parts = outcome.account[0]
    rows = open(f"{folder}/new.csv").read() if os.path.exists(f"{folder}/new.csv") else ""
    lines = rows[:rows.rfind("\n") + 1].splitlines()
    if outcome.status >= 0 and rows and not rows.endswith("\n"):
        return "the last recorded line is cut"
    if any(line.count(",") != lines[0].count(",") for line in lines):
        return "a recorded line is damaged"
    seqs = [int(line.split(",")[0]) for line in lines[1:]]
    if seqs != sorted(seqs):
        return "recorded results are not in order"
    samples = b""
    for name in ("rec.sigmf-data", "rec.partial.sigmf-data"):
        if os.path.exists(f"{folder}/{name}"):
            samples = open(f"{folder}/{name}", "rb").read()
    if outcome.status == 0:
        n_results = len(set(seqs)) + parts.get("unrecorded results", 0)
        n_samples = len(samples) // 4 + parts.get("unrecorded samples", 0)
        if (n_results != parts["results"] if is_sure else n_results < parts["results"]) or n_samples != parts["samples"]:
            return f"recorded and unrecorded are {n_results} results and {n_samples} samples"
    elif not any(open(f"{folder}/{name}", "rb").read().startswith(samples) for name in ("echo.ci16", "leak.ci16")):
        return "recorded samples are not those of the input"
    return None


def channel_is_whole(folder, _, outcome):
    """Each file of a channel of Digital RF opens; what is not in a file is counted. Only a killed run leaves a file of
    another name."""
    if outcome.status >= 0 and glob.glob(f"{folder}/rec/*/tmp.*"):
        return "a temporary file is left"
    judge = subprocess.run([H5PY, f"{TOP}/tests/recorder/digital_rf_judge.py", "whole", "rec"], cwd=folder,
                           capture_output=True, text=True)
    if judge.returncode != 0:
        return judge.stderr
    n = int(judge.stdout.split()[1])
    parts = outcome.account[0]
    if outcome.status == 0 and n + parts.get("unrecorded samples", 0) != parts["samples"]:
        return f"recorded and unrecorded are {n} and {parts.get('unrecorded samples', 0)} samples"
    return None


def database_is_whole(folder, _, outcome):
    """A killed run leaves a database that opens, with results in order."""
    del outcome
    path = f"{folder}/new.sqlite"
    if not os.path.exists(path) or os.path.getsize(path) == 0:
        return None
    base = sqlite3.connect(path)
    try:
        if base.execute("pragma integrity_check").fetchall() != [("ok",)]:
            return "the database is damaged"
    except sqlite3.DatabaseError as error:
        return str(error)
    finally:
        base.close()
    return None


def has_flag(flag, n_least):
    """At least so many results have the flag."""
    def after(_folder, _, outcome):
        n = outcome.out.decode().count(flag)
        return None if n >= n_least else f"{n} results have the flag {flag}, not {n_least}"
    return after


def send(number, least_s, most_s, again=None):
    """Sends a signal at a random moment of the run; after another while a second one."""
    def during(process, _, n):
        draw = random.Random(n)
        time.sleep(draw.uniform(least_s, most_s))
        process.send_signal(number)
        if again is not None:
            time.sleep(draw.uniform(least_s, most_s))
            process.send_signal(again)
    return during


def amid(act, times=1):
    """Calls act(process, folder) so many times, each time when the run has printed a random number of results more."""
    def during(process, folder, n):
        draw = random.Random(n)
        at = 0
        for _ in range(times):
            at += draw.randint(5, 100 // times)
            while process.poll() is None and open(f"{folder}/out", "rb").read().count(b"\n") < at:
                time.sleep(0.002)
            act(process, folder)
    return during


def hang_up(process, _):
    process.send_signal(signal.SIGHUP)


def hang_up_wrongly(process, folder):
    """The configuration is wrong, or cannot be read."""
    os.rename(f"{folder}/radar.conf", f"{folder}/old.conf")
    if process.pid % 2:
        with open(f"{folder}/radar.conf", "w") as file:
            file.write(CONFIG.replace("degree = 7", "degree = seven"))
    hang_up(process, folder)


def to_workers(number):
    """Sends a signal to the workers of the run."""
    def act(process, _):
        for thread in os.listdir(f"/proc/{process.pid}/task"):
            with open(f"/proc/{process.pid}/task/{thread}/children") as children:
                for child in children.read().split():
                    os.kill(int(child), number)
    return act


# --- the rows ---

def own_memory():
    """Every allocation of the program itself; in the first also together with all that follow."""
    wanted = dict(exits=(69,), says="memory", account="any")
    commands = (("recording", RADAR, ()), ("published", PUBLISHED, ()), ("sound", SOUND, ()),
                ("profiles", CELLS, CELL_FILES), ("direct path", ZERO, ()), ("code file", CODE, ()))
    yield Row("memory: recording, from the n-th allocation on", RADAR, shim="malloc@bin/pnradar:{n}+=ENOMEM",
              walk=range(1, MOST), **wanted)
    for name, command, makes in commands:
        yield Row(f"memory: {name}, the n-th allocation", command, shim="malloc@bin/pnradar:{n}=ENOMEM",
                  walk=range(1, MOST), makes=makes, **wanted)
    yield Row("memory: a zero state, the n-th allocation", ZERO, shim="malloc@bin/pnradar:{n}=ENOMEM", prepare=state_file,
              walk=range(1, MOST), **wanted)


def library_memory():
    """Allocations of libraries. libzmq and libstdc++ abort, libsndfile crashes: what was printed is whole."""
    for name, command, exits in (("libc.so", RADAR, (0, 66, 69, 74, 78)), ("libc.so", CODE, (0, 65, 66, 69, 74, 78)),
                                 ("libsndfile", SOUND, (0, 65, 69, -signal.SIGSEGV, -signal.SIGABRT)),
                                 ("libzmq", PUBLISHED, (0, 69, 74, -signal.SIGABRT)),
                                 ("libstdc++", PUBLISHED, (69, 74, -signal.SIGABRT))):
        yield Row(f"memory: the n-th allocation of {name}, {command.split()[-1]}", command, exits, account="any",
                  shim=f"malloc@{name}:{{n}}=ENOMEM", walk=range(1, MOST), makes=("socket",))


def failed_calls():
    """Files: each call fails once."""
    yield Row("read: a recording, EIO at the n-th read", RADAR, (66, 74), "Input/output error", shim="read@bin/pnradar:{n}=EIO",
              walk=range(1, MOST), account="any")
    for error in ("EINTR", "short"):
        yield Row(f"read: a recording, {error} at the n-th read", RADAR, (0,), shim="read@bin/pnradar:{n}=" + error,
                  walk=range(1, MOST), expects=USED, results="same")
        yield Row(f"write: results, {error} at the n-th write", RADAR, (0,), shim="write@bin/pnradar:{n}=" + error,
                  walk=range(1, MOST), expects=USED, results="same")
    for error in ("EIO", "EINTR", "short"):
        yield Row(f"read: a sound file, {error} at the n-th read of libsndfile", SOUND, (0, 65, 66, 74), account="any",
                  shim="read@libsndfile:{n}=" + error, walk=range(1, MOST))
    for error in ("ENOSPC", "EIO"):
        wanted = dict(exits=(74,), says="stdout|cells|profile", account="any")
        yield Row(f"write: results, {error} at the n-th write", RADAR, shim="write@bin/pnradar:{n}=" + error,
                  walk=range(1, MOST), **wanted)
        yield Row(f"write: cells, {error} at the n-th write", CELLS, shim="write@bin/pnradar:{n}=" + error,
                  walk=range(1, 40), makes=CELL_FILES, **wanted)
        yield Row(f"write: the zero state, {error}", ZERO, (0, 74), "zero|stdout", results="any",
                  shim="write@bin/pnradar:{n}=" + error, walk=range(1, MOST), makes=("zero.json",),
                  after=state_is_whole)
    for call, error in (("fsync", "EIO"), ("rename", "EACCES"), ("rename", "EIO"), ("open", "EMFILE"),
                        ("open", "EACCES"), ("open", "EINTR")):
        yield Row(f"{call}: {error} at the n-th call, direct path", ZERO, (0, 66, 69, 74, 77, 78), account="any",
                  shim=f"{call}@bin/pnradar:{{n}}={error}", walk=range(1, MOST), makes=("zero.json",),
                  after=state_is_whole)
    yield Row("open: EMFILE at the n-th call, cells", CELLS, (0, 66, 74, 69), shim="open@bin/pnradar:{n}=EMFILE",
              walk=range(1, MOST), makes=CELL_FILES, account="any")
    yield Row("thread: the n-th thread of the program does not start", RADAR, (0, 69), "thread|200 sent",
              shim="thread@bin/pnradar:{n}=EAGAIN", walk=range(1, MOST), account="any")


def limits():
    """Limits of resources."""
    for name, command in (("recording", RADAR), ("published", PUBLISHED), ("cells", CELLS)):
        yield Row(f"limit: n open files, {name}", command, (0, 66, 69, 74, 77, 78, -signal.SIGABRT), account="any",
                  limits={"NOFILE": "{n}"}, walk=range(4, 24), makes=CELL_FILES + ("socket",), speaks=True)
    for n in (0, 1, 100, 4096):
        yield Row(f"limit: results of {n} bytes", RADAR, (74,), "stdout: the results could not be written: File too",
                  limits={"FSIZE": n})
        yield Row(f"limit: cells of {n} bytes", CELLS, (74,), "File too large", limits={"FSIZE": n}, account="any",
                  makes=CELL_FILES)
        yield Row(f"limit: a zero state of {n} bytes", ZERO, (0,), "" if n == 4096 else "zero.json: File too large",
                  limits={"FSIZE": n}, expects=USED, makes=("zero.json",), stdout="/dev/null", after=state_is_whole)
    yield Row("limit: no locked memory", RADAR, (0,), limits={"MEMLOCK": 0}, expects=USED, results="same")
    yield Row("limit: n MiB of addresses", RADAR, (0, 69, 127), limits={"AS": "{n}000000"}, walk=range(8, 60, 2),
              account="any", speaks=False)


def full_disks():
    """A device that is always full."""
    yield Row("full: results", RADAR, (74,), "No space left on device", stdout="/dev/full")
    yield Row("full: results of a live stream that publishes, which goes on",
              LIVE + " -s source.rate_hz=1e6 -s publisher.endpoint=ipc://socket", (74,), "no more results are printed",
              stdout="/dev/full", expects=USED, makes=("socket",))


def engines():
    """The fault engine: every place, every error."""
    lost = {"EENGINE": 75, "ENOMEMORY": 75, "EINTERNAL": 75, "ELOST": 75, "-99": 75, "7": 75}
    for place in ("submit", "collect"):
        for error, status in lost.items():
            yield Row(f"engine: {error} at every {place}", FAULT, (status,), "engine fault", results="any",
                      env={"PNR_FAULT": f"{place}={error}"}, expects={"samples": (1, ALL), "dropped engine error": (1, PERIODS), "results": 0})
            yield Row(f"engine: {error} at the n-th {place}", FAULT,
                      (75,) if error in ("ELOST", "-99", "7") else (70,), "engine", results="any",
                      env={"PNR_FAULT": f"{place}:{{n}}={error}"}, walk=range(1, 200, 66),
                      expects={"samples": (1, ALL), "dropped engine error": 1})
    yield Row("engine: a collect that hangs, SIGTERM twice", FAULT, (128 + signal.SIGTERM,), account="any",
              env={"PNR_FAULT_SLOW_MS": "100000"}, during=send(signal.SIGTERM, 0.3, 0.4, signal.SIGTERM), speaks=False)
    for place in ("probe", "alloc", "describe", "create"):
        for error in ("EUNAVAILABLE", "ENOMEMORY", "EENGINE", "ELOST"):
            yield Row(f"engine: {error} of {place}", FAULT, (69, 70, 75), "engine|memory", account="none",
                      env={"PNR_FAULT": f"{place}={error}"})


def echoes():
    """The outputs of pnradar-echo: whole, or as they were before."""
    yield Row("echo: memory, the n-th allocation", ECHO + "ci16", (69,), "memory", shim="malloc@bin/pnradar-echo:{n}=ENOMEM",
              walk=range(1, MOST), account="any", prepare=old_files, after=old_files_are)
    for name in ("ci16", "wav", "flac"):
        wanted = dict(prepare=old_files, after=old_files_are, account="any", results="any")
        yield Row(f"echo: ENOSPC at the n-th write, {name}", ECHO + name, (74,), "new", walk=range(1, MOST, 3),
                  shim="write:{n}=ENOSPC", **wanted)
        # status 0: the folder alone could not be synchronised, after the file had its name
        for call, error in (("fsync", "EIO"), ("rename", "EIO"), ("open", "EMFILE")):
            yield Row(f"echo: {error} at the n-th {call}, {name}", ECHO + name, (0, 66, 69, 74, 78), "new|radar.conf|written",
                      shim=f"{call}@bin/pnradar-echo:{{n}}={error}", walk=range(1, MOST), **wanted)
        for n in (0, 100, 50000):
            yield Row(f"echo: files of at most {n} bytes, {name}", ECHO + name, (74,), "new", limits={"FSIZE": n}, **wanted)
        yield Row(f"echo: SIGKILL at a random moment, {name}", ECHO + name + " -s echo.periods=2000",
                  (-signal.SIGKILL, 0), during=send(signal.SIGKILL, 0.005, 0.06), walk=range(20),
                  makes=(r"\.pnradar-[0-9a-f]*",), **wanted)
        yield Row(f"echo: SIGTERM at a random moment, {name}", ECHO + name + " -s echo.periods=2000", (0,),
                  during=send(signal.SIGTERM, 0.03, 0.06), walk=range(10),
                  **dict(wanted, after=None))


def recorders():
    """Samples and results in files, while the run goes on."""
    wanted = dict(makes=REC_FILES, account="any", after=recorded)
    yield Row("recorder: memory, the n-th allocation", RECORD, (0, 69), "memory|unrecorded", walk=range(1, MOST),
              shim="malloc@bin/pnradar:{n}=ENOMEM", **wanted)
    for error in ("ENOSPC", "EIO"):
        yield Row(f"recorder: {error} at the n-th write", RECORD, (0, 74), "recorder|stdout",
                  shim="write@bin/pnradar:{n}=" + error, walk=range(1, 40), **wanted)
        yield Row(f"recorder: {error} at each write from the n-th on", RECORD, (0, 74), "recorder|stdout",
                  shim="write@bin/pnradar:{n}+=" + error, walk=range(1, 40), **wanted)
    for error in ("EINTR", "short"):
        yield Row(f"recorder: {error} at the n-th write", RECORD, (0,), shim="write@bin/pnradar:{n}=" + error,
                  walk=range(1, 40), expects=dict(USED, **{"unrecorded results": 0, "unrecorded samples": 0}),
                  **dict(wanted, account="closes"))
    for call, error in (("open", "EMFILE"), ("fsync", "EIO"), ("rename", "EIO"), ("thread", "EAGAIN")):
        yield Row(f"recorder: {error} at the n-th {call}", RECORD, (0, 66, 69, 74, 78), walk=range(1, MOST),
                  shim=f"{call}@bin/pnradar:{{n}}={error}",
                  **dict(wanted, after=functools.partial(recorded, is_sure=call != "fsync")))
    for n in (1, 100, 20000):
        yield Row(f"recorder: files of at most {n} bytes", RECORD, (74,) if n == 1 else (0, 74), "File too large",
                  limits={"FSIZE": n}, **wanted)
    if os.path.exists(f"{BUILD}/lib/pnradar/recorder-digital-rf.so") and H5PY:
        yield from channels(dict(wanted, makes=("rec",), after=channel_is_whole))
    else:
        print("skipped: recordings in Digital RF: no recorder-digital-rf.so, or no python has h5py", flush=True)
    for kind in ("csv", "jsonl", "sqlite", "h5"):
        yield Row(f"recorder: SIGKILL at a random moment, {kind}", RECORD.replace("new.csv", "new." + kind) +
                  " -s source.pace=real-time", (-signal.SIGKILL, 0), during=send(signal.SIGKILL, 0.02, 0.26),
                  walk=range(20), **dict(wanted, after=database_is_whole if kind == "sqlite" else recorded))


def channels(wanted):
    """Samples in Digital RF."""
    module = "recorder-digital-rf"
    for error in ("ENOSPC", "EIO"):
        for goes_on in ("", "+"):
            yield Row(f"recorder: Digital RF, {error} at write n{goes_on}", CHANNEL, (0, 74), "recorder",
                      shim=f"write@{module}:{{n}}{goes_on}={error}", walk=range(1, 20), **wanted)
    for error in ("EINTR", "short"):
        yield Row(f"recorder: Digital RF, {error} at the n-th write", CHANNEL, (0,), shim=f"write@{module}:{{n}}={error}",
                  walk=range(1, 20), expects=dict(USED, **{"unrecorded samples": 0}), **dict(wanted, account="closes"))
    for call, error in (("open", "EMFILE"), ("fsync", "EIO"), ("rename", "EIO"), ("malloc", "ENOMEM")):
        yield Row(f"recorder: Digital RF, {error} at the n-th {call}", CHANNEL, (0, 66, 69, 74, 78), "recorder|memory",
                  shim=f"{call}@{module}:{{n}}={error}", walk=range(1, MOST), **wanted)
    for n in (100, 20000):
        yield Row(f"recorder: Digital RF, files of at most {n} bytes", CHANNEL, (0, 74), "File too large",
                  limits={"FSIZE": n}, **wanted)
    yield Row("recorder: Digital RF, SIGKILL at a random moment", CHANNEL + " -s source.pace=real-time",
              (-signal.SIGKILL, 0), during=send(signal.SIGKILL, 0.02, 0.26), walk=range(20), **wanted)


def pictures():
    """--plot, through gnuplot."""
    wanted = dict(results="any", account="any")
    yield Row("plot: memory, the n-th allocation", PLOT, (69, 74), "memory", shim="malloc@bin/pnradar:{n}=ENOMEM",
              walk=range(1, MOST, 9), **wanted)
    yield Row("plot: a picture of at most 100 bytes", PLOT, (74,), "new.png", limits={"FSIZE": 100}, **wanted)
    for call, error in (("write", "ENOSPC"), ("fsync", "EIO"), ("rename", "EIO"), ("open", "EMFILE")):
        yield Row(f"plot: {error} at the n-th {call}", PLOT, (0, 66, 69, 74, 78), "new.png|echo|radar.conf",
                  shim=f"{call}@bin/pnradar:{{n}}={error}", walk=range(1, MOST), makes=("new.png",), **wanted)


def readers():
    """Those that read results."""
    yield Row("reader: of stdout, that never reads", LIVE + " -s publisher.linger_s=0.1 --print json", (74,),
              "the reader has stopped", prepare=stopped_reader, stdout="fifo", during=send(signal.SIGTERM, 0.4, 0.5))
    yield Row("reader: of stdout, that leaves", RADAR, (0,), stdout="/dev/null", expects=USED)
    for name, act in (("killed", lambda peer: peer.send_signal(signal.SIGKILL)),
                      ("stopped", lambda peer: peer.send_signal(signal.SIGSTOP))):
        yield Row(f"reader: subscribers that are {name}", PUBLISHED + " -s source.pace=real-time", (0,), expects=USED,
                  during=listener(act), makes=("socket",), results="same")


def clocks():
    """Steps of the clock of the machine."""
    library = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1"
    fake = {"LD_PRELOAD": library, "FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_TIMESTAMP_FILE": "clock"}
    if not os.path.exists(library):
        print(f"skipped: steps of the clock: no {library}")
        return
    for name, offsets in (("an hour forth", ("+3600",)), ("an hour back", ("-3600",)),
                          ("years back and forth", ("-1000000000", "+1000000000", "+0"))):
        yield Row(f"clock: {name}, live", LIVE, (0,), expects=USED, env=fake, prepare=start_clock,
                  during=step_clock(*offsets), makes=("clock",), results="same")
        yield Row(f"clock: {name}, direct path", ZERO + " -s source.pace=real-time", (0,), expects=USED, env=fake,
                  prepare=start_clock, during=step_clock(*offsets), makes=("clock", "zero.json"), results="same")


def signals():
    """Signals at random moments."""
    yield Row("signal: SIGTERM at a random moment", LIVE, (0,), expects={"windows": (0, PERIODS)}, account="any",
              during=send(signal.SIGTERM, 0.02, 0.3), walk=range(20))
    yield Row("signal: SIGSTOP, then SIGCONT, live", LIVE, (0,), results="any", expects={"samples": ALL},
              during=send(signal.SIGSTOP, 0.05, 0.1, signal.SIGCONT), walk=range(5))
    yield Row("signal: SIGKILL at a random moment, 200 times", CELLS.replace("echo.ci16", "leak.ci16") +
              " -s source.pace=real-time -s radar.zero=direct-path -s radar.min_range_m=5000"
              " -s radar.zero_state_path=zero.json -s recorder.samples=rec -s recorder.results=new.csv",
              (-signal.SIGKILL, 0), account="any", results="prefix", prepare=state_file,
              during=send(signal.SIGKILL, 0.02, 0.28), walk=range(200),
              makes=CELL_FILES + REC_FILES + (r"\.pnradar-[0-9a-f]*",),
              after=lambda *a: state_is_whole(*a) or recorded(*a))


def workers():
    """Workers that die, hang or lose their engine at a random window: all results come."""
    wanted = dict(exits=(0,), says="worker lost", expects=USED, results="same", blind=("flags",),
                  after=has_flag("restarted", 1))
    yield Row("worker: killed at a random window", WORKER, during=amid(to_workers(signal.SIGKILL)), walk=range(5), **wanted)
    yield Row("worker: killed at four windows", WORKER, during=amid(to_workers(signal.SIGKILL), 4), walk=range(3), **wanted)
    yield Row("worker: stopped at a random window", WORKER, during=amid(to_workers(signal.SIGSTOP)), walk=range(3), **wanted)
    for error in ("-700", "-99", "ELOST"):
        yield Row(f"worker: {error} at the n-th submit", FAULT.replace("--print", "-s engine.isolate=yes --print"),
                  env={"PNR_FAULT": f"submit:{{n}}={error}"}, walk=(60, 97, 150), **wanted)


def reloads():
    """SIGHUP at random windows: no sample is lost, and the results are those of one run, or of the old one."""
    wanted = dict(exits=(0,), expects=USED, results="same")
    for name, command in (("", LONG), (", worker", WORKER)):
        yield Row(f"reload: at a random window{name}", command, says="read again: a new run begins", blind=("seq",),
                  during=amid(hang_up), walk=range(5), **wanted)
        yield Row(f"reload: at ten windows{name}", command, says="read again: a new run begins", blind=("seq",),
                  during=amid(hang_up, 10), walk=range(2), **wanted)
        yield Row(f"reload: a wrong or missing file{name}", command, says="stays as it was", makes=("old.conf",),
                  during=amid(hang_up_wrongly), walk=range(4), **wanted)
    yield Row("reload: while the worker is killed", WORKER, says="worker lost", blind=("seq", "flags"), walk=range(5),
              during=amid(lambda *a: (to_workers(signal.SIGKILL)(*a), hang_up(*a))), **wanted)
    yield Row("reload: then SIGTERM", LONG, (0,), "stopped", during=send(signal.SIGHUP, 0.3, 0.4, signal.SIGTERM),
              results="any", walk=range(3))
    yield Row("reload: memory, the n-th allocation", LIVE, (0, 69), account="any", results="any",
              shim="malloc@bin/pnradar:{n}=ENOMEM", during=amid(hang_up), walk=range(1, MOST, 5))


def samples():
    """Samples that no receiver gives."""
    inf = float("inf")
    for name, value in (("NaN", float("nan")), ("Inf", inf), ("-Inf", -inf)):
        yield Row(f"samples: {name} in 30 of a window", FLOAT, (0,), "non-finite", prepare=spoil(value, 500, 30),
                  expects={"samples": ALL, "lost source": 30, "non-finite": 30, "windows": PERIODS}, results="any")
        yield Row(f"samples: {name} in all", FLOAT, (0,), prepare=spoil(value, 0, ALL), results="any",
                  expects={"samples": ALL, "lost source": ALL, "results": 0})
    for value in (1e20, 3e38):
        yield Row(f"samples: {value:g} in 30 of a window", FLOAT, (0,), prepare=spoil(value, 500, 30), results="any",
                  expects={"samples": ALL, "windows": PERIODS}, after=has_flag("huge-samples", 1))
        yield Row(f"samples: {value:g} in all", FLOAT, (0,), "is source.format = cf32 right", results="any",
                  prepare=spoil(value, 0, ALL), expects=USED, after=has_flag("huge-samples", PERIODS))


def hostile_peers():
    """Peers of the publisher and of the listener that keep to no protocol."""
    slow = "pnradar -c radar.conf -s source.rate_hz=4000 -s source.pace=real-time --print csv"
    yield Row("peers: 500 half-open handshakes", slow + " -s publisher.endpoint=tcp://127.0.0.1:{n} echo.ci16", (0,),
              "refused", walk=(peers.free_port(),), expects=USED, during=peers.half_open(500), after=peers.memory_is_bounded)
    yield Row("peers: 10000 hostile messages to a publisher", slow +
              " -s publisher.endpoint=tcp://127.0.0.1:{n} echo.ci16", (0,), "subscriber-refused", expects=USED,
              walk=(peers.free_port(),), during=peers.hostile_subscriber(10000), after=peers.memory_is_bounded)
    yield Row("peers: 10000 hostile messages to a listener",
              "pnradar-listen --timeout 5 --strict --stream demo tcp://127.0.0.1:{n}", (3, 69),
              "10000 messages could not be read", walk=(peers.free_port(),), during=peers.hostile_publisher(10000),
              after=peers.memory_is_bounded, account="none", results="any", speaks=False)


def configurations():
    """20,000 mutations of each configuration of this repository."""
    for name in sorted(os.listdir(CONFIGS)):
        if name.endswith(".conf"):
            yield Row(f"configuration: 20000 mutations of {name}", f"../tests/faults/mutations {CONFIGS}/{name} 20000",
                      (0,), account="none", results="any")


def truncation():
    """A file cut at every byte."""
    base = {"radar.conf": len(CONFIG), "code.txt": m_text("{}\n"), "code.csv": m_text("{},0\n"), "code.npy": 128 + 508}
    yield Row("cut: the configuration at every byte", RADAR, (0, 64, 66, 69, 70, 78), prepare=cut("radar.conf"),
              walk=range(base["radar.conf"]), account="any", results="any")
    for name in ("code.txt", "code.csv", "code.npy"):
        yield Row(f"cut: {name} at every byte", CODE.replace("code.txt", name), (0, 65, 78), prepare=cut(name),
                  walk=range(0, base[name], 1 if name == "code.txt" else 3), account="any", results="any")
    yield Row("cut: a recording of one period at every byte", RADAR, (0, 65), prepare=cut_small("echo.ci16", 1),
              walk=range(4 * N), account="any", results="any")
    yield Row("cut: a zero state within its mark", ZERO, (78,), "did not write", prepare=cut_state, walk=range(1, 17),
              account="none")
    yield Row("cut: a zero state at every later byte", ZERO, (0,), "is not used|expected at", prepare=cut_state,
              walk=range(17, 400, 2), results="any", after=state_is_whole)
    for name in ("echo.wav", "echo.flac"):
        yield Row(f"cut: {name} at each of its first bytes", SOUND.replace("echo.wav", name), (0, 65, 66),
                  prepare=cut(name), walk=range(0, 600), account="any", results="any")


def m_text(line):
    return sum(len(line.format(chip)) for chip in m_sequence())


def rows():
    for group in (own_memory, library_memory, failed_calls, limits, full_disks, recorders, echoes, pictures, engines,
                  readers, clocks, signals, workers, reloads, samples, hostile_peers, configurations, truncation):
        yield from group()
