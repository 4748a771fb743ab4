# SPDX-License-Identifier: MIT
"""Draws the picture of the whole archive."""
import os
import shutil
import subprocess
import tempfile
import time

DAY_S = 86400
# The ticks of time, for a span up to so many seconds. The title has the rest of the date.
TICKS = ((0.01, "%.6S"), (10, "%H:%M:%.3S"), (3600, "%H:%M:%S"), (DAY_S, "%H:%M"), (10 * DAY_S, "%m-%d\\n%H:%M"),
         (float("inf"), "%Y-%m-%d"))


def quote(text):
    """Returns the text as a literal of gnuplot."""
    return "'" + "".join(c if c.isprintable() else "?" for c in text).replace("'", "''") + "'"


def make_title(folder, points, n_echoes):
    """Returns the name of the folder, how many echoes are drawn, and from when to when."""
    first, last = (time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(find(points)[0])) for find in (min, max))
    drawn = f"{n_echoes} echo{'es' if n_echoes != 1 else ''}"
    if len(points) < n_echoes:
        drawn = f"the strongest {len(points)} of {drawn}"
    return f"{os.path.basename(os.path.abspath(folder))}: {drawn}, {first}{f' to {last}' if last != first else ''}"


def draw(folder, points, n_echoes):
    """Draws range over days with gnuplot. n_echoes: of the whole archive. Returns the name of the picture, or None, and
    the reason."""
    if shutil.which("gnuplot") is None:
        return None, "no picture: gnuplot is not installed"
    if not points:
        return None, "no picture: no echo has a time"
    span_s = max(points)[0] - min(points)[0]
    with tempfile.NamedTemporaryFile("w", suffix=".dat") as data:
        data.writelines(f"{t:.6f} {r / 1e3:.6g} {s:.3g}\n" for t, r, s in points)
        data.flush()
        path = os.path.join(folder, "ranges.png")
        script = f"""set terminal pngcairo size 1800,1000 font ',16'
set output {quote(path + '.partial')}
set title {quote(make_title(folder, points, n_echoes))} noenhanced
set xdata time
set timefmt '%s'
set format x "{next(form for most_s, form in TICKS if span_s <= most_s)}"
set xlabel 'UTC'
set ylabel 'range, km'
set cblabel 'SNR, dB' offset 1.5,0
set offsets graph 0.03, graph 0.03, graph 0.03, graph 0.03
set palette defined (0 '#440154', 1 '#31688e', 2 '#35b779', 3 '#e0a800')
plot '{data.name}' using 1:2:3 with points pointtype 7 pointsize 0.4 palette notitle
"""
        run = subprocess.run(["gnuplot"], input=script, text=True, capture_output=True, check=False)
    if run.returncode != 0:
        return None, f"no picture: gnuplot: {run.stderr.strip().splitlines()[-1]}"
    os.replace(path + ".partial", path)
    return "ranges.png", None
