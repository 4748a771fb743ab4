#!/bin/sh
# SPDX-License-Identifier: MIT
# Datagrams from independent senders in Python: the account closes to the sample, and the results are those of the raw
# file with the same losses.
# usage: cli_udp.sh BIN_FOLDER; prints TAP.
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/tap.sh"
top=$(cd "$here/../.." && pwd)
find_python numpy
if [ -z "$python" ]; then
    skip "datagrams" "no Python with numpy"
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
# recorded NAME ARGUMENT...: the results of the raw file in $work/NAME
recorded() {
    name=$1
    shift
    "$pnradar" -c "$work/radar.conf" --print csv "$@" "$work/echo.ci16" 2>"$work/err" >"$work/csv" </dev/null &&
        columns "$work/csv" >"$work/$name"
}
"$bin/pnradar-echo" -c "$work/radar.conf" -s target.1.range_m=0.789 -s target.1.amplitude=0.1 \
    -s echo.periods=400 "$work/echo.ci16" 2>"$work/err" && recorded whole &&
    lost=$("$python" "$here/udp_peer.py" plan "$work") &&
    "$python" - "$work" "$lost" <<'END' && mv "$work/short" "$work/echo.short" && cp "$work/echo.ci16" "$work/full"
import sys
import numpy as np
iq = np.fromfile(sys.argv[1] + "/echo.ci16", "<u4")
for run in sys.argv[2].split(",")[::-1]:
    first, n = map(int, run.split("+"))
    iq = np.delete(iq, slice(first, first + n))
iq.tofile(sys.argv[1] + "/short")
END
report $? "a recording, and the losses of the sender"

# free_port: one of this machine
free_port() {
    "$python" -c 'import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])'
}
example() {
    "$python" "$top/tools/udp/send.py" "$work/echo.ci16" 127.0.0.1 "$port" 500000
}
counted() {
    "$python" "$here/udp_peer.py" udp "$work" "$port"
}
vita49() {
    "$python" "$here/udp_peer.py" vrt "$work" "$port"
}
# hear ROWS INPUT_PREFIX SENDER ARGUMENT...: pnradar hears the sender until it has printed so many rows
hear() {
    rows=$1 prefix=$2 sender=$3
    shift 3
    port=$(free_port)
    : >"$work/csv"
    : >"$work/err"
    # stdbuf preloads its library, which the address sanitizer would refuse
    ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0" PNR_LOG=info stdbuf -oL \
        "$pnradar" -c "$work/radar.conf" --print csv "$@" "$prefix:127.0.0.1:$port" >"$work/csv" 2>"$work/err" </dev/null &
    radar=$!
    while ! grep -q loss_visibility "$work/err" && kill -0 $radar 2>/dev/null; do sleep 0.05; done
    $sender 2>"$work/sender"
    tries=0
    while [ "$(wc -l <"$work/csv")" -lt "$rows" ] && kill -0 $radar 2>/dev/null && [ $tries -lt 600 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
    kill -TERM $radar 2>/dev/null
    wait $radar
    ended=$?
    columns "$work/csv" >"$work/out"
    [ $ended -eq 0 ] && [ ! -s "$work/sender" ]
}
# untimed FILE: without the time
untimed() {
    cut -d, -f1,2,4- "$1"
}
rows=$(wc -l <"$work/whole")
hear "$rows" udp example &&
    untimed "$work/out" >"$work/heard" && untimed "$work/whole" | cmp - "$work/heard" && says 'loss_visibility: exact' &&
    says '101600 samples = 101600 used;' && ! grep -q "message.* refused" "$work/err"
report $? "the sender in tools/udp: the results of the recording"

mv "$work/echo.short" "$work/echo.ci16"
recorded losses -s "source.lost=$lost" -s source.start_time=2026-11-21T02:40:12Z
gaps=$?
mv "$work/full" "$work/echo.ci16"
n_lost=$(($(printf '%s' "$lost" | tr -cd + | wc -c) * 80))
rows=$(wc -l <"$work/losses")
[ $gaps -eq 0 ] && [ $n_lost -gt 2500 ] && [ "$rows" -gt 40 ] &&
    hear "$rows" udp counted &&
    untimed "$work/out" >"$work/heard" && untimed "$work/losses" | cmp - "$work/heard" &&
    says " $n_lost lost" && says 'out of order'
report $? "counted datagrams, of which 1 % are lost, and others come late or twice: each loss to the sample, the same results"
hear "$rows" vrt vita49 -s source.centre_hz=99.5e6 -s source.vrt_stream=0x1f2e3d4c &&
    cmp "$work/out" "$work/losses" && says " $n_lost lost" && says 'out of order' && ! grep -q "message.* refused" "$work/err"
report $? "VITA-49: 19 packets lost in a row, context and another stream between: each loss to the sample, the sender's time"
hear 1 vrt vita49 -s source.rate_hz=48000
says 'the context says 96000 Hz, source.rate_hz says 48000 Hz' && [ $ended -eq 78 ]
report $? "a context with another rate ends the run"
plan
