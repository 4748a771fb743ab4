#!/bin/sh
# SPDX-License-Identifier: MIT
# Tests the failures of pnradar-listen: bad arguments, bad truth, gaps, restarts, bad messages.
# usage: cli_listen_faults.sh BIN_FOLDER; prints TAP.
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/tap.sh"
unset PNR_LOG
listen=$bin/pnradar-listen

measure=''
program() {
    # shellcheck disable=SC2086 # words, or none
    $measure "$listen" "$@"
}

lines() {
    wc -l <"$1" | tr -d ' '
}

# --- the command line ---

status 64 --count 0 && status 64 --count 5x && status 64 --count -1
report $? "a count is a number from 1"
status 64 --timeout 0 && status 64 --timeout abc && status 64 --timeout inf && says "timeout"
report $? "a timeout is seconds above 0"
status 64 --all --stream demo
report $? "--stream and --all exclude each other"
status 64 one two
report $? "one endpoint is enough"
status 64 -s publisher.endpoint= && says "no endpoint"
report $? "without an endpoint there is nothing to listen to"
status 64 --timeout 1 nonsense && says "nonsense"
report $? "an endpoint that is none is wrong usage"
status 64 --timeout 1 --curve-key short "ipc://$work/s" && says "curve-key"
report $? "a CURVE key has 40 characters"
status 66 --truth "$work/none.csv" "ipc://$work/s" && says "none.csv"
report $? "a truth file that is not there is no input"
mkfifo "$work/fifo.csv"
status 66 --truth "$work/fifo.csv" "ipc://$work/s" && says "fifo.csv: it is a FIFO" &&
    status 66 --truth /dev/zero "ipc://$work/s" && says "it is a device"
report $? "a FIFO or a device is no truth file, and is not waited for"
echo "sample,range" >"$work/bad.csv"
status 65 --truth "$work/bad.csv" "ipc://$work/s" && says "bad.csv:1:"
report $? "a truth file of another shape is bad data"
{
    echo "period,sample,target,delay_samples,delay_s,range_m,velocity_mps,snr_db"
    echo "0,0,1,5.0,5e-6,750,0,10"
    echo "0,0,1,5.0,5e-6,x,0,10"
} >"$work/bad.csv"
status 65 --truth "$work/bad.csv" "ipc://$work/s" && says "bad.csv:3:"
report $? "a bad row of the truth is named"
{
    head -n 1 "$work/bad.csv"
    printf '0,0,1,5.0,5e-6,750,0,10,'
    head -c 100000 /dev/zero | tr '\0' 1
} >"$work/long.csv"
status 65 --truth "$work/long.csv" "ipc://$work/s" && says "long.csv:2:"
report $? "a row without an end is refused"

# --- a whole run, which the listener must report correctly ---

scene="-s code.type=m-sequence -s code.degree=8 -s source.rate_hz=1e6 -s source.format=ci16
       -s radar.path=two-way -s engine.name=reference -s echo.periods=40 -s echo.noise_rms=0.1
       -s echo.seed=3 -s detector.pfa=1e-6 -s stream.name=demo
       -s target.1.range_m=12345.6 -s target.1.velocity_mps=0 -s target.1.amplitude=0.2
       -s target.2.range_m=30000 -s target.2.velocity_mps=0 -s target.2.amplitude=0.2"
# shellcheck disable=SC2086 # a list of options
"$bin/pnradar-echo" $scene --truth "$work/truth.csv" "$work/echo.ci16" 2>"$work/echo.err"
report $? "pnradar-echo makes a scene of two targets"

runs=1
# shellcheck disable=SC2086
"$bin/pnradar" $scene -s "publisher.endpoint=ipc://$work/run1" -s publisher.wait_s=20 \
    "$work/echo.ci16" 2>"$work/radar.err" &
radar=$!
# shellcheck disable=SC2086
status 0 $scene --timeout 30 --strict --truth "$work/truth.csv" "ipc://$work/run1" &&
    says "40 results received, 0 lost" &&
    head -n 1 "$work/out" | grep -q 'time s .*range m.*target.*error m.*true m'
