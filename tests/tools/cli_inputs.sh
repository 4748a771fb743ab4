#!/bin/sh
# SPDX-License-Identifier: MIT
# Inputs that describe themselves: sound files bring rate and format, codes come from text and numpy files;
# and the m-sequence is the one of the manual.
# usage: cli_inputs.sh BIN_FOLDER; prints TAP.
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/tap.sh"
find_python numpy
if [ -z "$python" ]; then
    skip "sound files, codes from files, m-sequences" "no Python with numpy"
    plan
    exit
fi
inputs() { # WHAT ARGUMENT...
    what=$1
    shift
    "$python" "$here/inputs_numpy.py" "$what" "$work" "$@" >"$work/out" 2>"$work/err"
}

# --- sound files ---

sonar_station >"$work/sonar.conf"
cat >"$work/scene.conf" <<END
[source]
rate_hz = 96000
[code]
chip_rate_hz = 48e3
degree = 7
[radar]
speed_mps = 1500
[echo]
periods = 64
noise_rms = 0.02
[target.1]
range_m = 0.789
amplitude = 0.1
END
# near FILE: eight results, each with its strongest echo at the target
near() {
    echoes "$1" 'f("echo") == 1 { if (f("range_m") > 0.779 && f("range_m") < 0.799) good++; else bad++ }
        END { if (good != 8) bad++ }'
}
real="-s source.tune_hz=24e3 -s code.chip_rate_hz=24e3 -s code.degree=6"

# shellcheck disable=SC2086 # a list of options
"$bin/pnradar-echo" -c "$work/scene.conf" "$work/iq.ci16" 2>"$work/err" &&
    "$bin/pnradar-echo" -c "$work/scene.conf" $real "$work/real.i16" 2>>"$work/err" && inputs sound
report $? "recordings as WAV and AIFF"
PNR_LOG=info status 0 "$pnradar" -c "$work/sonar.conf" --print csv "$work/iq.wav" && near "$work/out" &&
    says 'source: WAV 16 bits as ci16, 2 channels as I and Q, 96000 Hz' &&
    mv "$work/out" "$work/csv" && status 0 "$pnradar" -c "$work/sonar.conf" --print csv "$work/iq.aiff" &&
    cut -d, -f1-11,13- "$work/csv" >"$work/a" && cut -d, -f1-11,13- "$work/out" | cmp -s - "$work/a"
report $? "stereo is I and Q, without any key for rate or format"
# shellcheck disable=SC2086 # a list of options
PNR_LOG=info status 0 "$pnradar" -c "$work/sonar.conf" $real --print csv "$work/real.wav" && near "$work/out" &&
    says 'source: WAV 16 bits as i16, 1 channel of real samples, 96000 Hz'
report $? "mono is real samples"
# silent ARGUMENT...: the run has no warning about the carrier
silent() {
    PNR_LOG=info status 0 "$pnradar" -c "$work/sonar.conf" "$@" && ! says 'echo fades' >/dev/null
}
# shellcheck disable=SC2086
PNR_LOG=info status 0 "$pnradar" -c "$work/sonar.conf" $real -s source.tune_hz=0 "$work/real.wav" &&
    says 'warning: source.tune_hz = 0 and real samples: m-sequence .* set source.tune_hz to the carrier' &&
    silent $real "$work/real.wav" && silent "$work/iq.wav" &&
    silent $real -s source.tune_hz=0 -s code.tune_hz=24e3 "$work/real.wav" &&
    "$python" -c "print('1\\n-1\\n' * 63)" | grep . >"$work/carrier.txt" &&
    silent $real -s source.tune_hz=0 -s code.type=file -s "code.path=$work/carrier.txt" \
        -s code.chip_rate_hz=96e3 "$work/real.wav"
report $? "a code around 0 Hz in real samples is a warning, one with a carrier is none"
# shellcheck disable=SC2086
PNR_LOG=info status 0 "$pnradar" -c "$work/sonar.conf" $real -s source.layout=channels -s source.channel=1 --print csv \
    "$work/both.wav" && near "$work/out" && says ', 2 channels of real samples, 96000 Hz'
report $? "the second of two real channels"
status 78 "$pnradar" -c "$work/sonar.conf" -s source.rate_hz=48k "$work/iq.wav" && says '96000 Hz' && says '48000 Hz' &&
    says 'leave source.rate_hz out' && status 0 "$pnradar" -c "$work/sonar.conf" -s source.rate_hz=96k "$work/iq.wav"
