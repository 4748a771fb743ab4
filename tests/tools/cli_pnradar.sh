#!/bin/sh
# SPDX-License-Identifier: MIT
# pnradar from the command line: every exit status, every output, pipes, signals, locale, memory.
# usage: cli_pnradar.sh BIN_FOLDER; prints TAP.
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/tap.sh"
echo_=$bin/pnradar-echo
PNR_MODULE_PATH=$1/../tests/engines
export PNR_MODULE_PATH
unset PNR_LOG PNR_FAULT PNR_FAULT_SLOW_MS
running=''
trap 'for pid in $running; do kill -9 "$pid" 2>/dev/null; done; rm -rf "$work"' EXIT

program() {
    "$pnradar" -c "$work/radar.conf" "$@"
}

# closes REASON: the last line gives the reason, and its three sums are right
closes() {
    tail -n 1 "$work/err" | grep -q "$1: [0-9]* samples = " || { cat "$work/err"; return 1; }
    tail -n 1 "$work/err" | sed "s/.*$1: //" | awk -F '; ' '{
        for (i = 1; i <= 3; i++) {
            split($i, side, " = ")
            total = side[1] + 0
            for (k = split(side[2], part, " [+] "); k > 0; k--)
                total -= part[k] + 0
            if (total != 0)
                exit 1
        }
    }'
}

# bits: csv without latency and time (a pipe has the host's), the things that differ from run to run
bits() {
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) left[i] = $i == "latency_us" || $i == "time" }
        { for (i = 1; i <= NF; i++) if (left[i]) $i = ""; print }'
}

engine=reference
works cpu && engine=cpu
{
    radar_station
    printf '[ring]\nbytes = 64K\n[engine]\nname = %s\n' $engine
} >"$work/radar.conf"
"$echo_" -c "$work/radar.conf" "$work/echo.sc16" 2>/dev/null || exit 1
# The signal tests need a stream that ends only when they say so.
endless="-c $work/radar.conf -s echo.periods=0"

# --- exit status ---

status 0 "$work/echo.sc16" && closes 'end of input' &&
    says '12700 samples = 12700 used; 100 windows = 100 processed; 100 results = 100 sent' &&
    [ ! -s "$work/out" ]
report $? "0: a recording to its end, the account is the last line"
status 0 --strict "$work/echo.sc16"
report $? "0: strict, and nothing was lost"
status 3 --strict -s 'source.lost=1000+10' "$work/echo.sc16" && closes 'end of input' &&
    says ' 10 lost source' && status 0 -s 'source.lost=1000+10' "$work/echo.sc16"
report $? "3: strict, and the recorder lost something"
head -c 400 "$work/echo.sc16" | "$pnradar" -c "$work/radar.conf" --strict - 2>"$work/err"
[ $? -eq 3 ] && closes 'end of input' && says ' 0 windows' &&
    head -c 400 "$work/echo.sc16" | "$pnradar" -c "$work/radar.conf" - 2>"$work/err" &&
    head -c 508 "$work/echo.sc16" | "$pnradar" -c "$work/radar.conf" --strict - 2>"$work/err"
report $? "3: strict, and a pipe without one whole window"
status 64 --no-such-option && says 'try --help' && status 64 a b && status 64 -s &&
    status 64 --print xml "$work/echo.sc16" && says 'table'
report $? "64: wrong usage"
: >"$work/empty.sc16"
printf 'RIFF....WAVEjunk' >"$work/broken.wav"
status 65 "$work/empty.sc16" && says 'empty.sc16' && status 65 "$work/broken.wav"
report $? "65: an empty file, a broken one"
head -c 40000 "$work/echo.sc16" >"$work/short.sc16"
long="-s ring.bytes=0 -s dwell.combine=incoherent -s dwell.periods" # a dwell of so many periods
# shellcheck disable=SC2086 # a list of options
status 65 $long=79 "$work/short.sc16" &&
    says 'short.sc16: 10000 samples (10 ms) .* 10033 samples (10.03 ms), 79 periods of 127$' &&
    status 0 $long=78 "$work/short.sc16" &&
    status 65 $long=78 -s code.epoch=100 "$work/short.sc16" && says ' 10006 samples' &&
    status 0 $long=79 -s source.lost=10+33 "$work/short.sc16"
report $? "65: a file shorter than a dwell, with both sizes"
# 127 samples a period; results of 100 samples are those of a gap that the user names
for n in 100 63; do
    head -c $((4 * n)) "$work/echo.sc16" >"$work/part$n.sc16"
