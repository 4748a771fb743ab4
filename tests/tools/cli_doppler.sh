#!/bin/sh
# SPDX-License-Identifier: MIT
# Doppler from end to end: ready configurations and several codes, their echoes made and found again
# with range and velocity.
# usage: cli_doppler.sh BIN_FOLDER; prints TAP.
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/tap.sh"

# run SETTING... FILE: csv in $work/out; the cpu engine where it does this, else the reference
run() {
    engine=reference
    "$pnradar" -c "$work/set.conf" --list-engines 2>/dev/null | grep -q '^cpu *would take' &&
        engine=cpu
    "$pnradar" -c "$work/set.conf" -s publisher.endpoint= -s "engine.name=$engine" "$@" \
        --print csv >"$work/out" 2>"$work/err" || { sed 's/^/# /' "$work/err"; false; }
}

# near WHAT EXPECTED TOLERANCE [CODE]: how many results have an echo of that column's value
near() {
    awk -F, -v what="$1" -v want="$2" -v by="$3" -v code="${4:-1}" '
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        $at["echo"] != "" && $at["code"] == code && $at[what] - want <= by &&
            want - $at[what] <= by && !(seen[$at["seq"]]++) { n++ }
        END { print n + 0 }' "$work/out"
}

# count: of the echoes in all results
count() {
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next } $at["echo"] != "" { n++ }
        END { print n + 0 }' "$work/out"
}

# --- the radar at 10 GHz ---

cp "$here/../../config/doppler-radar.conf" "$work/set.conf"
"$bin/pnradar-echo" -c "$work/set.conf" -s echo.periods=192 "$work/cars.ci16" 2>/dev/null
run "$work/cars.ci16" && [ "$(near velocity_mps 40 0.1)" -eq 3 ] &&
    [ "$(near velocity_mps -15 0.1)" -eq 3 ] && [ "$(near velocity_mps 0 0.03)" -eq 3 ] &&
    [ "$(count)" -eq 9 ]
report $? "40 m/s coming, 15 m/s going and a hill, in every result, and nothing else"
# 0.1 m/s of 15 mm a cycle, both ways: 6.7 Hz
[ "$(near doppler_hz 2668.5 6.7)" -eq 3 ] && [ "$(near doppler_hz -1000.7 6.7)" -eq 3 ]
report $? "a Doppler of 2.7 kHz is not folded, and its sign is that of who comes nearer"

# --- several codes ---

cat >"$work/set.conf" <<END
[source]
rate_hz = 1e6
format = cf32
[code]
type = gold
degree = 7
[code.1]
index = 2
[code.2]
index = 3
[code.3]
index = 4
[radar]
carrier_hz = 1e9
[dwell]
periods = 16
combine = doppler
[detector]
pfa = 1e-6
[echo]
periods = 64
[target.1]
range_m = 3000
amplitude = 0.05
[target.2]
range_m = 9000
velocity_mps = 300
amplitude = 0.05
code = 3
END
"$bin/pnradar-echo" -c "$work/set.conf" "$work/codes.cf32" 2>/dev/null
run -s detector.max_echoes=2 "$work/codes.cf32" && [ "$(near range_m 3000 10 1)" -eq 4 ] &&
    [ "$(near velocity_mps 300 5 3)" -eq 4 ] && [ "$(near range_m 9000 10 3)" -eq 4 ]
report $? "two transmitters of three codes, each with its range, velocity and code"

# --- satellites ---

cp "$here/../../config/gnss.conf" "$work/set.conf"
"$bin/pnradar-echo" -c "$work/set.conf" -s echo.periods=8 "$work/gps.cf32" 2>/dev/null
run "$work/gps.cf32" && [ "$(near delay_samples 523.4 0.5 1)" -eq 2 ] &&
    [ "$(near delay_samples 3705 0.5 2)" -eq 2 ] && [ "$(near doppler_hz 1680 125 1)" -eq 2 ] &&
    [ "$(near doppler_hz 9750 125 2)" -eq 2 ] && [ "$(count)" -eq 4 ]
report $? "two satellites, each with its code, delay and Doppler"
plan
