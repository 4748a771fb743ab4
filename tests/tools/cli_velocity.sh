#!/bin/sh
# SPDX-License-Identifier: MIT
# Velocities from samples to results, on every engine here: beyond 1 / (2 Tr), with many short periods
# against one long, a stretched code, looks, and clutter.
# usage: cli_velocity.sh BIN_FOLDER; prints TAP.
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/tap.sh"
echo_=$bin/pnradar-echo
plan=$bin/pnradar-plan

# scene SETTING...: pnradar-echo's samples of $conf with these; what follows reads the same
scene() {
    "$echo_" -c "$work/$conf.conf" "$@" "$work/x.cf32" 2>"$work/err"
}

# search SETTING...: csv of $engine in $work/out
search() {
    "$pnradar" -c "$work/$conf.conf" -s "engine.name=$engine" -s engine.batch=2 "$@" --print csv \
        "$work/x.cf32" >"$work/out" 2>"$work/err"
}

# strongest VELOCITY BY: the strongest echo of every result has this velocity; prints the mean SNR
strongest() {
    echoes "$work/out" '
        f("echo") != "1" { next }
        f("velocity_mps") < '"$1 - $2"' || f("velocity_mps") > '"$1 + $2"' { bad++ }
        { good++; sum += f("snr_db") }
        END { if (good != results) bad++; if (good) printf "%.3f", sum / good }'
}

# within A B BY
within() {
    awk -v a="$1" -v b="$2" -v by="$3" 'BEGIN { exit !(a - b <= by && b - a <= by) }'
}

# nothing: results, and none with an echo
nothing() {
    [ "$(wc -l <"$work/out")" -gt 1 ] && ! echoes "$work/out" '{ good++ }'
}

# 127 chips of 1 ms' period on 10 GHz: +-500 Hz, +-7.5 m/s, from period to period
cat >"$work/fast.conf" <<'END'
[source]
rate_hz = 127e3
format = cf32
[code]
type = m-sequence
degree = 7
[radar]
carrier_hz = 10e9
max_range_m = 100e3
[dwell]
periods = 64
combine = doppler
[detector]
max_echoes = 4
[publisher]
endpoint =
[echo]
periods = 256
noise_rms = 0.1
[target.1]
range_m = 30000
snr_db = -1
END

for engine in reference cpu cuda; do
    if ! works $engine; then
        skip "$engine: velocities" "this engine is not here"
        continue
    fi

    conf=fast
    set -- -s doppler.min_hz=-4000 -s doppler.max_hz=4000
    scene && search "$@" && still=$(strongest 0 0.01)
    got=$?
    # 2668 Hz, and 3.95 and 22.8 of the distance from one rotation to the next.
    for velocity in 40 -40 44.5 -42.7; do
        [ $got -eq 0 ] || break
        scene -s target.1.velocity_mps="$velocity" && search "$@" &&
            moving=$(strongest "$velocity" 0.01) && within "$moving" "$still" 0.5
        got=$?
    done
    report $got "$engine: 40 m/s at 10 GHz and 1 ms, either way, as strong as the still target"
    scene -s target.1.velocity_mps=40 && search && ! strongest 40 0.01 >/dev/null
    report $? "$engine: not without the range of Doppler"

    # 9 dB a look: too weak for most dwells, enough for 16 of them.
    scene -s target.1.velocity_mps=1.874 -s target.1.snr_db=-30 -s echo.periods=2048 &&
        search -s dwell.looks=16 && strongest 1.874 0.05 >"$work/looks" &&
        within "$(cat "$work/looks")" 9.1 1.5 && [ "$(wc -l <"$work/out")" -eq 3 ] && search &&
        echoes "$work/out" '{ good++ } END { if (good > 8) bad++; good = 1 }'
    report $? "$engine: sixteen looks find what single ones miss"

    # A still echo, 40 dB above one that moves; its own sidelobes are above that too.
    scene -s target.1.snr_db=20 -s target.2.range_m=33000 -s target.2.velocity_mps=3 \
        -s target.2.snr_db=-20 || report 1 "$engine: two targets"
    search -s dwell.clutter=remove && strongest 3 0.05 >"$work/moving" &&
        within "$(cat "$work/moving")" 19.1 0.8 && ! grep -q 'more-echoes' "$work/out" &&
        ! echoes "$work/out" '{ good += f("velocity_mps") < 2 }'
    report $? "$engine: clutter = remove leaves the one that moves, whole"
    search -s dwell.clutter=keep -s detector.subtract=1 && strongest 0 0.01 >"$work/moving" &&
        within "$(cat "$work/moving")" 59.1 0.3 &&
        echoes "$work/out" 'f("echo") == "2" && f("velocity_mps") > 2.95 { good++ }
            f("echo") > 2 { bad++ } END { if (good != 4) bad++ }'
    report $? "$engine: clutter = keep, searched twice, shows both"
    search -s dwell.clutter=keep && ! echoes "$work/out" '{ good += f("echo") == "2" }'
    report $? "$engine: searched once, the still one hides it"

    # 66 chips at random: what five looks add of their sidelobes is no echo.
    cat >"$work/short.conf" <<'END'