done
one="-s ring.bytes=0 -s dwell.periods=1 -s dwell.combine=coherent --print csv"
# shellcheck disable=SC2086 # a list of options
status 0 $one -s source.lost=100+27 "$work/part100.sc16" && cut -d, -f1-11,13- "$work/out" >"$work/named" &&
    PNR_LOG=info status 0 $one "$work/part100.sc16" && says '100 samples are less than a period: the other 27 of 127' &&
    says '127 samples = 100 used + .*27 .*lost' && cut -d, -f1-11,13- "$work/out" | cmp - "$work/named" &&
    [ "$(wc -l <"$work/named")" -ge 2 ] && status 65 $one "$work/part63.sc16" && says 'shorter than one dwell'
report $? "a recording of less than a period is searched with what is there"
# 12700 samples, and two periods of 127
status 0 -s ring.bytes=0 "$work/echo.sc16" && says ' ring of 12954 samples$' &&
    "$pnradar" -c "$work/radar.conf" -s ring.bytes=0 - <"$work/echo.sc16" 2>"$work/err" && says ' ring of 12954 samples$' &&
    head -c 50800 "$work/echo.sc16" | "$pnradar" -c "$work/radar.conf" -s ring.bytes=0 - 2>"$work/err" &&
    says ' ring of [0-9]\{6,\} samples$'
report $? "the ring of a recording is no longer than the recording and two dwells"
truncate -s 128M "$work/long.ci16"
status 0 -s ring.bytes=0 -s code.degree=16 -s engine.name=auto "$work/long.ci16" &&
    says ' ring of 16777216 samples$' && says '33554432 samples = 33553920 used'
report $? "the ring of a long recording fits the processor's cache: 64 MiB"
if [ "$(nproc)" -ge 4 ]; then
    taskset -c "$(taskset -cp $$ | sed 's/.*: //; s/[,-].*//')" "$pnradar" -c "$work/radar.conf" -s ring.bytes=0 -s code.degree=16 \
        -s engine.name=auto "$work/long.ci16" 2>"$work/err" && says ' ring of 8388608 samples$'
    report $? "a program with a quarter of the processors has half of this ring"
else
    skip "a program with a quarter of the processors has half of this ring" "fewer than four processors"
fi
rm "$work/long.ci16"
status 66 "$work/none.sc16" && says 'none.sc16' && status 66 "$work" && status 66 &&
    status 66 -c "$work/none.conf"
report $? "66: no such file, a folder, no input at all"
status 69 -s engine.name=none "$work/echo.sc16" && says 'none' &&
    status 69 -s publisher.endpoint=tcp://192.0.2.1:5555 -s publisher.expose=yes "$work/echo.sc16"
report $? "69: no such engine, an address that is not ours"
if [ -w /dev/full ]; then
    "$pnradar" -c "$work/radar.conf" --print csv "$work/echo.sc16" >/dev/full 2>"$work/err"
    [ $? -eq 74 ] && says stdout && "$pnradar" --print-config >/dev/full 2>"$work/err"
    [ $? -eq 74 ]
    report $? "74: stdout is full"
else
    skip "74: stdout is full" "no /dev/full"
fi
if [ -f "$PNR_MODULE_PATH/fault.so" ]; then
    export PNR_FAULT='collect:2=ELOST'
    status 75 -s engine.name=fault -s engine.batch=1 "$work/echo.sc16" && says restart &&
        PNR_FAULT='submit:2=EENGINE' status 70 -s engine.name=fault "$work/echo.sc16" &&
        PNR_FAULT='probe=ELOST' status 69 -s engine.name=fault "$work/echo.sc16" &&
        PNR_FAULT='alloc=ENOMEMORY' status 69 -s engine.name=fault "$work/echo.sc16"
    report $? "75, 70, 69: an engine that is lost, fails, is not there, has no memory"
    unset PNR_FAULT
else
    skip "75, 70, 69: an engine that is lost, fails, is not there" "fault.so was not built"
fi
cp "$work/echo.sc16" "$work/secret.sc16" && chmod 0 "$work/secret.sc16"
if [ -r "$work/secret.sc16" ]; then
    skip "77: not permitted" "root may read everything"
else
    status 77 "$work/secret.sc16" && says 'secret.sc16'
    report $? "77: not permitted"
