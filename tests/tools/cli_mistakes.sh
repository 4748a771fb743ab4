#!/bin/sh
# SPDX-License-Identifier: MIT
# Mistaken command lines and configurations: each message names the value, its place and the way out, and each exit
# status is one that the manual of the program lists.
# usage: cli_mistakes.sh BIN_FOLDER; prints TAP.
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/tap.sh"
top=$(cd "$here/../.." && pwd)
PATH=$bin:$PATH
export PNR_LOG=quiet
cd "$work" || exit 1

cat >base.conf <<'END'
[source]
rate_hz = 1e6
format = ci16
[code]
type = m-sequence
degree = 7
[publisher]
endpoint =
[echo]
periods = 20
[target.1]
range_m = 6000
amplitude = 0.1
END
cat >gps.conf <<'END'
[source]
rate_hz = 2.046e6
format = ci16
[code]
type = gps-l1ca
chip_rate_hz = 1.023e6
END
pnradar-echo -c base.conf --truth truth.csv in.ci16 2>err &&
    pnradar-echo -c base.conf in.wav 2>err
report $? "recordings are made"
cp in.ci16 in.dat
: >empty.ci16
head -c 100 in.ci16 >short.ci16
head -c 1000 in.wav >cut.wav
echo 'no sound' >text.wav
printf 'abc' >odd.ci16
mkdir dir.ci16 dir.conf dir.png
mkfifo fifo.ci16 fifo.txt fifo.key
ln -s in.ci16 link.ci16
echo 'x = y' >junk.conf
printf '\000\001' >binary.conf
head -c 5000 /dev/zero | tr '\0' x >long.conf
echo secret >badkey
chmod 600 badkey
cp badkey openkey
chmod 644 openkey
echo 'period,sample' >bad.csv
mkdir bin
ln -s "$(command -v true)" bin/gnuplot # --plot looks for it first
PATH=$work/bin:$PATH

# listed PROGRAM STATUS: the section EXIT STATUS of the program's manual has it
listed() {
    manual=$top/tools/$1.1
    [ -f "$manual" ] || manual=$top/src/$1.1
    sed -n '/^\.Sh EXIT STATUS/,/^\.Sh [^E]/p' "$manual" | grep -q -w -e "$2"
}

# mistake STATUS WORDS COMMAND: the words are separated by ~
mistake() {
    want=$1
    words=$2
    command=$3
    name=${command%% *}
    eval "timeout 30 $command" >out 2>err </dev/null
    got=$?
    bad=0
    [ "$got" -eq "$want" ] || { echo "# status $got, not $want"; bad=1; }
    listed "$name" "$want" || { echo "# the manual of $name has no status $want"; bad=1; }
    grep "^$name: error: " err >message
    [ "$(wc -l <message)" -eq 1 ] || { echo "# not one message"; bad=1; }
    ! grep -q -E ': error: [A-Z][a-z ]*$' message || { echo "# a raw reason alone"; bad=1; }
    while [ -n "$words" ]; do
        word=${words%%~*}
        grep -q -F -e "$word" message || { echo "# no '$word'"; bad=1; }
        case $words in *~*) words=${words#*~} ;; *) words='' ;; esac
    done
    report $bad "$command"
}

# --- command lines ---

while IFS='|' read -r status words command; do
    case $status in '' | '#'*) continue ;; esac
    mistake "$status" "$words" "$command"
