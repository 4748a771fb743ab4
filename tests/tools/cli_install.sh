#!/bin/sh
# SPDX-License-Identifier: MIT
# The installed files: programs run, the unit starts them, another program links the library, uninstall leaves nothing.
# usage: cli_install.sh BIN_FOLDER; prints TAP.
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/tap.sh"

build=${bin%/bin}
root=$work/root
prefix=/opt/radar
export PNR_MODULE_PATH="$root$prefix/lib/pnradar"

# make TARGET: with what this build has; `all` is not built again
make_target() {
    cuda=$([ -f "$build/lib/pnradar/cuda.so" ] && echo yes)
    fftw=$([ -f "$build/lib/pnradar/cpu.so" ] && echo yes)
    view=$([ -x "$build/bin/pnradar-view" ] && echo yes)
    env -u MAKEFLAGS -u MFLAGS make --no-print-directory -C "$here/../.." -o all B="$build" HAVE_CUDA="$cuda" \
        HAVE_FFTW="$fftw" HAVE_VIEW="$view" DESTDIR="$root" PREFIX=$prefix "$1" >"$work/out" 2>"$work/err"
}

make_target install && "$root$prefix/bin/pnradar" --version | grep -q '^pnradar [0-9]'
report $? "make install, and the program runs"

pages=0 bad=''
for page in "$root$prefix"/share/man/man*/*; do
    pages=$((pages + 1))
    man -l "$page" >/dev/null 2>&1 || mandoc "$page" >/dev/null 2>&1 || bad="$bad $page"
done
if command -v man >/dev/null || command -v mandoc >/dev/null; then
    want=$((11 + $([ -x "$bin/pnradar-view" ] && echo 1 || echo 0)))
    [ $pages -eq $want ] && [ -z "$bad" ] && ! grep -l /usr/local "$root$prefix"/share/man/man*/*
    report $? "all $want manuals are there, for this prefix ($pages$bad)"
else
    skip "manuals" "neither man nor mandoc"
fi

