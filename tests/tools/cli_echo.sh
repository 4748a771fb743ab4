#!/bin/sh
# SPDX-License-Identifier: MIT
# Tests pnradar-echo: files, pipes, truth, losses, real time, and every kind of failure.
# usage: cli_echo.sh BIN_FOLDER; prints TAP.
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/tap.sh"
unset PNR_LOG
echo_=$bin/pnradar-echo

program() {
    "$echo_" -c "$work/scene.conf" "$@"
}

bytes() {
    wc -c <"$1" | tr -d ' '
}

cat >"$work/scene.conf" <<'END'
[source]
rate_hz = 1000000
format = ci16
[code]
type = m-sequence
degree = 10
[radar]
carrier_hz = 30e6
[echo]
periods = 10
noise_rms = 0.05
[target.1]
range_m = 30000
snr_db = -3
[target.2]
range_m = 60000
velocity_mps = 250
amplitude = 0.1
END

status 0 "$work/a.sc16" && [ "$(bytes "$work/a.sc16")" = 40920 ] &&
    says '10230 samples written, 0 clipped, 0 lost' && [ ! -s "$work/out" ]
report $? "a raw file has every sample, and the last line counts them"

status 0 "$work/b.sc16" && cmp -s "$work/a.sc16" "$work/b.sc16" &&
    status 0 -s source.chunk=77 "$work/b.sc16" && cmp -s "$work/a.sc16" "$work/b.sc16" &&
    status 0 -s echo.seed=2 "$work/b.sc16" && ! cmp -s "$work/a.sc16" "$work/b.sc16"
report $? "the same bits twice and in any chunks, others with another seed"

status 0 && cmp -s "$work/a.sc16" "$work/out" && status 0 - && cmp -s "$work/a.sc16" "$work/out"
report $? "standard output is the same stream"

status 0 --truth "$work/truth.csv" "$work/b.sc16" &&
    [ "$(head -n 1 "$work/truth.csv")" = \
        "period,sample,target,delay_samples,delay_s,range_m,velocity_mps,snr_db" ] &&
    awk -F, 'NR == 1 { next }
        { row = NR - 2; period = int(row / 2); target = row % 2 + 1
          time = (period * 1023 + 511) * 1e-6
          range = target == 1 ? 30000 : 60000 - 250 * time
          delay = 2 * range / 299792458 * 1e6
          snr = target == 1 ? -3 : 6.0206
          if ($1 != period || $2 != period * 1023 || $3 != target || NF != 8) bad = 1
          if (($4 - delay) ^ 2 > 1e-6 || ($5 * 1e6 - $4) ^ 2 > 1e-12) bad = 1
          if (($6 - range) ^ 2 > 0.01 || $7 != (target == 1 ? 0 : 250)) bad = 1
          if (($8 - snr) ^ 2 > 1e-6) bad = 1 }
        END { exit !(NR == 21 && !bad) }' "$work/truth.csv"
report $? "the truth of every target in every period"

status 0 --truth - "$work/b.sc16" && cmp -s "$work/truth.csv" "$work/out"
report $? "the truth on standard output"

status 0 -s code.epoch=1000 --truth "$work/truth.csv" "$work/b.sc16" &&
    [ "$(bytes "$work/b.sc16")" = $((4 * 11230)) ] &&
    sed -n 2p "$work/truth.csv" | grep -q '^0,1000,1,'
report $? "an epoch goes before the whole periods"

{ head -c 4000 "$work/a.sc16" && tail -c +6001 "$work/a.sc16"; } >"$work/cut.sc16"
status 0 -s source.lost=1000+500 "$work/b.sc16" && cmp -s "$work/cut.sc16" "$work/b.sc16" &&
    says '9730 samples written, 0 clipped, 500 lost' &&
    status 3 --strict -s source.lost=1000+500 "$work/b.sc16" &&
    cmp -s "$work/cut.sc16" "$work/b.sc16" &&
    status 0 --strict "$work/b.sc16"
report $? "planned losses are left out and counted; --strict ends with 3"

status 0 -s echo.bits=3 -s echo.noise_rms=1 -s source.format=cf64 "$work/b.cf64" &&
    says '[1-9][0-9]* clipped' &&
    od -An -v -t f8 -w8 "$work/b.cf64" | awk '
        { v[$1 * 4] = 1; if ($1 * 4 != int($1 * 4) || $1 < -1 || $1 > 0.75) bad = 1 }
        END { for (k in v) levels++; exit !(levels == 8 && !bad) }'
report $? "an ADC of 3 bits gives its 8 levels and counts what it clips"

status 0 --transmit -s echo.periods=2 "$work/t.sc16" && says 'scaled by 0.999' &&
    says ' 0 clipped' && od -An -v -t d2 -w4 "$work/t.sc16" | awk '
        { v[NR] = $1; sum += $1; if ($1 * $1 != 32735 ^ 2 || $2 != 0) bad = 1 }
        END { for (i = 1; i <= 1023; i++) if (v[i] != v[i + 1023]) bad = 1
              exit !(NR == 2046 && sum * sum == (2 * 32735) ^ 2 && !bad) }'
report $? "--transmit: the balanced code alone, period after period, scaled to fit"