done <<'END'
# options and operands
64|'--no-such'~try --help|pnradar --no-such in.ci16
64|'--prnt'~'--print'|pnradar --prnt table in.ci16
64|'-x'~try --help|pnradar -x
64|--print xml~table, csv or json|pnradar -c base.conf --print xml in.ci16
64|'--print'~argument: table|pnradar -c base.conf --print
64|'--config'~argument: FILE|pnradar -c
64|'--set'~SECTION.KEY=VALUE|pnradar -s
64|'b.ci16'~one operand|pnradar -c base.conf in.ci16 b.ci16
64|'--quiet'~no argument~'yes'|pnradar -c base.conf --quiet=yes in.ci16
64|'--strict'~no argument~'1'|pnradar -c base.conf --strict=1 in.ci16
64|--quiet~--print~give one|pnradar -c base.conf --quiet --print table in.ci16
78|--plot dir.png~folder~another name|pnradar -c base.conf --plot dir.png in.ci16
74|--plot none/a.png~there is no folder none|pnradar -c base.conf --plot none/a.png in.ci16
64|--range-db~they need --plot FILE|pnradar -c base.conf --range-db 30 in.ci16
# files
66|configuration nofile.conf~No such file~looked for in|pnradar -c nofile.conf in.ci16
66|configuration none/a.conf~there is no folder none|pnradar -c none/a.conf in.ci16
78|dir.conf~directory~name a file in it|pnradar -c dir.conf in.ci16
78|junk.conf:1~"x"~before any section~[source]|pnradar -c junk.conf in.ci16
78|binary.conf:1~NUL~text file?|pnradar -c binary.conf in.ci16
78|long.conf:1~5000 bytes~at most 4096|pnradar -c long.conf in.ci16
66|no input~name a file~source.input|pnradar -c base.conf
66|input nofile.ci16~No such file~looked for in|pnradar -c base.conf nofile.ci16
66|input none/in.ci16~there is no folder none|pnradar -c base.conf none/in.ci16
66|input dir.ci16~directory~name a file in it|pnradar -c base.conf dir.ci16
65|input empty.ci16~empty~recorder|pnradar -c base.conf empty.ci16
65|short.ci16~25 samples~127 samples|pnradar -c base.conf short.ci16
65|in.ci16~2540 samples~12700 samples~100 periods|pnradar -c base.conf -s dwell.periods=100 -s dwell.combine=coherent in.ci16
78|junk.conf~extension~source.format~-c reads a configuration|pnradar junk.conf
69|source.input = udp:192.0.2.1:5000~no interface~ip address|pnradar -c base.conf udp:192.0.2.1:5000
69|source.input = vrt:192.0.2.1:5000~no interface~ip address|pnradar -c base.conf vrt:192.0.2.1:5000
78|in.dat~extension~source.format~ci16|pnradar -c base.conf -s source.format=auto in.dat
65|cut.wav~10204 bytes~1000~copy it again|pnradar -c base.conf -s source.format=auto cut.wav
65|text.wav~does not begin like WAV~set source.format|pnradar -c base.conf -s source.format=auto text.wav
78|in.wav~ci16~cf32~source.format|pnradar -c base.conf -s source.format=cf32 in.wav
78|in.wav~1000000 Hz~source.rate_hz~2000000 Hz~leave source.rate_hz out|pnradar -c base.conf -s source.format=auto -s source.rate_hz=2e6 in.wav
# the form of -s
78|"rate_hz=2e6"~section.key=value~source.rate_hz|pnradar -c base.conf -s rate_hz=2e6 in.ci16
78|"source.rate_hz"~section.key=value|pnradar -c base.conf -s source.rate_hz in.ci16
78|[cod]~[code]|pnradar -c base.conf -s cod.type=gold in.ci16
78|"typ"~[code]~"type"|pnradar -c base.conf -s code.typ=gold in.ci16
78|"rate"~source.rate_hz|pnradar -c base.conf -s source.rate=2e6 in.ci16
78|"speed"~radar.speed_mps|pnradar -c base.conf -s radar.speed=340 in.ci16
78|"map"~publisher.profile|pnradar -c base.conf -s publisher.map=power in.ci16
# source
78|source.rate_hz is not given~source.rate_hz = 2e6|pnradar in.ci16
78|source.rate_hz is not given~source.rate_hz = 2e6|pnradar -c base.conf -s source.rate_hz= in.ci16
78|source.rate_hz = "fast"~decimal number~p/q|pnradar -c base.conf -s source.rate_hz=fast in.ci16
78|source.rate_hz = "-1"~more than 0|pnradar -c base.conf -s source.rate_hz=-1 in.ci16
78|source.rate_hz = "0"~more than 0|pnradar -c base.conf -s source.rate_hz=0 in.ci16
78|source.rate_hz = "1/0"~quotient p/q|pnradar -c base.conf -s source.rate_hz=1/0 in.ci16
78|source.rate_hz = "1e400"~64 bits|pnradar -c base.conf -s source.rate_hz=1e400 in.ci16
78|source.rate_hz = "1,5e6"~as 2.5e6|pnradar -c base.conf -s source.rate_hz=1,5e6 in.ci16
78|source.rate_hz = "2 furlongs"~furlongs~Hz|pnradar -c base.conf -s 'source.rate_hz=2 furlongs' in.ci16
78|source.rate_hz = "48K"~5 kHz~k is 1000|pnradar -c base.conf -s source.rate_hz=48K in.ci16
78|source.rate_hz = 1/1000~MHz|pnradar -c base.conf -s 'source.rate_hz=1 mHz' in.ci16
78|source.rate_hz = "1e6 s"~must be Hz|pnradar -c base.conf -s 'source.rate_hz=1e6 s' in.ci16
78|source.format = "int16"~did you mean ci16|pnradar -c base.conf -s source.format=int16 in.ci16
78|source.format = "cint16"~nearest is "ci16"|pnradar -c base.conf -s source.format=cint16 in.ci16
78|source.tune_hz = "1x"~"x"~Hz|pnradar -c base.conf -s source.tune_hz=1x in.ci16
78|source.tune_hz = 600000~half of source.rate_hz = 1000000|pnradar -c base.conf -s source.tune_hz=600e3 in.ci16
78|source.spectrum = "flipped"~normal~inverted|pnradar -c base.conf -s source.spectrum=flipped in.ci16
78|source.layout = "mono"~iq~channels|pnradar -c base.conf -s source.layout=mono in.ci16
78|source.channels = "0"~1 to 256|pnradar -c base.conf -s source.channels=0 in.ci16
78|source.channel = 1~counts from 0~source.channels is 1|pnradar -c base.conf -s source.channel=1 in.ci16
78|source.channel = "1.5"~whole number|pnradar -c base.conf -s source.channel=1.5 in.ci16
78|source.start_time = "yesterday"~2026-11-21T02:40:12.5Z|pnradar -c base.conf -s source.start_time=yesterday in.ci16
78|source.start_time = "2026-13-01T00:00:00Z"~2026-11-21T02:40:12.5Z|pnradar -c base.conf -s source.start_time=2026-13-01T00:00:00Z in.ci16
78|source.pace = "slow"~fast~real-time|pnradar -c base.conf -s source.pace=slow in.ci16
78|source.chunk = "1e12"~digits alone|pnradar -c base.conf -s source.chunk=1e12 in.ci16
78|source.lost = "10"~first+count|pnradar -c base.conf -s source.lost=10 in.ci16
78|source.lost = "100+10,50+10"~in order~50|pnradar -c base.conf -s source.lost=100+10,50+10 in.ci16
# code
78|code.type = "mls"~did you mean m-sequence|pnradar -c base.conf -s code.type=mls in.ci16
78|code.type = "glod"~nearest is "gold"|pnradar -c base.conf -s code.type=glod in.ci16
78|code.degree = "1"~2 to 24|pnradar -c base.conf -s code.degree=1 in.ci16
78|code.degree = "seven"~whole number|pnradar -c base.conf -s code.degree=seven in.ci16
78|code.taps "7,9"~code.degree, 7|pnradar -c base.conf -s code.taps=7,9 in.ci16
78|code.taps "7,2"~not primitive~7,1|pnradar -c base.conf -s code.taps=7,2 in.ci16
78|code.taps "a"~10,3|pnradar -c base.conf -s code.taps=a in.ci16
78|code.state "0000000"~at least one 1|pnradar -c base.conf -s code.state=0000000 in.ci16
78|code.state "01"~7 digits|pnradar -c base.conf -s code.state=01 in.ci16
78|code.degree 8~gold~no multiple of 4|pnradar -c base.conf -s code.type=gold -s code.degree=8 in.ci16
78|code.index 500~0 to 128|pnradar -c base.conf -s code.type=gold -s code.index=500 in.ci16
78|code.degree 7~kasami~even|pnradar -c base.conf -s code.type=kasami in.ci16
78|code.length 6~barker~11 or 13|pnradar -c base.conf -s code.type=barker -s code.length=6 in.ci16
78|code.length 9~prime~7 would be right|pnradar -c base.conf -s code.type=legendre -s code.length=9 in.ci16
78|code.root 5~code.length 10~1 to 9|pnradar -c base.conf -s code.type=zadoff-chu -s code.length=10 -s code.root=5 in.ci16
78|code.length = 0~1 to 16777216|pnradar -c base.conf -s code.type=zadoff-chu in.ci16
78|code.length = 0~1 to 16777216|pnradar -c base.conf -s code.type=random in.ci16
78|code.length 10~square~9 would be right|pnradar -c base.conf -s code.type=frank -s code.length=10 in.ci16
78|code.prn = "300"~1 to 210|pnradar -c gps.conf -s code.prn=300 in.ci16
78|code.component = "both"~data~pilot|pnradar -c base.conf -s code.type=gps-l5 -s code.component=both in.ci16
78|code.type = file~code.path|pnradar -c base.conf -s code.type=file in.ci16
66|code.path missing.ci16~No such file~looked for in|pnradar -c base.conf -s code.type=file -s code.path=missing.ci16 in.ci16
65|code.path odd.ci16~3 bytes~4 bytes each|pnradar -c base.conf -s code.type=file -s code.path=odd.ci16 in.ci16
66|code.path fifo.txt~FIFO~regular file~name one|pnradar -c base.conf -s code.type=file -s code.path=fifo.txt in.ci16
66|code.pulse_path fifo.ci16~FIFO~regular file~name one|pnradar -c base.conf -s code.pulse=file -s code.pulse_path=fifo.ci16 in.ci16
66|code.path dir.ci16~regular file~name one|pnradar -c base.conf -s code.type=file -s code.path=dir.ci16 in.ci16
78|code.chip_rate_hz = 3000000~source.rate_hz = 1000000~at least one sample|pnradar -c base.conf -s code.chip_rate_hz=3e6 in.ci16
78|source.rate_hz 1000000~code.chip_rate_hz~nearest good|pnradar -c base.conf -s code.chip_rate_hz=0.9e6 in.ci16
78|code.chip_rate_hz = "0"~more than 0|pnradar -c base.conf -s code.chip_rate_hz=0 in.ci16
78|code.pulse = "square"~rectangular|pnradar -c base.conf -s code.pulse=square in.ci16
78|code.rolloff = "2"~0 to 1|pnradar -c base.conf -s code.pulse=rrc -s code.rolloff=2 in.ci16
78|code.pulse = filtered~code.cutoff_hz|pnradar -c base.conf -s code.pulse=filtered in.ci16
78|code.pulse = file~code.pulse_path|pnradar -c base.conf -s code.pulse=file in.ci16
78|code.epoch = "now"~sample index~UTC|pnradar -c base.conf -s code.epoch=now in.ci16
78|code.epoch = 2026-11-21T00:00:00~source.start_time|pnradar -c base.conf -s code.epoch=2026-11-21T00:00:00Z in.ci16
78|code.tune_hz = 100~multiple~with 0|pnradar -c base.conf -s code.tune_hz=100 in.ci16
78|[code.1]~[code.3]~without a gap|pnradar -c base.conf -s code.3.degree=7 in.ci16
78|[code.0]~[code.1]|pnradar -c base.conf -s code.0.degree=7 in.ci16
78|code.2~255 samples~code.1 127~together|pnradar -c base.conf -s code.1.degree=7 -s code.2.degree=8 in.ci16
66|code.2.path no.txt~No such file|pnradar -c base.conf -s code.1.degree=7 -s code.2.type=file -s code.2.path=no.txt in.ci16
78|code.2.root 3~code.2.length 126~1 to 125|pnradar -c base.conf -s code.1.degree=7 -s code.2.type=zadoff-chu -s code.2.length=126 -s code.2.root=3 in.ci16
78|code.2.length = 0~1 to 16777216|pnradar -c base.conf -s code.1.degree=7 -s code.2.type=random -s code.2.length=0 in.ci16
78|code.invert = "maybe"~yes or no|pnradar -c base.conf -s code.invert=maybe in.ci16
# window, radar
78|window.correlation = "round"~circular~linear|pnradar -c base.conf -s window.correlation=round in.ci16
78|window.correlation = linear~radar.max_range_m|pnradar -c base.conf -s window.correlation=linear in.ci16
78|window.filter = "wiener"~matched~least-squares|pnradar -c base.conf -s window.filter=wiener in.ci16
78|window.dc = "yes"~keep~remove|pnradar -c base.conf -s window.dc=yes in.ci16
78|window.notch = "50"~50e3+-200|pnradar -c base.conf -s window.notch=50 in.ci16
78|radar.speed_mps = "0"~more than 0|pnradar -c base.conf -s radar.speed_mps=0 in.ci16
78|radar.path = "both"~two-way~one-way|pnradar -c base.conf -s radar.path=both in.ci16
78|radar.carrier_hz = "-1"~0 or more|pnradar -c base.conf -s radar.carrier_hz=-1 in.ci16
78|radar.max_range_m = 8000~radar.min_range_m = 9000|pnradar -c base.conf -s radar.min_range_m=9000 -s radar.max_range_m=8000 in.ci16
78|max_range_m 1000000000~19036.8~a longer code|pnradar -c base.conf -s radar.max_range_m=1e9 in.ci16
78|radar.zero = "auto"~fixed~direct-path|pnradar -c base.conf -s radar.zero=auto in.ci16
78|radar.zero_state_path fifo.txt~FIFO~not replaced~another name|pnradar -c base.conf -s radar.zero=direct-path -s radar.zero_state_path=fifo.txt in.ci16
78|radar.zero_state_path base.conf~did not write~remove it|pnradar -c base.conf -s radar.zero=direct-path -s radar.zero_state_path=base.conf in.ci16
74|radar.zero_state_path none/state~there is no folder none|pnradar -c base.conf -s radar.zero=direct-path -s radar.zero_state_path=none/state in.ci16
# dwell, doppler, detector
78|dwell.periods = "0"~1 to 65535|pnradar -c base.conf -s dwell.periods=0 in.ci16
78|dwell.periods = 10~dwell.combine = coherent|pnradar -c base.conf -s dwell.periods=10 in.ci16
78|dwell.combine = "sum"~coherent~incoherent|pnradar -c base.conf -s dwell.combine=sum in.ci16
78|dwell.combine = doppler~dwell.periods~2 or more|pnradar -c base.conf -s dwell.combine=doppler in.ci16
78|dwell.taper = "hamming"~rectangular~hann|pnradar -c base.conf -s dwell.taper=hamming in.ci16
78|dwell.taper = hann~dwell.combine = doppler|pnradar -c base.conf -s dwell.taper=hann in.ci16
78|dwell.clutter = remove~dwell.combine = doppler|pnradar -c base.conf -s dwell.clutter=remove in.ci16
78|doppler.min_hz = 100~doppler.max_hz = 50|pnradar -c base.conf -s doppler.min_hz=100 -s doppler.max_hz=50 in.ci16
78|doppler.max_hz = 1000000~half of source.rate_hz, 500000|pnradar -c base.conf -s doppler.min_hz=-1e6 -s doppler.max_hz=1e6 in.ci16
78|doppler.step = "third"~whole~quarter|pnradar -c base.conf -s doppler.step=third in.ci16
78|detector.pfa = "0"~more than 0|pnradar -c base.conf -s detector.pfa=0 in.ci16
78|detector.pfa = "1%"~decimal number~1e-4|pnradar -c base.conf -s detector.pfa=1% in.ci16
78|detector.max_echoes = "100"~1 to 64|pnradar -c base.conf -s detector.max_echoes=100 in.ci16
78|detector.oversample = "4"~1 to 2|pnradar -c base.conf -s detector.oversample=4 in.ci16
78|detector.cfar = "mean"~ca~os|pnradar -c base.conf -s detector.cfar=mean in.ci16
78|detector.cfar_training = 100~detector.cfar_guard = 2~there are 127|pnradar -c base.conf -s detector.cfar=ca -s detector.cfar_training=100 in.ci16
78|detector.cfar_axis = doppler~one row~dwell.combine = doppler|pnradar -c base.conf -s detector.cfar=ca -s detector.cfar_axis=doppler in.ci16
# engine, ring, realtime
78|engine.name = "gpu"~did you mean cuda|pnradar -c base.conf -s engine.name=gpu in.ci16
69|engine tpu~tpu.so~reference are known|pnradar -c base.conf -s engine.name=tpu in.ci16
78|engine.method = fft~has only sum|pnradar -c base.conf -s engine.name=reference -s engine.method=fft in.ci16
78|engine.device = "gpu"~a whole number; did you mean engine.name = cuda|pnradar -c base.conf -s engine.device=gpu in.ci16
78|engine.device = "GeForce RTX"~did you mean engine.name = cuda|pnradar -c base.conf -s 'engine.device=GeForce RTX' in.ci16
78|engine.device = "-1"~0 to 255|pnradar -c base.conf -s engine.device=-1 in.ci16
78|engine.device = "0,1,0"~each once|pnradar -c base.conf -s engine.device=0,1,0 in.ci16
78|engine.device = "0-3"~all, or whole numbers as 0,1,2|pnradar -c base.conf -s engine.device=0-3 in.ci16
78|engine.device = "1,300"~0 to 255|pnradar -c base.conf -s engine.device=1,300 in.ci16
78|engine.depth = "9"~1 to 4|pnradar -c base.conf -s engine.depth=9 in.ci16
78|engine.threads = "-2"~0 to 1024|pnradar -c base.conf -s engine.threads=-2 in.ci16
78|engine.wait = "poll"~sleep~spin|pnradar -c base.conf -s engine.wait=poll in.ci16
78|ring.bytes = 1016~100 bytes|pnradar -c base.conf -s ring.bytes=100 in.ci16
78|ring.bytes = "1X"~K, M or G|pnradar -c base.conf -s ring.bytes=1X in.ci16
78|ring.seconds = 1~ring.bytes = 1048576~give one|pnradar -c base.conf -s ring.bytes=1M -s ring.seconds=1 in.ci16
69|ring of~are available~smaller engine.batch or ring|pnradar -c base.conf -s ring.seconds=86400 -s source.rate_hz=1e9 in.ci16
78|realtime.priority = "100"~0 to 99|pnradar -c base.conf -s realtime.priority=100 in.ci16
78|realtime.acquisition_cpu = "x"~whole number|pnradar -c base.conf -s realtime.acquisition_cpu=x in.ci16
# stream, publisher
78|stream.name = "a b"~without / or spaces|pnradar -c base.conf -s 'stream.name=a b' in.ci16
78|stream.name is empty~need a name|pnradar -c base.conf -s stream.name= in.ci16
78|publisher.endpoint = 5555~tcp://ADDRESS:PORT|pnradar -c base.conf -s publisher.endpoint=5555 in.ci16
78|publisher.endpoint = http://127.0.0.1:5555~tcp://ADDRESS:PORT|pnradar -c base.conf -s publisher.endpoint=http://127.0.0.1:5555 in.ci16
78|publisher.endpoint = tcp://127.0.0.1~PORT 0..65535|pnradar -c base.conf -s publisher.endpoint=tcp://127.0.0.1 in.ci16
78|publisher.endpoint = tcp://127.0.0.1:99999~PORT 0..65535|pnradar -c base.conf -s publisher.endpoint=tcp://127.0.0.1:99999 in.ci16
78|publisher.endpoint = tcp://[::1:5555~tcp://[ADDRESS]:PORT|pnradar -c base.conf -s 'publisher.endpoint=tcp://[::1:5555' in.ci16
78|publisher.endpoint = tcp://::1:5798~brackets~tcp://[::1]:5798|pnradar -c base.conf -s 'publisher.endpoint=tcp://::1:5798' in.ci16
78|publisher.endpoint = tcp://0.0.0.0:5555~publisher.curve_secret_path~publisher.expose = yes|pnradar -c base.conf -s publisher.endpoint=tcp://0.0.0.0:5555 in.ci16
69|publisher.endpoint = tcp://192.0.2.1:5555~interface|pnradar -c base.conf -s publisher.endpoint=tcp://192.0.2.1:5555 -s publisher.expose=yes in.ci16
69|publisher.endpoint = ipc://none/socket~folder does not exist|pnradar -c base.conf -s publisher.endpoint=ipc://none/socket in.ci16
78|publisher.endpoint = ipc://base.conf~no socket~another path|pnradar -c base.conf -s publisher.endpoint=ipc://base.conf in.ci16
66|publisher.curve_secret_path = fifo.key~FIFO~regular file|pnradar -c base.conf -s publisher.endpoint=ipc://s -s publisher.curve_secret_path=fifo.key in.ci16
77|publisher.curve_secret_path = openkey~mode 0644~chmod 600|pnradar -c base.conf -s publisher.endpoint=ipc://s -s publisher.curve_secret_path=openkey in.ci16
66|publisher.curve_secret_path = nokey~No such file~looked for in|pnradar -c base.conf -s publisher.endpoint=ipc://s -s publisher.curve_secret_path=nokey in.ci16
65|publisher.curve_secret_path = badkey~40 Z85 characters|pnradar -c base.conf -s publisher.endpoint=ipc://s -s publisher.curve_secret_path=badkey in.ci16
78|publisher.pack = "0"~1 to 4096|pnradar -c base.conf -s publisher.pack=0 in.ci16
78|publisher.profile = "on"~off~power~complex|pnradar -c base.conf -s publisher.profile=on in.ci16
78|publisher.wait_s = "-1"~0 to 86400|pnradar -c base.conf -s publisher.wait_s=-1 in.ci16
# pnradar-echo
74|cannot write none/o.ci16~there is no folder none|pnradar-echo -c base.conf none/o.ci16
74|cannot write dir.ci16~directory~name a file in it|pnradar-echo -c base.conf dir.ci16
74|cannot write /dev/full~No space left~another disk|pnradar-echo -c base.conf /dev/full
78|cannot write link.ci16~symbolic link~name the file itself|pnradar-echo -c base.conf link.ci16
78|cannot write base.conf~text~another name|pnradar-echo -c base.conf base.conf
78|--truth base.conf~did not write~remove it|pnradar-echo -c base.conf --truth base.conf o.ci16
78|--truth fifo.txt~FIFO~another name|pnradar-echo -c base.conf --truth fifo.txt o.ci16
74|--truth none/t.csv~there is no folder none|pnradar-echo -c base.conf --truth none/t.csv o.ci16
64|'--transmitt'~'--transmit'|pnradar-echo -c base.conf --transmitt o.ci16
66|configuration nofile.conf~looked for in|pnradar-echo -c nofile.conf o.ci16
78|'-'~source.format~ci16|pnradar-echo -c base.conf -s source.format=auto -
78|echo.periods = "-1"~0 to 1e+15|pnradar-echo -c base.conf -s echo.periods=-1 o.ci16
78|echo.noise_rms = "loud"~decimal number|pnradar-echo -c base.conf -s echo.noise_rms=loud o.ci16
78|echo.noise_bandwidth_hz = 2000000~source.rate_hz, 1000000|pnradar-echo -c base.conf -s echo.noise_bandwidth_hz=2e6 o.ci16
78|echo.cw_hz = 2000000~half of source.rate_hz, 500000|pnradar-echo -c base.conf -s echo.cw_hz=2e6 -s echo.cw_amplitude=1 o.ci16
78|echo.slips = "5"~first+count|pnradar-echo -c base.conf -s echo.slips=5 o.ci16
78|echo.bits = "20"~0 to 16|pnradar-echo -c base.conf -s echo.bits=20 o.ci16
78|[target.2]~[target.3]~without a gap|pnradar-echo -c base.conf -s target.3.range_m=1000 o.ci16
78|target.1~amplitude = 0.1~snr_db = 10~give one|pnradar-echo -c base.conf -s target.1.snr_db=10 o.ci16
78|target.1~neither amplitude nor snr_db~give one|pnradar-echo -c base.conf -s target.1.amplitude=0 o.ci16
78|target.1.code = 2~only 1|pnradar-echo -c base.conf -s target.1.code=2 o.ci16
78|"speed"~target.1.velocity_mps|pnradar-echo -c base.conf -s target.1.speed=30 o.ci16
78|target.1.velocity_mps = 300000000~not below radar.speed_mps|pnradar-echo -c base.conf -s target.1.velocity_mps=3e8 o.ci16
74|o.flac~sample rate~.wav|pnradar-echo -c base.conf -s source.format=auto o.flac
78|flac~source.format = cf64~ci16|pnradar-echo -c base.conf -s source.format=cf64 o.flac
78|source.rate_hz = 1000000/3~raw file|pnradar-echo -c base.conf -s source.rate_hz=1e6/3 o.wav
# pnradar-listen
64|no endpoint~publisher.endpoint|pnradar-listen -c base.conf
69|nothing publishes at tcp://127.0.0.1:9~Connection refused~another port|pnradar-listen --timeout 0.1 tcp://127.0.0.1:9
69|nothing publishes at ipc://none/socket~no such socket~another path|pnradar-listen --timeout 0.1 ipc://none/socket
64|endpoint 5999~tcp://ADDRESS:PORT|pnradar-listen 5999
64|endpoint 127.0.0.1:5999~tcp://ADDRESS:PORT|pnradar-listen 127.0.0.1:5999
64|endpoint tcp://127.0.0.1~PORT|pnradar-listen tcp://127.0.0.1
64|endpoint tcp://127.0.0.1:99999~0..65535|pnradar-listen tcp://127.0.0.1:99999
64|endpoint udp://127.0.0.1:5999~tcp://ADDRESS:PORT|pnradar-listen udp://127.0.0.1:5999
64|endpoint tcp://127.0.0.1:*~the publisher chooses~give the port|pnradar-listen 'tcp://127.0.0.1:*'
64|'tcp://127.0.0.1:5998'~one operand|pnradar-listen tcp://127.0.0.1:5999 tcp://127.0.0.1:5998
64|--timeout soon~a number~in s|pnradar-listen --timeout soon ipc://s
64|--timeout 10m~a number~in s|pnradar-listen --timeout 10m ipc://s
64|--range-db 40 s~a number~in dB|pnradar -c base.conf --plot a.png --range-db '40 s' in.ci16
64|--count 0~whole number, 1 to 9007199254740992|pnradar-listen --count 0 ipc://s
64|--format xml~table, csv or json|pnradar-listen --format xml ipc://s
64|'--formt'~'--format'|pnradar-listen --formt csv ipc://s
64|--stream ''~1 to 127 bytes|pnradar-listen --stream '' ipc://s
64|--stream and --all~exclude|pnradar-listen --stream a --all ipc://s
64|--curve-key short~40 Z85 characters|pnradar-listen --curve-key short ipc://s
66|--truth nofile.csv~No such file~looked for in|pnradar-listen --truth nofile.csv ipc://s
65|bad.csv:1~want the header~range_m|pnradar-listen --truth bad.csv ipc://s
64|--map~--plot|pnradar-listen --map mean ipc://s
64|--live~terminal|pnradar-listen --live ipc://s
64|--live~--format|pnradar-listen --live --format csv ipc://s
74|--plot none/a.png~there is no folder none|pnradar-listen --plot none/a.png ipc://s
64|--map best~mean, last or time|pnradar-listen --plot a.png --map best ipc://s
64|--plot a.jpg~.png, .svg or .pdf|pnradar-listen --plot a.jpg ipc://s
64|--size 10x10~WIDTHxHEIGHT~400x300|pnradar-listen --plot a.png --size 10x10 ipc://s
64|--code~they need --plot FILE|pnradar-listen --code 2 ipc://s
# pnradar-plan
64|'in.ci16'~operand|pnradar-plan in.ci16
78|source.rate_hz is not given~source.rate_hz = 2e6|pnradar-plan
64|--budget 62~with its unit~62ms|pnradar-plan --budget 62
64|--budget 62min~with its unit~62ms|pnradar-plan --budget 62min
64|'--jsn'~'--json'|pnradar-plan -c base.conf --jsn
64|'--json'~no argument~'1'|pnradar-plan -c base.conf --json=1
66|configuration nofile.conf~looked for in|pnradar-plan -c nofile.conf
78|max_range_m 10000000~a longer code|pnradar-plan -c base.conf -s radar.max_range_m=1e7
69|engine tpu~reference are known|pnradar-plan -c base.conf -s engine.name=tpu
# pnradar-bench
64|no part given~latency~one of|pnradar-bench
64|latncy~latency~one of|pnradar-bench latncy
64|'stream'~one operand|pnradar-bench chain stream
64|-n big~8192,2^16|pnradar-bench chain -n big
64|-n 2^80~1 .. 2^24|pnradar-bench chain -n 2^80
64|--runs 3~10 to 1000000|pnradar-bench chain --runs 3
64|--seconds 10 Hz~a number~in s|pnradar-bench stream --seconds '10 Hz'
64|--every 100~with its unit~100us|pnradar-bench latency --every 100
64|--points 0~1 to 16777216|pnradar-bench methods --points 0
64|--only nothing~no scene has this~, as |pnradar-bench scene --only nothing
64|serve~-n 2^13|pnradar-bench serve --dump d
74|--dump none/d~there is no folder none|pnradar-bench serve --dump none/d -n 255
69|engine tpu~reference are known|pnradar-bench chain -n 255 -s engine.name=tpu
66|configuration nofile.conf~looked for in|pnradar-bench -c nofile.conf chain
78|engine.batch = "-1"~0 to 1048576|pnradar-bench chain -n 255 -s engine.batch=-1
END