fi
status 78 -s code.degree=1 "$work/echo.sc16" && says '1' &&
    status 78 -s code.degre=7 "$work/echo.sc16" && says 'degree' &&
    status 78 -s source.rate_hz=0 "$work/echo.sc16" && status 78 -c "$work" "$work/echo.sc16" &&
    status 78 -s ring.bytes=10 "$work/echo.sc16" && says 'ring.bytes = 1016' &&
    status 69 -s ring.bytes=1000G "$work/echo.sc16" && says 'takes 1000 GiB and the engine' &&
    status 78 -s noequals && status 78 -s source.chunk=-1 "$work/echo.sc16" &&
    status 78 -s engine.method=magic "$work/echo.sc16" && says 'magic' &&
    cp "$work/echo.sc16" "$work/echo.xyz" &&
    status 78 -s source.format=auto "$work/echo.xyz" && says 'source.format'
report $? "78: what cannot be configured, with the value"

# --- output ---

status 0 --print csv "$work/echo.sc16" && [ "$(wc -l <"$work/out")" -eq 101 ] &&
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "range_m") column = i; next }
        { if ($column < 5970 || $column > 6030) exit 1 }' "$work/out" &&
    bits <"$work/out" >"$work/csv"
report $? "csv: a header and a row an echo"
status 0 --print json "$work/echo.sc16" && [ "$(wc -l <"$work/out")" -eq 100 ] &&
    [ "$(grep -c '^{"v":1,"run":"[0-9a-f]*".*}$' "$work/out")" -eq 100 ]
report $? "json: a message a line"
status 0 --print table "$work/echo.sc16" && [ "$(wc -l <"$work/out")" -ge 101 ]
report $? "table: a line an echo below a header"
# On a terminal. Its lines end in CR LF, and standard error goes there too.
# on_terminal ARGUMENT...: the words of a command line; what the terminal shows is in $work/out
on_terminal() {
    script -qec "'$pnradar' $*" /dev/null >"$work/raw" 2>"$work/err" </dev/null
    code=$?
    tr -d '\r' <"$work/raw" >"$work/out"
    return $code
}
if command -v script >/dev/null; then
    on_terminal -c "'$work/radar.conf'" "'$work/echo.sc16'" &&
        [ "$(grep -c '^time s .*range m' "$work/out")" -eq 1 ] &&
        [ "$(grep -c '^[0-9]' "$work/out")" -ge 100 ] &&
        on_terminal -c "'$work/radar.conf'" --quiet "'$work/echo.sc16'" &&
        ! grep -q '^[0-9]' "$work/out" &&
        on_terminal -c "'$work/radar.conf'" --print csv "'$work/echo.sc16'" &&
        [ "$(grep -c '^[0-9]' "$work/out")" -ge 100 ] && ! grep -q 'range m' "$work/out"
    report $? "a terminal gets the table, or nothing with --quiet, or what --print names"
else
    skip "a terminal gets the table, or nothing with --quiet" "no script(1)"
fi
status 0 --quiet "$work/echo.sc16" && [ ! -s "$work/out" ] &&
    status 64 --quiet --print csv "$work/echo.sc16" && says 'prints csv'
report $? "--quiet prints nothing, and excludes --print"
"$pnradar" >"$work/out" 2>"$work/err" && grep -q '^Usage: pnradar ' "$work/out" &&
    [ ! -s "$work/err" ] && "$pnradar" -h | cmp -s - "$work/out" &&
    "$pnradar" --help | cmp -s - "$work/out" &&
    [ "$("$pnradar" -V)" = "$("$pnradar" --version)" ] && "$pnradar" -V | grep -q '^pnradar [0-9]'
report $? "alone and with -h: the help; with -V: the version"

status 0 --list-engines && grep -q '^reference *works' "$work/out" &&
    grep -q '^reference *would take *method sum: ' "$work/out"
report $? "the engines are listed, with what they would do"
taskset -c "$(taskset -cp $$ | sed 's/.*: \([0-9]*\).*/\1/')" "$pnradar" --list-engines >"$work/out" 2>/dev/null &&
    grep -q '^cpu *works.*, 1 core$' "$work/out"
report $? "the processors that taskset allows are used, not those of the machine"
"$pnradar" -c "$work/radar.conf" --print-config >"$work/a.conf" &&
    "$pnradar" -c /dev/stdin --print-config <"$work/a.conf" >"$work/b.conf" &&
    cmp -s "$work/a.conf" "$work/b.conf" &&
    "$pnradar" -c /dev/stdin --print csv "$work/echo.sc16" <"$work/a.conf" 2>/dev/null |
    bits | cmp -s - "$work/csv"
report $? "a printed configuration reads back to itself, and runs the same"

# --- what the end advises ---

