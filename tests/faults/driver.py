# SPDX-License-Identifier: MIT
"""Runs one row of the table of faults and judges it: exit status, account, words, results, files that are left."""
import dataclasses
import os
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import threading

PATIENCE_S = 60


@dataclasses.dataclass
class Row:
    """An injection and what is expected of it. `{n}` in command, shim, env and prepare is the number of the step."""

    name: str
    command: str  # of the program and its arguments, split at spaces; {work} is not needed: it runs in the folder
    exits: tuple  # expected exit statuses; negative: a signal
    says: str = ""  # a pattern that standard error has
    account: str = "closes"  # closes: it is printed and closes; none: none is printed; any: closes if printed
    expects: dict = dataclasses.field(default_factory=dict)  # part of the account -> count or (least, most)
    shim: str = ""  # PNR_SHIM, see shim.c: the fault must happen, but for the last step of a walk
    env: dict = dataclasses.field(default_factory=dict)
    limits: dict = dataclasses.field(default_factory=dict)  # name of a limit of resources -> value
    walk: range = None  # the steps n; with a shim the walk ends when no call is left to fail
    prepare: object = None  # function of (folder, n), before the start; may return processes, which are killed at the end
    during: object = None  # function of (process, folder, n), while it runs
    after: object = None  # function of (folder, n, outcome); returns what is wrong, or None
    stdout: str = "out"  # file of standard output in the folder; /dev/full and the like too
    results: str = "prefix"  # printed results: prefix, same, or any, compared with an undisturbed run
    blind: tuple = ()  # columns of printed results that are not compared, besides time and latency
    makes: tuple = ()  # names (or patterns) of files that the run may leave
    speaks: bool = True  # a failure has one message, and it is no raw reason alone


@dataclasses.dataclass
class Outcome:
    status: int
    err: str
    out: bytes
    account: dict


def account_of(text):
    """{part: count} of the last account in a log, and its three sums; None if there is none."""
    lines = [line for line in text.splitlines() if re.search(r"\d+ samples = ", line)]
    if not lines:
        return None, True
    parts, closes = {}, True
    sums = re.search(r"\d+ samples = .*", lines[-1]).group(0).split("; ")
    for a_sum in sums:
        total, _, rest = a_sum.partition(" = ")
        counted = [re.match(r"(\d+) ([a-z -]+)", part) for part in ([total] + rest.split(" + ") if rest else [total])]
        for match in counted:
            parts[match[2].strip()] = int(match[1])
        if rest:
            closes = closes and int(counted[0][1]) == sum(int(match[1]) for match in counted[1:])
    return parts, closes


def wrong_words(row, outcome):
    if outcome.status > 0 and row.speaks:
        messages = [line for line in outcome.err.splitlines() if ": error: " in line]
        if len(messages) != 1:
            return f"{len(messages)} messages of an error, not one"
        if re.search(r": error: [A-Z][a-z /]*$", messages[0]):
            return "a raw reason alone"
    if re.search("Sanitizer|runtime error", outcome.err):
        return "a sanitizer's finding"
    if outcome.status >= 0 and row.says and not re.search(row.says, outcome.err):
        return f"no '{row.says}'"
    return None


def wrong_account(row, outcome):
    parts, closes = outcome.account
    if not closes:
        return "the account does not close"
    if row.account == "closes" and parts is None and outcome.status >= 0:
        return "no account"
    if row.account == "none" and parts is not None:
        return "an account of a run that was refused"
    if parts is None and outcome.status < 0:
        return None
    for name, wanted in row.expects.items():
        least, most = wanted if isinstance(wanted, tuple) else (wanted, wanted)
        if not least <= (parts or {}).get(name, 0) <= most:
            return f"account: {name} is {(parts or {}).get(name, 0)}, not {wanted}"
    return None


def lines_of(csv, blind):
    """The lines of printed results without the time, the latency and the columns `blind`; a last line may be cut."""
    lines = csv.decode(errors="replace").splitlines(keepends=True)
    names = ("time", "latency_us") + blind
    at = [i for i, name in enumerate(lines[0].split(",")) if name in names] if lines else []
    return [",".join(f for i, f in enumerate(line.split(",")) if i not in at) if line.endswith("\n") else line
            for line in lines]


def wrong_results(row, outcome, undisturbed):
    got, wanted = lines_of(outcome.out, row.blind), lines_of(undisturbed, row.blind)
    if row.results == "same" and got != wanted:
        return "results differ from those of an undisturbed run"
    if got and not got[-1].endswith("\n"):
        got.pop()
    return None if got == wanted[:len(got)] else "printed results are no beginning of the undisturbed ones"


def is_judged(row):
    return row.results != "any" and row.stdout == "out"


