#!/bin/sh
# SPDX-License-Identifier: MIT
# The promises of detection and estimation, from samples to results on every engine here: weak near
# strong, clutter's edge, lost samples, the direct path, and the published map cell by cell.
# usage: cli_detection.sh BIN_FOLDER; prints TAP.
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/tap.sh"
echo_=$bin/pnradar-echo

# search CONF FILE SETTING...: csv of $engine in $work/out
search() {
    conf=$1
    file=$2
    shift 2
    "$pnradar" -c "$work/$conf.conf" -s "engine.name=$engine" -s engine.batch=64 "$@" --print csv \
        "$work/$file" >"$work/out" 2>"$work/err"
}

# --- scenes ---

# Random phases: their sidelobes are 30 dB below the strong echo, the weak one is 45.
cat >"$work/clean.conf" <<'END'
[source]
rate_hz = 1e6
format = cf32
[code]
type = random
length = 1000
[publisher]
endpoint =
[detector]
max_echoes = 4
[echo]
periods = 20
noise_rms = 0.01
[target.1]
range_m = 30037.5
amplitude = 0.56
[target.2]
range_m = 45000
amplitude = 0.00315
END
"$echo_" -c "$work/clean.conf" "$work/clean.cf32" 2>/dev/null || echo "not ok 0 - a scene"

# Clutter of 130 points from lag 40 on, 20 dB above the noise, whose phases turn from dwell to dwell.
awk 'BEGIN {
    srand(7)
    print "[source]\nrate_hz = 1e6\nformat = cf32\n[code]\ntype = m-sequence\ndegree = 7"
    print "[radar]\ncarrier_hz = 10e9\n[publisher]\nendpoint =\n[echo]\nperiods = 1500\nnoise_rms = 0.1"
    for (i = 1; i <= 130; i++)
        printf "[target.%d]\nrange_m = %.3f\nvelocity_mps = %.3f\namplitude = 0.0397\nphase_rad = %.4f\n",
            i, 149.896 * (40 + (i - rand()) / 5), 60 * rand() - 30, 6.2832 * rand()
}' >"$work/edge.conf"
"$echo_" -c "$work/edge.conf" "$work/edge.cf32" 2>/dev/null || echo "not ok 0 - a scene"

# A tenth of every period lost: left out by the recorder, or what was there before still in its place.
cat >"$work/lost.conf" <<'END'
[source]
rate_hz = 1e6
format = cf32
[code]
type = m-sequence
degree = 10
[publisher]
endpoint =
[detector]
max_echoes = 1
[echo]
periods = 200
noise_rms = 0.1
[target.1]
range_m = 30037.5
snr_db = 0
END
runs=$(awk 'BEGIN { for (p = 0; p < 200; p++) printf "%s%d+102", p ? "," : "", p * 1023 + p * 367 % 900 }')
"$echo_" -c "$work/lost.conf" "$work/whole.cf32" 2>/dev/null &&
    "$echo_" -c "$work/lost.conf" -s "source.lost=$runs" "$work/lost.cf32" 2>/dev/null &&
    cp "$work/whole.cf32" "$work/stale.cf32" || echo "not ok 0 - a scene"
for run in $(echo "$runs" | tr ',' ' '); do
    first=${run%+*}
    dd if="$work/whole.cf32" bs=8 skip=$(((first + 600) % 204000)) count=102 2>/dev/null |
        dd of="$work/stale.cf32" bs=8 seek="$first" conv=notrunc 2>/dev/null
done

# Three samples of drift; target and direct path 47 dB after correlation.
cat >"$work/zero.conf" <<'END'
[source]
rate_hz = 1e6
format = cf32
[code]
type = m-sequence
degree = 7
[radar]
zero = direct-path
zero_delay_s = 3.3e-6
zero_search_m = 1500
min_range_m = 3000
max_range_m = 12000
[publisher]
endpoint =
[echo]
periods = 600
leak_amplitude = 0.1
noise_rms = 0.005
clock_ppm = 39.37
[target.1]
range_m = 6000
amplitude = 0.1
END
"$echo_" -c "$work/zero.conf" "$work/zero.cf32" 2>/dev/null || echo "not ok 0 - a scene"

cat >"$work/map.conf" <<'END'
[source]
rate_hz = 1e6
format = ci16
[code]
type = m-sequence
degree = 10
taps = 10,7
[window]
correlation = linear
[radar]
carrier_hz = 1e9
max_range_m = 40e3
[dwell]
combine = doppler
periods = 16
looks = 31
[doppler]
min_hz = -700
max_hz = 500
[publisher]
profile = power
wait_s = 30
[echo]
periods = 498
noise_rms = 0.1
[target.1]
range_m = 18000
velocity_mps = -63
snr_db = -28
END
"$echo_" -c "$work/map.conf" "$work/map.ci16" 2>/dev/null || echo "not ok 0 - a scene"

