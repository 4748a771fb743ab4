#!/bin/sh
# SPDX-License-Identifier: MIT
# Real flow graphs of GNU Radio 3.10 at both ends of pnradar: samples in, with messages dropped between, and vectors out.
# usage: interop_gnuradio.sh BIN_FOLDER; prints TAP.
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/../tools/tap.sh"
top=$(cd "$here/../.." && pwd)
tools=$top/tools/gnuradio
find_python numpy,zmq,pmt,gnuradio
if [ -z "$python" ]; then
    skip "GNU Radio" "no Python with gnuradio, numpy and zmq: tools/setup interop"
    plan
    exit
fi
sonar_station >"$work/radar.conf"
cat >>"$work/radar.conf" <<END
[source]
rate_hz = 96e3
[ring]
seconds = 20
[engine]
deadline = 3600
END
# recorded NAME ARGUMENT...: the results of a file in $work/NAME
recorded() {
    name=$1
    shift
    "$pnradar" -c "$work/radar.conf" --print csv "$@" 2>"$work/err" >"$work/csv" </dev/null &&
        columns "$work/csv" >"$work/$name"
}
# await CONDITION...: until the command succeeds, for a minute
await() {
    tries=0
    until "$@"; do
        [ $tries -lt 600 ] || return 1
        sleep 0.1
        tries=$((tries + 1))
    done
}
# listen INPUT ARGUMENT...: starts pnradar; its process in $radar
listen() {
    : >"$work/csv"
    : >"$work/err"
    input=$1
    shift
    PNR_LOG=info stdbuf -oL "$pnradar" -c "$work/radar.conf" --print csv "$@" "$input" \
        >"$work/csv" 2>"$work/err" </dev/null &
    radar=$!
    await grep -q loss_visibility "$work/err"
}
# last FILE: the first sample of its last dwell
last() {
    tail -n 1 "$1" | cut -d, -f2
}
has_last() {
    [ "$(last "$work/csv")" = "$(last "$work/whole")" ] || ! kill -0 $radar 2>/dev/null
}
# finish: ends pnradar after the last dwell
finish() {
    await has_last
    kill -TERM $radar
    wait $radar
    ended=$?
    columns "$work/csv" >"$work/out"
    [ $ended -eq 0 ] && ! grep -q 'message.* refused' "$work/err"
}
# untimed FILE: without the time
untimed() {
    cut -d, -f1,2,4- "$1"
}
# lose SOURCE TARGET RUNS: the recording without these samples
lose() {
    "$python" - "$@" <<'END'
import sys
import numpy as np
iq = np.fromfile(sys.argv[1], "<c8")
for run in sys.argv[3].split(",")[::-1]:
    first, n = map(int, run.split("+"))
    iq = np.delete(iq, slice(first, first + n))
iq.tofile(sys.argv[2])
END
}
start=2026-11-21T02:40:12.25Z
"$bin/pnradar-echo" -c "$work/radar.conf" -s target.1.range_m=0.789 -s target.1.amplitude=0.1 \
    -s echo.periods=400 "$work/echo.cf32" 2>"$work/err" && recorded whole -s source.start_time=$start "$work/echo.cf32"
report $? "a recording"

# --- samples in ---

# feed FIRST COUNT: the flow graph of tools/gnuradio, with messages dropped, once more if its first one was missed
feed() {
    for try in 1 2 3 4 5; do
        rm -f "$work/port"
        "$python" "$here/gnuradio_graphs.py" pub "$tools" "$work" "$1" "$2" >"$work/graph" 2>&1 &
        graph=$!
        await [ -e "$work/port" ]
        listen "zmq-sub:tcp://127.0.0.1:$(cat "$work/port")" -s source.zmq_tags=yes
        await stopped_or_done
        if kill -0 $graph 2>/dev/null; then
            finish
            fed=$?
            kill $graph
            wait $graph 2>/dev/null
            return $fed
        fi
        kill -TERM $radar
        wait $radar
        echo "# try $try: the first message was missed"
    done
    return 1
}
stopped_or_done() {
    has_last || ! kill -0 "$graph" 2>/dev/null
}
feed 0 0 && cmp "$work/out" "$work/whole" && says '101600 samples = 101600 used;'
report $? "PUB sink with tags: every sample, the results and the time of the recording"
feed 3 2 && lost=$(cat "$work/lost") && echo "# dropped: $lost" && cp "$work/out" "$work/heard" && cp "$work/err" "$work/log" &&
    lose "$work/echo.cf32" "$work/short.cf32" "$lost" &&
    recorded losses -s "source.lost=$lost" -s source.start_time=$start "$work/short.cf32" &&
    cmp "$work/heard" "$work/losses" && cp "$work/log" "$work/err" &&
    says " $(echo "$lost" | tr ',+' '\n ' | awk '{ n += $2 } END { print n }') lost source"
