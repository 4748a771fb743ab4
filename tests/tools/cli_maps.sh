#!/bin/sh
# SPDX-License-Identifier: MIT
# Memory of a run that publishes large maps, and the maps as the listener receives them.
# usage: cli_maps.sh BIN_FOLDER; prints TAP.
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/tap.sh"
find_python resource

# 2049 rows of 2046 cells are 16 MiB a map, 30 of them.
cat >"$work/radar.conf" <<END
[source]
rate_hz = 1.023e6
format = ci16
[code]
type = m-sequence
degree = 10
[dwell]
periods = 64
combine = doppler
[doppler]
min_hz = -16e3
max_hz = 16e3
step = quarter
[detector]
oversample = 2
[ring]
bytes = 4M
[publisher]
endpoint = ipc://$work/socket
linger_s = 60
[echo]
periods = 1920
noise_rms = 0.05
[target.1]
range_m = 20000.5
amplitude = 0.1
END
"$bin/pnradar-echo" -c "$work/radar.conf" "$work/echo.ci16" 2>"$work/err"
report $? "a recording of 30 dwells is made"

# peak PROGRAM ARGUMENT...: the status; the largest resident memory in kB goes to $work/peak
cat >"$work/peak.py" <<'END'
import os, subprocess, sys
process = subprocess.Popen(sys.argv[2:])
status, usage = os.wait4(process.pid, 0)[1:]
open(sys.argv[1], "w").write("%d\n" % usage.ru_maxrss)
sys.exit(os.waitstatus_to_exitcode(status))
END
peak() {
    "$python" "$work/peak.py" "$work/peak" "$@"
}

# published ENGINE PROFILE: peak memory in $kib of a run; each thread of the engine needs a little more; a slow subscriber listens with a picture
published() {
    PATH=$work/stub:$PATH PNR_LOG=info "$bin/pnradar-listen" -c "$work/radar.conf" --timeout 60 \
        --plot "$work/stub.png" >"$work/out" 2>"$work/err" </dev/null &
    listener=$!
    peak "$pnradar" -c "$work/radar.conf" -s engine.name="$1" -s engine.threads=2 -s publisher.wait_s=30 -s publisher.profile="$2" \
        --quiet "$work/echo.ci16" 2>"$work/publisher"
    got=$?
    wait $listener || got=1
    [ $got -eq 0 ] || { cat "$work/err" "$work/publisher"; return 1; }
    kib=$(cat "$work/peak")
}

mkdir "$work/stub"
cat >"$work/stub/gnuplot" <<'END'
#!/bin/sh
cat >/dev/null
printf '\211PNG'
END
chmod +x "$work/stub/gnuplot"

for engine in cpu cuda; do
    if ! works $engine; then
        skip "$engine: memory of published maps" "no engine $engine"
    elif [ -z "$python" ]; then
        skip "$engine: memory of published maps" "no python3"
    else
        published $engine off
        report $? "$engine: a run that publishes no maps"
        without=$kib
        published $engine power && says '30 results received, 0 lost' && says '30 profiles received, 0 missed'
        report $? "$engine: the listener receives 30 maps of 16 MiB whole"
        # All 30 are 480 MiB. One more map is the memory that a run without maps reuses.
        echo "# $engine: $((without / 1024)) MiB without maps, $((kib / 1024)) MiB with maps"
        if grep -q '__[at]san_init' "$pnradar"; then
            skip "$engine: at most four maps are in memory" "a sanitizer takes memory of its own"
        else
            [ $((kib - without)) -lt $((5 * 16 * 1024)) ]
            report $? "$engine: at most four maps are in memory"
        fi
    fi
done
plan
