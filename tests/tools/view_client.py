# SPDX-License-Identifier: MIT
"""Asks pnradar-view as a browser would, and compares its answers with what pnradar wrote.
usage: view_client.py CASE URL [ARGUMENT...]; status 0: as expected."""
import base64
import csv
import http.client
import json
import math
import os
import socket
import sys
import time
import urllib.parse

url = urllib.parse.urlsplit(sys.argv[2])
host = (url.hostname, url.port)


def ask(path, method="GET", headers=None, limit=None):
    connection = http.client.HTTPConnection(*host, timeout=300)
    connection.request(method, path, headers=headers or {})
    answer = connection.getresponse()
    body = answer.read(limit) if limit else answer.read()
    connection.close()
    return answer, body


def get(path):
    answer, body = ask(path)
    assert answer.status == 200, (path, answer.status, body[:200])
    return json.loads(body)


def the_stream(want_results):
    """Waits until the view has this number of results, and the end."""
    for _ in range(200):
        streams = get("/api/streams")["streams"]
        if streams and streams[0]["results"] == want_results and streams[0]["state"] == "ended":
            return streams[0]
        time.sleep(0.05)
    raise AssertionError(streams)


def rows_of(path):
    with open(path, newline="") as file:
        return [r for r in csv.DictReader(file) if r["echo"] != ""]


def same(text, value):
    if text == "" or value is None:
        return text == "" and value is None
    return math.isclose(float(text), value, rel_tol=2e-6, abs_tol=1e-300)


def case_echoes(n_results, path):
    stream = the_stream(int(n_results))
    fields = get("/api/streams")["fields"]
    answer = get(f"/api/echoes?from=0&to={stream['end_s']}&width=4096&height=4096")
    assert answer["run"] == stream["run"] and not answer["is_cut"]
    got = [(r[0], dict(zip(fields, e))) for r in answer["results"] for e in r[7]]
    want = rows_of(path)
    assert len(got) == len(want) > 0, (len(got), len(want))
    for (seq, echo), row in zip(got, want):
        assert seq == int(row["seq"])
        for name in ("range_m", "delay_s", "snr_db", "range_sigma_m", "amplitude", "phase_rad"):
            assert same(row[name], echo[name]), (seq, name, row[name], echo[name])
    _, body = ask("/api/history.csv?from=0&to=1000")
    lines = list(csv.DictReader(body.decode().splitlines()))
    assert len(lines) == len(want)
    assert all(same(a["range_m"], float(b["range_m"])) for a, b in zip(want, lines))