report $? "PUB sink: two dropped messages are gaps of their length, and the results are those of the raw file"

port=$("$python" -c 'import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])')
listen "udp:127.0.0.1:$port" -s source.udp_count=packets -s source.format=cf32 &&
    "$python" "$here/gnuradio_graphs.py" udp "$work" "$port" >"$work/graph" 2>&1
await has_last
kill -TERM $radar
wait $radar
columns "$work/csv" | untimed /dev/stdin >"$work/out"
untimed "$work/whole" | cmp - "$work/out"
report $? "UDP Sink with its sequence number: the results of the recording"

# --- vectors out ---

address() {
    sed -n 's/.*for GNU Radio at \(.*\)$/\1/p' "$work/err"
}
has_address() {
    [ -n "$(address)" ]
}
# send PROFILE ARGUMENT...: starts pnradar with vectors for GNU Radio; the same cells in $work/cells.npy
send() {
    : >"$work/err"
    profile=$1
    shift
    PNR_LOG=info "$pnradar" -c "$work/radar.conf" --profile "$work/cells.npy" -s publisher.profile="$profile" \
        -s publisher.gnuradio='tcp://127.0.0.1:*' -s publisher.wait_s=60 -s source.start_time=$start "$@" "$work/echo.cf32" \
        >/dev/null 2>"$work/err" </dev/null &
    radar=$!
    await has_address
}
send power && timeout 120 "$python" "$tools/from_pnradar.py" "$(address)" 254 "$work/vectors.f32" 50 >"$work/graph" 2>&1
heard=$?
wait $radar && [ $heard -eq 0 ] && "$python" - "$work" <<'END'
import sys
import numpy as np
cells = np.load(sys.argv[1] + "/cells.npy")
vectors = np.fromfile(sys.argv[1] + "/vectors.f32", "<f4")
assert cells.dtype == np.dtype("<f4") and len(cells) == 50
assert np.array_equal(vectors, cells.ravel()), (vectors.shape, cells.shape)
END
report $? "the SUB source of tools/gnuradio reads 50 profiles, sample for sample"
send complex -s dwell.combine=doppler &&
    timeout 120 "$python" "$here/gnuradio_graphs.py" sub "$(address)" 254 400 "$work" >"$work/graph" 2>&1
heard=$?
wait $radar && [ $heard -eq 0 ] && "$python" - "$work" <<'END'
import sys
import numpy as np
cells = np.load(sys.argv[1] + "/cells.npy")
vectors = np.fromfile(sys.argv[1] + "/vectors.cf32", "<c8")
assert cells.dtype == np.dtype("<c8") and np.array_equal(vectors, cells.ravel()), (vectors.shape, cells.shape)
tags = {}
for line in open(sys.argv[1] + "/tags"):
    offset, key, value, source = line.rstrip("\n").split("\t")
    assert source == "pnradar"
    tags.setdefault(key, {})[int(offset)] = value
first = range(0, 400, 8)  # eight rows a map
assert set(tags) == {"rx_time", "dwell", "sample", "lost", "step_s", "code", "doppler_hz"}
assert [int(tags["dwell"][k]) for k in first] == list(range(50))
assert [int(tags["sample"][k]) for k in first] == list(range(0, 101600, 2032))
assert all(len(tags[key]) == 50 for key in ("rx_time", "dwell", "sample", "lost", "step_s"))
for k in first:
    seconds, fraction = eval(tags["rx_time"][k])
    assert abs(seconds - 1795228812 + fraction - 0.25 - k / 8 * 2032 / 96000) < 2e-9
assert abs(float(tags["step_s"][0]) * 96000 - 1) < 1e-12
step = 96000 / 2032  # Doppler of a row
doppler = np.array([float(tags["doppler_hz"][k]) for k in range(8)])
assert np.allclose(np.diff(doppler), step) and np.isclose(doppler, 0).any(), doppler
assert len(tags["code"]) == 400 and set(tags["code"].values()) == {"1"}
END
report $? "the SUB source reads 50 maps of 8 rows as complex vectors, with all tags"
plan
