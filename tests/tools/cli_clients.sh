#!/bin/sh
# SPDX-License-Identifier: MIT
# The programs of tools/clients print the strongest echo of every result of a run.
# usage: cli_clients.sh BIN_FOLDER; prints TAP.
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/tap.sh"
clients=$(cd "$here/../../tools/clients" && pwd)
PATH=$bin:$PATH
cat >"$work/radar.conf" <<END
[source]
rate_hz = 96000
[code]
degree = 7
chip_rate_hz = 48e3
[dwell]
periods = 8
combine = coherent
[radar]
speed_mps = 1500
[publisher]
endpoint = ipc://$work/socket
wait_s = 30
[target.1]
range_m = 0.789
amplitude = 0.1
END
"$bin/pnradar-echo" -c "$work/radar.conf" -s echo.periods=160 "$work/echo.ci16" 2>"$work/err" &&
    "$pnradar" -c "$work/radar.conf" -s publisher.endpoint= --print csv "$work/echo.ci16" 2>"$work/err" | LC_ALL=C awk -F, '
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        $at["echo"] == 1 { printf "%s %.6g %.3g %.3g\n", $at["sample"], $at["range_m"], $at["range_sigma_m"], $at["snr_db"] }' >"$work/want"
[ "$(wc -l <"$work/want")" -eq 20 ] && grep -q '^0 0\.7[89]' "$work/want"
report $? "a run of 20 results, each with an echo"

# client NAME COMMAND...: the client prints what is wanted
client() {
    name=$1
    shift
    timeout 60 "$@" "ipc://$work/socket" pnradar >"$work/out" 2>"$work/err" </dev/null &
    client=$!
    "$pnradar" -c "$work/radar.conf" "$work/echo.ci16" 2>"$work/publisher"
    wait $client && diff "$work/want" "$work/out" >"$work/diff" && [ "$(wc -l <"$clients/$name")" -lt 30 ]
    report $? "$name prints them, in less than 30 lines"
}
client echoes.sh sh "$clients/echoes.sh"
find_python zmq
if [ -n "$python" ]; then
    client echoes.py "$python" "$clients/echoes.py"
else
    skip "echoes.py" "no Python with zmq"
fi
if command -v octave >/dev/null; then
    client echoes.m octave -qf "$clients/echoes.m"
else
    skip "echoes.m" "no octave"
fi
plan
