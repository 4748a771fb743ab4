# SPDX-License-Identifier: MIT
"""Writes the table of all results, in the order of the plan."""
import os
import re

PICTURE_ECHOES = 100_000
BLOCK_ROWS = 1 << 16

HEAD = re.compile(rb'\{"v":(\d+),"run":"[0-9a-f]*",(.*?"seq":)')
LOST_BEFORE = re.compile(rb'"lost_before":(\d+)')
SAMPLE = re.compile(rb'"sample":"(\d+)"')


class Points:
    """The strongest echoes of each task for the picture, about PICTURE_ECHOES of all tasks."""

    def __init__(self):
        self.n_echoes = 0  # of all tasks
        self.tasks, self.n_points = [], 0  # of each task [n][4]: row, time, range, SNR; the strongest first

    def add(self, rows):
        import numpy
        echoes = rows[(rows["n_echoes"] > 0) & (rows["time_ns"] > 0)]
        self.n_echoes += len(echoes)
        best = numpy.argsort(-echoes["snr_db"], kind="stable")[:self.most(len(self.tasks) + 1)]
        echoes = echoes[best]
        self.tasks.append(numpy.column_stack(
            [best, echoes["time_ns"] / 1e9, echoes["range_m"], echoes["snr_db"]]))
        self.n_points += len(best)
        if self.n_points > 2 * max(PICTURE_ECHOES, len(self.tasks)):
            self.limit()

    def most(self, n_tasks):
        return max(1, PICTURE_ECHOES // n_tasks)

    def limit(self):
        """Drops the weakest echoes of the tasks that have more than their share."""
        most = self.most(max(1, len(self.tasks)))
        self.tasks = [task if len(task) <= most else task[:most].copy() for task in self.tasks]
        self.n_points = sum(len(task) for task in self.tasks)

    def all(self):
        """Returns time, range and SNR of all points, in the order of the table."""
        self.limit()
        return [point[1:] for task in self.tasks for point in sorted(task.tolist())]


class Hdf5:
    """Writes HDF5 records as recorder.results does, with the number of the recording added."""
    name = "results.h5"

    def __init__(self, path, attributes):
        import h5py
        self.file, self.attributes, self.data = h5py.File(path, "w"), attributes, None

    def write(self, rows):
        if self.data is None:
            self.data = self.file.create_dataset("results", data=rows, maxshape=(None,),
                                                 chunks=(1024,), track_times=False)
            self.data.attrs.update(self.attributes)
            return
        self.data.resize(len(self.data) + len(rows), axis=0)
        self.data[-len(rows):] = rows

    def close(self):
        self.file.close()


class Parquet:
    """Writes the same columns as Parquet, if pyarrow is installed. A value that is not known is null."""
    name = "results.parquet"

    def __init__(self, path, attributes):
        self.path, self.attributes, self.writer = path, attributes, None

    def write(self, rows):
        import numpy
        import pyarrow
        from pyarrow import parquet
        columns = {}
        for name in rows.dtype.names:
            values = numpy.ascontiguousarray(rows[name])
            columns[name] = pyarrow.array(values.astype(str) if values.dtype.kind == "S" else values,
                                          from_pandas=True)
        table = pyarrow.table(columns).replace_schema_metadata(self.attributes)
        if self.writer is None:
            self.writer = parquet.ParquetWriter(self.path, table.schema)
        self.writer.write_table(table)

    def close(self):
        if self.writer is not None:
            self.writer.close()


class Table:
    """Writes rows in blocks of one size, whatever their tasks, so that the file always has the same bytes."""

    def __init__(self, folder, attributes):
        try:
            import pyarrow.parquet  # noqa: F401
            kind = Parquet
        except ImportError:
            kind = Hdf5
        self.name = kind.name
        self.file = kind(os.path.join(folder, kind.name + ".partial"), attributes)
        self.rows, self.n_rows, self.is_written = [], 0, False

    def add(self, rows):
        self.rows.append(rows)
        self.n_rows += len(rows)
        if self.n_rows >= BLOCK_ROWS:
            self.write(self.n_rows // BLOCK_ROWS)

    def write(self, n_blocks):
        """Writes n_blocks blocks. The other rows remain in memory."""
        import numpy
        rows = numpy.concatenate(self.rows)
        for i in range(n_blocks):
            self.file.write(rows[i * BLOCK_ROWS:(i + 1) * BLOCK_ROWS])
        self.rows = [rows[n_blocks * BLOCK_ROWS:]]
        self.n_rows, self.is_written = len(self.rows[0]), True

    def close(self):
        """Returns the names of the files: none if no task is done, because then the columns are not known."""
        if self.n_rows > 0 or (self.rows and not self.is_written):
            self.write(1)
        self.file.close()
        return [self.name] if self.is_written else []


class Merge:
    """Merges the results of finished tasks into one table, in the order of the plan."""

    def __init__(self, settings, folder, run):
        self.settings, self.folder, self.run = settings, folder, run
        self.seq = 0
        self.recording = None
        self.since = 0  # position after the last dwell of this recording that has a result
        self.points = Points()
        self.lines = open(os.path.join(folder, "results.jsonl.partial"), "wb")
        self.table = (Table(folder, {"run": run, "version": settings["version"]})
                      if settings["table"] else None)

    def add_lines(self, task, path, carry):
        """Appends the JSON lines of a task. Returns the number of results and the last sample."""
        n = 0
        with open(path, "rb") as file:
            for line in file:
                if n == 0:
                    version, stream = HEAD.match(line).groups()
                    start = HEAD.match(line).end()  # the same in all lines
                    head = (b'{"v":%s,"recording":%d,"run":"%s",%s' %
                            (version, task["recording"], self.run.encode(), stream))
                    line = LOST_BEFORE.sub(lambda lost: b'"lost_before":%d' % (int(lost[1]) + carry), line, 1)
                middle = line.index(b",", start)
                latency = line.index(b'"latency_us":', middle)
                rest = line.index(b",", latency)
                self.lines.write(b'%s%d%s"latency_us":null%s' %
                                 (head, self.seq + n, line[middle:latency], line[rest:]))
                n += 1
        return n, int(SAMPLE.search(line)[1]) if n > 0 else None

    def add_rows(self, task, path, carry):
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
        self.table.add(whole)
        self.points.add(rows)

    def add(self, task, done):
        base = os.path.join(self.settings["tasks"], task["id"][:2], task["id"])
        if task["recording"] != self.recording:
            self.recording, self.since = task["recording"], 0
        carry = max(0, task["first_sample"] - self.since) if task["part"] > 0 else 0
        n, last = self.add_lines(task, base + ".jsonl", carry)
        if self.table is not None:
            self.add_rows(task, base + ".h5", carry)
        if n > 0:
            self.since = last + (task["dwell_samples"] or 0)
        elif task["part"] == 0:
            self.since = int(done["account"]["skipped_alignment"])
        self.seq += n

    def drop(self):
        """Removes the files."""
        self.lines.close()
        for name in ["results.jsonl"] + ([self.table.name] if self.table is not None else []):
            if os.path.exists(os.path.join(self.folder, name + ".partial")):
                os.remove(os.path.join(self.folder, name + ".partial"))

    def close(self):
        """Renames the files to their final names. Removes files of an earlier run that this run does not write."""
        self.lines.close()
        names = ["results.jsonl"] + (self.table.close() if self.table is not None else [])
        for name in ("results.jsonl", Hdf5.name, Parquet.name):
            path = os.path.join(self.folder, name)
            if name in names:
                os.replace(path + ".partial", path)
            else:
                for old in (path, path + ".partial"):
                    if os.path.exists(old):
                        os.remove(old)
        return names
