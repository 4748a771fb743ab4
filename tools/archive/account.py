# SPDX-License-Identifier: MIT
"""The account of the whole archive."""
from recordings import describe


SUMS = (("positions", "used skipped_alignment skipped_tail skipped_refused lost_source lost_ring_full"),
        ("windows", "processed dropped_engine_error dropped_shutdown refused_too_much_lost"),
        ("results", "sent unsent_publish_refused unsent_queue_full"))


class Account:
    """How each sample, window and result of the archive was used or lost."""

    def __init__(self, settings, run):
        self.settings = settings
        self.counts, self.engines, self.failed = {}, set(), []
        self.tasks = {"planned": 0, "done": 0, "failed": 0}
        self.recordings = {"given": 0, "whole": 0, "partial": 0, "failed": 0}
        self.bytes = {"given": 0, "whole": 0, "partial": 0, "failed": 0}
        self.not_processed, self.run, self.present, self.agrees = 0, run, None, True

    def add(self, task, done, failure):
        if task["part"] == 0:
            self.end_recording()
            self.present = {"task": task, "n_done": 0, "positions": 0, "bytes": 0}
        self.present["bytes"] += task["n_bytes"]
        self.tasks["planned"] += 1
        if done is None:
            self.fail(task, failure)
            return
        self.tasks["done"] += 1
        self.engines.add(done["engine"])
        self.present["n_done"] += 1
        self.present["positions"] += int(done["account"]["positions"])
        for name, value in done["account"].items():
            if name != "closes":
                self.counts[name] = self.counts.get(name, 0) + int(value)

    def fail(self, task, failure):
        """Records a task that failed, with its number of samples if pnradar can count them."""
        found = (task["all_samples"] or
                 (describe(self.settings, task["input"]) or [None])[0])
        length = task["n_samples"] or (found - task["first_sample"] if found else None)
        last = failure["attempts"][-1] if failure else {"exit_status": None, "error": "not tried"}
        self.tasks["failed"] += 1
        self.not_processed += length or 0
        self.present["positions"] += length or 0
        self.failed.append({"input": task["input"], "first_sample": str(task["first_sample"]),
                            "n_samples": None if length is None else str(length),
                            "bytes": str(task["n_bytes"]), "exit_status": last["exit_status"],
                            "error": last["error"],
                            "workers": [a["worker"] for a in failure["attempts"]] if failure else []})

    def end_recording(self):
        if self.present is None:
            return
        task, n_done = self.present["task"], self.present["n_done"]
        what = "whole" if n_done == task["n_parts"] else "partial" if n_done else "failed"
        for name in ("given", what):
            self.recordings[name] += 1
            self.bytes[name] += self.present["bytes"]
        if task["all_samples"] is not None:
            self.agrees &= self.present["positions"] == task["all_samples"]

    def closes(self):
        counts = self.counts
        return (self.agrees and self.tasks["planned"] == self.tasks["done"] + self.tasks["failed"] and
                all(counts.get(total, 0) == sum(counts.get(part, 0) for part in parts.split())
                    for total, parts in SUMS))

    def finish(self):
        """Returns the account as an object, after the last task."""
        self.end_recording()
        self.present = None
        return {"v": 1, "run": self.run, "version": self.settings["version"], "closes": self.closes(),
                "tasks": self.tasks, "recordings": self.recordings,
                "bytes": {name: str(n) for name, n in self.bytes.items()},
                "not_processed": str(self.not_processed),
                "account": {name: str(n) for name, n in self.counts.items()},
                "engines": sorted(self.engines), "failed": self.failed}
