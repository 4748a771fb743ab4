#!/bin/sh
# SPDX-License-Identifier: MIT
# Sources against their other ends, made by Python from the formats' descriptions: the results are those of the
# raw file with the same losses, and the account closes.
# usage: cli_sources.sh BIN_FOLDER; prints TAP.
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/tap.sh"
find_python numpy,zmq
if [ -z "$python" ]; then
    skip "SigMF, Digital RF, rtl_tcp and ZeroMQ" "no Python with numpy and zmq"
    plan
    exit
fi
peer() { # WHAT ARGUMENT...
    "$python" "$here/sources_peer.py" "$@" >"$work/peer" 2>"$work/err"
}
sonar_station >"$work/radar.conf"
"$bin/pnradar-echo" -c "$work/radar.conf" -s source.rate_hz=96000 -s target.1.range_m=0.789 \
    -s target.1.amplitude=0.1 -s echo.periods=100 "$work/echo.ci16" 2>"$work/err" && peer sigmf "$work"
report $? "a recording with losses, raw and as SigMF"
lost=$(cat "$work/peer")

# closes: each sum of the account at the end of the log holds: "9 samples = 5 used + 4 lost; ..."
closes() {
    sed -n 's/^pnradar: .*: \([0-9]* samples = .*\)$/\1/p' "$work/err" | tr ';' '\n' | awk '
        / = / {
            sums++
            split($0, sides, " = ")
            n = split(sides[2], parts, "[+]")
            for (i = 1; i <= n; i++) sides[1] -= parts[i]
            if (sides[1] != 0) bad++
        }
        END { exit !(sums == 3 && bad == 0) }' || { echo "# the account: $(cat "$work/err")"; false; }
}

# results ARGUMENT...: csv without the latency in $work/out, the log in $work/err
results() {
    PNR_LOG=info "$pnradar" -c "$work/radar.conf" --print csv "$@" 2>"$work/err" >"$work/csv" </dev/null &&
        cut -d, -f1-11,13- "$work/csv" >"$work/out" && closes
}

# --- SigMF ---

start=2026-11-21T02:40:12.25Z
results -s source.rate_hz=96000 -s "source.lost=$lost" -s source.start_time=$start "$work/short.ci16" &&
    cp "$work/out" "$work/raw" && says 'loss_visibility: none' && says ' 4700 lost' &&
    echoes "$work/csv" 'f("echo") == 1 { if (f("range_m") > 0.779 && f("range_m") < 0.799) good++; else bad++ }'
report $? "the raw recording with source.lost has the echo"
good=0
for name in le.sigmf-meta le.sigmf-data be.sigmf-meta be.sigmf-data ustar.sigmf pax.sigmf gnu.sigmf; do
    results "$work/$name" && cmp "$work/out" "$work/raw" && says 'loss_visibility: exact' &&
        says '25400 samples, 4700 of them lost' && says 'the data match core:sha512' || good=1
done
report $good "SigMF gives the results of the raw recording, without any key: files, both byte orders, archives"
cp "$work/le.sigmf-meta" "$work/bad.sigmf-meta"
(head -c -1 "$work/le.sigmf-data" && printf 'x') >"$work/bad.sigmf-data" # after the last whole dwell
status 65 "$pnradar" -c "$work/radar.conf" --print csv "$work/bad.sigmf-meta" && cut -d, -f1-11,13- "$work/out" | cmp - "$work/raw" &&
    says 'bad.sigmf-meta: the data were changed or damaged' &&
    status 0 "$pnradar" -c "$work/radar.conf" -s source.sha512=ignore "$work/bad.sigmf-meta"
report $? "SigMF: data that do not match core:sha512 give all results, and then status 65"
status 78 "$pnradar" -c "$work/radar.conf" -s source.rate_hz=48000 "$work/le.sigmf-meta" && says '96000 Hz' &&
    says '48000 Hz' && status 0 "$bin/pnradar-plan" -c "$work/radar.conf" -s "source.input=$work/le.sigmf-meta" &&
    grep -q 'sample rate  *96 kHz' "$work/out"
report $? "SigMF: another rate is refused with both, and pnradar-plan takes the rate"
head -c 20000 "$work/pax.sigmf" >"$work/cut.sigmf"
status 65 "$pnradar" -c "$work/radar.conf" "$work/two.sigmf" && says '2 files .sigmf-meta' &&
    status 65 "$pnradar" -c "$work/radar.conf" "$work/cut.sigmf" && says 'tar: the member' &&
    cp "$work/echo.ci16" "$work/no.sigmf" && status 65 "$pnradar" -c "$work/radar.conf" "$work/no.sigmf" && says 'tar: no header'
report $? "SigMF: archives with two recordings, cut short, or of no tar are refused"

# --- Digital RF ---