[source]
rate_hz = 1e6
format = cf32
[code]
type = random
length = 66
chip_rate_hz = 1000000/3
[radar]
carrier_hz = 1e9
[dwell]
periods = 8
looks = 5
combine = doppler
[doppler]
min_hz = -5050
max_hz = 5050
[detector]
oversample = 2
max_echoes = 8
[publisher]
endpoint =
[echo]
periods = 200
noise_rms = 0.1
[target.1]
range_m = 17028
velocity_mps = 613.9
snr_db = 4.9
END
    conf=short
    scene && search && strongest 613.9 2 >"$work/short" &&
        ! echoes "$work/out" '{ good += f("echo") > 1 }' &&
        set -- -s code.length=562 -s code.chip_rate_hz=1e6 -s dwell.periods=32 -s dwell.taper=hann \
            -s doppler.min_hz=-1700 -s doppler.max_hz=1700 -s target.1.range_m=46079 \
            -s target.1.velocity_mps=98.2 -s target.1.snr_db=-9.2 &&
        { [ $engine = reference ] || { scene "$@" -s echo.periods=480 && search "$@" &&
            strongest 98.2 1 >"$work/short" && ! echoes "$work/out" '{ good += f("echo") > 1 }'; }; }
    report $? "$engine: a short code's sidelobes, added over looks, are no echoes"

    # As many samples in many short periods and in one; reference does N^2 operations.
    if [ $engine = reference ]; then
        set -- 64 64 524288 59
    else
        set -- 512 1024 8388608 59
    fi
    cat >"$work/long.conf" <<END
[source]
rate_hz = $3
format = cf32
[radar]
carrier_hz = 10e9
[code]
type = random
[publisher]
endpoint =
[detector]
max_echoes = 1
[echo]
noise_rms = 0.1
[target.1]
range_m = 4000
snr_db = $(awk -v n=$(($1 * $2)) 'BEGIN { print 40 - 10 * log(n) / log(10) }')
END
    conf=long
    period=$(($1 * $2))
    half=$(($3 / $2 / 2)) # Hz
    scene -s code.length=$period -s echo.periods=2 && search -s code.length=$period &&
        one=$(echoes "$work/out" '{ good++; sum += f("snr_db") } END { printf "%.3f", sum / good }')
    got=$?
    fast=$4
    set -- -s "code.length=$2" -s dwell.combine=doppler -s "dwell.periods=$1" \
        -s doppler.min_hz=-$half -s doppler.max_hz=$half -s "echo.periods=$((2 * $1))"
    for velocity in 0 "$fast" -"$fast"; do
        [ $got -eq 0 ] || break
        scene "$@" -s target.1.velocity_mps="$velocity" && search "$@" &&
            many=$(strongest "$velocity" 0.04) && within "$many" "$one" 0.3
        got=$?
    done
    report $got "$engine: the gain of one period of $period, over +-$half Hz"
    scene -s code.length=$period -s echo.periods=2 -s target.1.velocity_mps="$fast" &&
        search -s code.length=$period && nothing
    report $? "$engine: which the one period does not see"

    # In water the code is stretched by 44 samples a dwell at 1 m/s; reference with a short one.
    degree=13 periods=4 fast=1 half=160 by=0.001
    [ $engine != reference ] || { degree=8 && periods=16 && fast=3 && half=480 && by=0.01; }
    cat >"$work/sonar.conf" <<END
[source]
rate_hz = 48000
format = cf32
[code]
type = m-sequence
degree = $degree
[radar]
speed_mps = 1500
carrier_hz = 100e3
[dwell]
periods = $periods
combine = doppler
[doppler]
min_hz = -$half
max_hz = $half
[publisher]
endpoint =
[detector]
max_echoes = 1
[echo]
periods = $((3 * periods))
noise_rms = 0.1
[target.1]
range_m = 40
snr_db = $(awk -v degree=$degree -v k=$periods 'BEGIN { print 32 - 10 * log(k * (2 ^ degree - 1)) / log(10) }')
END
    conf=sonar

    scene && search && still=$(strongest 0 $by)
    got=$?
    for velocity in $fast -$fast; do
        [ $got -eq 0 ] || break
        scene -s target.1.velocity_mps="$velocity" && search &&
            moving=$(strongest "$velocity" $by) &&
            within "$moving" "$still" 0.5
        got=$?
    done
    report $got "$engine: a sonar's code, stretched by the target, is found whole"
    search -s radar.carrier_hz=0 && nothing
    report $? "$engine: and lost without the stretched hypotheses"
    search -s detector.subtract=1 && moving=$(strongest "-$fast" $by) &&
        within "$moving" "$still" 0.5
    report $? "$engine: it walks too far to be subtracted, and stays"
    if [ $engine = cpu ]; then
        # Half-way between two rows, each stretched for itself.
        scene -s target.1.velocity_mps=1.0055 && search && moving=$(strongest 1.0055 0.002) &&
            within "$moving" "$still" 0.7
        report $? "$engine: half-way between two rows less than 0.7 dB is lost"
    fi
done

# The loss is stated: 1500 m/s / (2 * 2 * 4 * 8191).
conf=sonar
"$plan" -c "$work/sonar.conf" -s engine.name=reference -s code.degree=13 -s dwell.periods=4 --json >"$work/out" 2>"$work/err" &&
    within "$(value half_sample_mps)" 0.011445 1e-6 && [ "$(value resampled)" = yes ] &&
    "$plan" -c "$work/sonar.conf" -s engine.name=reference -s radar.carrier_hz=0 --json \
        >"$work/out" 2>"$work/err" && [ "$(value resampled)" != yes ]
report $? "pnradar-plan says when the code is stretched, and whether it is resampled"
plan
