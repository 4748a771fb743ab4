#!/bin/sh
# SPDX-License-Identifier: MIT
# A whole sonar on a sound card that ALSA's file device makes: what it plays goes through the air of sonar_numpy.py, or of
# pnradar-echo, back to its microphone. The card ends its run where ALSA_FAULT (tests/fixture/alsa_fault.c) says.
# usage: cli_sonar.sh BIN_FOLDER; prints TAP.
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/tap.sh"
find_python numpy
modules=$bin/../tests/alsa
if [ -z "$python" ] || [ ! -e "$modules/source-alsa.so" ]; then
    skip "a sonar on a sound card" "no Python with numpy, or built without ALSA"
    plan
    exit
fi
conf=$here/../../config/sonar.conf
export PNR_MODULE_PATH="$modules" ALSA_CONFIG_PATH="$work/devices" PNR_LOG=info
cat >"$work/devices" <<END
pcm.null { type null }
pcm.mic { type file slave.pcm null file /dev/null infile "$work/got" format raw }
pcm.speaker { type file slave.pcm null file "$work/sent" truncate true format raw }
pcm.hw { @args [ CARD ] @args.CARD { type string } type asym playback.pcm speaker capture.pcm both }
pcm.both { type file slave.pcm null file /dev/null infile "$work/both" format raw }
pcm.loop { type route slave { pcm both channels 2 } ttable { 0.0 0.9 0.1 0.1 } }
END
head -c 96000 /dev/zero >"$work/got"

# sonar STOPS ARGUMENT... INPUT: the sonar until the card goes; csv in $work/csv, the log in $work/err
sonar() {
    ALSA_FAULT=$1
    export ALSA_FAULT
    shift
    rm -f "$work/sent"
    "$pnradar" -c "$conf" -s ring.seconds=30 -s publisher.endpoint= --print csv "$@" \
        >"$work/csv" 2>"$work/err" </dev/null
    [ $? -eq 74 ] && says 'the device went away'
}
air() {
    "$python" "$here/sonar_numpy.py" "$@" >"$work/out" 2>&1
}
# at RANGE: each result has an echo there within 1 mm, of 29 to 31 dB where no sample is lost
at() {
    echoes "$work/csv" '{ if (f("echo") != 1) next
        error = f("range_m") - '"$1"'
        if (error < 0.001 && error > -0.001 && (f("lost") > 0 || f("snr_db") > 29 && f("snr_db") < 31)) good++; else bad++ }'
}

# --- the waveform ---

passed=0
while read -r form channels channel settings; do
    # shellcheck disable=SC2086 # a list of options
    ALSA_FORMAT=$form sonar "20000 gone 0" -s source.format=auto -s transmit.output=alsa:speaker $settings alsa:mic &&
        says "transmit: alsa:speaker, $form, channels: $channels," && says 'do not start together' &&
        air waveform "$work/sent" "$form" "$channels" "$channel" && passed=$((passed + 1))
done <<END
FLOAT_LE 1 0
S32_LE 1 -1 -s transmit.channel=-1
S24_LE 1 0
S24_3LE 3 2 -s transmit.channel=2
S16_LE 2 1 -s transmit.channel=1
END
[ $passed -eq 5 ]
report $? "every format and channel plays the waveform that numpy computes"

# --- the whole sonar ---

export ALSA_FORMAT=S16_LE
sonar "613200 gone 0" -s transmit.output=alsa:speaker alsa:mic &&
    air waveform "$work/sent" S16_LE 1 0 && mv "$work/sent" "$work/played" && air echo "$work/played" "$work/got" 3.2107 0.104 &&
    sonar "600000 gone 0" -s transmit.output=alsa:speaker alsa:mic && at 3.2107 &&
    says 'loss_visibility: exact' && says '600000 samples = '
report $? "what it plays, delayed by numpy, is at its range to 1 mm at 30 dB"

"$bin/pnradar-echo" -c "$conf" -s echo.leak_amplitude=0 -s target.1.range_m=3.2107 -s target.1.amplitude=0.1 \
    -s target.2.amplitude=1e-9 -s echo.periods=100 -s echo.noise_rms=0.171 "$work/echo.i16" 2>"$work/err" &&
    mv "$work/echo.i16" "$work/got" && sonar "600000 gone 0" alsa:mic && at 3.2107
report $? "an echo of pnradar-echo is at its range to 1 mm at 30 dB"

# --- a card that stops ---