# --- configurations: the place is the line ---

while IFS='|' read -r status words text; do
    printf '%b' "$text" >mistake.conf
    mistake "$status" "$words" "pnradar -c mistake.conf in.ci16 # $(echo "$text" | tr '\n' ';')"
done <<'END'
78|mistake.conf:2~source.rate_hz = "quick"~decimal number|[source]\nrate_hz = quick\n
78|mistake.conf:3~"samplerate"~source.rate_hz|[source]\n# the rate\nsamplerate = 2e6\n
78|mistake.conf:1~[sorce]~[source]|[sorce]\nrate_hz = 2e6\n
78|mistake.conf:1~[source~]|[source\nrate_hz = 2e6\n
78|mistake.conf:2~"rate_hz 2e6"~key = value|[source]\nrate_hz 2e6\n
78|mistake.conf:3~source.rate_hz~line 2 already|[source]\nrate_hz = 2e6\nrate_hz = 3e6\n
78|mistake.conf:1~"rate_hz"~[source]|rate_hz = 2e6\n
78|mistake.conf:4~code.type = "prn"~gps-l1ca|[source]\nrate_hz = 2e6\n[code]\ntype = prn\n
78|mistake.conf:2~dwell.periods = "ten"~whole number|[dwell]\nperiods = ten\n
78|mistake.conf:2~quote is not closed~"7,1|[code]\ntaps = "7,1\n
78|engine.name = "nvidia"~did you mean cuda|[engine]\nname = nvidia\n[source]\nrate_hz = 1e6\n
78|mistake.conf:2~realtime.lock_memory = "1"~yes or no|[realtime]\nlock_memory = 1\n
78|[target.1]~[target.2]~without a gap|[source]\nrate_hz = 1e6\n[target.2]\nrange_m = 1\n
78|mistake.conf:2~publisher.high_water = "many"~whole number|[publisher]\nhigh_water = many\n
END
export PNR_LOG=loud
mistake 64 'PNR_LOG=loud~quiet, info or debug' 'pnradar -c base.conf in.ci16 # in the environment'
export PNR_LOG=quiet
echo "# $((n - 1)) mistakes"
[ $((n - 1)) -ge 155 ]
report $? "the tables have at least 155 mistakes"
plan