report $? "a clean run is status 0 with --strict, its truth in the table"
wait "$radar"
# The expected rms error is 0.390 / sqrt(S) samples of 149.9 m, 1.8 m for the SNR S = 255 * 4. The
# measured error must lie between half and twice this value.
awk '/^target/ { rms = $(NF - 1); if (rms < 0.9 || rms > 3.7) bad = 1; n++ }
     END { exit bad || n != 2 }' "$work/err"
report $? "the rms error is what the signal-to-noise ratio allows"

# --- a publisher that sends wrong messages ---

find_python zmq

cat >"$work/fake.py" <<'EOF'
import json, sys, time, zmq
endpoint, scene = sys.argv[1:]
context = zmq.Context()
socket = context.socket(zmq.XPUB)
socket.setsockopt(zmq.LINGER, 5000)
socket.setsockopt(zmq.SNDHWM, 0)
socket.bind(endpoint)
while not socket.recv().startswith(b"\x01end/"):
    pass
A, B = "00000000000000aa", "00000000000000bb"

def send(topic, message, stream="demo"):
    socket.send_multipart([f"{topic}/{stream}".encode(), message if isinstance(message, bytes)
                           else json.dumps(message, indent=1).encode()])

def dwell(seq, run=A, stream="demo", **more):
    send("range", dict(v=1, run=run, stream=stream, seq=seq, sample=str(seq * 100), time=None,
                       time_source="none", rate_hz=1e6, periods=1, lost=0, lost_before=0, slip=0, flags=[],
                       engine="fake/one", latency_us=1.5, noise_db=-20, pfa_cell=1e-6,
                       cells_above=0, echoes=[], **more), stream)

NAMES = ("positions used skipped_alignment skipped_tail skipped_refused lost_source lost_ring_full "
         "windows processed dropped_engine_error dropped_shutdown refused_too_much_lost "
         "results sent unsent_publish_refused unsent_queue_full n_clipped n_nonfinite deadline_missed "
         "unrecorded_samples unrecorded_results unsent_maps").split()

def end(results, run=A, stream="demo", status=0, **account):
    numbers = dict.fromkeys(NAMES, "0")
    numbers.update(results=str(results), sent=str(results), **account)
    send("end", dict(v=1, run=run, stream=stream, seq=0, account=numbers, deadline_s=None, ring_fill=0.5,
                     reason="fake end", exit_status=status), stream)

exec(scene)
socket.close()
context.term()
EOF

# fake SCENE EXPECTED LISTENER_ARGUMENT...: a script publishes the messages of SCENE, and the
# listener must end with the status EXPECTED
fake() {
    runs=$((runs + 1))
    scene_text=$1
    want_status=$2
    shift 2
    "$python" "$work/fake.py" "ipc://$work/run$runs" "$scene_text" 2>"$work/fake.err" &
    faker=$!
    status "$want_status" --timeout 20 "$@" "ipc://$work/run$runs"
    kept=$?
    wait "$faker" || { echo "# fake: $(cat "$work/fake.err")"; kept=1; }
    [ "$kept" -eq 0 ]
}

if [ -z "$python" ]; then
    skip "a publisher that misbehaves" "no python3 with zmq"
else
    fake 'for q in (7, 8, 11, 12): dwell(q)
end(13)' 0 --stream demo && says "4 results received, 2 lost, seq 7 to 12" &&
        says "; complete: fake end"
    report $? "a gap in seq is counted; a late start is none"
    fake 'for q in (7, 8, 11, 12): dwell(q)