air echo "$work/played" "$work/got" 3.2107 0.104 &&
    ALSA_LINKED=1 sonar "100000 xrun 4801, 300000 suspend 777, 600000 gone 0" -s transmit.output=alsa:speaker alsa:mic &&
    at 3.2107 && ! grep -q 'do not start together' "$work/err" && says '600000 samples = .* + 17578 lost source' &&
    says 'samples came faster than they were read at sample 100000' && says 'the machine slept at sample 300000' &&
    air resumed "$work/sent" 100000:4801 300000:777
report $? "overruns are gaps of 4801 and 777 samples and the silence; ranges stay, and the code goes on in its place"

ALSA_LINKED=1 sonar "400000 empty 1000, 600000 gone 0" -s transmit.output=alsa:speaker alsa:mic &&
    at 3.2107 && says 'the transmitter ran empty at sample 400000' && says ' 7000 lost source'
report $? "an underrun of the loudspeaker is counted, and ranges stay"

ALSA_LINKED=1 sonar "300000 drop 20000, 600000 gone 0" -s transmit.output=alsa:speaker alsa:mic &&
    at 3.2107 && says 'samples came faster than they were read at sample 300000' && says ' 26000 lost source'
report $? "samples that vanish without a stop are a gap, too"

# --- a cable on the second channel ---

# One dwell: behind other plugins ALSA's file device leaves frames out after its first buffer.
air echo "$work/played" "$work/both" 3.2107 0.104 61.37 &&
    sonar "7000 gone 0" -s transmit.output=alsa:speaker -s transmit.channel=-1 -s radar.zero=direct-path \
        -s radar.zero_search_m=0.5 alsa:loop &&
    echoes "$work/csv" '{ error = f("range_m") - 3.2107; zero = f("zero_delay_s") * 48000 - 61.37
        if (error < 0.001 && error > -0.001 && zero < 0.1 && zero > -0.1) good++; else bad++ }'
report $? "with a cable as the direct path, the delay of the card leaves the range"

# The commands in the first lines of the configuration, and in README.md: one without the cable, whose 61.37 samples are
# 0.219 m.
mkdir "$work/bin"
printf '#!/bin/sh\nexec "%s" -s publisher.endpoint= -s ring.seconds=30 "$@"\n' "$pnradar" >"$work/bin/pnradar"
chmod +x "$work/bin/pnradar"
sed -e ':join' -e '/\\$/{N;s/ *\\\n# */ /;b join' -e '}' "$conf" |
    sed -n 's/^# *\(pnradar .* alsa:.*\)/\1/p' >"$work/commands"
sed -n 's/^\(pnradar .*\) alsa:hw:0$/\1 --print table alsa:hw:0/p' "$here/../../README.md" >>"$work/commands"
passed=0
while read -r command; do
    (cd "$here/../../config" && PATH=$work/bin:$PATH && export PATH && ALSA_FAULT="7000 gone 0" &&
        export ALSA_FAULT && eval "$(echo "$command" | sed 's|config/||')") >"$work/out" 2>"$work/err" </dev/null
    case $command in *loop*) grep -q ' 3[.]21' "$work/out" ;; *) grep -q ' 3[.]4[23]' "$work/out" ;; esac && passed=$((passed + 1))
done <"$work/commands"
[ "$passed" -eq 3 ]
report $? "the commands of sonar.conf and of README.md run as they are written"

# --- I and Q ---

sonar "20000 gone 0" -s source.format=ci16 -s source.tune_hz=-3000 -s transmit.output=alsa:speaker alsa:mic &&
    says 'transmit: alsa:speaker, S16_LE, channels: 2' && mv "$work/sent" "$work/played.ci16" &&
    "$bin/pnradar-echo" -c "$conf" --transmit -s source.format=ci16 -s source.tune_hz=-3000 -s echo.periods=5 \
        "$work/echo.ci16" 2>"$work/err" &&
    "$python" - "$work" <<'END' >"$work/out" 2>&1
import sys
import numpy as np

played, written = (np.fromfile(sys.argv[1] + name, "<i2").astype(float) for name in ("/played.ci16", "/echo.ci16"))
n = min(len(played), len(written))
gain = np.dot(played[:n], written[:n]) / np.dot(written[:n], written[:n])
assert n > 40000 and np.abs(played[:n] - gain * written[:n]).max() < 1, gain
END
report $? "a complex waveform plays as I and Q on two channels"

# --- a recording ---

"$pnradar" -c "$conf" -s transmit.output=alsa:speaker -s publisher.endpoint= "$work/got" -s source.format=i16 \
    2>"$work/err" >"$work/out" && says 'nothing is transmitted'
report $? "a recording is processed in silence, and the log says it"
plan
