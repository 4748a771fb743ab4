# SPDX-License-Identifier: MIT
"""Puts the table and the account together, while tasks still run and after them."""
import hashlib
import json
import os

from account import Account
from picture import draw
from table import Merge
from words import say


class Assembly:
    """Adds the tasks of the plan to the table and to the account, in the order of the plan. Each task is added once it is
    done or has failed."""

    def __init__(self, settings, folder):
        run = hashlib.sha256(settings["identity"].encode()).hexdigest()[:16]
        self.settings, self.folder = settings, folder
        self.merge, self.account = Merge(settings, folder, run), Account(settings, run)
        path = os.path.join(folder, "plan.jsonl")
        self.planned, self.plan = open(path, "wb"), open(path, "rb")
        self.task = None  # the next task to add

    def write_plan(self, tasks):
        """Yields the tasks, and writes each one to the file of the plan first."""
        for task in tasks:
            self.planned.write(json.dumps(task).encode() + b"\n")
            self.planned.flush()  # add_task reads whole lines
            yield task

    def add_task(self, failures, is_over=False):
        """Adds the next task. failures: the tasks that have failed, by id. is_over: a task that is not done was not tried.
        Returns False if the next task is not planned yet or still runs."""
        if self.task is None:
            line = self.plan.readline()
            if not line:
                return False
            self.task = json.loads(line)
        task, done = self.task, None
        path = os.path.join(self.settings["tasks"], task["id"][:2], task["id"] + ".json")
        if os.path.exists(path):
            with open(path, encoding="utf-8") as one:
                done = json.load(one)
            self.merge.add(task, done)
        elif task["id"] not in failures and not is_over:
            return False
        self.account.add(task, done, failures.get(task["id"]))
        self.task = None
        return True

    def finish(self, failures):
        """Adds all other tasks, and writes the account and the picture. Returns the account and the names of the files."""
        while self.add_task(failures, is_over=True):
            pass
        self.planned.close()
        self.plan.close()
        names = self.merge.close()
        whole = self.account.finish()
        with open(os.path.join(self.folder, "account.json.partial"), "w", encoding="utf-8") as file:
            json.dump(whole, file, indent=1)
            file.write("\n")
        os.replace(file.name, os.path.join(self.folder, "account.json"))
        picture, why = draw(self.folder, self.merge.points.all(), self.merge.points.n_echoes)
        if why and self.settings["table"]:
            say(why)
        return whole, names + ["account.json"] + ([picture] if picture else [])

    def drop(self):
        """Removes what is written of the table, because the run is stopped."""
        self.merge.drop()