# --- what is measured ---

# false_alarms CFAR: how many times as many cells are above in the first seven of the clutter as asked
false_alarms() {
    search edge edge.cf32 -s radar.min_range_m=6070 -s radar.max_range_m=7105 -s "detector.cfar=$1" \
        -s detector.cfar_training=16 -s detector.pfa=0.007 &&
        awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
            $at["seq"] != last { last = $at["seq"]; n++; above += $at["cells_above"] }
            { pfa = $at["pfa_cell"] }
            END { printf "%.2f", above / n / 7 / pfa }' "$work/out"
}

# mean COLUMN: over the results, of SNR that of the power
mean() {
    awk -F, -v what="$1" 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        $at["echo"] == "1" { n++; sum += what == "snr_db" ? 10 ^ ($at[what] / 10) : $at[what] }
        END { printf "%.6f", what == "snr_db" ? 10 * log(sum / n) / log(10) : sum / n }' "$work/out"
}

# holds EXPRESSION: of awk
holds() {
    awk "BEGIN { exit !($1) }" || { echo "# not so: $1" && false; }
}

find_python numpy, zmq

for engine in reference cpu cuda; do
    if ! works $engine; then
        skip "$engine: detection" "this engine is not here"
        continue
    fi

    search clean clean.cf32 && ! echoes "$work/out" '{ good += f("range_m") > 40000 }' &&
        search clean clean.cf32 -s detector.subtract=2 && echoes "$work/out" '
            f("echo") == "1" && f("range_m") - 30037.5 < 0.3 && 30037.5 - f("range_m") < 0.3 { good++; next }
            f("echo") == "2" && f("range_m") - 45000 < 40 && 45000 - f("range_m") < 40 &&
                f("snr_db") > 15 && f("snr_db") < 24 { good++; next }
            { bad++ }
            END { if (good != 40) bad++ }'
    report $? "$engine: 45 dB below a strong echo: found once that is subtracted, and nothing else"

    ca=$(false_alarms ca) && go=$(false_alarms go) && holds "$ca > 12 && $go <= 10 && $go > 0.3"
    report $? "$engine: false alarms where clutter begins: ca $ca times those asked for, go $go"

    search lost whole.cf32 && whole=$(mean snr_db) &&
        search lost lost.cf32 -s "source.lost=$runs" && lost=$(mean snr_db) &&
        range=$(mean range_m) && [ "$(mean lost)" = 102.000000 ] &&
        echoes "$work/out" '{ good++; bad += f("flags") != "lost" }' &&
        holds "$whole - $lost > 0.36 && $whole - $lost < 0.56" &&
        holds "($range - 30037.5) ^ 2 < 0.75 ^ 2" # 0.005 samples, 5 sigma
    report $? "$engine: a tenth of the samples lost costs 0.46 dB, and no bias"
    search lost stale.cf32 && stale=$(mean snr_db) && holds "$whole - $stale > 0.8"
    report $? "$engine: left in place as stale data it costs more"

    search zero zero.cf32 -s radar.zero_alarm_m=300 -s "radar.zero_state_path=$work/state" &&
        range=$(mean range_m) && holds "($range - 6000) ^ 2 < 1.5 ^ 2" && # 0.01 samples
        awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
            $at["flags"] ~ /zero-alarm/ && !first { first = $at["seq"] }
            { held += $at["zero_held_s"] != 0; moved = $at["zero_moved_s"] }
            END { exit !(first > 380 && first < 420 && !held && moved > 2.9e-6 && moved < 3.1e-6) }' \
            "$work/out"
    report $? "$engine: a direct path that drifts three samples: no bias, and an alarm after two"
    # The end of the last run. A range fixed at the start is off by as much.
    search zero zero.cf32 -s radar.zero=fixed && [ -s "$work/state" ] && range=$(mean range_m) &&
        holds "$range - 6000 > 200 && $range - 6000 < 250"
    report $? "$engine: with a fixed zero its ranges are off by half of the drift"
    rm -f "$work/state"

    if [ -z "$python" ]; then
        skip "$engine: the published map" "no python3 with numpy and zmq"
        continue
    fi
    "$python" "$here/map_message.py" "ipc://$work/map" "$work/map.ci16" 10 10,7 16 31 >"$work/said" \
        2>"$work/err" &
    subscriber=$!
    search map map.ci16 -s "publisher.endpoint=ipc://$work/map" -s engine.batch=1
    wait $subscriber
    got=$?
    sed 's/^/# /' "$work/said"
    report $got "$engine: 31 looks of 16 periods, linear: the published map is numpy's within 1e-5"
done
plan
