#!/bin/sh
# SPDX-License-Identifier: MIT
# Tests pnradar-bench at tiny sizes: its output is complete and consistent. No time is judged.
# usage: cli_bench.sh BIN_FOLDER; prints TAP.
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/tap.sh"
export TMPDIR="$work"
bench=$bin/pnradar-bench

# column NAME FILE: prints the cells of this column of a CSV file, without comments and head
column() {
    awk -F, -v name="$1" '/^#/ { next }
        !at { for (i = 1; i <= NF; i++) if ($i == name) at = i; if (!at) exit 1; next }
        { print $at }' "$2"
}

# csv ROWS FILE: succeeds if the CSV file has this many rows, and each row has as many cells as the
# head
csv() {
    awk -F, -v want="$1" '/^#/ { next } !width { width = NF; next } NF != width { bad = 1 } { rows++ }
        END { exit !(rows == want && !bad) }' "$2"
}

# part TITLE FILE: writes the CSV table whose comment begins with TITLE to $work/part
part() {
    awk -v title="# $1" '/^#/ { on = (index($0, title) == 1); next } on' "$2" >"$work/part"
}

# all_positive COLUMN FILE: succeeds if all numbers of the column are above 0
all_positive() {
    column "$1" "$2" | awk '!($1 > 0) { bad = 1 } END { exit !(NR > 0 && !bad) }'
}

# A small ring, which is processed soon after the end of its time
reference="-s engine.name=reference -s engine.batch=2 -s ring.bytes=64K --runs 10"

bad=0
status 64 "$bench" || bad=1
status 64 "$bench" nothing || bad=1
status 64 "$bench" stream -n 127 --echoes 33 || bad=1
for sizes in 0 2^25 16777217 '12,' ',12' abc 2^ 2^4- 1e3 -5 2^3-8; do
    status 64 "$bench" chain "-n" "$sizes" || bad=1
done
for runs in 9 0 -1 ten 10x; do
    status 64 "$bench" chain -n 127 --runs "$runs" || bad=1
done
for option in "--points 0" "--points 2^25" "--points x" "--check 0" "--check 2^41" "--every 0" "--every x" \
    "--every 3parsec" "--every us"; do
    # shellcheck disable=SC2086
    status 64 "$bench" chain -n 127 $option || bad=1
done
status 64 "$bench" serve || bad=1
status 64 "$bench" scene -n 33 --only single-1024 || bad=1
status 64 "$bench" stream -n 256 --seconds 0 || bad=1
report $bad "wrong parts, sizes, runs and seconds are refused"

# shellcheck disable=SC2086 # the lists of options are meant to be split
status 0 "$bench" --csv chain -n 2^7-1,100,2^7 $reference
report $? "chain runs"
csv 6 "$work/out" && [ "$(column N "$work/out" | tr '\n' ' ')" = "127 127 100 100 128 128 " ] &&
    [ "$(column stat "$work/out" | sort | uniq -c | tr -s ' \n' ' ')" = " 3 median 3 p99 " ]
report $? "chain: a median and a 99th percentile for every size"
all_positive total_ms "$work/out" && all_positive plain_ms "$work/out"
report $? "chain: every total is there"
awk -F, '/^#/ || !head++ { next } $4 == "median" {
             if (!($13 >= 0 && $13 <= 100.5)) bad = 1; medians++ }
         END { exit !(medians == 3 && !bad) }' "$work/out"
report $? "chain: the stages explain no more than the total"
grep -q '^# machine: ..*, [0-9][0-9]* core' "$work/out" && grep -q '^# engine reference: ' "$work/out"
report $? "the machine and its engines are named first"
# shellcheck disable=SC2086
status 0 "$bench" chain -n 127 $reference && grep -q '^  *N  *batch' "$work/out" &&
    grep -q 'reference/' "$work/out"
report $? "chain as a table"