peer_python=$python
find_python h5py,numpy
if [ -z "$python" ] || [ ! -f "$bin/../lib/pnradar/source-digital-rf.so" ]; then
    skip "Digital RF" "no Python with h5py, or source-digital-rf.so is not built"
else
    "$python" "$here/../source/digital_rf_numpy.py" "$work" echo "$work/echo.ci16" "$lost" >"$work/out" 2>"$work/err" &&
        results "$work/gaps" && cmp "$work/out" "$work/raw" && says 'loss_visibility: exact' && says ' 4700 lost' &&
        results "$work/fill/" && cmp "$work/out" "$work/raw" && says 'Digital RF ci16 as ci16, 1 channel, 96000 Hz'
    report $? "Digital RF gives the results of the raw recording, without any key: gaps, and fill values"
    status 66 "$pnradar" -c "$work/radar.conf" "$work" && says 'a directory with the file drf_properties.h5' &&
        status 78 "$pnradar" -c "$work/radar.conf" -s source.rate_hz=48000 "$work/gaps" && says '96000 Hz' && says '48000 Hz'
    report $? "Digital RF: a folder of another kind, and another rate are refused"

    # The last file, which has the last of 11 results, comes while the recording is followed. SIGINT ends it.
    cp -r "$work/gaps" "$work/grows"
    last=$(find "$work/grows" -name 'rf@*' | sort | tail -n 1)
    mv "$last" "$work/last.h5"
    "$bin/pnradar-listen" --timeout 60 --format csv "ipc://$work/s" >"$work/heard" 2>/dev/null &
    listener=$!
    PNR_LOG=info "$pnradar" -c "$work/radar.conf" -s "publisher.endpoint=ipc://$work/s" \
        -s publisher.wait_s=30 --print csv --follow "$work/grows" >"$work/csv" 2>"$work/err" </dev/null &
    follower=$!
    # heard SEQ: waits for the result of this number, for at most a minute
    heard() {
        tries=0
        until grep -q "^$1," "$work/heard" || [ $tries -eq 3000 ]; do
            sleep 0.02
            tries=$((tries + 1))
        done
    }
    heard 9
    mv "$work/last.h5" "$last"
    heard 10
    kill -INT $follower
    wait $follower
    wait $listener
    closes && cut -d, -f1-11,13- "$work/csv" >"$work/out" && cmp "$work/out" "$work/raw"
    report $? "--follow: the last file comes later, and the results are those of the whole recording"
fi
python=$peer_python

# --- rtl_tcp ---

# serve ARGUMENT...: a server with its port in $port
serve() {
    rm -f "$work/port" "$work/commands"
    "$python" "$here/sources_peer.py" rtl_tcp "$work" "$@" &
    server=$!
    while [ ! -e "$work/port" ] && kill -0 $server; do sleep 0.05; done
    port=$(cat "$work/port")
}
# timeless_columns: of $work/csv without latency, time and flags
timeless_columns() {
    cut -d, -f1,2,4-7,9-11,13- "$work/csv" >"$work/out"
}
tuner="-s source.rate_hz=250000 -s code.chip_rate_hz=50e3 -s engine.deadline=3600"
# shellcheck disable=SC2086 # a list of options
"$bin/pnradar-echo" -c "$work/radar.conf" $tuner -s target.1.range_m=0.789 -s target.1.amplitude=0.1 \
    -s echo.periods=100 "$work/echo.cu8" 2>"$work/err" && results $tuner "$work/echo.cu8" && timeless_columns &&
    cp "$work/out" "$work/raw"
report $? "a recording of cu8"
serve RTL0 4
# shellcheck disable=SC2086
results $tuner -s source.centre_hz=100.5e6 -s source.gain_db=-2.9 "rtl_tcp:localhost:$port" && timeless_columns &&
    cmp "$work/out" "$work/raw" && says 'loss_visibility: none' && wait $server &&
    printf '2 250000\n1 100500000\n3 1\n4 -29\n' | cmp - "$work/commands" &&
    [ "$(awk -F, 'NR > 1 && $3 != ""' "$work/csv" | wc -l)" -gt 10 ]
report $? "rtl_tcp: rate, frequency and gain are set; the results are those of the recording, with the host's time"
serve RTL0 3
# shellcheck disable=SC2086
results $tuner -s source.centre_hz=100.5e6 "rtl_tcp:[::1]:$port"
refused=$?
# shellcheck disable=SC2086
[ $refused -ne 0 ] && says 'Connection refused' &&
    results $tuner -s source.centre_hz=100.5e6 "rtl_tcp:127.0.0.1:$port" && timeless_columns &&
    cmp "$work/out" "$work/raw" && wait $server && printf '2 250000\n1 100500000\n3 0\n' | cmp - "$work/commands"
