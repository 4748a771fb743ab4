#!/bin/sh
# SPDX-License-Identifier: MIT
# pnradar-listen from the command line: every form, packs, truth, losses, timeouts, a run from Python's view.
# usage: cli_listen.sh BIN_FOLDER; prints TAP.
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/tap.sh"

cat >"$work/radar.conf" <<END
[stream]
name = test
[source]
rate_hz = 1e6
format = ci16
[code]
type = m-sequence
degree = 9
[publisher]
endpoint = ipc://$work/socket
[echo]
periods = 40
noise_rms = 0.05
[target.1]
range_m = 20000.5
amplitude = 0.1
[target.2]
range_m = 40000
velocity_mps = 100
amplitude = 0.05
END
"$bin/pnradar-echo" -c "$work/radar.conf" --truth "$work/truth.csv" "$work/echo.ci16" 2>"$work/err"
report $? "a recording is made"

hear 0 -- && [ "$(grep -c '^[0-9]' "$work/out")" -eq 80 ] && says '40 results received, 0 lost' && says 'complete'
report $? "table: 40 results of two echoes each, complete"

hear 0 --format csv -- && [ "$(wc -l <"$work/out")" -eq 81 ] &&
    awk -F, 'NR > 1 && !($1 == int((NR - 2) / 2) && $2 == 511 * int((NR - 2) / 2) && $19 > 19000 && $19 < 41000) { bad = 1 }
        END { exit bad }' "$work/out"
report $? "csv: seq, sample and range of every row"
mv "$work/out" "$work/single.csv"

hear 0 --format json -- && [ "$(grep -c '^{"v":1,.*}$' "$work/out")" -eq 40 ]
report $? "json: the range messages themselves"

hear 0 --format csv -- -s publisher.pack=7 && says '40 results received, 0 lost' &&
    cut -d, -f1,2,14-17 "$work/single.csv" >"$work/a" && cut -d, -f1,2,14-17 "$work/out" >"$work/b" && cmp -s "$work/a" "$work/b"
report $? "packed results are read as the single ones"

hear 0 -- -s engine.deadline=1e-9 && [ "$(grep -c ' late$' "$work/out")" -eq 80 ] && says '; 40 late$' &&
    says 'test deadline: 1e-09 s, missed by 40 of 40 results'
report $? "late results say so, and are counted"
hear 0 --format csv -- -s engine.deadline=1e-9 -s publisher.pack=7 && [ "$(grep -c ',late,' "$work/out")" -eq 80 ] &&
    says 'missed by 40 of 40'
report $? "late results in packs, too"
hear 0 -- -s engine.deadline=1000 && says 'test deadline: 1000 s, missed by 0 of 40' && ! grep -q late "$work/out"
report $? "none is late when there is time"
hear 0 -- && ! grep -q deadline "$work/err"
report $? "a recording has no deadline of itself"

hear 0 --truth "$work/truth.csv" -- && says 'target 1: detected in 40 of 40 dwells' &&
    says 'target 2: detected in 40 of 40 dwells' && says "no target's: 0"
report $? "the truth stands beside the echoes"

hear 0 --count 5 -- && [ "$(grep -c '^[0-9]' "$work/out")" -eq 10 ]
report $? "--count ends after five results"

hear 0 --all -- -s stream.name=other && says '40 results received'
report $? "--all hears every stream"

hear 3 --strict -- -s source.lost=3000+700 && says 'lost'
report $? "--strict: a loss at the publisher is status 3"
hear 0 -- -s source.lost=3000+700
report $? "without --strict it is told, status 0"

(export PNR_LOG=info && hear 0 --events -- -s source.lost=3000+700) && says '2 events received, 0 lost' &&
    grep -q '^....-..-..T..:..:..\....Z test loss-begins 1: loss begins at sample 3000: 700 samples are missing from the source$' "$work/out" &&
    grep -q ' test loss-ends 1: loss ends: 700 samples lost from sample 3000 on: ' "$work/out" && [ "$(wc -l <"$work/out")" -eq 2 ] &&
    grep -q 'pnradar: warning: loss begins at sample 3000: 700 samples are missing from the source$' "$work/publisher"
report $? "--events: a loss begins and ends, in the words of the publisher's log"
hear 0 --events --format csv -- -s source.lost=3000+700 && [ "$(sed -n 1p "$work/out")" = time,stream,event,count,sample,text ] &&
    sed -n 2p "$work/out" | grep -q 'Z,"test","loss-begins",1,3000,"loss begins at'
report $? "--events --format csv"
hear 0 --events --format json --count 1 -- -s source.lost=3000+700 && [ "$(wc -l <"$work/out")" -eq 1 ] &&
    grep -q '^{"v":1,.*"event":"loss-begins",.*"sample":"3000","count":1,"source":700,"ring_full":0,"text":"loss begins.*}$' "$work/out"
report $? "--events --format json --count 1"
hear 0 --events --strict -- && says '0 events received' && [ ! -s "$work/out" ]
report $? "--events: none in a whole recording"
"$bin/pnradar-listen" --events --live >"$work/out" 2>"$work/err"
[ $? -eq 64 ] && says 'in place of results'
report $? "--events shows no results"

