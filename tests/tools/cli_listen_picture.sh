#!/bin/sh
# SPDX-License-Identifier: MIT
# Tests the pictures of pnradar-listen: the data for gnuplot against the truth, PNG files, and the
# terminal.
# usage: cli_listen_picture.sh BIN_FOLDER; prints TAP.
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/tap.sh"
find_python zmq
[ -n "$python" ] || find_python sys # without zmq one case less

program() {
    "$bin/pnradar-listen" -c "$work/radar.conf" "$@"
}

# plot EXPECTED PNG LISTENER_ARGUMENT... -- PUBLISHER_ARGUMENT...: a publisher runs, and the listener draws
# the picture PNG and must end with the status EXPECTED
plot() {
    expected=$1
    png=$2
    shift 2
    hear "$expected" --strict --plot "$png" "$@"
}

cat >"$work/radar.conf" <<END
[stream]
name = test
[source]
rate_hz = 1e6
format = ci16
[code]
type = m-sequence
degree = 9
epoch = 100
[radar]
zero_delay_s = 3.3e-6
[publisher]
endpoint = ipc://$work/socket
high_water = 100000
linger_s = 60
[echo]
periods = 60
noise_rms = 0.05
[target.1]
range_m = 20000.5
velocity_mps = 200000
amplitude = 0.1
[target.2]
range_m = 40000
amplitude = 0.03
END
"$bin/pnradar-echo" -c "$work/radar.conf" --truth "$work/truth.csv" "$work/echo.ci16" 2>"$work/err"
report $? "a recording is made"

# --- refused arguments ---

mkdir "$work/empty" "$work/stub"
bad=0
PATH=$work/empty status 69 --plot "$work/a.png" "ipc://$work/nobody" && says gnuplot || bad=1
[ ! -s "$work/out" ] || bad=1
report $bad "a missing gnuplot is named before anything else"

cat >"$work/stub/gnuplot" <<'END'
#!/bin/sh
printf '\211PNG'
tee "$STUB/commands"
END
chmod +x "$work/stub/gnuplot"
export STUB="$work"
real_path=$PATH
PATH=$work/stub:$PATH

status 64 --plot "$work/a.png" --all && says all
report $? "a picture is of one stream"
status 74 --plot "$work/none/a.png" && says none
report $? "a picture that can have no file is refused at once"
status 64 --live && says terminal
report $? "--live needs a terminal"
status 64 --live --format csv && says format
report $? "--live prints no results"

# --- the data for gnuplot ---

# Compares the strongest cell of each column, and every mark or echo, with the truth at its time.
cat >"$work/check.py" <<'END'
import csv, re, sys

commands, truth_path, period, want_columns, want_empty, map_tolerance_m = sys.argv[1:7]
period, map_tolerance_m = int(period), float(map_tolerance_m)
text = open(commands).read()
assert "set terminal pngcairo" in text and "set output" not in text

def block(name):
    found = re.search(r"^\$%s << end_of_block\n(.*?)^end_of_block$" % name, text, re.M | re.S)
    return [[float(f) for f in line.split()] for line in found.group(1).splitlines()]

unit_m = {"km": 1e3, "m": 1.0}[re.search(r"set ylabel 'range, (\w+)'", text).group(1)]
unit_s = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "samples": 1e-6}[
    re.search(r"set xlabel '.*, (\w+)'", text).group(1)]
