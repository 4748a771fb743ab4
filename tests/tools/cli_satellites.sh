#!/bin/sh
# SPDX-License-Identifier: MIT
# Codes of satellites: recordings that numpy makes by registers of its own, found at their delay and by no
# other satellite's code.
# usage: cli_satellites.sh BIN_FOLDER; prints TAP.
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/tap.sh"

# only_at DELAY: csv with two results, each with one echo, of the first code, within half a sample of the delay
only_at() {
    awk -F, -v delay="$1" '
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        { off = $at["delay_samples"] - delay }
        $at["echo"] == "1" && $at["code"] == "1" && off > -0.5 && off < 0.5 { good++ }
        END { exit !(good == 2 && NR == 3) }' "$work/out"
}

# TYPE PRN COMPONENT SAMPLES_A_CHIP CHIP_RATE DELAY OTHER_PRN
cat >"$work/cases" <<END
gps-l1ca 120 data 4 1023000 5 121
gps-l1ca 202 data 4 1023000 4091 201
gps-l2c 193 data 2 1023000 30001 194
gps-l5 4 data 2 10230000 20001 5
gps-l5 4 pilot 2 10230000 333 3
glonass 1 data 8 511000 1001 -
bds-b1i 6 data 2 2046000 3001 7
bds-b1i 40 data 2 2046000 17 41
bds-b3i 63 data 1 10230000 9999 62
END
find_python numpy
if [ -n "$python" ]; then
    "$python" "$here/satellites_numpy.py" "$work" <"$work/cases" 2>"$work/err"
    report $? "numpy makes the recordings"
fi
while read -r type prn component samples rate delay other; do
    name="$type $prn $component at $delay samples"
    if [ -z "$python" ]; then
        skip "$name" "no python3 with numpy"
        continue
    fi
    set -- -s "code.type=$type" -s "code.component=$component" -s "code.chip_rate_hz=$rate" \
        -s "source.rate_hz=$((rate * samples))" -s "code.1.prn=$prn"
    [ "$other" = - ] || set -- "$@" -s "code.2.prn=$other"
    "$pnradar" -s engine.name=cpu -s publisher.endpoint= -s detector.pfa=1e-6 "$@" --print csv \
        "$work/$type-$prn-$component.cf32" >"$work/out" 2>"$work/err" </dev/null && only_at "$delay"
    report $? "$name"
done <"$work/cases"

# GLONASS in two channels of one recording: 1 at 562.5 kHz with a Doppler shift of 700 Hz, -7 at -3937.5 kHz
# with -900 Hz. Each code is tuned to a multiple of 1 kHz, 500 Hz from its channel.
name='two channels of GLONASS in one stream'
if [ -z "$python" ]; then
    skip "$name" "no python3 with numpy"
else
    "$python" -c '
import sys
import numpy as np
state, bits = [1] * 9, []
for _ in range(511):
    bits.append(state[6])
    state = [state[8] ^ state[4]] + state[:8]
code, n = np.repeat(1 - 2 * np.array(bits), 32), np.arange(2 * 16352)
channels = ((562500 + 700, 2002), (-3937500 - 900, 14155))
signal = sum(np.tile(np.roll(code, d), 2) * np.exp(2j * np.pi * f * n / 16.352e6) for f, d in channels)
noise = np.random.RandomState(1).normal(0, 4, (2, n.size))
(0.02 * (signal + noise[0] + 1j * noise[1])).astype(np.complex64).tofile(sys.argv[1])' \
        "$work/channels.cf32" 2>"$work/err"
    "$pnradar" -s engine.name=cpu -s publisher.endpoint= -s detector.pfa=1e-6 -s code.type=glonass \
        -s code.chip_rate_hz=511e3 -s source.rate_hz=16.352e6 -s code.1.tune_hz=562e3 -s code.2.tune_hz=-3937e3 \
        -s doppler.min_hz=-4e3 -s doppler.max_hz=4e3 --print csv "$work/channels.cf32" \
        >"$work/out" 2>"$work/err" &&
        awk -F, '
            function near(name, value, by) {
                return $at[name] > value - by && $at[name] < value + by
            }
            NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
            $at["code"] == 1 && near("delay_samples", 2002, 1) && near("doppler_hz", 1200, 80) { good++ }
            $at["code"] == 2 && near("delay_samples", 14155, 1) && near("doppler_hz", -1400, 80) { good++ }
            END { exit !(good == 4 && NR == 5) }' "$work/out"
    report $? "$name"
fi
plan
