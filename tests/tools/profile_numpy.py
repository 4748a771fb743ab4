#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares the array that pnradar --profile writes with the profiles or maps in the messages of the same run.

usage: profile_numpy.py PNRADAR FOLDER [OPTION...]
FOLDER has radar.conf and echo.ci16. A second run reads a pipe that does not end, and is killed: its
array holds the results of the samples that it got. Exits with 0 when all agree.
"""
import json
import subprocess
import sys
import time

import numpy as np
import zmq


def published(command, folder):
    """Runs the command and returns its profile and map messages, each as a list of its parts."""
    endpoint = f"ipc://{folder}/profile"
    socket = zmq.Context().socket(zmq.SUB)
    socket.setsockopt(zmq.RCVTIMEO, 30000)
    socket.connect(endpoint)
    socket.subscribe("")
    with subprocess.Popen(command + ["-s", f"publisher.endpoint={endpoint}", "-s",
                                     "publisher.wait_s=30", f"{folder}/echo.ci16"]) as program:
        messages = []
        while not messages or not messages[-1][0].startswith(b"end/"):
            messages.append(socket.recv_multipart())
    assert program.returncode == 0
    return [m for m in messages if m[0].startswith((b"profile/", b"map/"))]


def read(folder):
    """Returns the array, and the axes of each of its results."""
    array = np.load(f"{folder}/cells.npy", mmap_mode="r")
    with open(f"{folder}/cells.jsonl", encoding="ascii") as lines:
        return array, [json.loads(line) for line in lines]


def killed(command, folder, n_results):
    """Returns the array of a program that is killed while it waits for more samples."""
    with open(f"{folder}/echo.ci16", "rb") as samples, \
            subprocess.Popen(command + ["-"], stdin=subprocess.PIPE) as program:
        program.stdin.write(samples.read())
        program.stdin.flush()
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                if len(read(folder)[0]) == n_results:
                    break
            except (OSError, ValueError):  # no result has been written yet
                pass
            time.sleep(0.05)
        program.kill()
    return read(folder)


def main():
    program, folder, options = sys.argv[1], sys.argv[2], sys.argv[3:]
    start = [program, "-c", f"{folder}/radar.conf", "--profile", f"{folder}/cells.npy"]
    messages = published(start + ["-s", "publisher.profile=power", *options], folder)
    array, axes = read(folder)
    assert array.ndim == 4 and len(array) == len(messages) == len(axes) > 1, array.shape
    for cells, own, (_, text, data) in zip(array, axes, messages):
        header = json.loads(text)
        assert array.dtype == header["dtype"] and cells.tobytes() == data
        assert list(cells.shape) == header.get("shape", [1, 1, cells.shape[2]])
        for one in own, header:
            one.pop("latency_us", None)
        assert own == header, (own, header)
    array = np.array(array)  # keeps the array of the first run
    again, axes = killed(start + options, folder, len(array))  # a run that publishes nothing
    assert len(axes) == len(array) and np.array_equal(again, array)
    print(array.shape, array.dtype)


if __name__ == "__main__":
    main()
