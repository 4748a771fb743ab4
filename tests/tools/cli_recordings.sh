#!/bin/sh
# SPDX-License-Identifier: MIT
# Recordings made by others, whose truth is known, on every engine here: delays with the frequency
# given, then delay and Doppler with no hint but the code.
# usage: cli_recordings.sh BIN_FOLDER; prints TAP. The recordings are not part of the project:
# without them it skips.
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/tap.sh"
data=$here/../../../shared/data

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

# seen NUMBER FROM TO DOPPLER BY: a code's one echo has this delay in samples, Doppler +-BY, an SNR
# of 12 to 55 dB, its sigmas, and a C/N0 of 40 to 80 dB Hz
seen() {
    echoes "$work/out" '
        f("code") != '"$1"' { next }
        f("delay_samples") < '"$2"' || f("delay_samples") > '"$3"' { bad++ }
        f("doppler_hz") < '"$4 - $5"' || f("doppler_hz") > '"$4 + $5"' { bad++ }
        f("cn0_dbhz") < 40 || f("cn0_dbhz") > 80 { bad++ }
        f("snr_db") < 12 || f("snr_db") > 55 { bad++ }
        f("delay_sigma_s") * 4e6 < 1e-4 || f("delay_sigma_s") * 4e6 > 0.1 { bad++ }
        f("doppler_sigma_hz") < 0.5 || f("doppler_sigma_hz") > 60 { bad++ }
        { good++ }
        END { if (good != 1) bad++ }'
}

# only COUNT: one result with so many echoes
only() {
    [ "$(wc -l <"$work/out")" -eq $(($1 + 1)) ] && [ "$(cut -d, -f1 "$work/out" | uniq | wc -l)" -eq 2 ]
}

# run ENGINE FILE SETTING...: csv in $work/out
run() {
    named=$1
    file=$2
    shift 2
    "$pnradar" -s "engine.name=$named" -s source.format=cf32 -s publisher.endpoint= -s engine.batch=4 \
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
    if ! works "$engine"; then
        skip "$engine: recordings" "this engine is not here"
        continue
    fi
    if [ ! -r "$zadoff_chu" ] || [ ! -r "$prn1" ] || [ ! -r "$capture" ]; then
        skip "$engine: recordings" "the recordings are not here"
        continue
    fi
    run $engine "$zadoff_chu" -s source.rate_hz=1e6 -s code.type=file \
        -s "code.path=$work/zadoff_chu.ci16" && found 3 251.5 252.5
    report $? "$engine: Zadoff-Chu at lag 252 in three periods"

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

    # reference takes N^2 operations a row: a narrow range of one code. The others +-14 kHz.
    set -- -s source.rate_hz=4e6 -s code.type=gps-l1ca -s code.chip_rate_hz=1.023e6 -s detector.pfa=1e-6
    wide="-s doppler.min_hz=-14e3 -s doppler.max_hz=14e3"
    narrow="-s doppler.min_hz=1500 -s doppler.max_hz=2000"
    [ $engine = reference ] || narrow=$wide
    # shellcheck disable=SC2086 # the options are meant to be split
    run $engine "$prn1" "$@" $narrow -s code.prn=1 -s dwell.periods=2 -s dwell.combine=incoherent \
        -s detector.max_echoes=1 && only 1 && seen 1 523 524 1680 20
    report $? "$engine: GPS PRN 1, Doppler searched"
    if [ $engine = reference ]; then
        run $engine "$capture" "$@" -s code.1.prn=29 -s code.2.prn=3 -s dwell.periods=4 \
            -s dwell.combine=incoherent -s doppler.min_hz=9500 -s doppler.max_hz=10000 &&
            only 1 && seen 1 3704 3706 9750 125
        report $? "$engine: Castelldefels, PRN 29 and not 3, over 500 Hz"
        continue
    fi

    # One by one, added incoherently. Without Doppler's help PRN 4 is not there.
    # shellcheck disable=SC2086
    set -- "$@" $wide -s dwell.periods=4
    while read -r prn delay doppler; do
        run $engine "$capture" "$@" -s "code.prn=$prn" -s dwell.combine=incoherent \
            -s detector.max_echoes=1 && only 1 &&
            seen 1 $((delay - 1)) $((delay + 1)) "$doppler" 125
        bad=$?
        [ $bad -eq 0 ] || break
    done <<'END'
29 3705 9750
25 686 9000
31 1949 11750
12 510 7250
END
    report "$bad" "$engine: Castelldefels over +-14 kHz: each satellite, alone"
    run $engine "$capture" "$@" -s code.prn=4 -s dwell.combine=incoherent && nothing 1
    report $? "$engine: Castelldefels over +-14 kHz: no PRN 4"

    # All in one search. Alone, the code of PRN 3 correlates with the satellites that are there: 0.04 dB
    # above the threshold, and 2.5 dB less once they are taken out of the samples.
    set -- "$@" -s code.1.prn=29 -s code.2.prn=25 -s code.3.prn=31 -s code.4.prn=12 -s code.5.prn=3 \
        -s code.6.prn=4
    for how in incoherent "doppler -s detector.subtract=3"; do
        # shellcheck disable=SC2086
        run $engine "$capture" "$@" -s dwell.combine=$how && only 4 &&
            seen 1 3704 3706 9750 125 && seen 2 685 687 9000 125 &&
            seen 3 1948 1950 11750 125 && seen 4 509 511 7250 125
        report $? "$engine: Castelldefels over +-14 kHz, six codes, $how: 29, 25, 31, 12, no 3, no 4"
    done
done
plan
