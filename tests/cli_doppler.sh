#!/bin/sh
# SPDX-License-Identifier: MIT
# Doppler from end to end: ready configurations, their echoes made and found again with range and
# velocity; and recordings made by others, with no hint but the code.
# usage: cli_doppler.sh BIN_FOLDER; prints TAP.
set -u
bin=$1
config=$(dirname "$0")/../config
data=$(dirname "$0")/../../shared/data
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
export PNR_LOG=quiet
n=0

# report STATUS NAME
report() {
    n=$((n + 1))
    if [ "$1" -eq 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; cat "$work/out"; fi
}

# skip NAME REASON
skip() {
    n=$((n + 1))
    echo "ok $n - $1 # SKIP $2"
}

# run SETTING... FILE: csv in $work/out; the cpu engine where it does this, else the reference
run() {
    engine=reference
    "$bin/pnradar" -c "$work/set.conf" --list-engines 2>/dev/null | grep -q '^cpu *would take' &&
        engine=cpu
    "$bin/pnradar" -c "$work/set.conf" -s publisher.endpoint= -s "engine.name=$engine" "$@" \
        --print csv >"$work/out" 2>"$work/err" || { sed 's/^/# /' "$work/err"; false; }
}

# near WHAT EXPECTED TOLERANCE [CODE]: how many results have an echo of that column's value
near() {
    awk -F, -v what="$1" -v want="$2" -v by="$3" -v code="${4:-0}" '
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        $at["echo"] != "" && $at["code"] == code && $at[what] - want <= by &&
            want - $at[what] <= by && !(seen[$at["seq"]]++) { n++ }
        END { print n + 0 }' "$work/out"
}

# echoes: how many there are in all results
echoes() {
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next } $at["echo"] != "" { n++ }
        END { print n + 0 }' "$work/out"
}

# column WHAT ECHO: of the first result
column() {
    awk -F, -v what="$1" -v echo="$2" '
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        $at["echo"] == echo { print $at[what]; exit }' "$work/out"
}

# --- the radar at 10 GHz ---

cp "$config/doppler-radar.conf" "$work/set.conf"
"$bin/pnradar-echo" -c "$work/set.conf" -s echo.periods=192 "$work/cars.ci16" 2>/dev/null
run "$work/cars.ci16" && [ "$(near velocity_mps 40 0.1)" -eq 3 ] &&
    [ "$(near velocity_mps -15 0.1)" -eq 3 ] && [ "$(near velocity_mps 0 0.03)" -eq 3 ] &&
    [ "$(echoes)" -eq 9 ]
report $? "40 m/s coming, 15 m/s going and a hill, in every result, and nothing else"
# 0.1 m/s of 15 mm a cycle, both ways: 6.7 Hz
[ "$(near doppler_hz 2668.5 6.7)" -eq 3 ] && [ "$(near doppler_hz -1000.7 6.7)" -eq 3 ]
report $? "a Doppler of 2.7 kHz is not folded, and its sign is that of who comes nearer"

# The same target, moving and still: 40 dB above the noise, so that SNR is known to 0.1 dB.
for speed in 40 0; do
    "$bin/pnradar-echo" -c "$work/set.conf" -s echo.periods=64 -s target.1.amplitude=1e-9 \
        -s target.3.amplitude=1e-9 -s target.2.amplitude=0.05 -s "target.2.velocity_mps=$speed" \
        "$work/cars.ci16" 2>/dev/null
    run "$work/cars.ci16" && column snr_db 1 >"$work/snr_$speed"
done
awk -v a="$(cat "$work/snr_40")" -v b="$(cat "$work/snr_0")" \
    'BEGIN { exit !(b > 38 && a - b < 0.5 && b - a < 0.5) }'
report $? "at 40 m/s its SNR is that of the still one within 0.5 dB"

# --- 512 short periods against one long one ---

# gain SETTING...: SNR of a target 20 dB below the noise, dB
gain() {
    "$bin/pnradar-echo" -c "$work/set.conf" "$@" "$work/gain.cf32" 2>/dev/null
    run "$@" "$work/gain.cf32" && column snr_db 1
}

