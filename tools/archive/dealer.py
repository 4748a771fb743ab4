# SPDX-License-Identifier: MIT
"""Submits tasks to the cluster and collects their outcomes."""
import os
import queue
import sys
import time
from concurrent.futures import CancelledError

from cluster import ATTEMPTS
from task import task_runner
from words import EXIT_UNAVAILABLE, Refusal, say


class Progress:
    """Shows the progress as a line on a terminal, at most twice a second."""

    def __init__(self, n_bytes):
        self.n_bytes, self.began, self.shown = n_bytes, time.monotonic(), 0
        self.n_done = self.n_kept = self.n_failed = self.done = self.kept = 0

    def add(self, task, kept):
        self.n_done += 1
        self.n_kept += kept
        self.done += task["n_bytes"]
        self.kept += task["n_bytes"] if kept else 0

    def show(self, now=False):
        if not sys.stderr.isatty() or (not now and time.monotonic() - self.shown < 0.5):
            return
        self.shown = time.monotonic()
        share = min(1, self.done / self.n_bytes) if self.n_bytes else 1
        made, rest = self.done - self.kept, self.n_bytes - self.done
        left = (self.shown - self.began) * rest / made if made else None
        clock = "-:--:--" if left is None else f"{left // 3600:.0f}:{left // 60 % 60:02.0f}:{left % 60:02.0f}"
        bar = "#" * round(24 * share)
        failed = f", {self.n_failed} failed" if self.n_failed else ""
        sys.stderr.write(f"\r[{bar:24}] {100 * share:3.0f} %  {self.n_done} tasks{failed}, {clock} left\033[K")
        sys.stderr.flush()

    def end(self):
        self.show(now=True)
        if sys.stderr.isatty():
            sys.stderr.write("\n")


class Dealer:
    """Submits all tasks until each is done or has failed, a limited number at a time."""

    def __init__(self, cluster, settings, progress, assembly):
        self.cluster, self.settings, self.progress, self.assembly = cluster, settings, progress, assembly
        self.finished = queue.SimpleQueue()
        self.with_cluster = {}  # key -> (task, future)
        self.tried = {}  # id of a task -> outcomes of its failed attempts
        self.failed = {}  # id of a task -> the task and its attempts
        self.n_submits = 0
        self.is_lost = False  # the scheduler is lost, and this is reported
        self.run_task = task_runner()
        self.seen_worker = time.monotonic()

    def submit(self, task):
        attempts = self.tried.get(task["id"], [])
        self.n_submits += 1
        key = f"{task['id']}-{len(attempts)}-{self.n_submits}"
        tried = {outcome["worker"] for outcome in attempts}
        others = [a for a in self.cluster.workers() if a not in tried] if attempts else []
        try:
            future = self.cluster.client.submit(
                self.run_task, task, self.settings, key=key, pure=False,
                resources=self.cluster.resources_of(len(attempts)), workers=others or None,
                allow_other_workers=bool(others))
            future.add_done_callback(lambda f: self.finished.put(f.key))
        except Exception:  # Dask has no special class for this error
            if self.cluster.is_connected():
                raise
            future = None  # check_cluster submits the task again
        self.with_cluster[key] = (task, future)

    def room(self):
        return len(self.with_cluster) < 4 * max(1, len(self.cluster.workers()))

    def outcome_of(self, future):
        """Returns the outcome of a task. None: the scheduler lost the task, which is no failed attempt."""
        try:
            if future.status == "finished":
                return future.result(timeout=30)
            if future.status == "error":
                return {"exit_status": 137, "error": f"worker: {future.exception(timeout=30)}",
                        "worker": "?"}
        except (OSError, TimeoutError, CancelledError):
            pass
        except Exception:  # Dask has no special class for a client that closes meanwhile
            if self.cluster.is_connected():
                raise
        return None

    def take(self, key):
        """Collects a finished task from the cluster."""
        if key not in self.with_cluster:
            return
        task, future = self.with_cluster.pop(key)
        outcome = self.outcome_of(future)
        if outcome is None:
            self.say_lost()
            self.submit(task)
        elif outcome["exit_status"] == 0:
            self.is_lost = False
            self.tried.pop(task["id"], None)
            self.progress.add(task, kept=False)
        else:
            self.retry(task, outcome)

    def retry(self, task, outcome):
        attempts = self.tried.setdefault(task["id"], [])
        attempts.append(outcome)
        if len(attempts) < ATTEMPTS:
            self.submit(task)
            return
        del self.tried[task["id"]]
        self.failed[task["id"]] = {**task, "attempts": attempts}
        self.progress.n_failed += 1
        self.progress.add(task, kept=False)
        say(f"given up after {ATTEMPTS} attempts: {task['input']}: {outcome['error']}")

    def say_lost(self):
        if not self.is_lost:
            say("the scheduler is lost: its tasks are handed over again when it is back")
        self.is_lost = True

    def check_cluster(self):
        """Reconnects to a lost scheduler, and submits its tasks again."""
        if not self.cluster.is_connected():
            self.say_lost()
            tasks = [task for task, _ in self.with_cluster.values()]
            self.with_cluster.clear()
            self.cluster.connect()
            self.seen_worker = time.monotonic()
            for task in tasks:
                self.submit(task)
        if self.cluster.workers():
            self.seen_worker = time.monotonic()
        elif time.monotonic() - self.seen_worker > self.cluster.options.patience:
            raise Refusal(EXIT_UNAVAILABLE,
                          f"no worker with the resource {self.cluster.resources} within "
                          f"{self.cluster.options.patience} s")

    def wait(self):
        """Takes a finished task. If there is none, adds one to the table; if the table has them all, waits."""
        try:
            self.take(self.finished.get_nowait())
        except queue.Empty:
            if not self.assembly.add_task(self.failed):
                self.wait_for_task()
        self.progress.show()

    def wait_for_task(self):
        try:
            self.take(self.finished.get(timeout=1))
        except queue.Empty:
            self.check_cluster()

    def run(self, tasks):
        for task in tasks:
            if os.path.exists(os.path.join(self.settings["tasks"], task["id"][:2],
                                           task["id"] + ".json")):
                self.progress.add(task, kept=True)
                continue
            while not self.room():
                self.wait()
            self.submit(task)
        while self.with_cluster:
            self.wait()