status 0 "$work/echo.sc16" && closes 'end of input' &&
    says 'nobody got the 100 results: publisher.endpoint is empty, and nothing was printed' &&
    status 0 -s "publisher.endpoint=ipc://$work/nobody" "$work/echo.sc16" && closes 'end of input' &&
    says "no subscriber was seen at ipc://$work/nobody, " &&
    [ "$(grep -c 'nobody got' "$work/err")" -eq 1 ] &&
    status 0 --print csv "$work/echo.sc16" && ! grep -q warning "$work/err"
report $? "nobody listens and nothing is printed: it is said once, before the account"
cp "$work/echo.sc16" "$work/echo.ci16"
cp "$work/radar.conf" "$work/listened.conf"
sed -i "s|^endpoint =.*|endpoint = ipc://$work/heard|" "$work/radar.conf"
hear 0 -- && ! grep -q 'warning' "$work/publisher"
report $? "somebody listens: nothing is said"
mv "$work/listened.conf" "$work/radar.conf"
status 0 -s code.type=legendre -s code.length=127 --print csv "$work/echo.sc16" &&
    closes 'end of input' &&
    says 'no echo in 100 results: check the code.*rate_hz.*spectrum.*tune_hz.*epoch'
report $? "no echo at all: what to check"
# nan COUNT: 12700 samples, the last COUNT of them NaN
nan() {
    head -c $(((12700 - $1) * 8)) /dev/zero
    head -c $(($1 * 8)) /dev/zero | tr '\0' '\377'
}
nan 126 >"$work/few.cf32" && nan 128 >"$work/many.cf32"
status 0 -s source.format=cf32 "$work/few.cf32" && ! grep -q NaN "$work/err" &&
    status 0 -s source.format=cf32 "$work/many.cf32" && closes 'end of input' &&
    says '1.01 % of the samples are NaN or Inf: is source.format = cf32 right?'
report $? "more than 1 % of NaN: is the format right"

# The same bits, wherever the samples come from.
"$pnradar" -c "$work/radar.conf" --print csv - <"$work/echo.sc16" 2>"$work/err" |
    bits | cmp -s - "$work/csv" && closes 'end of input'
report $? "standard input is a recording"
dd if="$work/echo.sc16" bs=333 2>/dev/null |
    "$pnradar" -c "$work/radar.conf" --print csv - 2>"$work/err" | bits | cmp -s - "$work/csv" &&
    closes 'end of input'
report $? "a pipe of odd pieces"
{ cat "$work/echo.sc16" && printf abc; } | "$pnradar" -c "$work/radar.conf" - 2>"$work/err" &&
    says '3 bytes after the last whole sample are no sample' && closes 'end of input' &&
    "$pnradar" -c "$work/radar.conf" - <"$work/echo.sc16" 2>"$work/err" && ! grep -q 'no sample' "$work/err"
report $? "bytes of a cut sample at the end of a pipe are reported"
mkfifo "$work/fifo" && { "$echo_" -c "$work/radar.conf" "$work/fifo" 2>/dev/null & } &&
    "$pnradar" -c "$work/radar.conf" --print csv "$work/fifo" 2>"$work/err" |
    bits | cmp -s - "$work/csv" && closes 'end of input'
report $? "a FIFO"
"$pnradar" -c "$work/radar.conf" --print csv -s source.pace=real-time -s engine.deadline=1000 "$work/echo.sc16" \
    2>/dev/null | bits | cmp -s - "$work/csv"
report $? "in real time the same bits"
: | "$pnradar" -c "$work/radar.conf" - 2>"$work/err"
[ $? -eq 65 ]
report $? "an empty pipe is no recording"
gzip -c "$work/echo.sc16" | "$pnradar" -c "$work/radar.conf" - 2>"$work/err"
[ $? -eq 78 ] && says 'stdin carries gzip, not raw samples: unpack it' &&
    "$echo_" -c "$work/radar.conf" "$work/sound.wav" 2>/dev/null &&
    { "$pnradar" -c "$work/radar.conf" - <"$work/sound.wav" 2>"$work/err"; [ $? -eq 78 ]; } && says 'WAV' &&
    ! grep -q ' windows' "$work/err"
report $? "78: a packed or a sound file in a pipe"
"$pnradar" -c "$work/radar.conf" -s source.format=ci8 - <"$work/echo.sc16" 2>"$work/err" &&
    [ "$(grep -c 'is source.format = ci8 right?' "$work/err")" -eq 1 ] &&
    "$pnradar" -c "$work/radar.conf" - <"$work/echo.sc16" 2>"$work/err" && ! grep -q 'right?' "$work/err"
