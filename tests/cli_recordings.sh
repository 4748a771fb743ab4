#!/bin/sh
# SPDX-License-Identifier: MIT
# Criterion 2: delays in recordings made by others, whose truth is known; on every engine here.
# usage: cli_recordings.sh BIN_FOLDER; prints TAP. The recordings are not part of the project:
# without them it skips.
set -u
pnradar=$1/pnradar
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

# found COUNT FROM TO: csv results, each with its strongest echo from FROM to TO samples of delay
found() {
    awk -F, -v wanted="$1" -v from="$2" -v to="$3" '
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        $at["echo"] + 0 <= 1 { results++ } # 1, or empty when there is none
        $at["echo"] == "1" && $at["delay_samples"] >= from && $at["delay_samples"] <= to { good++ }
        END { exit !(results == wanted && good == wanted) }' "$work/out"
}

# nothing COUNT: csv results without any echo
nothing() {
    awk -F, -v wanted="$1" '
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        { results++ }
        $at["echo"] != "" || $at["sample"] == "" { bad++ }
        END { exit !(results == wanted && bad == 0) }' "$work/out"
}

# run ENGINE FILE SETTING...: csv in $work/out
run() {
    named=$1
    file=$2
    shift 2
    "$pnradar" -s "engine.name=$named" -s source.format=cf32 -s publisher.endpoint= \
        -s radar.path=one-way "$@" --print csv "$file" >"$work/out" 2>"$work/err" ||
        { sed 's/^/# /' "$work/err"; false; }
}

# The transmitter's code, exp(j pi 7 (m^2/255 + m)), m = 1..255, as 16-bit I, Q.
escapes=$(awk 'function part(value) {
        value = int(value * 32000 + 32768.5) - 32768
        if (value < 0)
            value += 65536
        printf "\\%03o\\%03o", value % 256, int(value / 256)
    }
    BEGIN {
        for (m = 1; m <= 255; m++) {
            turns = (7 * m * m) % 510 + 7 * m * 255
            angle = atan2(0, -1) * (turns % 510) / 255
            part(cos(angle))
            part(sin(angle))
        }
    }')
# shellcheck disable=SC2059 # the escapes are the format
printf "$escapes" >"$work/zadoff_chu.ci16"

zadoff_chu=$data/zadoff_chu_255_q7.cf32
prn1=$data/gps_l1_ca_prn1_4Msps.cf32
capture=$data/gps_l1_ca_cttc_4Msps.cf32

for engine in reference cpu cuda; do
    name="$engine: Zadoff-Chu at lag 252 in three periods"
    if ! "$pnradar" --list-engines | grep -q "^$engine *works"; then
        skip "$engine: four recordings" "this engine is not here"
        continue
    fi
    if [ ! -r "$zadoff_chu" ] || [ ! -r "$prn1" ] || [ ! -r "$capture" ]; then
        skip "$engine: four recordings" "the recordings are not here"
        continue
    fi
    run $engine "$zadoff_chu" -s source.rate_hz=1e6 -s code.type=file \
        -s "code.path=$work/zadoff_chu.ci16" && found 3 251.5 252.5
    report $? "$name"

    set -- -s source.rate_hz=4e6 -s code.type=gps-l1ca -s code.chip_rate_hz=1.023e6
    run $engine "$prn1" "$@" -s code.prn=1 -s source.tune_hz=1680 && found 2 523 524
    report $? "$engine: GPS PRN 1 at 523 to 524 samples"

    set -- "$@" -s dwell.periods=4 -s dwell.combine=incoherent
    run $engine "$capture" "$@" -s code.prn=29 -s source.tune_hz=9750 && found 1 3704 3706
    report $? "$engine: Castelldefels, PRN 29 at 3705 samples"
    run $engine "$capture" "$@" -s code.prn=25 -s source.tune_hz=9000 && found 1 685 687
    report $? "$engine: Castelldefels, PRN 25 at 686 samples"
    # The code of a satellite that is not in the sky.
    run $engine "$capture" "$@" -s code.prn=1 -s source.tune_hz=9750 && nothing 1
    report $? "$engine: Castelldefels, PRN 1 is not there"
done
echo "1..$n"
