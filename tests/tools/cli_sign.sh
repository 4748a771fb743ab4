#!/bin/sh
# SPDX-License-Identifier: MIT
# Data bits within looks: one echo for each, at its Doppler, and flagged. Scenes of the generator, and
# streams that numpy makes.
# usage: cli_sign.sh BIN_FOLDER; prints TAP.
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/tap.sh"

cat >"$work/gps.conf" <<'END'
[source]
rate_hz = 2.046e6
format = cf32
[code]
type = gps-l1ca
prn = 7
chip_rate_hz = 1.023e6
[radar]
path = one-way
carrier_hz = 1575.42e6
[dwell]
periods = 10
combine = doppler
[doppler]
min_hz = -1000
max_hz = 1000
step = whole
[detector]
pfa = 1e-6
[engine]
name = cpu
[publisher]
endpoint =
[echo]
periods = 607
noise_rms = 1
[target.1]
range_m = 123456
velocity_mps = 70
snr_db = -17
data_bit_periods = 20
END

# search SETTING...: csv of the scene's 60 looks from period 7 on in $work/out, what is logged in $work/err
search() {
    for one; do
        shift
        set -- "$@" -s "$one"
    done
    PNR_LOG=info "$pnradar" -c "$work/gps.conf" "$@" --print csv "$work/late.cf32" >"$work/out" 2>"$work/err"
}

"$bin/pnradar-echo" -c "$work/gps.conf" "$work/scene.cf32" 2>"$work/err" &&
    tail -c +$((7 * 2046 * 8 + 1)) "$work/scene.cf32" >"$work/late.cf32"
report $? "a scene whose bits do not begin with a look"

# 26.1 dB in a look, 367.86 Hz; half of the looks hold the beginning of a bit, half of those a change
search && echoes "$work/out" '
    f("echo") != "1" { bad++ }
    (f("doppler_hz") - 367.86) ^ 2 > 25 * f("doppler_sigma_hz") ^ 2 { bad++ }
    f("snr_db") < 23 || f("snr_db") > 29 || f("cn0_dbhz") < 43 || f("cn0_dbhz") > 49 { bad++ }
    { flagged += f("flags") ~ /sign-change/; good++ }
    END { if (good != 60 || flagged < 8 || flagged > 24) bad++ }' && ! says 'code.bits' >"$work/said"
report $? "one echo in every look, at its Doppler, with its SNR"

search code.bits=0 && echoes "$work/out" '
    { good++; off += f("doppler_hz") < 340 || f("doppler_hz") > 395; flagged += f("flags") ~ /sign-change/ }
    END { if (off < 8 || flagged) bad++ }'
report $? "code.bits = 0: lobes"

for how in "dwell.combine=coherent doppler.min_hz=0 doppler.max_hz=0" dwell.periods=50 detector.subtract=1; do
    # shellcheck disable=SC2086 # a list of settings
    search $how && says 'may change every 20 periods (code.bits)'
    report $? "$how: it is warned of"
done
search dwell.combine=incoherent && ! says 'code.bits' >"$work/said"
report $? "powers do not mind"

find_python numpy
PNR_LOG=info
judged "sign changes" sign_numpy.py "$bin" "$work"
plan