report $? "ci16 read as ci8: one warning"
mkdir "$work/locales"
if localedef -i de_DE -f UTF-8 "$work/locales/de_DE.UTF-8" 2>/dev/null; then
    LOCPATH=$work/locales LC_ALL=de_DE.UTF-8 "$pnradar" -c "$work/radar.conf" --print csv \
        "$work/echo.sc16" 2>/dev/null | bits | cmp -s - "$work/csv"
    report $? "a locale with decimal commas changes nothing"
else
    skip "a locale with decimal commas changes nothing" "the system has no source for de_DE"
fi

# --- signals ---

for signal in TERM INT; do
    mkfifo "$work/$signal"
    # shellcheck disable=SC2086 # the list of options is meant to be split
    "$echo_" $endless "$work/$signal" 2>/dev/null &
    writer=$!
    "$pnradar" -c "$work/radar.conf" --print csv "$work/$signal" >"$work/out.$signal" \
        2>"$work/err" &
    pid=$!
    running="$running $pid $writer"
    await "$work/out.$signal" 200 && kill -"$signal" "$pid"
    wait "$pid" && closes stopped
    report $? "SIG$signal in the middle: 0, and the account closes"
    kill "$writer" 2>/dev/null
    wait "$writer" 2>/dev/null
done

mkfifo "$work/silent"
PNR_LOG=info nohup "$pnradar" -c "$work/radar.conf" "$work/silent" 2>"$work/err" </dev/null >/dev/null &
pid=$!
running="$running $pid"
exec 9>"$work/silent"
await "$work/err" 2
kill -HUP "$pid"
head -c 400000 "$work/echo.sc16" >&9
exec 9>&-
wait "$pid" && tail -n 1 "$work/err" | grep -q ': end of input: '
report $? "under nohup SIGHUP ends nothing"

if [ -f "$PNR_MODULE_PATH/fault.so" ]; then
    rm -f "$work/err"
    PNR_FAULT_SLOW_MS=60000 "$pnradar" -c "$work/radar.conf" -s engine.name=fault \
        "$work/echo.sc16" 2>"$work/err" &
    pid=$!
    running="$running $pid"
    await "$work/err" 2 # source and code: it is about to begin, and then waits a minute
    kill -TERM "$pid"
    sleep 1
    kill -TERM "$pid" && { wait "$pid"; [ $? -eq 143 ]; } # it was still there
    report $? "SIGTERM twice: at once, 128 + 15"
else
    skip "SIGTERM twice: at once, 128 + 15" "fault.so was not built"
fi

# A reader that goes away ends an endless run.
# shellcheck disable=SC2086 # the list of options is meant to be split
{
    "$echo_" $endless - 2>/dev/null | "$pnradar" -c "$work/radar.conf" --print csv - 2>"$work/err"
    echo $? >"$work/code"
} | head -n 3 >"$work/out"
await "$work/code" 1 && [ "$(cat "$work/code")" -eq 0 ] && [ "$(wc -l <"$work/out")" -eq 3 ] &&
    says stopped && ! grep -q 'does not close' "$work/err"
report $? "0: whoever read the results has seen enough"

# --- memory ---

# rss PID: resident KiB
rss() {
    awk '/^VmRSS:/ { print $2 }' "/proc/$1/status"
}

if [ -r /proc/self/status ]; then
    mkfifo "$work/long"
    # shellcheck disable=SC2086 # the list of options is meant to be split
    "$echo_" $endless "$work/long" 2>/dev/null &
    writer=$!
    # The address sanitizer keeps what was freed for a while: a little of it here.
    ASAN_OPTIONS="${ASAN_OPTIONS:-}:quarantine_size_mb=1:thread_local_quarantine_size_kb=64" \
        "$pnradar" -c "$work/radar.conf" -s 'publisher.endpoint=tcp://127.0.0.1:*' --print csv \
        "$work/long" >"$work/out" 2>"$work/err" &
    pid=$!
    running="$running $pid $writer"
    await "$work/out" 2000
    before=$(rss "$pid")
    from=$(wc -l <"$work/out")
    await "$work/out" 100000
    after=$(rss "$pid")
    echo "# resident: $before KiB after $from results, $after KiB after $(wc -l <"$work/out")"
    [ "$after" -le $((before + 4096)) ]
    report $? "resident memory does not grow while results flow"
    kill "$pid" "$writer" 2>/dev/null
    wait "$pid"
else
    skip "resident memory does not grow while results flow" "no /proc"
fi
plan