def case_picture(n_results, path):
    """The lines are the greatest power of each column and time, to the nearest step."""
    import numpy as np
    stream = the_stream(int(n_results))
    about = get("/api/streams")
    profiles = np.load(path)
    heads = [json.loads(line) for line in open(path[:-4] + ".jsonl")]
    n, columns, first = len(profiles), stream["columns"], heads[0]["first_cell"]
    assert columns == heads[0]["n_gate"] and first + columns <= heads[0]["n_cells"]
    cells = profiles.reshape(n, -1)[:, first:first + columns].astype(float)
    floor_db = [10 * math.log10(head["floor"]) for head in heads]
    line_of = [int(int(head["sample"]) / head["rate_hz"] / stream["line_s"] + 1e-9) for head in heads]
    lines = line_of[-1] + 1
    past = get(f"/api/past?from=0&to={lines * stream['line_s']!r}&width={columns}&height={lines}")
    got = np.frombuffer(base64.b64decode(past["cells"]), np.uint8).reshape(lines, columns)
    db = 10 * np.log10(cells) - np.array(floor_db)[:, None]
    want = np.full((lines, columns), -1e9)
    for line, row in zip(line_of, db):
        want[line] = np.maximum(want[line], row)
    error = about["least_db"] + (got.astype(float) - 1) * about["step_db"] - np.clip(want, about["least_db"], None)
    worst = np.unravel_index(np.abs(error).argmax(), error.shape)
    assert np.abs(error).max() <= about["step_db"] * 0.51, (error[worst], worst, want[worst], got[worst], stream["maps"])
    # Half the columns and lines: the greatest of four, so that no echo is lost between pixels.
    half = get(f"/api/past?from=0&to={lines // 2 * 2 * stream['line_s']!r}&width={columns // 2}&height={lines // 2}"
               f"&to_m={stream['first_m'] + columns // 2 * 2 * stream['step_m']!r}")
    small = np.frombuffer(base64.b64decode(half["cells"]), np.uint8).reshape(lines // 2, columns // 2)
    big = got[:lines // 2 * 2, :columns // 2 * 2].reshape(lines // 2, 2, columns // 2, 2).max((1, 3))
    assert (small == big).all(), (small != big).sum()
    newest = get(f"/api/map?width={columns}&height=1")
    assert newest["width"] == columns and np.abs(np.array(newest["db"]) - db[-1]).max() < 0.01
    assert abs(newest["first_m"] - stream["first_m"]) < 1e-6 * stream["step_m"] + 1e-9


def case_losses(n_results, begin_s, end_s):
    stream = the_stream(int(n_results))
    past = get("/api/past?from=0&to=1000&width=10&height=10")
    wholly = [loss for loss in past["losses"] if loss[2] == 1 and not loss[3]]
    assert wholly, past["losses"]
    assert abs(wholly[0][0] - float(begin_s)) <= stream["dwell_s"] + 1e-9, wholly
    assert abs(wholly[0][1] - float(end_s)) <= stream["dwell_s"] + 1e-9, wholly


def case_runs(n_results, old_run):
    """A new run empties the pictures of the old one."""
    stream = the_stream(int(n_results))
    assert stream["run"] != old_run and stream["results"] == stream["maps"] == int(n_results), stream
    assert get("/api/past?from=0&to=1000&width=4&height=4")["run"] == stream["run"]


def case_refused():
    port = host[1]
    long_path = "/" + "a" * 1000000
    for method, path, headers, want in (
            ("POST", "/api/streams", {}, (405,)), ("DELETE", "/", {}, (405,)),
            ("GET", "/../../../../etc/passwd", {}, (404,)), ("GET", "/%2e%2e/%2e%2e/etc/passwd", {}, (404,)),
            ("GET", "/page/main.js", {}, (404,)), ("GET", "/api/past?width=abc", {}, (400,)),
            ("GET", "/api/past?from=nan", {}, (400,)), ("GET", "/api/past?height=0", {}, (400,)),
            ("GET", "/api/live?stream=" + "s" * 5000, {}, (400,)),
            ("GET", "/api/streams", {"Origin": "http://evil.example"}, (403,)),
            ("GET", "/api/streams", {"Host": f"evil.example:{port}"}, (403,)),
            ("GET", "/api/streams", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, (403,)),
            ("GET", "/api/streams", {"Origin": f"http://127.0.0.1:{port}"}, (200,)),
            ("GET", "/", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, (200,))):
        answer, _ = ask(path, method, headers)
        assert answer.status in want, (method, path[:60], headers, answer.status)
    try:
        answer, _ = ask(long_path)
        assert 400 <= answer.status < 500, answer.status
    except (ConnectionError, http.client.HTTPException):
        pass  # the server closed the connection before all of it was sent
    for junk in (b"\0" * 4096, b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\xff\xfe" * 999):
        with socket.create_connection(host, 5) as s:
            s.sendall(junk)
            s.settimeout(0.2)
            try:
                s.recv(100)
            except OSError:
                pass
    get("/api/streams")


def case_headers():
    answer, body = ask("/")
    assert answer.status == 200 and body.startswith(b"<!doctype html>")
    policy = answer.getheader("Content-Security-Policy")
    assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
    assert answer.getheader("X-Content-Type-Options") == "nosniff"
    assert answer.getheader("Access-Control-Allow-Origin") is None
    for path in ("/main.js", "/style.css", "/chart.min.js", "/healthz", "/metrics"):
        answer, body = ask(path)
        assert answer.status == 200 and body, path


def case_token():
    """Beyond this machine nothing is answered without the token of the printed address."""
    token = urllib.parse.parse_qs(url.query)["token"][0]
    assert len(token) == 32
    for path in ("/", "/api/streams", "/metrics", "/main.js", "/api/live"):
        answer, _ = ask(path)
        assert answer.status == 401, (path, answer.status)
    assert ask("/api/streams?token=" + "0" * 32)[0].status == 401
    assert ask("/api/streams?token=" + token[:-1])[0].status == 401
    answer, _ = ask("/?token=" + token)
    cookie = answer.getheader("Set-Cookie")
    assert answer.status == 303 and answer.getheader("Location") == "/"
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
    assert ask("/api/streams", headers={"Cookie": cookie.split(";")[0]})[0].status == 200


def case_crowd():
    """Connections that ask for nothing, and that come one after the other, do no harm."""
    idle = [socket.create_connection(host, 5) for _ in range(60)]
    for s in idle[:30]:
        s.sendall(b"GET / HTTP/1.1\r\nHost: ")
    for _ in range(500):
        socket.create_connection(host, 5).close()
    get("/api/streams")
    for s in idle:
        s.close()


def memory_and_files(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        memory = [int(line.split()[1]) for line in file if line.startswith("VmRSS")][0]
    return memory / 1024, len(os.listdir(f"/proc/{pid}/fd"))


def case_storm(pid, count):
    """Connections one after the other: closed at once, in the middle of a request, before the answer, or after it."""
    endings = (b"", b"GET /api/stre", b"GET /api/live HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
               b"GET /main.js HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", b"\xff\0\r\n\r\n")
    for path in ("/api/streams", "/main.js", "/"):
        ask(path)
    before, files_before = memory_and_files(pid)
    for i in range(int(count)):
        with socket.create_connection(host, 20) as s:
            s.sendall(endings[i % len(endings)])
            if i % 10 >= 7:
                s.recv(4096)
    for _ in range(300):
        after, files = memory_and_files(pid)
        if files <= files_before:
            break
        time.sleep(0.1)
    get("/api/streams")
    assert files <= files_before and after < before + 16, (before, after, files_before, files)
    print(f"{before:.1f} MiB before, {after:.1f} MiB after")


def case_slow():
    """Clients that send a byte now and then lose their connection, and keep nobody else from the server."""
    slow = [socket.create_connection(host, 5) for _ in range(20)]
    text, at = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: " + b"s" * 1000, 0
    begin = time.monotonic()
    open_ones = list(slow)
    while open_ones and time.monotonic() - begin < 60:
        for s in list(open_ones):
            try:
                s.sendall(text[at:at + 1])
            except OSError:
                open_ones.remove(s)
        at += 1
        get("/api/streams")
        time.sleep(0.2)
    assert not open_ones, len(open_ones)
    print(f"closed after {time.monotonic() - begin:.0f} s")


def case_hoard():
    """Clients that ask for large pictures and read nothing fill no memory."""
    peers, kept = [], []
    for _ in range(9):
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.settimeout(300)
        s.connect(host)
        s.sendall(b"GET /api/past?width=4096&height=4096&from=0&to=1 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        kept.append(b" 200 " in s.recv(20))
        peers.append(s)
    assert kept[0] and not kept[-1], kept
    for s in peers:
        s.close()
    for _ in range(200):
        if ask("/api/past?width=4096&height=4096&from=0&to=1")[0].status == 200:
            return
        time.sleep(0.05)
    raise AssertionError("the memory does not come back")


def read_events(s, seconds, kinds):
    """Yields (kind, data) of server-sent events until some seconds have passed."""
    file, end, kind = s.makefile("rb"), time.monotonic() + seconds, None
    while time.monotonic() < end:
        line = file.readline().decode().rstrip("\n")
        if line.startswith("event: "):
            kind = line[7:]
        elif line.startswith("data: ") and kind in kinds:
            yield kind, json.loads(line[6:])


def open_live(receive_bytes=None):
    s = socket.socket()
    if receive_bytes:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    s.settimeout(300)
    s.connect(host)
    s.sendall(f"GET /api/live?width=64 HTTP/1.0\r\nHost: {host[0]}:{host[1]}\r\n\r\n".encode())
    return s


def case_live(n_results):
    """A live client gets every result once and in order, beside one that reads nothing."""
    stopped = [open_live(4096) for _ in range(3)]
    seqs, last = [], int(n_results) - 1
    old = get("/api/streams")["streams"][0]["run"]
    s = open_live()
    for kind, data in read_events(s, 60, ("results", "end")):
        if data["run"] == old:
            continue
        if kind == "end":
            break
        assert data["skipped"] == 0
        seqs += [r[0] for r in data["results"]]
    assert seqs == list(range(seqs[0], last + 1)), seqs
    s.close()
    for other in stopped:
        other.close()


case = globals()["case_" + sys.argv[1]]
try:
    case(*sys.argv[3:])
except AssertionError as error:
    print(f"{sys.argv[1]}: {error!r}", file=sys.stderr)
    sys.exit(1)