cat >"$work/set.conf" <<END
[source]
rate_hz = 1.024e6
format = cf32
[code]
type = random
length = 1024
[radar]
carrier_hz = 10e9
max_range_m = 100e3
[dwell]
periods = 512
combine = doppler
[doppler]
min_hz = -4e3
max_hz = 4e3
[echo]
periods = 512
noise_rms = 0.1
[target.1]
range_m = 20000
snr_db = -20
END
long_db=$(gain -s code.length=524288 -s dwell.periods=1 -s dwell.combine=none -s echo.periods=1 \
    -s doppler.min_hz=0 -s doppler.max_hz=0)
still_db=$(gain)
# 3.35 kHz is 1714.9 rows, 0.1 of a bin from its rotation.
moving_db=$(gain -s target.1.velocity_mps=50.2)
# 57.2 dB of gain; noise moves each SNR by 0.12 dB.
awk -v long="$long_db" -v still="$still_db" -v moving="$moving_db" 'function near(a, b, by) {
        return a - b < by && b - a < by
    }
    BEGIN { exit !(near(long, 37.2, 0.5) && near(still, long, 0.3) && near(moving, long, 0.3)) }'
status=$?
echo "# one period $long_db dB, 512 periods $still_db dB, at 3.35 kHz $moving_db dB" >>"$work/out"
report $status "512 periods of 1024 chips have the gain of one of 2^19, at 0 and at 3.35 kHz"

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
run -s detector.max_echoes=2 "$work/codes.cf32" && [ "$(near range_m 3000 10 0)" -eq 4 ] &&
    [ "$(near velocity_mps 300 5 2)" -eq 4 ] && [ "$(near range_m 9000 10 2)" -eq 4 ]
report $? "two transmitters of three codes, each with its range, velocity and code"

# --- recordings ---

cp "$config/gnss.conf" "$work/set.conf"
"$bin/pnradar-echo" -c "$work/set.conf" -s echo.periods=8 "$work/gps.cf32" 2>/dev/null
run "$work/gps.cf32" && [ "$(near delay_samples 523.4 0.5 0)" -eq 2 ] &&
    [ "$(near delay_samples 3705 0.5 1)" -eq 2 ] && [ "$(near doppler_hz 1680 125 0)" -eq 2 ] &&
    [ "$(near doppler_hz 9750 125 1)" -eq 2 ] && [ "$(echoes)" -eq 4 ]
report $? "two satellites, each with its code, delay and Doppler"

capture=$data/gps_l1_ca_cttc_4Msps.cf32
prn1=$data/gps_l1_ca_prn1_4Msps.cf32
if [ ! -r "$capture" ] || [ ! -r "$prn1" ]; then
    skip "Castelldefels and PRN 1" "the recordings are not here"
else
    run -s code.1.prn=29 -s code.2.prn=25 -s code.3.prn=31 -s code.4.prn=12 -s code.5.prn=3 \
        -s code.6.prn=4 "$capture" && [ "$(near delay_samples 3705 1 0)" -eq 1 ] &&
        [ "$(near delay_samples 686 1 1)" -eq 1 ] && [ "$(near delay_samples 1949 1 2)" -eq 1 ] &&
        [ "$(near delay_samples 510 1 3)" -eq 1 ]
    report $? "Castelldefels: four satellites at their delays, Doppler not known before"
    [ "$(near doppler_hz 9750 125 0)" -eq 1 ] && [ "$(near doppler_hz 9000 125 1)" -eq 1 ] &&
        [ "$(near doppler_hz 11750 125 2)" -eq 1 ] && [ "$(near doppler_hz 7250 125 3)" -eq 1 ]
    report $? "Castelldefels: their Doppler shifts"
    [ "$(echoes)" -eq 4 ]
    report $? "Castelldefels: nothing of two satellites that are not in the sky"

    run -s code.2.prn=3 -s dwell.periods=2 -s dwell.combine=doppler "$prn1" && [ "$(near delay_samples 523.5 0.5)" -eq 1 ] &&
        [ "$(near doppler_hz 1680 20)" -eq 1 ] && [ "$(echoes)" -eq 1 ]
    report $? "PRN 1: 523 to 524 samples, 1680 Hz"
fi
echo "1..$n"