# A file is described where it is named in FILES: programs and manuals have no need, a configuration stands by its name.
for page in "$root$prefix"/share/man/man*/*; do
    sed -n '/^\.Sh FILES/,/^\.Sh [^F]/{ s/^\.It Pa //p }' "$page"
done | sed 's/ , /\n/g' | grep -v '/\*\.conf$' | sed "s|^[^/]|$prefix/share/pnradar/&|" >"$work/described"
(cd "$root" && find . -name bin -prune -o -name man -prune -o \( -type f -o -type l \) -print) | sed 's/^\.//' | while read -r file; do
    while read -r pattern; do
        # shellcheck disable=SC2254 # a pattern
        case $file in $pattern) continue 2 ;; esac
    done <"$work/described"
    echo "# in no FILES: $file"
done >"$work/missing"
cat "$work/missing"
[ -s "$work/described" ] && [ ! -s "$work/missing" ]
report $? "each installed file is in the FILES of a manual"

# --- the unit ---

unit=$root$prefix/lib/systemd/system/pnradar.service
if command -v systemd-analyze >/dev/null; then
    systemd-analyze security --offline=yes --threshold=25 "$unit" >"$work/out" 2>"$work/err"
    report $? "the unit's exposure is at most 2.5"
    sed "s|=/opt/radar/|=$root/opt/radar/|; s|=$prefix/|=$root$prefix/|" "$unit" >"$work/pnradar.service"
    systemd-analyze verify --man=no "$work/pnradar.service" >"$work/out" 2>"$work/err" && [ ! -s "$work/err" ]
    report $? "the unit has no mistake"
else
    skip "the unit's exposure" "no systemd-analyze"
    skip "the unit has no mistake" "no systemd-analyze"
fi

# The unit's own commands, with the packaged configuration and a FIFO in this folder.
mkdir -p "$work/run/pnradar"
sed "s|/run/|$work/run/|" "$root$prefix/share/pnradar/receiver.conf" >"$work/receiver.conf"
fifo=$(sed -n 's/^ExecStartPre=//p' "$unit" | sed "s|%t|$work/run|")
start=$(sed -n 's/^ExecStart=//p' "$unit" | sed "s|^/|$root/|; s|/etc/pnradar/pnradar.conf|$work/receiver.conf|")
$fifo
"$bin/pnradar-echo" -c "$work/receiver.conf" -s source.pace=fast -s echo.periods=200 "$work/run/pnradar/samples" &
$start -s source.pace=fast -s "publisher.endpoint=ipc://$work/s" --print csv >"$work/out" 2>"$work/err"
code=$?
wait
[ $code -eq 0 ] && echoes "$work/out" '{ d = f("range_m") - 61234.5; if (d < 300 && d > -700) good++; else bad++ }'
report $? "the unit's commands run the packaged configuration"

# --- the library ---

cat >"$work/radar.conf" <<'END'
[source]
rate_hz = 1 MHz
format = ci16
[code]
type = random
length = 500
seed = 7
[detector]
oversample = 2
END
cat >"$work/samples.py" <<'END'
import sys
import numpy as np

# The code of numpy itself, late by 123 samples, in noise: SNR 500 * 0.2^2 / 0.1^2 = 33 dB.
rng = np.random.RandomState(7)
code = np.exp(2j * np.pi * rng.random_sample(500))
noise = np.random.default_rng(1)
x = np.tile(0.2 * np.roll(code, 123), 40)
x = x + 0.1 / np.sqrt(2) * (noise.standard_normal(x.size) + 1j * noise.standard_normal(x.size))
np.round(x.view(float) * 32768).clip(-32768, 32767).astype("<i2").tofile(sys.stdout.buffer)
END
find_python numpy
cc=$(command -v gcc || command -v clang || command -v cc)
if nm -D "$build/lib/libpnradar.so.0" | grep -q -e __asan_init -e __tsan_init; then
    skip "another program links the library" "the library has a sanitizer"
elif [ -z "$python" ] || [ -z "$cc" ]; then
    skip "another program links the library" "no compiler or no numpy"
else
    flags=$(PKG_CONFIG_PATH="$root$prefix/lib/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$root" pkg-config --cflags --libs libpnradar)
    # shellcheck disable=SC2086 # a list of options
    "$cc" -std=c11 -Wall -Wextra -Wpedantic -Werror "$root$prefix/share/pnradar/embed.c" $flags -o "$work/embed" >"$work/out" 2>"$work/err"
    report $? "the example compiles against the installed library"
    printf '#include <pnradar.h>\nint main(void) { return *pnradar_version() == 0; }\n' >"$work/plus.c"
    # shellcheck disable=SC2086
    "$cc" -x c++ -std=c++11 -Wall -Wextra -Wpedantic -Werror -c "$work/plus.c" ${flags%%-L*} -o "$work/plus.o" >"$work/out" 2>"$work/err"
    report $? "the header is C++ too"

    LD_LIBRARY_PATH=$root$prefix/lib
    export LD_LIBRARY_PATH
    "$python" "$work/samples.py" >"$work/samples" &&
        "$work/embed" "$work/radar.conf" <"$work/samples" >"$work/out" 2>"$work/err" &&
        awk '# 123 samples of 1 us are 18437.236 m, two-way.
            $1 != (NR - 1) * 500 || ($2 - 18437.236) ^ 2 > (5 * $3) ^ 2 || $3 > 5 { bad = 1 }
            { snr_db += $4 / 40 }
            END { exit bad || NR != 40 || (snr_db - 33) ^ 2 > 0.5 ^ 2 }' "$work/out"
    report $? "40 dwells, each with the echo where numpy put it"
    "$work/embed" "$work/samples.py" <"$work/samples" >"$work/out" 2>"$work/err"
    [ $? -eq 1 ] && says "configuration:1: "
    report $? "a bad configuration is refused in words"
    unset LD_LIBRARY_PATH
fi

make_target uninstall && [ -z "$(find "$root" -type f -o -type l)" ]
report $? "make uninstall leaves no file"
plan
