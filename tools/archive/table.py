# SPDX-License-Identifier: MIT
"""The table of all results, in the order of the plan."""
import os
import re

PICTURE_ECHOES = 100_000


LINE = re.compile(rb'\{"v":(\d+),"run":"[0-9a-f]*",(.*?)"seq":(\d+),"sample":"(\d+)",(.*?)'
                  rb'"lost_before":(\d+),(.*?)"latency_us":[^,]*,')


class Records:
    """Records of HDF5, as recorder.results writes them, and the number of the recording."""

    def __init__(self, path):
        import h5py
        self.file = h5py.File(path, "w")
        self.data = None

    def add(self, rows):
        if self.data is None:
            self.data = self.file.create_dataset("results", data=rows, maxshape=(None,),
                                                 chunks=(1024,), track_times=False)
            return
        self.data.resize(len(self.data) + len(rows), axis=0)
        self.data[-len(rows):] = rows

    def close(self, attributes):
        if self.data is not None:
            self.data.attrs.update(attributes)
        self.file.close()


class Merge:
    """Puts the results of finished tasks into one table, in the order of the plan."""

    def __init__(self, settings, folder, run):
        self.settings, self.folder, self.run = settings, folder, run
        self.seq = 0
        self.recording = None
        self.since = 0  # of this recording: the position from which on no dwell has a result
        self.points = []  # echoes of the picture
        self.lines = open(os.path.join(folder, "results.jsonl.partial"), "wb")
        self.table = Records(os.path.join(folder, "results.h5.partial")) if settings["table"] else None

    def add_lines(self, task, path, carry):
        """Appends the JSON lines of a task. Returns the number of results and the last sample."""
        head = b'{"v":%%s,"recording":%d,"run":"%s",' % (task["recording"], self.run.encode())
        n, last = 0, None
        with open(path, "rb") as file:
            for line in file:
                found = LINE.match(line)
                version, stream, _, sample, middle, lost, later = found.groups()
                self.lines.write(head % version + stream +
                                 b'"seq":%d,"sample":"%s",%s"lost_before":%d,%s"latency_us":null,'
                                 % (self.seq + n, sample, middle, int(lost) + carry, later) +
                                 line[found.end():])
                n, last, carry = n + 1, int(sample), 0
        return n, last

    def add_rows(self, task, path, carry, n_tasks):
        import h5py
        import numpy
        with h5py.File(path, "r") as file:
            rows = file["results"][:]
        fields = [(name, rows.dtype[name].str) for name in rows.dtype.names]
        whole = numpy.empty(len(rows), fields + [("recording", "<u4")])
        for name in rows.dtype.names:
            whole[name] = rows[name]
        whole["lost_before"][rows["seq"] == 0] += numpy.uint64(carry)
        whole["seq"] += numpy.uint64(self.seq)
        whole["latency_us"] = numpy.nan
        whole["recording"] = task["recording"]
        if len(whole):
            self.table.add(whole)
        echoes = rows[(rows["n_echoes"] > 0) & (rows["time_ns"] > 0)]
        most = max(1, PICTURE_ECHOES // n_tasks)
        best = numpy.sort(numpy.argsort(-echoes["snr_db"], kind="stable")[:most])
        self.points += [(e["time_ns"] / 1e9, e["range_m"], e["snr_db"]) for e in echoes[best]]

    def add(self, task, done, n_tasks):
        base = os.path.join(self.settings["tasks"], task["id"][:2], task["id"])
        if task["recording"] != self.recording:
            self.recording, self.since = task["recording"], 0
        carry = max(0, task["first_sample"] - self.since) if task["part"] > 0 else 0
        n, last = self.add_lines(task, base + ".jsonl", carry)
        if self.table is not None:
            self.add_rows(task, base + ".h5", carry, n_tasks)
        if n > 0:
            self.since = last + (task["dwell_samples"] or 0)
        elif task["part"] == 0:
            self.since = int(done["account"]["skipped_alignment"])
        self.seq += n

    def close(self):
        self.lines.close()
        names = ["results.jsonl"]
        if self.table is not None:
            self.table.close({"run": self.run, "version": self.settings["version"]})
            names.append("results.h5")
        for name in names:
            partial = os.path.join(self.folder, name + ".partial")
            if os.path.exists(partial):
                os.replace(partial, os.path.join(self.folder, name))
        return names