# shellcheck disable=SC2086
status 0 "$bench" --csv methods -n 2^7-1,100 --points 2^9 --check 2^12 --verbose $reference
report $? "methods runs"
csv 4 "$work/out" && [ "$(column load "$work/out" | tr '\n' ' ')" = "one full one full " ] &&
    [ "$(column batch "$work/out" | tr '\n' ' ')" = "1 4 1 4 " ] &&
    [ "$(column method "$work/out" | sort -u)" = sum ]
report $? "methods: one dwell and many at every size"
all_positive median_us "$work/out" && all_positive min_us "$work/out" && all_positive GBps "$work/out" &&
    column checked "$work/out" | awk '{ if (!($1 >= (NR % 2 ? 400 : 4000))) bad = 1 } END { exit bad }'
report $? "methods: every time is there, and so many samples were checked"
# shellcheck disable=SC2086
status 0 "$bench" --csv methods -n 63 --points 2^8 $reference -s source.format=i8 \
    -s dwell.periods=2 -s dwell.combine=incoherent && csv 2 "$work/out" &&
    [ "$(column batch "$work/out" | tr '\n' ' ')" = "1 2 " ]
report $? "methods: real samples, dwells of two periods"

printf 'go\ngo\n' | "$bench" -n 127 --dump "$work/dump" serve -s engine.name=reference \
    -s engine.batch=3 >"$work/out" 2>"$work/err"
status=$?
awk 'NR == 1 { ready = ($1 == "ready") } NR > 1 && !(NF == 4 && $1 > 0 && $2 == 42 && $3 == 42 && $4 == 42) {
         bad = 1 } END { exit !(NR == 3 && ready && !bad) }' "$work/out" && [ $status -eq 0 ]
report $? "serve: one time and three lags for each line read"
[ "$(wc -c <"$work/dump")" -eq $((127 * 16 + 3 * 127 * 4)) ]
report $? "serve: the code and the samples are dumped"

# shellcheck disable=SC2086
status 0 "$bench" --csv stream -s publisher.high_water=1000000 -n 256 --seconds 0.4 --pace 4 $reference
report $? "stream runs"
csv 2 "$work/out" && [ "$(column way "$work/out" | tr '\n' ' ')" = "fast live " ] &&
    [ "$(column account "$work/out" | sort -u)" = closes ]
report $? "stream: fast and live, the accounts close"
[ "$(column ring_drops "$work/out" | head -n 1)" = 0 ] &&
    [ "$(column missed "$work/out" | head -n 1)" = 0 ] && all_positive received "$work/out"
report $? "stream: as fast as the ring takes it nothing is dropped or missed"
column ring_drops "$work/out" | awk '{ good = ($1 > 0) } END { exit !(NR == 2 && good) }'
report $? "stream: four times too fast, live, samples are dropped and counted"
column file_Msps "$work/out" | head -n 1 | awk '{ good = ($1 > 0) } END { exit !good }' &&
    [ -z "$(find "$work" -name 'pnradar-bench-*')" ]
report $? "stream: the file source is measured and its file removed"

# shellcheck disable=SC2086
status 0 "$bench" --csv stream -n 63 --seconds 0.2 $reference -s dwell.periods=16 -s dwell.combine=incoherent \
    -s publisher.pack=64 -s publisher.high_water=1000000 && csv 1 "$work/out" &&
    [ "$(column pack "$work/out")" = 64 ] && [ "$(column account "$work/out")" = closes ] &&
    [ "$(column missed "$work/out")" = 0 ] && all_positive received "$work/out"
report $? "stream: dwells of 16 periods, packed"