report $? "rtl_tcp: no server at [::1]; automatic gain at 127.0.0.1"
serve HTTP 0
# shellcheck disable=SC2086
status 65 "$pnradar" -c "$work/radar.conf" $tuner -s source.centre_hz=100.5e6 "rtl_tcp:127.0.0.1:$port" &&
    says 'no rtl_tcp server'
report $? "rtl_tcp: another server is refused"
wait $server
good=0
while read -r words input settings; do
    # shellcheck disable=SC2086 # a list of options
    status 78 "$pnradar" -c "$work/radar.conf" $settings "$input" && says "$words" || good=1
done <<END
PORT rtl_tcp:host -s source.rate_hz=250000 -s source.centre_hz=1e8
PORT rtl_tcp:host:65536 -s source.rate_hz=250000 -s source.centre_hz=1e8
PORT rtl_tcp::1234 -s source.rate_hz=250000 -s source.centre_hz=1e8
900001 rtl_tcp:host:1234 -s source.rate_hz=500000 -s source.centre_hz=1e8
500000/3 rtl_tcp:host:1234 -s source.rate_hz=500000/3 -s source.centre_hz=1e8
given rtl_tcp:host:1234 -s source.centre_hz=1e8
centre_hz rtl_tcp:host:1234 -s source.rate_hz=250000
ci16 rtl_tcp:host:1234 -s source.rate_hz=250000 -s source.centre_hz=1e8 -s source.format=ci16
END
report $good "rtl_tcp: wrong addresses, rates and formats are refused"

# --- GNU Radio over ZeroMQ ---

# stream KIND TAGS EVENT ARGUMENT...: pnradar at GNU Radio's sink until the command EVENT succeeds; csv without
# latency and flags in $work/out, the log in $work/err
stream() {
    kind=$1 tags=$2 event=$3
    shift 3
    rm -f "$work/port"
    : >"$work/csv"
    : >"$work/err"
    "$python" "$here/sources_peer.py" "$kind" "$work" "$tags" &
    peer=$!
    while [ ! -e "$work/port" ] && kill -0 $peer; do sleep 0.05; done
    case $kind in push) socket=zmq-pull ;; *) socket=zmq-sub ;; esac
    # stdbuf preloads its library, which the address sanitizer would refuse
    ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0" PNR_LOG=info stdbuf -oL \
        "$pnradar" -c "$work/radar.conf" -s source.rate_hz=96000 --print csv -s engine.deadline=3600 \
        "$@" "$socket:tcp://127.0.0.1:$(cat "$work/port")" >"$work/csv" 2>"$work/err" &
    radar=$!
    tries=0
    while ! $event && kill -0 $radar && [ $tries -lt 300 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
    kill -TERM $radar
    wait $radar
    ended=$?
    kill $peer
    wait $peer 2>/dev/null
    cut -d, -f1-7,9-11,13- "$work/csv" >"$work/out" && [ $ended -eq 0 ] && closes
}
"$bin/pnradar-echo" -c "$work/radar.conf" -s source.rate_hz=96000 -s target.1.range_m=0.789 \
    -s target.1.amplitude=0.1 -s echo.periods=100 "$work/echo.cf32" 2>"$work/err" &&
    "$python" - "$work" "$lost" <<'END' && results -s source.rate_hz=96000 -s "source.lost=$lost" -s source.start_time=$start "$work/short.cf32"
import sys
import numpy as np
iq = np.fromfile(sys.argv[1] + "/echo.cf32", "<c8")
for first, count in sorted((tuple(map(int, run.split("+"))) for run in sys.argv[2].split(",")), reverse=True):
    iq = np.delete(iq, slice(first, first + count))
iq.tofile(sys.argv[1] + "/short.cf32")
END
report $? "the recording as cf32"
rows=$(wc -l <"$work/csv")
has_all() {
    [ "$(wc -l <"$work/csv")" -ge "$rows" ]
}
cut -d, -f1-7,9-11,13- "$work/csv" >"$work/raw"
has_some() {
    [ "$(wc -l <"$work/csv")" -ge 5 ]
}
for kind in push pub; do
    stream $kind tags has_all -s source.zmq_key=radar -s source.zmq_tags=yes && cmp "$work/out" "$work/raw" && says ' 4700 lost' &&
        says 'loss_visibility: exact' && ! grep -q "message.* refused" "$work/err"
    report $? "GNU Radio's $kind sink with tags: gaps of the right length, the time of the receiver, the same results"
done
stream push none has_some && says 'loss_visibility: none' && ! grep -q "message.* refused" "$work/err"
report $? "GNU Radio's push sink without tags"
is_refused() {
    grep -q 'a message is refused' "$work/err"
}
stream push none is_refused -s source.zmq_tags=yes -s source.zmq_key=other && says 'another key' && says 'messages were refused'
report $? "messages of another key are refused and counted"
plan