report $? "another rate is refused with both"
status 78 "$pnradar" -c "$work/sonar.conf" "$work/iq.ci16" && says 'source.rate_hz is not given' && says 'sound file' &&
    mkfifo "$work/fifo.wav" && status 78 "$pnradar" -c "$work/sonar.conf" "$work/fifo.wav" && says 'rate_hz is not given' &&
    status 66 "$pnradar" -c "$work/sonar.conf" -s source.rate_hz=96k "$work/none.wav" && says 'none.wav: No such file'
report $? "raw samples, a FIFO and no file have no rate"
status 0 "$bin/pnradar-plan" -c "$work/sonar.conf" -s "source.input=$work/iq.wav" && grep -q 'sample rate  *96 kHz' "$work/out"
report $? "pnradar-plan takes the rate of source.input"
status 0 "$pnradar" -c "$work/sonar.conf" -s "source.input=$work/iq.wav" --list-engines &&
    grep -q 'would take' "$work/out"
report $? "--list-engines takes it, too"

# --- packed samples ---

for format in ci4 cf64; do
    "$bin/pnradar-echo" -c "$work/scene.conf" -s echo.noise_rms=0.5 -s target.1.amplitude=0.3 \
        -s source.format=$format "$work/$format" 2>"$work/err"
done
mv "$work/ci4" "$work/packed.ci4" && mv "$work/cf64" "$work/exact.cf64" && inputs packed
report $? "ci4: the generator's bytes are those that numpy packs"
status 0 "$pnradar" -c "$work/sonar.conf" -s source.rate_hz=96k --print csv "$work/packed.ci4" && near "$work/out" &&
    mv "$work/out" "$work/csv" && status 0 "$pnradar" -c "$work/sonar.conf" -s source.rate_hz=96k --print csv \
        "$work/unpacked.ci8" && cut -d, -f1-11,13- "$work/csv" >"$work/a" && cut -d, -f1-11,13- "$work/out" | cmp - "$work/a"
report $? "ci4: the results are those of the same samples in ci8"

# --- codes from files ---

inputs codes
report $? "codes as text and numpy files"
set -- -s source.rate_hz=1e6 -s code.type=file -s publisher.endpoint=
for kind in real complex; do
    first=''
    good=0
    for file in "$work/$kind"-*; do
        [ -n "$first" ] || "$bin/pnradar-echo" "$@" -s "code.path=$file" -s echo.periods=4 -s target.1.range_m=5000 \
            -s target.1.amplitude=0.1 "$work/$kind.cf32" 2>"$work/err" || good=1
        status 0 "$pnradar" "$@" -s "code.path=$file" --print csv "$work/$kind.cf32" || good=1
        echoes "$work/out" 'f("echo") == 1 && f("range_m") > 4950 && f("range_m") < 5050 { good++ }' || good=1
        first=${first:-$file}
    done
    report $good "$kind chips in every form"
done
printf '1\n-1\n+1-\n1\n' >"$work/wrong.txt"
status 65 "$pnradar" "$@" -s "code.path=$work/wrong.txt" "$work/real.cf32" && says 'wrong.txt:3: "+1-"'
report $? "a wrong line is refused with its number and text"
printf '1\n0\n0\n1\n1\n' >"$work/bits.txt"
PNR_LOG=info status 0 "$pnradar" "$@" -s "code.path=$work/bits.txt" "$work/real.cf32" && says 'chips of 0 and 1 are taken as off and on'
report $? "bits in a code file are noticed"

# --- the m-sequence of the manual ---

# mls DEGREE TAPS STATE: the waveform of this m-sequence is that of the register in numpy
mls() {
    "$bin/pnradar-echo" --transmit -s source.rate_hz=1e6 -s code.degree="$1" -s code.taps="$2" -s code.state="$3" \
        -s echo.periods=1 "$work/transmit.cf32" 2>"$work/err" && inputs m-sequence "$1" "$2" "$3"
}
mls 3 3,2 111 && mls 5 5,2 00001 && mls 8 8,7,2,1 10110010 && mls 10 10,3 1111111111 && mls 11 11,2 10000000000
report $? "m-sequences are those of the register"
if grep -q 'no scipy' "$work/out"; then
    skip "m-sequences are those of scipy" "no scipy"
else
    report 0 "m-sequences are those of scipy"
fi
plan
