#!/bin/sh
# SPDX-License-Identifier: MIT
# pnradar-view without a browser: its answers against what pnradar wrote, and what it refuses.
# usage: cli_view.sh BIN_FOLDER; prints TAP.
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/tap.sh"
find_python numpy

view=''
stop_view() {
    [ -z "$view" ] || kill "$view" 2>/dev/null
    [ -z "$view" ] || wait "$view" 2>/dev/null
    view=''
}
trap 'stop_view; rm -rf "$work"' EXIT

# start OPTION...: starts the view; its address in $url
start() {
    : >"$work/url"
    "$bin/pnradar-view" --listen 127.0.0.1:0 "$@" "ipc://$work/socket" >"$work/url" 2>"$work/err" &
    view=$!
    for _ in $(seq 200); do
        [ -s "$work/url" ] && break
        sleep 0.05
    done
    url=$(cat "$work/url")
}

# publish OPTION...: one run of pnradar, whose first result waits for the view
publish() {
    "$pnradar" -c "$work/radar.conf" -s publisher.wait_s=30 "$@" "$work/echo.ci16" >"$work/out" 2>"$work/err"
}

client() {
    "$python" "$here/view_client.py" "$@" 2>"$work/err"
}

if [ ! -x "$bin/pnradar-view" ] || [ -z "$python" ]; then
    skip "pnradar-view" "not built here (libmicrohttpd-dev, libjs-chart.js), or no numpy"
    plan
    exit 0
fi

cat >"$work/radar.conf" <<END
[stream]
name = test
[source]
rate_hz = 1e6
format = ci16
[code]
type = m-sequence
degree = 9
[radar]
max_range_m = 60000
[publisher]
endpoint = ipc://$work/socket
profile = power
high_water = 100000
linger_s = 60
[echo]
periods = 400
noise_rms = 0.05
[target.1]
range_m = 20000.5
amplitude = 0.1
[target.2]
range_m = 40000
amplitude = 0.03
END
"$bin/pnradar-echo" -c "$work/radar.conf" "$work/echo.ci16" 2>"$work/err"
report $? "a recording is made"

# --- what the command line refuses ---

bad=0
program() {
    "$bin/pnradar-view" "$@"
}
status 64 --listen nowhere ipc:///nobody && says '\-\-listen nowhere' || bad=1
status 64 --listen 127.0.0.1:99999 ipc:///nobody && says '99999' || bad=1
status 64 --token short ipc:///nobody && says '\-\-token' || bad=1
status 64 --streams 0 ipc:///nobody || bad=1
status 69 --listen 192.0.2.1:0 ipc:///nobody && says 'ip address' || bad=1
start
taken=${url#http://}
status 69 --listen "${taken%/}" ipc:///nobody && says 'in use' || bad=1
report $bad "wrong addresses and tokens are refused with their value"
stop_view

# --- answers ---

# A recording waits for a slow reader of profiles, so that the view gets all of them.
start
publish --print csv --profile "$work/cells.npy"
mv "$work/out" "$work/results.csv"
client echoes "$url" 400 "$work/results.csv"
report $? "the echoes are those that pnradar printed, and so is the CSV"
client picture "$url" 400 "$work/cells.npy"
report $? "the picture is the greatest power of the profiles, at any size"
client hoard "$url"
report $? "clients that read nothing do not fill the memory"
client headers "$url"
report $? "the page and its parts are served with a policy that lets nothing else in"
run=$("$python" -c "import json, urllib.request as u; print(json.load(u.urlopen('${url}api/streams'))['streams'][0]['run'])")
publish -s source.lost=102200+51100
client runs "$url" 400 "$run"
report $? "a new run begins with empty pictures"
client losses "$url" 400 0.1022 0.1533
report $? "lost samples are reported with their place"
client refused "$url"
report $? "other methods, other sites, wrong values, long addresses and junk are refused"
client crowd "$url"
report $? "silent connections do no harm"
client live "$url" 400 &
reader=$!
sleep 0.5
publish -s source.pace=real-time
wait $reader
report $? "a live client gets each result once and in order, beside clients that read nothing"
if command -v promtool >/dev/null; then
    "$python" -c "import urllib.request as u; print(u.urlopen('${url}metrics').read().decode(), end='')" >"$work/metrics"
    promtool check metrics <"$work/metrics" >"$work/out" 2>"$work/err" &&
        grep -q '^pnradar_results_unsent_total{.*cause="queue_full"} ' "$work/metrics"
    report $? "promtool accepts the metrics"
else
    skip "promtool accepts the metrics" "no promtool here"
fi
kill -TERM $view
wait $view
report $? "a signal ends the view with status 0"
view=''

start --listen 0.0.0.0:0
client token "$url"
report $? "beyond this machine the token is needed"
stop_view
plan
