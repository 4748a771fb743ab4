#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs the commands of README.md as they are written there, and compares what it shows with what they print. Hardware is
# a generator that writes the same bytes; the address is one of this test, so that it disturbs no other program.
# usage: cli_recipes.sh BIN_FOLDER; prints TAP.
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/tap.sh"
find_python zmq
top=$(cd "$here/../.." && pwd)
cd "$work" || exit 1
ln -s "$top/config" config
mkdir bin
address=ipc://$work/socket

for name in pnradar pnradar-listen; do
    printf '#!/bin/sh\nexec "%s" -s "publisher.endpoint=%s" "$@"\n' "$bin/$name" "$address" >"bin/$name"
done
ln -s "$bin/pnradar-echo" "$bin/pnradar-plan" bin/
# A loudspeaker that refuses what is no WAV file.
cat >bin/aplay <<'END'
#!/bin/sh
for file; do :; done
[ "$(head -c 4 "$file")" = RIFF ]
END
# A microphone in front of the configured scene.
cat >bin/arecord <<'END'
#!/bin/sh
[ "$*" = "-q -f S16_LE -r 48000 -c 1 -t raw -d 12" ] || exit 1
exec pnradar-echo -c config/sonar.conf -s source.format=i16 -s echo.periods=93 -
END
# A receiver with an offset, and an echo at 20 km.
cat >bin/rtl_sdr <<'END'
#!/bin/sh
[ "$*" = "-f 433920000 -s 2048000 -n 20480000 -" ] || exit 1
exec pnradar-echo -c rtl.conf -s source.pace=fast -s echo.periods=400 -s echo.dc_amplitude=0.02 \
    -s target.1.range_m=20000 -s target.1.amplitude=0.05 -