truth = {}
for row in csv.DictReader(open(truth_path)):
    truth.setdefault(int(row["sample"]) // period, {})[int(row["target"])] = float(row["range_m"])

def nearest(time_s, target, range_m, half):
    """The distance to the target's ranges of the dwells within half a column of this time."""
    dwells = range(int((time_s - half) * 1e6 // period), int((time_s + half) * 1e6 // period) + 1)
    return min([abs(range_m - truth[d][target]) for d in dwells if d in truth] or [1e9])

if want_columns != "0":
    grid = re.search(r"\((\S+)\+(\S+)\*\$1\):\((\S+)\+(\S+)\*\$2\)", text)
    x0, dx, y0, dy = (float(g) for g in grid.groups())
    rows = block("map")
    assert len(rows) <= 1000 and len(rows[0]) == int(want_columns) <= 2000, (len(rows), len(rows[0]))
    assert all(len(r) == len(rows[0]) for r in rows)
    empty = 0
    for c in range(len(rows[0])):
        column = [r[c] for r in rows]
        if max(column) == -999:
            empty += 1
            continue
        best = max(range(len(rows)), key=lambda r: column[r])
        error_m = nearest((x0 + c * dx) * unit_s, 1, (y0 + best * dy) * unit_m, dx * unit_s / 2 - 1e-9)
        assert error_m <= map_tolerance_m, (c, best, error_m)
        assert 25 < column[best] < 45, column[best]
    assert empty == int(want_empty), empty
    half = dx * unit_s / 2
else:
    assert "$map" not in text and "palette" in text
    half = 0.5 * period * 1e-6
seen = {1: 0, 2: 0}
for x, y, snr_db in block("echoes" if want_columns == "0" else "marks"):
    errors_m = {t: nearest(x * unit_s, t, y * unit_m, half) for t in seen}
    target = min(errors_m, key=errors_m.get)
    assert errors_m[target] < 60, (x, y, errors_m)
    seen[target] += 1
    assert abs(snr_db - {1: 33, 2: 22.6}[target]) < 4, snr_db
print(seen)
assert sys.argv[7:] == [] or [seen[1], seen[2]] == [int(a) for a in sys.argv[7:]], seen
END

# checks COLUMNS EMPTY TOLERANCE_M ECHOES_1 ECHOES_2: succeeds if the picture has COLUMNS columns,
# EMPTY of them without power, if each strongest cell is within TOLERANCE_M of the truth, and if
# targets 1 and 2 have these numbers of echoes or marks
checks() {
    "$python" "$work/check.py" "$work/commands" "$work/truth.csv" 511 "$@" >"$work/checked" 2>&1 ||
        { sed 's/^/# /' "$work/checked" "$work/err"; false; }
}

plot 0 "$work/stub.png" -- -s publisher.profile=power && says '60 results received, 0 lost' &&
    says '60 profiles received, 0 missed' && checks 60 0 80 1 1 && [ "$(grep -c '^[0-9]' "$work/out")" -eq 120 ]
report $? "the map's strongest cells and one mark a target lie where the targets were, and the table is printed too"

plot 0 "$work/stub.png" -- -s publisher.profile=complex -s detector.oversample=2 -s radar.min_range_m=-3000 \
    -s radar.max_range_m=45000 && says '60 profiles received, 0 missed' && checks 60 0 80 1 1
report $? "complex profiles of a gate, two cells a lag"
sed -n 's/^set yrange \[\([^:]*\):\(.*\)\]/\1 \2/p' "$work/commands" |
    awk '!($1 > -3.1 && $1 < -2.9 && $2 > 44.9 && $2 < 45.1) { exit 1 }'
report $? "the picture shows the gate"

plot 0 "$work/stub.png" --count 10 -- -s publisher.profile=power && says '10 results received, 0 lost' &&
    [ "$(grep -c '^[0-9]' "$work/out")" -eq 20 ]
report $? "--count ends after ten results with a picture too"

plot 3 "$work/stub.png" -- -s publisher.profile=power -s source.lost=1022+1022 && says '60 results received, 0 lost' &&
    awk '/^\$map/ { getline; print ($3 == -999 && $4 == -999 && $2 != -999 && $5 != -999) }' "$work/commands" |
    grep -q 1
report $? "where nothing came the map is empty, and the loss is told as without a picture"

plot 0 "$work/stub.png" -- -s publisher.profile=power -s dwell.combine=incoherent -s dwell.periods=4 &&
    says '15 profiles received, 0 missed'
report $? "dwells of four periods are columns four periods wide"

plot 0 "$work/stub.png" -- -s publisher.profile=off && says 'carries no profiles' && checks 0 0 0 60 60
report $? "without profiles the echoes are the picture, and it is said"
grep -q "from sample 100; m-sequence, 511 chips; dwell 511.*us; 1.*Msps" "$work/commands"
report $? "their title has date or sample, code, dwell and rate, too"
plot 0 "$work/stub.png" --code 1 -- -s dwell.combine=incoherent -s dwell.periods=2 -s dwell.looks=2 -s publisher.pack=7 &&
    grep -q "; code 1; dwell 2.044.*ms; 1.*Msps" "$work/commands"
report $? "the dwell of packed results is all of its periods"
plot 0 "$work/stub.png" -- -s publisher.profile=power -s publisher.pack=7 && checks 60 0 80 1 1
report $? "packed results beside profiles"
plot 0 "$work/stub.png" --count 1 -- -s publisher.profile=power -s detector.max_echoes=1 &&
    says ': 1 profile, 1 echo;' && plot 0 "$work/stub.png" --count 1 -- -s detector.max_echoes=1 && says ': 1 echo of 1 dwell'
report $? "one of each has no plural"

plot 65 "$work/stub.png" -- -s detector.pfa=1e-12 -s radar.min_range_m=60000 \
    -s radar.max_range_m=61000 && says 'no echo and no profile to draw'
report $? "a run without echoes and profiles is no picture"

# 4500 dwells make 563 columns of eight dwells.
mv "$work/echo.ci16" "$work/short.ci16"
mv "$work/truth.csv" "$work/short.csv"
"$bin/pnradar-echo" -c "$work/radar.conf" -s code.degree=5 -s echo.periods=4500 -s echo.noise_rms=0.01 \
    -s target.1.range_m=600 -s target.1.velocity_mps=14000 -s target.2.amplitude=1e-9 \
    --truth "$work/truth.csv" "$work/echo.ci16" 2>"$work/err"
plot 0 "$work/stub.png" -- -s code.degree=5 -s publisher.profile=power && says 'greatest of 8 dwells' &&
    awk '/^\$map/ { getline; exit NF != 563 }' "$work/commands" && says '4500 profiles received, 0 missed' &&
    grep -q '^set xrange \[0:139\.624\]' "$work/commands"
report $? "a long run is decimated in time"

# --- maps ---

# In these 20 maps of 16 periods a row is a Doppler of 1 / (16 Tr), which is 18.3 m/s.
cat >"$work/map.py" <<'END'
import re, sys

text = open(sys.argv[1]).read()

def block(name):
    found = re.search(r"^\$%s << end_of_block\n(.*?)^end_of_block$" % name, text, re.M | re.S)
    return [[float(f) for f in line.split()] for line in found.group(1).splitlines()]

targets = ((20.0005, 60, 30), (40, -90, 20))
assert "velocity towards the radar, m/s" in text and "set ylabel 'range, km'" in text
grid = re.search(r"\((\S+)\+(\S+)\*\$1\):\((\S+)\+(\S+)\*\$2\)", text)
x0, dx, y0, dy = (float(g) for g in grid.groups())
low, high = (float(g) for g in re.search(r"^set xrange \[(\S+):(\S+)\]", text, re.M).groups())
assert abs(low - (x0 - dx / 2)) < 1e-6 and abs(high - low - 16 * dx) < 1e-6, (low, high, x0, dx)
assert abs(dx - 1 / (16 * 511e-6) * 0.149896229) < 1e-3, dx
cells = block("map")
assert len(cells[0]) == 16 and len(cells) == 400, (len(cells), len(cells[0]))
for range_km, velocity, least_db in targets:
    db, r, c = max((cells[r][c], r, c) for r in range(len(cells)) for c in range(16)
                   if abs(y0 + r * dy - range_km) < 1)
    assert db > least_db and abs(y0 + r * dy - range_km) < 0.16, (db, r, c)
    assert abs(x0 + c * dx - velocity) < dx, (velocity, x0 + c * dx)
marks = block("marks")
for x, y, snr_db in marks:
    assert any(abs(y - range_km) < 0.2 and abs(x - velocity) < 5
               for range_km, velocity, least_db in targets), (x, y)
assert len(marks) == 2, len(marks)
END

map_is() {
    "$python" "$work/map.py" "$work/commands" >"$work/checked" 2>&1 ||
        { sed 's/^/# /' "$work/checked" "$work/err"; false; }
}
"$bin/pnradar-echo" -c "$work/radar.conf" -s radar.carrier_hz=1e9 -s target.1.velocity_mps=60 \
    -s target.2.velocity_mps=-90 -s echo.periods=320 "$work/echo.ci16" 2>"$work/err"
set -- -s engine.name=reference -s publisher.profile=power -s radar.carrier_hz=1e9 -s dwell.combine=doppler \
    -s dwell.periods=16 -s dwell.taper=blackman-harris -s radar.max_range_m=60000
plot 0 "$work/stub.png" -- "$@" && says '20 results received, 0 lost' && says '20 profiles received, 0 missed' &&
    says 'mean of 20 maps, 40 echoes' && map_is
report $? "the mean map's strongest cells and one mark a target lie at the targets' ranges and velocities"
plot 0 "$work/stub.png" --map last -- "$@" && says 'the last of 20 maps' && map_is
report $? "the last map, and the marks of its own echoes"
plot 0 "$work/stub.png" --map last -- "$@" -s publisher.profile=complex && map_is
report $? "a complex map"
plot 0 "$work/stub.png" --map time -- "$@" && says 'the greatest of all rows of 20 maps, 40 echoes' &&
    grep -q "^set xlabel 'time" "$work/commands"
report $? "maps over time, by the greatest of their rows"
plot 0 "$work/stub.png" -- "$@" -s radar.carrier_hz=0 && grep -q "^set xlabel 'Doppler, Hz'" "$work/commands"
report $? "without a carrier the axis is Doppler"
status 64 --map mean && says plot
report $? "--map needs a picture"
status 64 --plot "$work/a.png" --map best && says 'mean, last or time'
report $? "a map of another kind is refused"
mv "$work/echo.ci16" "$work/map.ci16"
mv "$work/short.ci16" "$work/echo.ci16"

# --- PNGs ---

PATH=$real_path
if command -v gnuplot >/dev/null 2>&1; then
    # png FILE: succeeds if the file is a PNG of 1800 x 1000 pixels and not nearly empty
    png() {
        [ "$(od -An -tx1 -N24 "$1" | tr -d ' \n')" = 89504e470d0a1a0a0000000d4948445200000708000003e8 ] &&
            [ "$(wc -c <"$1")" -gt 10000 ]
    }
    plot 0 "$work/it's.png" -- -s publisher.profile=power && png "$work/it's.png" && ! says warning >/dev/null
    report $? "a map is drawn"
    plot 0 "$work/b.png" -- && png "$work/b.png"
    report $? "echoes are drawn"
    plot 0 "$work/c.png" --count 1 -- -s publisher.profile=power -s radar.min_range_m=20000 -s radar.max_range_m=20100 &&
        png "$work/c.png"
    report $? "one column of one cell is drawn"
    cp "$work/map.ci16" "$work/echo.ci16"
    plot 0 "$work/m.png" -- "$@" && png "$work/m.png" && ! says warning >/dev/null
    report $? "a range-Doppler map is drawn"
else
    skip "a map is drawn" "no gnuplot"
    skip "a range-Doppler map is drawn" "no gnuplot"
    skip "echoes are drawn" "no gnuplot"
    skip "one column of one cell is drawn" "no gnuplot"
fi

# --- the terminal ---

cat >"$work/live.py" <<'END'
"""The listener on a terminal of its own: what it draws, and how it leaves."""
import fcntl, os, pty, re, select, signal, struct, subprocess, sys, termios, time

binaries, work = sys.argv[1:3]
conf, n = work + "/radar.conf", 0
ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"

def tell(good, name, detail=""):
    global n
    n += 1
    print("%s %d - %s" % ("ok" if good else "not ok", n, name))
    if not good:
        print("# %r" % (detail,))

class Terminal:
    def __init__(self, size=(30, 100), locale="C.UTF-8", arguments=(), term="xterm"):
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
        self.slave, self.before = slave, termios.tcgetattr(slave)
        self.out, self.frames, self.begin = b"", 0, time.monotonic()
        def lead():
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        self.process = subprocess.Popen(
            [binaries + "/pnradar-listen", "-c", conf, "--live", "--strict", *arguments],
            stdin=slave, stdout=slave, stderr=subprocess.PIPE, preexec_fn=lead,
            env=dict(os.environ, LC_ALL=locale, TERM=term))

    def read(self, seconds, until=None):
        end = time.monotonic() + seconds
        while time.monotonic() < end and not (until and re.search(until, self.out)):
            if select.select([self.master], [], [], 0.05)[0]:
                self.out += os.read(self.master, 65536)
            elif self.process.poll() is not None:
                break
        return until and re.search(until, self.out)

    def finish(self, seconds=30):
        """The exit status, once everything was read."""
        end = time.monotonic() + seconds
        while self.process.poll() is None and time.monotonic() < end:
            self.read(0.1)
        self.read(0.2)
        self.seconds = time.monotonic() - self.begin
        if self.process.poll() is None:
            self.process.kill()
        self.err = self.process.communicate()[1].decode()
        return self.process.returncode

    def restored(self):
        return (termios.tcgetattr(self.slave) == self.before and self.out.count(ENTER) == 1
                and self.out.count(LEAVE) == 1 and b"\x1b[?25h" in self.out.split(ENTER)[1])

    def rows(self):
        """The rows of the last frame drawn in place, as a terminal without line wrapping shows them."""
        width = struct.unpack("HHHH", fcntl.ioctl(self.master, termios.TIOCGWINSZ, bytes(8)))[1] or 80
        screen = self.out.split(LEAVE)[0].split(b"\x1b[1;1H")[-1].decode("utf-8", "replace")
        def show(row):
            cells = [" "] * width
            at = 0
            for token in re.findall(r"\x1b\[[?0-9;]*[a-zA-Z]|.", row):
                if token == "\x1b[K": # erases from the cursor on; the cursor never leaves the row
                    cells[at:] = [" "] * (width - at)
                elif len(token) == 1:
                    cells[at] = token
                    at = min(at + 1, width - 1)
            return "".join(cells).rstrip()
        return [show(row) for row in re.split(r"\x1b\[\d+;1H", screen)]

def publish(*arguments, pace="real-time", recording="/echo.ci16"):
    return subprocess.Popen(
        [binaries + "/pnradar", "-c", conf, "-s", "publisher.wait_s=30", "-s", "source.pace=" + pace,
         *arguments, work + recording], stderr=subprocess.DEVNULL)

# Draws a whole run.
t, p = Terminal(), publish("-s", "publisher.profile=power")
drawn = t.read(20, rb"threshold \d+\.\d dB")
status = t.finish()
p.wait()
tell(drawn and status == 0 and t.restored(), "a run is shown, and the terminal is as it was", (status, t.err, t.out[-300:]))
tell("3000 results received, 0 lost" in t.err and "complete: end of input" in t.err, "the account is as true as ever", t.err)
rows = t.rows()
text = "\n".join(rows)
tell(len(rows) == 30 and all(len(r) <= 100 for r in rows), "a frame fills the terminal, and no more", rows)
tell("noise floor" in text and "▂" in text and "dB┤" in text and "┴" in text
     and re.search(r"^km +10 +20 ", text, re.M) is not None, "profile, noise floor, threshold and ranges", rows)
listed = re.findall(r"^ ?([12]) +([\d.]+) km +([\d.]+) m +([\d.]+) dB", text, re.M)
tell(len(listed) == 2 and abs(float(listed[0][1]) - 20) < 0.1 and abs(float(listed[1][1]) - 40) < 0.1
     and abs(float(listed[0][3]) - 33) < 3, "echoes with range and SNR", (listed, rows))

def column(mark):
    for row in rows[2:18]:
        at = row.find(mark, 7)
        if at > 0 and row[max(at - 3, 7):at].strip("─╌ ▁▂▃▄▅▆▇█") == "":
            return at
    return -1
bounds = [7 + (r / 0.149896229 + 0.5) / 511 * 93 for r in (20.0005, 40)]
tell(all(abs(column(m) - b) <= 1.5 for m, b in zip("12", bounds)), "echoes are marked at their ranges", (column("1"), column("2"), bounds, rows))
frames = t.out.count(b"\x1b[1;1H")
tell(4 <= frames <= 10 * t.seconds + 2, "at most ten frames a second", (frames, t.seconds))
last = t.out.split(LEAVE)[1].decode()
tell("threshold" in last and "seq 2999" in last and "\x1b" not in last, "the last frame stays", last)

# Ends the program by each key and by each signal.
for how, want in (("q", 0), ("ctrl-c", 0), ("term", 0), ("hang up", 0), ("quit", -signal.SIGQUIT), ("twice", 130)):
    t, p = Terminal(), publish("-s", "publisher.profile=power")
    t.read(20, rb"threshold")
    if how == "q":
        os.write(t.master, b"xq")
    elif how == "ctrl-c":
        os.write(t.master, b"\x03")
    elif how == "twice":
        os.kill(t.process.pid, signal.SIGSTOP)
        os.kill(t.process.pid, signal.SIGTERM)
        time.sleep(0.1)
        os.kill(t.process.pid, signal.SIGINT)
        os.kill(t.process.pid, signal.SIGCONT)
        want = (128 + signal.SIGINT, 128 + signal.SIGTERM)
    else:
        os.kill(t.process.pid, {"term": signal.SIGTERM, "hang up": signal.SIGHUP, "quit": signal.SIGQUIT}[how])
    status = t.finish()
    p.kill()
    p.wait()
    tell((status in want if how == "twice" else status == want) and t.restored(), "left by " + how,
         (status, t.err, t.out[-200:], t.out.count(LEAVE), termios.tcgetattr(t.slave) == t.before))

# Draws on other kinds of terminal.
t, p = Terminal(locale="C"), publish("-s", "publisher.profile=complex")
t.read(20, rb"threshold")
os.write(t.master, b"q")
status = t.finish()
p.kill(); p.wait()
tell(status == 0 and all(c < 128 for c in t.out) and b"#" in t.out, "plain characters where UTF-8 is not the locale's", t.out[-500:])

t, p = Terminal(size=(0, 0)), publish("-s", "publisher.profile=power")
t.read(20, rb"threshold")
os.write(t.master, b"q")
status = t.finish()
p.kill(); p.wait()
tell(status == 0 and len(t.rows()) == 24 and max(map(len, t.rows())) == 80, "80 x 24 when the terminal does not say", t.rows())

t, p = Terminal(size=(5, 20)), publish("-s", "publisher.profile=power")
small = t.read(20, rb"too small")
fcntl.ioctl(t.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
big = t.read(20, rb"threshold")
os.write(t.master, b"q")
status = t.finish()
p.kill(); p.wait()
tell(small and big and status == 0 and len(t.rows()) == 40, "a terminal that is too small says so, and may grow", t.rows())

t, p = Terminal(), publish("-s", "publisher.profile=off")
none = t.read(20, rb"publisher.profile = power")
table = t.read(20, rb"20\.\d+ km")
os.write(t.master, b"q")
status = t.finish()
p.kill(); p.wait()
tell(none and table and status == 0, "without profiles the echoes are a table, and it is said", t.rows())

# Draws a map.
def show_map(locale, *arguments, size=(30, 100)):
    t = Terminal(locale=locale, size=size, arguments=("--follow",))
    p = publish("-s", "engine.name=reference", "-s", "publisher.profile=power", "-s", "dwell.combine=doppler",
                "-s", "dwell.periods=16", "-s", "dwell.taper=blackman-harris", "-s", "radar.max_range_m=60000",
                *arguments, pace="real-time", recording="/map.ci16")
    end = time.monotonic() + 20
    while time.monotonic() < end and not ("20 received" in "".join(t.rows()[:3]) and t.rows()[-1].endswith(" dB")):
        t.read(0.1)
    p.wait()
    os.write(t.master, b"q")
    status = t.finish()
    return t, status, t.out.split(LEAVE)[1].decode().splitlines()

t, status, last = show_map("C.UTF-8", "-s", "radar.carrier_hz=1e9")
text = "\n".join(last)
rows = [row for row in last[2:] if re.match(r"^ *(-?[\d.]+┤|      )", row)][:16]
tell(status == 0 and t.restored() and "20 results received, 0 lost" in t.err and len(rows) == 16, "a map is shown",
     (status, t.err, last))
tell(re.search(r" 0  ·░░▒▒▓█ \d+ dB", text) and re.search(r"^m/s +[─┴]+$", text, re.M) and re.search(r"^km +10 +20 ", text, re.M)
     and re.search(rb"\x1b\[0;38;5;(77|155|226)m", t.out), "its scale, its axes and its colours", last)
columns = [7 + (r / 0.149896229 + 0.5) / 400 * 93 for r in (20.0005, 40)]
places = [[(i, row.find(mark, 7)) for i, row in enumerate(rows) if row.find(mark, 7) > 0] for mark in "12"]
# A row is 18.3 m/s, and the ninth row from below is 0. So 60 m/s is 3 rows above it, and -90 m/s is
# 5 rows below it.
tell(all(len(found) == 1 and abs(found[0][1] - column) <= 1.5 and abs(found[0][0] - row) <= 1
         for found, column, row in zip(places, columns, (7 - 3, 7 + 5))), "echoes are marked on it", (places, columns, last))
listed = re.findall(r"^ ?([12]) +([\d.]+) km .* (-?[\d.]+) m/s$", text, re.M)
tell(len(listed) == 2 and abs(float(listed[0][2]) - 60) < 3 and abs(float(listed[1][2]) + 90) < 3,
     "and listed with their velocities", (listed, last))
t, status, last = show_map("C.UTF-8", "-s", "radar.zero=direct-path", "-s", "radar.zero_search_m=100")
tell(status == 0 and "zero 3.3000 us (not seen)" in last[1], "a zero delay that is tracked is shown", last)
t, status, last = show_map("C", "-s", "radar.carrier_hz=0")
text = "\n".join(last)
tell(status == 0 and all(c < 128 for c in t.out) and "0  .:-=+%# " in text and re.search(r"^Hz +[-+]+$", text, re.M),
     "a map in plain characters, by Doppler", last)

# The ticks are round numbers, and no label is cut, at any width.
for width in (60, 80, 200):
    t, status, last = show_map("C.UTF-8", "-s", "radar.carrier_hz=1e9", "-s", "radar.zero=direct-path", "-s",
                               "radar.zero_search_m=100", size=(24, width))
    dopplers = [float(v) for v in re.findall(r"^ *(-?[\d.]+)┤", "\n".join(last), re.M)]
    axis = [row for row in last if row.startswith("km ")][-1]
    ranges = [float(v) for v in axis.split()[1:]]
    steps = {round(b - a, 6) for v in (dopplers[::-1], ranges) for a, b in zip(v, v[1:])}
    tell(status == 0 and max(map(len, last)) <= width and len(dopplers) >= 2 and len(ranges) >= 2
         and len({round(b - a, 6) for a, b in zip(ranges, ranges[1:])}) == 1
         and all(str(s).replace(".", "").strip("0") in ("1", "2", "5") for s in steps)
         and all(abs(v / min(steps) - round(v / min(steps))) < 1e-6 for v in ranges + dopplers),
         "round ticks at %d columns" % width, (dopplers, ranges, steps, last))
    head = "  ".join(last[:4])
    tell(re.search(r"latency \d+ us  zero 3\.3000 us \(not seen\)", head) is not None and "20 received, 0 lost" in head
         and re.search(r"SNR +velocity$", "\n".join(last), re.M) is not None
         and re.search(r" 0  ·░░▒▒▓█ \d+ dB$", "\n".join(last), re.M) is not None,
         "nothing cut at %d columns" % width, last)
    shown = t.rows()
    tell(re.search(r"^m/s    [─┴]{%d}$" % (width - 7), "\n".join(shown), re.M) is not None and shown[-1].endswith(" dB"),
         "the last column is seen at %d columns" % width, shown)
t = Terminal(size=(24, 60), arguments=("ipc:///tmp/" + "a" * 80,))
waits = t.read(20, rb"waiting for ipc")
os.write(t.master, b"q")
status = t.finish()
tell(waits and status == 0 and "a" * 70 in "".join(t.rows()[:2]), "a long address is wrapped", t.rows())

t, p = Terminal(), publish("-s", "publisher.profile=power", "-s", "source.lost=600+20, 511000+1000")
status = t.finish()
p.wait()
tell(status == 3 and "2999 results received, 0 lost" in t.err, "a loss is told as ever", (status, t.err))

# Two results arrive before the profile of the first result. The profile must be drawn with the
# echoes of the first result.
try:
    import json, zmq
except ImportError:
    zmq = None
if zmq:
    context = zmq.Context()
    source, out = context.socket(zmq.SUB), context.socket(zmq.XPUB)
    source.connect(re.search(r"endpoint *= *(\S+)", open(conf).read()).group(1))
    source.subscribe("")
    p = publish("-s", "publisher.profile=power")
    messages = {}
    while "range" not in messages or "profile" not in messages:
        parts = source.recv_multipart()
        messages.setdefault(parts[0].split(b"/")[0].decode(), parts)
    p.kill(); p.wait()
    topic, text = messages["range"][:2]
    later = json.loads(text)
    later.update(seq=later["seq"] + 1, sample=str(int(later["sample"]) + 511), echoes=[])
    out.bind("ipc://" + work + "/late")
    t = Terminal(arguments=("ipc://" + work + "/late",))
    for i in range(3): # range/, end/ of the results; those of the profiles follow
        out.poll(10000) and out.recv()
    t.read(1)
    for parts in (messages["range"], [topic, json.dumps(later).encode()]):
        out.send_multipart(parts)
    t.read(20, rb"2 received")
    out.send_multipart(messages["profile"])
    drawn = t.read(20, rb"threshold")
    os.write(t.master, b"q")
    status = t.finish()
    tell(drawn and status == 0 and re.search(r"^ ?1 +20\.0\d+ km", "\n".join(t.rows()), re.M),
         "a late profile is shown with its own echoes", (status, t.err, t.rows()))

t = Terminal(arguments=("--timeout", "0.5"))
status = t.finish()
tell(status == 69 and t.restored() and "nothing arrived" in t.err, "an error leaves the terminal as it was", (status, t.err))
t = Terminal(term="dumb")
status = t.finish()
tell(status == 64 and ENTER not in t.out and "dumb" in t.err, "a terminal that cannot be redrawn is refused", t.err)
print("1..%d" % n)
END

if [ -n "$python" ]; then
    # 3000 periods take one and a half seconds.
    "$bin/pnradar-echo" -c "$work/radar.conf" -s echo.periods=3000 -s target.1.velocity_mps=0 "$work/echo.ci16" 2>"$work/err"
    "$python" "$work/live.py" "$bin" "$work" >"$work/live" 2>"$work/err" || echo "not ok - the terminal's tests" >>"$work/live"
    while read -r line; do
        case $line in
        'ok '*) report 0 "live: ${line#*- }" ;;
        'not ok '*) report 1 "live: ${line#*- }" ;;
        '#'*) echo "$line" ;;
        esac
    done <"$work/live"
    [ ! -s "$work/err" ] || sed 's/^/# /' "$work/err"
else
    skip "the terminal" "no python3"
fi
plan