def left_behind(row, folder, before):
    for name in sorted(set(os.listdir(folder)) - before):
        if not any(re.fullmatch(made, name) for made in ("out", "hit") + row.makes):
            return f"{name} is left behind"
    return None


def set_limits(limits):
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    for name, value in limits.items():
        resource.setrlimit(getattr(resource, "RLIMIT_" + name), (value, value))


def end(processes):
    for process in processes:
        process.kill()
        process.wait()


def fill(text, n):
    return text.replace("{n}", str(n))


class Driver:
    def __init__(self, build, base):
        self.build, self.base = os.path.abspath(build), base
        self.undisturbed = {}
        self.lock = threading.Lock()

    def environment(self, row, n, folder):
        env = dict(os.environ, PNR_LOG="info", LC_ALL="C", PNR_MODULE_PATH=f"{self.build}/tests/engines")
        env.update({name: fill(value, n) for name, value in row.env.items()})
        if row.shim:
            env.update(PNR_SHIM=fill(row.shim, n), PNR_SHIM_HIT=f"{folder}/hit",
                       LD_PRELOAD=f"{self.build}/tests/faults/shim.so")
        return env

    def start(self, row, n, folder, **pipes):
        words = fill(row.command, n).split()
        words[0] = f"{self.build}/bin/{words[0]}"
        return subprocess.Popen(words, cwd=folder, env=self.environment(row, n, folder), stdin=subprocess.DEVNULL,
                                preexec_fn=lambda: set_limits({k: int(fill(str(v), n)) for k, v in row.limits.items()}),
                                **pipes)

    def execute(self, row, n, folder):
        """Runs the command of a row once. Returns its outcome, or None if it hung."""
        with open(os.path.join(folder, row.stdout), "wb") as out:
            process = self.start(row, n, folder, stdout=out, stderr=subprocess.PIPE)
            try:
                if row.during:
                    row.during(process, folder, n)
                err = process.communicate(timeout=PATIENCE_S)[1]
            except subprocess.TimeoutExpired:
                return None
            finally:
                if process.poll() is None:
                    process.kill()
                    process.wait()
                process.stderr.close()
        text = err.decode(errors="replace")
        printed = open(f"{folder}/out", "rb").read() if row.stdout == "out" else b""
        return Outcome(process.returncode, text, printed, account_of(text))

    def results_of(self, row):
        """The results that the row's command prints when nothing fails."""
        with self.lock:
            if row.command not in self.undisturbed:
                folder = self.folder()
                calm = dataclasses.replace(row, shim="", env={}, limits={}, during=None, stdout="out")
                helpers = (row.prepare(folder, 0) if row.prepare else None) or []
                outcome = self.execute(calm, 0, folder)
                self.undisturbed[row.command] = outcome.out if outcome else b""
                end(helpers)
                shutil.rmtree(folder)
            return self.undisturbed[row.command]

    def folder(self):
        folder = tempfile.mkdtemp(prefix="pnradar-faults-")
        for name in os.listdir(self.base):
            shutil.copy(f"{self.base}/{name}", folder)
        return folder

    def step(self, row, n):
        """Runs a step. Returns (what is wrong or None, whether the fault happened)."""
        folder, helpers = self.folder(), []
        try:
            if row.prepare:
                helpers = row.prepare(folder, n) or []
            before = set(os.listdir(folder))
            outcome = self.execute(row, n, folder)
            if outcome is None:
                return "it hangs", True
            happened = not row.shim or os.path.exists(f"{folder}/hit")
            if not happened and row.walk is not None:
                return None, False
            wrong = None if happened else "the fault did not happen"
            if outcome.status not in row.exits:
                wrong = f"status {outcome.status}, not one of {row.exits}"
            wrong = (wrong or wrong_words(row, outcome) or wrong_account(row, outcome) or
                     (wrong_results(row, outcome, self.results_of(row)) if is_judged(row) else None) or
                     left_behind(row, folder, before) or (row.after(folder, n, outcome) if row.after else None))
            return (f"{wrong}: {outcome.err[-400:]}" if wrong else None), happened
        finally:
            end(helpers)
            shutil.rmtree(folder)

    def run(self, row):
        """Runs a row. Returns (the list of what is wrong, the number of faults injected)."""
        wrong, n_faults = [], 0
        for n in row.walk if row.walk is not None else (0,):
            problem, happened = self.step(row, n)
            if not happened and row.walk is not None:
                break
            n_faults += 1
            if problem:
                wrong.append(f"step {n}: {problem}" if row.walk is not None else problem)
            if len(wrong) >= 3:
                break
        if n_faults == 0:
            wrong.append("no fault was injected")
        return wrong, n_faults