status 0 --transmit -s echo.periods=1 -s source.format=cf32 "$work/t.cf32" &&
    ! says scaled >/dev/null && od -An -v -t f4 -w8 "$work/t.cf32" | awk '
        ($1 * $1 - 1) ^ 2 > 1e-9 { bad = 1 } END { exit !(NR == 1023 && !bad) }'
report $? "--transmit in floats has amplitude 1"

bad=0
for type in wav rf64 w64 au flac; do
    status 0 -s source.rate_hz=48000 "$work/s.$type" &&
        [ "$(bytes "$work/s.$type")" -gt 20000 ] || bad=1
done
report $bad "every sound file"

bad=0
echo precious >"$work/old.sc16"
status 64 -s echo.periods=0 "$work/old.sc16" || bad=1
status 64 --truth "$work/old.sc16" "$work/old.sc16" || bad=1
status 64 --truth "$work/truth.csv" --transmit "$work/old.sc16" || bad=1
status 64 --nonsense || bad=1
status 64 "$work/b.sc16" "$work/c.sc16" || bad=1
status 78 -s echo.noise=1 "$work/old.sc16" || bad=1
status 78 -s source.format=none "$work/old.dat" || bad=1
status 78 -s target.1.velocity_mps=3e8 "$work/old.sc16" || bad=1
status 78 -s source.rate_hz=1.5 "$work/old.wav" || bad=1
[ "$(cat "$work/old.sc16")" = precious ] || bad=1
status 74 "$work/nowhere/b.sc16" || bad=1
report $bad "what is refused is refused before anything is touched"

bad=0
cp "$work/scene.conf" "$work/kept.conf" && ln -s kept.conf "$work/link.csv" && mkfifo "$work/fifo.csv" &&
    cp "$work/b.sc16" "$work/kept.sc16" || bad=1
status 78 --truth "$work/kept.conf" "$work/new.sc16" && says 'did not write' || bad=1
status 78 --truth "$work/kept.sc16" "$work/new.sc16" || bad=1
status 78 --truth "$work/link.csv" "$work/new.sc16" && says 'symbolic link' || bad=1
status 78 --truth "$work/fifo.csv" "$work/new.sc16" && says FIFO || bad=1
status 78 -s source.format=ci16 "$work/kept.conf" && says 'text' || bad=1
cmp -s "$work/scene.conf" "$work/kept.conf" && cmp -s "$work/b.sc16" "$work/kept.sc16" || bad=1
[ ! -e "$work/new.sc16" ] || bad=1
status 0 --truth "$work/twice.csv" "$work/kept.sc16" && status 0 --truth "$work/twice.csv" "$work/kept.sc16" || bad=1
[ "$(find "$work" -name '.pnradar-*' | wc -l)" -eq 0 ] || bad=1
report $bad "files of others stay: a configuration, a recording, what a link names; a FIFO does not hang"

if [ -c /dev/full ]; then
    status 74 /dev/full && says 'No space left' && [ -c /dev/full ] &&
        { "$echo_" -c "$work/scene.conf" --truth - "$work/full.sc16" >/dev/full 2>"$work/err"; [ $? -eq 74 ]; } &&
        [ ! -e "$work/full.sc16" ] && [ -c /dev/full ]
    report $? "a full disk: 74, and no half file stays"
else
    skip "a full disk: 74, and no half file stays" "no /dev/full"
fi

# left_after PERIODS: prints the exit status of pnradar-echo when the reader stops after 10000 bytes
left_after() {
    {
        "$echo_" -c "$work/scene.conf" -s "echo.periods=$1" 2>"$work/err"
        echo $? >"$work/status"
    } | head -c 10000 >"$work/out"
    cat "$work/status"
}
[ "$(left_after 0)" = 0 ] && [ "$(bytes "$work/out")" = 10000 ] && [ "$(left_after 1000)" = 74 ]
report $? "a reader that leaves: the end of an endless stream, a failure of another"

mkfifo "$work/fifo"
"$echo_" -c "$work/scene.conf" -s echo.periods=0 "$work/fifo" 2>"$work/err" &
writer=$!
exec 3<"$work/fifo"
head -c 40920 <&3 >"$work/out"
kill -TERM "$writer"
wait "$writer"
got=$?
exec 3<&-
[ "$got" -eq 0 ] && cmp -s "$work/out" "$work/a.sc16" && says 'samples written'
report $? "SIGTERM ends an endless stream into a FIFO"

before=$(date +%s)
status 0 -s source.pace=real-time -s echo.periods=2150 --transmit "$work/b.sc16"
got=$?
after=$(date +%s)
[ "$got" -eq 0 ] && [ $((after - before)) -ge 2 ] &&
    [ "$(bytes "$work/b.sc16")" = $((2150 * 4092)) ]
report $? "real time takes the time of its samples"

status 0 --print-config && cp "$work/out" "$work/again.conf" &&
    "$echo_" -c "$work/again.conf" "$work/b.sc16" 2>/dev/null &&
    cmp -s "$work/a.sc16" "$work/b.sc16" &&
    status 0 --help && grep -q -- --truth "$work/out" && status 0 --version
report $? "--print-config reads back to the same stream; --help; --version"

find_python numpy
judged "noise, image, offset, IQ, phase, data bits and slips are numpy's" scene_numpy.py "$bin"
plan