END
chmod +x bin/*
cat >flowgraph.py <<'END'
import subprocess
subprocess.run(["pnradar-echo", "-c", "config/hf-sounder.conf", "samples.cf32"], check=True)
END
PATH=$work/bin:$PATH

# block HEADING LANGUAGE NUMBER: the text of a fenced block below a heading of README.md
block() {
    awk -v heading="$1" -v language="$2" -v number="$3" '
        /^#+ / && !fenced { inside = $0; sub(/^#+ /, "", inside) }
        /^```/ {
            if (fenced) { fenced = 0; next }
            fenced = 1
            found = inside == heading && $0 == "```" language ? found + 1 : found
            chosen = inside == heading && $0 == "```" language && found == number
            next
        }
        fenced && chosen' "$top/README.md"
}

# perform HEADING NUMBER: runs an sh block; stdout in out, stderr in err
perform() {
    block "$1" sh "$2" >commands
    [ -s commands ] || { echo "# no commands below '$1'"; return 1; }
    echo wait >>commands
    PNR_LOG=info timeout 120 sh -e commands >out 2>err </dev/null
}

# alike SHOWN PRINTED: what is shown begins like what is printed: the same words, and numbers within 1 % or 0.02. A line
# of dots ends it.
alike() {
    awk 'function is_number(x) { return x ~ /^[-+]?[0-9.]+$/ }
        function differ(a, b, d) {
            d = a - b
            return (d < 0 ? -d : d) > 0.02 + 0.01 * (b < 0 ? -b : b)
        }
        NR == FNR { if ($0 == "...") over = 1; if (!over) shown[NR] = $0; n = over ? n : NR; next }
        FNR <= n {
            words = split(shown[FNR], want, /[ ,]+/)
            if (words != split($0, got, /[ ,]+/)) bad = 1
            for (i = 1; i <= words; i++)
                if (is_number(want[i]) && is_number(got[i]) ? differ(got[i], want[i]) : want[i] != got[i]) bad = 1
            if (bad) { print "# shown:   " shown[FNR]; print "# printed: " $0; exit }
            seen++
        }
        END { exit bad || n == 0 || seen != n }' "$1" "$2"
}

# --- the start ---

sh "$top/tools/demo" "$(dirname "$bin")" >demo 2>err <&- && tail -n 3 demo >last
cat err demo | grep '^target [12]:\|^echoes that' >last
block pnradar '' 2 >shown
alike shown last
report $? "make demo ends as shown"

# --- the first recording ---

block 'Your first recording' ini 1 >my.conf
perform 'Your first recording' 1 && block 'Your first recording' '' 1 >shown && alike shown out
report $? "the first recording gives the table that is shown"
pnradar-plan -c my.conf >out 2>err && grep -q unambiguous out
report $? "its plan is printed"
block 'Your first recording' '' 2 >shown
sed -n 's/^\$ //p' shown >commands
PNR_LOG=quiet sh commands >out 2>err
grep '^pnradar: error' err >message
tail -n 1 shown | cmp -s - message
report $? "the unknown key is refused in these words"

# --- live ---

perform Live 1 && grep -q '100 results received, 0 lost' err
report $? "a live stream is received"
if [ -n "$python" ]; then
    block 'Read the results' python 1 | sed "s|tcp://127.0.0.1:5555|$address|" >reader.py
    timeout 120 "$python" reader.py >heard 2>err &
    block Live sh 1 | sed '/^pnradar-listen/d' >commands
    timeout 120 sh -e commands >out 2>&1 </dev/null
    wait
    block 'Read the results' '' 1 >shown
    [ "$(wc -l <heard)" -ge 100 ] && alike shown heard
    report $? "the subscriber in Python prints what is shown"
else
    skip "the subscriber in Python prints what is shown" "no python3 with zmq"
fi

# --- recipes ---

perform GPS 1 && echoes gps.csv '{ delay = f("delay_samples")
    if (f("code") == 1 && delay > 522 && delay < 525 || f("code") == 2 && delay > 3703 && delay < 3706) good++
    else bad++ }'
report $? "GPS: both satellites, at their code phases"
if command -v gnuplot >/dev/null 2>&1; then
    perform Doppler 1 && grep -q 'cars.png: cars: mean of 10 maps' err && [ -s cars.png ]
    report $? "Doppler: a picture of ten maps"
else
    skip "Doppler: a picture of ten maps" "no gnuplot"
fi
perform Ionosonde 1 && [ "$(grep -c '"range_m":11[01]' sounder.json)" -ge 19 ] && [ "$(wc -l <sounder.json)" -eq 20 ]
report $? "ionosonde: the E layer in 20 results"
perform Sonar 1 && echoes sonar.csv '{ range = f("range_m")
    if (range > 4.3 && range < 4.34) good++ }'
report $? "sonar: the wall"
perform 'Sound card' 1 && echoes room.csv '{ range = f("range_m")
    if (range > 4.3 && range < 4.34) good++ }'
report $? "sound card: the wall"
perform rtl_sdr 1 && echoes rtl.csv '{ if (f("range_m") > 19900 && f("range_m") < 20100) good++; else bad++ }'
report $? "rtl_sdr: the echo and no other"
perform 'GNU Radio' 1 && echoes graph.csv '{ if (f("range_m") > 109000 && f("range_m") < 112000) good++ }'
report $? "GNU Radio: the E layer"

if [ -e "$top/.git" ] && git -C "$top" rev-parse >/dev/null 2>&1; then
    for file in *.*; do
        [ "$file" = flowgraph.py ] || ! grep -qwF "$file" "$top/README.md" || echo "$file"
    done >made
    git -C "$top" check-ignore --no-index --stdin <made >ignored
    [ "$(wc -l <made)" -ge 12 ] && diff made ignored >out
    report $? "git ignores the files that the recipes make in the clone"
else
    skip "git ignores the files that the recipes make in the clone" "no clone"
fi

# --- the page itself ---

grep -o '](\([^)#]*\)[^)]*)' "$top/README.md" | sed 's/](\([^)#]*\).*/\1/' | sort -u | while read -r file; do
    [ -z "$file" ] || [ -e "$top/$file" ] || echo "$file"
done >missing
[ ! -s missing ] || { sed 's/^/# no such file: /' missing; false; }
report $? "every link leads to a file"
[ "$(wc -c <"$top/README.md")" -lt 13000 ]
report $? "README.md stays short"
[ "$(head -c 4 "$top/tools/view/page.png" | tail -c 3)" = PNG ]
report $? "the picture is one"
plan