# shellcheck disable=SC2086
status 0 "$bench" --csv latency -n 2^7-1,100 --every 2ms --seconds 0.4 $reference
report $? "latency runs"
part "latency" "$work/out" && csv 2 "$work/part" && [ "$(column every_us "$work/part" | sort -u)" = 2000 ] &&
    all_positive p50_us "$work/part" && all_positive max_us "$work/part" &&
    [ "$(column way "$work/part" | sort -u)" = ipc ] && [ "$(column missed "$work/part" | sort -u)" = 0 ] &&
    column windows "$work/part" | awk '!($1 > 100 && $1 <= 200) { bad = 1 } END { exit bad }'
report $? "latency: quantiles of the windows that came"
part "stages" "$work/out" && csv 18 "$work/part" &&
    [ "$(column stage "$work/part" | sort | uniq -c | awk '{ print $1 }' | sort -u)" = 2 ]
report $? "latency: every stage of the way, and the engine's own"
windows=$(part "latency" "$work/out" && column windows "$work/part" | awk '{ n += $1 } END { print n }')
part "histogram" "$work/out" && [ "$(column windows "$work/part" | awk '{ n += $1 } END { print n }')" = "$windows" ] &&
    column share_beyond "$work/part" | awk '!($1 >= 0 && $1 < 1) { bad = 1 } END { exit bad || $1 != 0 }'
report $? "latency: the histogram holds every window"
port=$(awk -v seed=$$ 'BEGIN { srand(seed); print 20000 + int(rand() * 10000) }')
# shellcheck disable=SC2086
status 0 "$bench" --csv latency -n 127 --every 2ms --seconds 0.2 --endpoint "tcp://127.0.0.1:$port" $reference &&
    part "latency" "$work/out" && [ "$(column way "$work/part")" = tcp ]
report $? "latency over loopback TCP"

# shellcheck disable=SC2086
status 0 "$bench" --csv soak -n 63 --seconds 0.8 --pace 0.2 $reference && all_positive results "$work/out" &&
    all_positive rss_MiB "$work/out" && [ "$(column N "$work/out" | sort -u)" = 63 ]
report $? "soak: a line an interval"
grep -q '^# soak N = 63: \(NOT \)\?HELD: ' "$work/out" && grep -q '^#   account: .* (closes)$' "$work/out" &&
    grep -q '^#   p99: .*drift' "$work/out" && grep -q '^#   memory: .*MiB' "$work/out"
report $? "soak: a verdict with account, drift and memory"

# shellcheck disable=SC2086
status 0 "$bench" --csv publish -n 63 --seconds 0.1 $reference && csv 4 "$work/out" &&
    [ "$(column pack "$work/out" | tr '\n' ' ')" = "1 16 256 4096 " ] && all_positive detect_ns "$work/out" &&
    all_positive publish_ns "$work/out" && all_positive results_ps "$work/out" && all_positive received_ps "$work/out"
report $? "publish: what a result costs, by pack"

# result_bytes FILE: prints the bytes of a message with one result
result_bytes() {
    awk -F, '/^#/ { next } !head++ { next } $3 == 1 { print int(1e6 * $9 / $7) }' "$1"
}
# shellcheck disable=SC2086
[ "$(column echoes "$work/out" | sort -u)" = 7 ] && status 0 "$bench" --csv publish -n 255 --seconds 0.1 $reference &&
    [ "$(column echoes "$work/out" | sort -u)" = 8 ] && eight=$(result_bytes "$work/out") &&
    status 0 "$bench" --csv publish -n 255 --echoes 1 --seconds 0.1 $reference &&
    [ "$(column echoes "$work/out" | sort -u)" = 1 ] && [ "$eight" -gt $((2 * $(result_bytes "$work/out"))) ]
report $? "publish: eight echoes, or as many as there is room for or are asked for"

no_cpu=$(grep -c '^# engine cpu: no: ' "$work/out")
# shellcheck disable=SC2086
status 0 "$bench" --strict stream -s publisher.high_water=1000000 -n 256 --seconds 0.1 $reference &&
    status 3 "$bench" --strict stream -n 256 --seconds 0.4 --pace 4 $reference
report $? "stream: --strict tells a loss by status 3"