end(13)' 3 --stream demo --strict
    report $? "--strict exits 3 for the gap"
    fake 'dwell(0); dwell(1); end(2)' 0 --stream demo --strict && says "2 results received, 0 lost"
    report $? "--strict exits 0 when nothing was lost"
    fake 'dwell(0); dwell(1); end(5)' 3 --stream demo --strict && says "2 results received, 3 lost"
    report $? "results missing before the end are counted"
    fake 'dwell(0); end(1, positions="100", used="90", lost_ring_full="10")' 3 \
        --stream demo --strict && says "0 lost" && says "10"
    report $? "--strict heeds the account of the end"
    fake 'end(9)' 3 --stream demo --strict
    report $? "--strict is not content with an end alone when results were made"
    fake 'dwell(4); dwell(5); dwell(0, run=B); dwell(1, run=B); end(2, run=B)' 0 --stream demo &&
        says "demo: restarted as run 00000000000000bb" &&
        says "run 00000000000000aa: 2 results received, 0 lost, seq 4 to 5; not complete" &&
        says "run 00000000000000bb: 2 results received, 0 lost, seq 0 to 1; complete"
    report $? "a restart is announced and starts a new count"
    fake 'dwell(0); end(1, status=75); dwell(0, run=B); end(1, run=B)' 0 --stream demo &&
        says "restarted" && says "run 00000000000000bb: 1 results received, 0 lost"
    report $? "an end with status 75 is followed by the next run"
    fake 'dwell(0); end(1); dwell(0, run=B); end(1, run=B, status=1); dwell(1, run=B)' 0 \
        --stream demo --follow --count 3 && says "restarted"
    report $? "--follow goes on after the end"
    fake 'dwell(0, stream="demo2"); dwell(0); dwell(1, stream="demo2"); end(1)' 0 \
        --stream demo --format json && [ "$(lines "$work/out")" -eq 1 ] &&
        says "1 results received" && ! grep -q demo2 "$work/out"
    report $? "a stream whose name only begins alike is left out; json stays one line"
    fake 'dwell(3, stream="a"); dwell(9, stream="b"); end(4, stream="a"); end(10, stream="b")' 0 \
        --all && says "^a run" && says "^b run"
    report $? "--all counts each stream for itself"
    # Prints the greatest memory of the listener, in MiB.
    cat >"$work/measure.py" <<'EOF'
import resource, subprocess, sys
status = subprocess.call(sys.argv[2:])
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024, file=open(sys.argv[1], "w"))
sys.exit(status)
EOF
    measure="$python $work/measure.py $work/mib"
    # A publisher sends no text of more than 64 KiB; parsed, these would take 2 GiB.
    fake 'text = b"[" + b"0," * 30000000 + b"0]"
for i in range(3): send("range", text)
dwell(0); end(1)' 0 --stream demo && says "1 results received" && says "3 messages could not be read" &&
        says "at most 65536" && [ "$(cat "$work/mib")" -lt 600 ]
    report $? "three texts of 60 MB: refused, within $(cat "$work/mib") MiB"
    refused=none
    fake 'import random
random.seed(17)
good = json.dumps(dict(v=1, run=A, stream="demo", seq=10**6, sample="7", time=None, time_source="none", rate_hz=1e6,
                       periods=1, lost=0, lost_before=0, slip=0, flags=["lost"], engine="fake/one", latency_us=1.5,
                       noise_db=-20, pfa_cell=1e-6, cells_above=0, echoes=[])).encode()
junk = [b"\x1b[2J", b"\xc2\x9b", b"\0", b"[" * 999, b"1e999", b"\xff", b""]
topics = [b"range/demo", b"status/demo", b"end/demo", b"range/demo\x1b"]
for i in range(10000):
    text = bytearray(good)
    for j in range(random.randint(1, 4)):
        at = random.randrange(len(text))
        text[at:at + random.randint(0, 3)] = random.choice(junk)
    parts = [random.choice(topics)] + [bytes(text)] * random.randint(0, 4)
    socket.send_multipart(parts)
dwell(10**7); end(10**7 + 1)' 0 --stream demo &&
        refused=$(sed -n 's/^\([0-9]*\) messages could not be read$/\1/p' "$work/err") && [ "$refused" -gt 7000 ] &&
        [ "$(cat "$work/mib")" -lt 600 ] &&
        ! cat "$work/out" "$work/err" | tr -d '\n' | LC_ALL=C grep -q '[[:cntrl:]]'
    report $? "10,000 hostile messages: $refused refused, within $(cat "$work/mib") MiB, and nothing for a terminal to obey"
    measure=''

    fake 'send("range", b"{"); send("range", b"[]"); dwell(0); send("range", dict(v=2))
