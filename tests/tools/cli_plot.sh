#!/bin/sh
# SPDX-License-Identifier: MIT
# Tests the pictures of pnradar --plot: formats, options, marks, text, and the protection of other
# files.
# usage: cli_plot.sh BIN_FOLDER; prints TAP.
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/tap.sh"
find_python sys

# These 14 lines describe the radar.
cat >"$work/radar.conf" <<END
[source]
rate_hz = 1e6
format = ci16
[code]
type = m-sequence
degree = 9
epoch = 100
[radar]
zero_delay_s = 3.3e-6
carrier_hz = 1e9
max_range_m = 60000
[publisher]
endpoint =
linger_s = 0
END
cat >"$work/scene.conf" <<END
[echo]
periods = 320
noise_rms = 0.05
[target.1]
range_m = 20000.5
velocity_mps = 60
amplitude = 0.1
[target.2]
range_m = 40000
velocity_mps = -90
amplitude = 0.03
END
"$bin/pnradar-echo" -c "$work/radar.conf" -c "$work/scene.conf" "$work/echo.ci16" 2>"$work/err"
report $? "a recording is made"
doppler="-s dwell.combine=doppler -s dwell.periods=16 -s dwell.taper=blackman-harris"

program() {
    PNR_LOG=info "$pnradar" -c "$work/radar.conf" "$@" "$work/echo.ci16"
}
# only FILE...: succeeds if the folder of pictures has these files and no others
pictures=$work/pictures
mkdir "$pictures"
only() {
    found=$(find "$pictures" -mindepth 1 -printf x | wc -c)
    [ "$found" -eq $# ] || { echo "# $found files, not $#:" && ls -A "$pictures" && return 1; }
    for name; do
        [ -f "$pictures/$name" ] || return 1
    done
}
# begins FILE TEXT: succeeds if the first four bytes of the file are TEXT
begins() {
    [ "$(head -c 4 "$1" | od -An -c | tr -d ' \n')" = "$2" ]
}

# --- refused arguments ---

mkdir "$work/empty" "$work/stub"
PATH=$work/empty status 69 --plot "$pictures/a.png" && says 'gnuplot-nox'
report $? "a missing gnuplot is reported before the run, with its package"
status 64 --plot "$pictures/a.gif" && says '.png, .svg or .pdf'
report $? "another format is refused, with those that work"
bad=0
status 74 --plot "$work/none/a.png" && says none || bad=1
mkdir "$pictures/d.png" && status 78 --plot "$pictures/d.png" || bad=1
rmdir "$pictures/d.png"
ln -s "$work/victim" "$pictures/l.png" && status 78 --plot "$pictures/l.png" && [ ! -e "$work/victim" ] || bad=1
rm "$pictures/l.png"
cp "$work/echo.ci16" "$pictures/r.png" && status 78 --plot "$pictures/r.png" && says 'not replaced' &&
    cmp -s "$work/echo.ci16" "$pictures/r.png" || bad=1
rm "$pictures/r.png"
report $bad "no folder, link or recording is replaced"
status 64 --size 800x600 && says plot && status 64 --plot "$pictures/a.png" --size 800 && says 'WIDTHxHEIGHT' &&
    status 64 --plot "$pictures/a.png" --map best && says 'mean, last or time' &&
    status 64 --plot "$pictures/a.png" --code 2 && says '2: want at most 1,'
report $? "options that draw nothing are refused"

# --- file names and text are never commands ---

cd "$pictures" || exit 1
if command -v gnuplot >/dev/null 2>&1; then
    name="|touch p
system 'touch q'
\"\`touch r\`\$(touch s).png"
    status 0 --quiet --plot "$name" && begins "$pictures/$name" '211PNG' && only "$name"
    report $? "a name of commands, quotes and newlines is a name"
    rm -f "$pictures/"*
    status 0 --quiet --plot a.png -s "stream.name=it's\`touch\`{=9x}@y|\$x;#\\\\" && only a.png && ! says warning >/dev/null
    report $? "a stream's name of quotes, backquotes and braces is text"
    status 0 --print table --plot a.png && only a.png && [ "$(grep -c '^ *[0-9]' "$work/out")" -eq 640 ] &&
        begins a.png '211PNG'
    report $? "a table and a picture from one command, and the picture replaces the one before"
    for format in svg pdf; do
        status 0 --quiet --plot "a.$format" || bad=1
    done
    begins a.svg '<?xm' && begins a.pdf '%PDF' && [ $bad -eq 0 ]
    report $? "SVG and PDF by the extension"
    status 0 --quiet --plot a.png --size 640x480 &&
        [ "$(od -An -tx1 -j16 -N8 a.png | tr -d ' \n')" = 00000280000001e0 ]
    report $? "--size is that of the file"

    # A limit of the file size, whose signal is ignored, acts as a full disk.
    cp a.png before.png
    # shellcheck disable=SC2016
    (trap '' XFSZ && ulimit -f 48 && PNR_LOG=quiet "$pnradar" -c "$work/radar.conf" --quiet --plot a.png --size 4000x3000 \
        -s radar.max_range_m=500 "$work/echo.ci16" 2>"$work/err")
    [ $? -eq 74 ] && says 'a.png: File too large' && cmp -s a.png before.png && rm before.png && only a.png a.svg a.pdf
    report $? "a picture that does not fit is an error, and the old one stays"
    rm -f "$pictures/"*
else
    for name in name stream replaced formats size full; do
        skip "pictures: $name" "no gnuplot"
    done
fi

# --- the commands for gnuplot ---

cat >"$work/stub/gnuplot" <<END
#!/bin/sh
printf '\\211PNG'
cat >"$work/commands"
END
chmod +x "$work/stub/gnuplot"
real_path=$PATH
PATH=$work/stub:$PATH
# draws PATTERN ARGUMENT...: succeeds if a command for gnuplot matches PATTERN
draws() {
    pattern=$1
    shift
    status 0 --quiet --plot a.png "$@" || return 1
    grep -q -e "$pattern" "$work/commands" || { echo "# no '$pattern':" && grep -v '^[-0-9]' "$work/commands" | sed 's/^/# /'; false; }
}
# marks: prints the number of rings
marks() {
    awk '/^\$marks/ { inside = 1; next } /^end_of_block/ { inside = 0 } inside { n++ } END { print n + 0 }' "$work/commands"
}
draws "^set xlabel 'time, ms' noenhanced$" && [ "$(marks)" -eq 2 ] && says '320 profiles, 640 echoes; 2 tracks' &&
    draws "border lc rgb 'black' lw 4.5 .*border lc rgb 'white' lw 1.5" && ! grep -q '^set output' "$work/commands"
report $? "a picture needs no key of the publisher, and a track has one mark with two edges"
# shellcheck disable=SC2086
draws "from sample 100; m-sequence n=9 taps=9,4; dwell 8.176.*ms; 1.*Msps" $doppler && [ "$(marks)" -eq 2 ] &&
    says 'mean of 20 maps, 40 echoes' && draws '2026-11-22T10:00:00.000100000Z; m-seq' -s source.start_time=2026-11-22T10:00:00Z
report $? "the title has date or sample, code, dwell and rate"
# ranges DB: succeeds if the colours begin DB below the greatest power that is drawn, and end there
ranges() {
    draws '^set cbrange' --range-db "$1" || return 1
    awk -v range="$1" '/^set cbrange/ { gsub(/\[|\]/, "", $3); split($3, ends, ":") }
        /^\$map/ { inside = 1; next } /^end_of_block/ { inside = 0 }
        inside { for (i = 1; i <= NF; i++) greatest = $i > greatest ? $i : greatest }
        END { below = greatest - ends[1] - range; above = ends[2] - greatest
            print "# " ends[1] " to " ends[2] ", the greatest " greatest
            exit !(below * below < 0.01 && above * above < 0.01) }' "$work/commands"
}
draws '^set cbrange \[0:[234]' && ranges 60 && ranges 4
report $? "--range-db is the range of the colours, which end at the greatest power"
# places WIDTH HEIGHT: the drawn map has places of 1.5 pixels or more on a sheet of this size, and more than half as many as fit
places() {
    awk -v width="$1" -v height="$2" '/^\$map/ { inside = 1; next } /^end_of_block/ { inside = 0 }
        inside { rows++; columns = NF }
        END { print "# " columns " columns, " rows " rows"
            exit !(rows <= 0.77 * height / 1.5 && rows > 0.2 * height && columns <= 0.72 * width / 1.5) }' "$work/commands"
}
# 800 cells of range; 320 results over time, or 240 rows of Doppler
# shellcheck disable=SC2086
draws matrix --size 1500x1000 && places 1500 1000 && draws matrix --size 400x300 && places 400 300 &&
    draws matrix --size 400x300 $doppler -s dwell.periods=240 && places 400 300
report $? "a line of an echo is at least 1.5 pixels wide"
cat >"$work/two.conf" <<END
[code.1]
type = gold
degree = 9
index = 0
[code.2]
type = gold
degree = 9
index = 1
END
sed -i 's/^type = .*/type = gold\nindex = 0/' "$work/radar.conf"
"$bin/pnradar-echo" -c "$work/radar.conf" -c "$work/scene.conf" "$work/echo.ci16" 2>"$work/err"
sed -i '/^type\|^degree\|^index/d' "$work/radar.conf"
draws '; the greatest of 2 codes; ' -c "$work/two.conf" && [ "$(marks)" -ge 2 ] &&
    draws '; code 1 (index 0); ' -c "$work/two.conf" --code 1 && says '320 profiles, 6[0-9][0-9] echoes; 2 tracks' &&
    draws '; code 2\( (index 1)\)*; ' -c "$work/two.conf" --code 2 && says '320 profiles, [0-9] echoes' &&
    status 64 --quiet --plot a.png -c "$work/two.conf" --code 3 && says '3: want at most 2,' && ! says 'end of input' >/dev/null
report $? "--code shows one code, counted as its section, and a code beyond the last is refused before the run"
PATH=$real_path

# --- text ---

# Every line of a title has the greatest width that fits.
long="WWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWW"
if command -v gnuplot >/dev/null 2>&1 && [ -n "$python" ]; then
    sed -i 's/^\[code\]/[code]\ntype = gold\ndegree = 9\nindex = 0/' "$work/radar.conf"
    rm -f "$pictures/"*
    bad=0
    for size in 400x300 800x600 1000x300 400x900; do
        for kind in png svg; do
            status 0 --quiet --plot "time-$size.$kind" --size $size -s "stream.name=$long" || bad=1
            # shellcheck disable=SC2086
            status 0 --quiet --plot "map-$size.$kind" --size $size $doppler -s source.start_time=2026-11-22T10:00:00Z \
                -s radar.carrier_hz=3e6 || bad=1
        done
    done
    status 0 --quiet --plot default.svg || bad=1
    "$python" "$here/picture_text.py" "$pictures"/* >"$work/out" && [ $bad -eq 0 ]
    report $? "no text is cut, and none overlaps other text"
    sed 's/font-size="[0-9.]*"/font-size="60"/' default.svg >"$work/large.svg"
    gnuplot -d >"$work/cut.png" <<END
set terminal pngcairo size 400,300
set margins 0, 0, 0, 0
plot x
END
    ! "$python" "$here/picture_text.py" "$work/large.svg" >"$work/out" && grep -q 'overlaps' "$work/out" &&
        grep -q 'is cut' "$work/out" && ! "$python" "$here/picture_text.py" "$work/cut.png" >"$work/out"
    report $? "the judge of text sees what is cut or overlaps"
else
    skip "no text is cut, and none overlaps other text" "no gnuplot or no python3"
    skip "the judge of text sees what is cut or overlaps" "no gnuplot or no python3"
fi
plan