if [ "$no_cpu" -ne 0 ]; then
    skip "seed: four manners" "no cpu engine"
    skip "crossover: batches 1 to 256" "no cpu engine"
    skip "methods: walsh beside library, values agree" "no cpu engine"
    skip "maps: a search of 32 codes and 41 hypotheses, every answer right" "no cpu engine"
    skip "scene: every kind of samples" "no cpu engine"
    skip "scene: Doppler, a leak and seven echoes" "no cpu engine"
else
    status 0 "$bench" --csv scene -n 1 --only "coherent " --runs 10 --seconds 0.05 -s engine.name=cpu \
        -s engine.batch=32 -s ring.bytes=1M && csv 8 "$work/out" && all_positive engine_us "$work/out" &&
        all_positive detect_us "$work/out" && all_positive publish_us "$work/out" && all_positive Msps "$work/out" &&
        [ "$(column form "$work/out" | uniq | tr '\n' ' ')" = "complex real complex real " ] &&
        [ "$(column account "$work/out" | sort -u)" = closes ]
    report $? "scene: every kind of samples"
    status 0 "$bench" --csv scene -n 8 --only "doppler-1024 complex white" --runs 10 --seconds 0.05 -s engine.name=cpu \
        -s engine.batch=4 -s ring.bytes=1M && csv 1 "$work/out" &&
        column judged "$work/out" | awk '{ exit !($1 >= 100) }' &&
        column found_pct "$work/out" | awk '{ exit !($1 > 80 && $1 <= 100) }' &&
        column velocity_variance "$work/out" | awk '{ exit !($1 > 0.3 && $1 < 3) }'
    report $? "scene: Doppler, a leak and seven echoes"
    status 0 "$bench" --csv seed -n 2^10,1000 --runs 10 && all_positive anew_ms "$work/out" &&
        all_positive reused_ms "$work/out" && all_positive pinned_ms "$work/out" &&
        all_positive resident_ms "$work/out" && column engine "$work/out" | grep -q cpu &&
        column memoir_ms "$work/out" | awk '$1 != "" { exit 1 }'
    report $? "seed: four manners"
    status 0 "$bench" --csv crossover -n 2^8 --runs 10 && csv 5 "$work/out" &&
        [ "$(column batch "$work/out" | tr '\n' ' ')" = "1 4 16 64 256 " ] &&
        all_positive cpu_ms "$work/out"
    report $? "crossover: batches 1 to 256"
    status 0 "$bench" --csv methods -n 2^7-1,2^7 --points 2^12 --runs 10 -s engine.name=cpu && csv 6 "$work/out" &&
        [ "$(column method "$work/out" | tr '\n' ' ')" = "library walsh library walsh library library " ] &&
        all_positive of_library "$work/out" &&
        column deviation_eps "$work/out" | awk '$1 != "" && !($1 < 4) { bad = 1 } END { exit bad }'
    report $? "methods: walsh beside library, values agree"
    status 0 "$bench" --csv maps -n 4000 --runs 10 -s engine.name=cpu && csv 1 "$work/out" &&
        all_positive median_us "$work/out" && [ "$(column checked "$work/out")" = 4 ] &&
        [ "$(column rows "$work/out")" = 41 ] && [ "$(column codes "$work/out")" = 32 ]
    report $? "maps: a search of 32 codes and 41 hypotheses, every answer right"
fi

mkdir "$work/empty"
# shellcheck disable=SC2086
PATH=$work/empty status 69 "$bench" chain -n 127 --plot "$work/a.png" $reference &&
    grep -q gnuplot "$work/err"