send("end", b"\xff\x00"); dwell(1); dwell(1); end(2)' 3 --stream demo --strict &&
        says "2 results received, 0 lost" && says "5 messages could not be read"
    report $? "what cannot be read is told and passed over"

    # SIGINT ends the listener cleanly, with its summary.
    runs=$((runs + 1))
    "$python" "$work/fake.py" "ipc://$work/run$runs" 'dwell(0); dwell(1); time.sleep(2)' &
    faker=$!
    : >"$work/out" # the lines of the listener before do not count
    # A shell starts background jobs with SIGINT ignored, so python restores the default.
    "$python" -c 'import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])' "$listen" --stream demo "ipc://$work/run$runs" \
        >"$work/out" 2>"$work/err" &
    listener=$!
    tries=0
    while [ "$(lines "$work/out")" -lt 3 ] && [ "$tries" -lt 100 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
    kill -INT "$listener"
    wait "$listener" && says "2 results received, 0 lost" && says "not complete"
    report $? "SIGINT ends cleanly, with the summary"
    wait "$faker"
fi

# --- numpy reads the packed array ---

if [ -n "$python" ] && "$python" -c 'import numpy' 2>/dev/null; then
    runs=$((runs + 1))
    # shellcheck disable=SC2086
    "$bin/pnradar" $scene -s "publisher.endpoint=ipc://$work/run$runs" -s publisher.wait_s=20 \
        -s publisher.pack=8 --print csv "$work/echo.ci16" >"$work/print.csv" 2>"$work/radar.err" &
    radar=$!
    "$python" - "ipc://$work/run$runs" "$work/print.csv" 2>"$work/err" <<'EOF'
import csv, json, sys, numpy, zmq
socket = zmq.Context().socket(zmq.SUB)
socket.setsockopt(zmq.RCVTIMEO, 30000)
socket.subscribe("range/demo")
socket.subscribe("end/demo")
socket.connect(sys.argv[1])
records, n_results = [], 0
while True:
    topic, text, *binary = socket.recv_multipart()
    if topic == b"end/demo":
        assert json.loads(text)["account"]["results"] == "40"
        break
    header = json.loads(text)
    assert header["pack"] is True and header["n_results"] <= 8
    array = numpy.frombuffer(binary[0], dtype=[tuple(item) for item in header["dtype"]])
    assert len(array) == header["n_records"] and array["seq"][0] == header["seq"]
    n_results += header["n_results"]
    records.append(array)
records = numpy.concatenate(records)
assert n_results == 40 and len(records) == 80
assert (records["seq"] == numpy.repeat(numpy.arange(40), 2)).all()
assert (records["sample"] == 255 * records["seq"]).all()
assert (records["echo"] == numpy.tile([0, 1], 40)).all() and (records["n_echoes"] == 2).all()
near = numpy.minimum(abs(records["range_m"] - 12345.6), abs(records["range_m"] - 30000))
assert (near < 6 * records["range_sigma_m"]).all()
assert (abs(records["range_m"] - 149896229 * records["delay_s"]) < 1e-6).all()
numpy.save(sys.argv[2] + ".npy", records)
EOF
    kept=$?
    [ "$kept" -eq 0 ] || echo "# $(cat "$work/err")"
    report $kept "numpy reads the packed array by the header's dtype"
    wait "$radar"
    "$python" - "$work/print.csv" 2>"$work/err" <<'EOF'
import csv, sys, numpy
records = numpy.load(sys.argv[1] + ".npy")
rows = list(csv.DictReader(open(sys.argv[1])))
assert len(rows) == len(records)
for row, record in zip(rows, records):
    assert abs(float(row["range_m"]) - record["range_m"]) < 1e-6
    assert abs(float(row["snr_db"]) - record["snr_db"]) < 1e-5
    assert int(row["sample"]) == record["sample"]
EOF
    kept=$?
    [ "$kept" -eq 0 ] || echo "# $(cat "$work/err")"
    report $kept "the records hold what pnradar prints itself"
else
    skip "the packed array in numpy" "no python3 with zmq and numpy"
fi
plan