"$bin/pnradar-listen" -c "$work/radar.conf" --timeout 0.3 "ipc://$work/nobody" >"$work/out" 2>"$work/err"
[ $? -eq 69 ] && says "ipc://$work/nobody"
report $? "nothing for so long: status 69, and which endpoint"
"$bin/pnradar-listen" --format xml >"$work/out" 2>"$work/err"
[ $? -eq 64 ] && says xml
report $? "an unknown format is refused"
"$bin/pnradar-listen" --count none >"$work/out" 2>"$work/err"
[ $? -eq 64 ] && says none
report $? "a count that is no number is refused"
! "$bin/pnradar-listen" --curve-key short tcp://127.0.0.1:5999 >"$work/out" 2>"$work/err" && says short
report $? "a key that is none is refused"

# deaf ARGUMENT...: a listener that hears nothing of its stream for four seconds
deaf() {
    PNR_LOG=info "$bin/pnradar-listen" -c "$work/radar.conf" --timeout 4 "$@" >"$work/out" 2>"$work/err"
    [ $? -eq 69 ] && [ ! -s "$work/out" ]
}
deaf "ipc://$work/nobody" && sed -n 1p "$work/err" | grep -q "waiting at ipc://$work/nobody for stream test\$" &&
    sed -n 2p "$work/err" | grep -q "warning: nothing publishes at ipc://$work/nobody: there is no such socket" &&
    tail -n 1 "$work/err" | grep -q 'error: nothing arrived within 4 s: nothing publishes'
report $? "where it waits at once, and after 3 s that nothing publishes there"

"$bin/pnradar-echo" -c "$work/radar.conf" -s echo.periods=40000 "$work/long.ci16" 2>"$work/err" # 20 s
other="-c $work/radar.conf -s stream.name=other -s source.pace=real-time --quiet"
# shellcheck disable=SC2086 # a list of options
"$pnradar" $other "$work/long.ci16" 2>"$work/publisher" &
publisher=$!
deaf && says "warning: no stream test at ipc://$work/socket, but other: --stream NAME or --all"
report $? "after 3 s, the streams that are there instead"
"$bin/pnradar-listen" -c "$work/radar.conf" --stream other --count 1 --timeout 60 >"$work/out" 2>"$work/err" &&
    [ -s "$work/out" ]
report $? "and one of them is heard"
kill "$publisher"
wait "$publisher"
# shellcheck disable=SC2086
"$pnradar" $other -s publisher.wait_s=60 "$work/long.ci16" 2>"$work/publisher" &
publisher=$!
deaf && says "warning: a publisher is at ipc://$work/socket, but nothing arrived from it"
report $? "after 3 s, that the publisher is silent"
kill "$publisher"
wait "$publisher"

"$bin/pnradar-listen" tcp://127.0.0.1:70000 >"$work/out" 2>"$work/err"
[ $? -eq 64 ] && says 'endpoint tcp://127.0.0.1:70000: want tcp://ADDRESS:PORT'
report $? "a port that is none is refused"
"$bin/pnradar-listen" 'tcp://*:*' >"$work/out" 2>"$work/err"
[ $? -eq 64 ] && says 'give the port'
report $? "a port that the publisher chooses is refused"
"$bin/pnradar-listen" tcp://nowhere.invalid:5555 >"$work/out" 2>"$work/err"
[ $? -eq 69 ] && says 'no address of host nowhere.invalid'
report $? "a host that has no address is refused"

"$bin/pnradar-listen" -c "$work/radar.conf" --timeout 60 >"$work/out" 2>"$work/err" &
listener=$!
until grep -q listen "/proc/$listener/comm" && grep -q '^SigCgt:.*[2367abef]$' "/proc/$listener/status"; do sleep 0.1; done # it catches SIGINT
kill -INT $listener
wait $listener && says 'no results received'
report $? "SIGINT ends it cleanly"

find_python numpy, zmq
if [ -n "$python" ]; then
    cat >"$work/packed.py" <<'END'
import json, sys
import numpy as np, zmq

socket = zmq.Context().socket(zmq.SUB)
socket.setsockopt(zmq.SUBSCRIBE, b"")
socket.setsockopt(zmq.RCVTIMEO, 60000)
socket.connect(sys.argv[1])
seq, ranges, end = [], [], False
while not end:
    parts = socket.recv_multipart()
    topic, header = parts[0].decode(), json.loads(parts[1])
    if topic == "range/test":
        records = np.frombuffer(parts[2], dtype=[tuple(field) for field in header["dtype"]])
        assert len(records) == header["n_records"], header
        seq += list(records["seq"])
        ranges += list(records["delay_s"] * 299792458 / 2)
    end = topic == "end/test"
assert sorted(set(seq)) == list(range(40)), seq
assert abs(np.median(ranges[0::2]) - 20000.5) < 20, ranges[:4]
assert header["account"]["used"] == "20440", header
END
    $python "$work/packed.py" "ipc://$work/socket" >"$work/out" 2>&1 &
    reader=$!
    "$bin/pnradar" -c "$work/radar.conf" -s publisher.wait_s=30 -s publisher.pack=16 "$work/echo.ci16" 2>"$work/err"
    wait $reader || { sed 's/^/# /' "$work/out"; false; }
    report $? "numpy reads the packed records by the header's dtype"
else
    n=$((n + 1))
    echo "ok $n - numpy reads the packed records # SKIP no python3 with numpy and zmq"
fi
plan