report $? "a missing gnuplot is named before anything is measured"
if command -v gnuplot >/dev/null 2>&1; then
    # shellcheck disable=SC2086
    status 0 "$bench" chain -n 64,127 --plot "$work/it's.png" $reference &&
        [ "$(head -c 4 "$work/it's.png" | tail -c 3)" = PNG ]
    report $? "a picture is drawn"
    # shellcheck disable=SC2086
    status 0 "$bench" latency -n 63 --every 2ms --seconds 0.1 --plot "$work/latency.png" $reference &&
        [ "$(head -c 4 "$work/latency.png" | tail -c 3)" = PNG ]
    report $? "a histogram is drawn"
    # shellcheck disable=SC2086
    status 74 "$bench" chain -n 64 --plot "$work/no/a.png" $reference &&
        status 64 "$bench" maps -n 64 --plot "$work/maps.png" $reference && grep -q 'no picture' "$work/err"
    report $? "a picture that cannot be written is an error, and so is one that does not exist"
    bad=0
    # shellcheck disable=SC2086
    for part in "chain -n 64,127" "publish -n 63 --seconds 0.1" "chain -n 64" "soak -n 63 --seconds 0.4 --pace 0.2" \
        "stream -n 63,256 --seconds 0.1" "latency -n 63 --every 2ms --seconds 0.1"; do
        status 0 "$bench" $part --plot "$work/part-${part%% *}.svg" $reference && ! grep -q '^Warning' "$work/err" || bad=1
    done
    find_python sys
    if [ -n "$python" ]; then
        "$python" "$here/picture_text.py" "$work"/part-*.svg "$work/latency.png" >"$work/out" && [ $bad -eq 0 ]
        report $? "no text of a picture is cut, and none overlaps other text"
        grep -q 'share of the windows' "$work/part-latency.svg" && grep -q 'time of a submit, ms' "$work/part-chain.svg" &&
            ! grep -q '<tspan[^>]*>[a-z]*_[a-z_]*<' "$work"/part-*.svg
        report $? "labels are words with units, no names of columns"
    else
        skip "no text of a picture is cut" "no python3"
        skip "labels are words with units" "no python3"
    fi
else
    skip "a picture is drawn" "no gnuplot"
    skip "a histogram is drawn" "no gnuplot"
    skip "a picture that cannot be written is an error" "no gnuplot"
    skip "no text of a picture is cut" "no gnuplot"
    skip "labels are words with units" "no gnuplot"
fi

# --- the commands for gnuplot ---

mkdir "$work/stub"
cat >"$work/stub/gnuplot" <<END
#!/bin/sh
printf '\\211PNG'
cat >"$work/commands"
END
chmod +x "$work/stub/gnuplot"
PATH=$work/stub:$PATH
# draws PATTERN: succeeds if a command for gnuplot matches PATTERN
draws() {
    grep -q -e "$1" "$work/commands" || { echo "# no '$1':" && grep -v '^[-0-9]' "$work/commands" | sed 's/^/# /'; false; }
}
if works cpu; then
    status 0 "$bench" chain -n 64,127,128 --runs 10 --plot "$work/a.png" -s engine.name=cpu -s engine.batch=4 &&
        [ "$(awk '/^\$d5 / { inside = 1; next } /^end_of_block/ { inside = 0 } inside { print (NF > 0 ? $1 : "-") }' "$work/commands" |
            tr '\n' ' ')" = "64 - 128 " ]
    report $? "the line of a stage is broken where the stage takes no time"
    draws "^set format y '%.0l·10^{%L}'"
    report $? "ticks of which some need an exponent have one form"
    engines="The engine cpu"
    works cuda && engines="The engines cpu and cuda"
    status 0 "$bench" crossover -n 64 --runs 10 --plot "$work/a.png" && draws 'crossover: one submit of a batch of dwells' &&
        draws "$engines, by batch"
    report $? "the title of crossover has the engines that were measured"
else
    skip "the line of a stage is broken where the stage takes no time" "no cpu engine"
    skip "ticks of which some need an exponent have one form" "no cpu engine"
    skip "the title of crossover has the engines that were measured" "no cpu engine"
fi
plan
