# SPDX-License-Identifier: MIT
"""Draws the picture of the whole archive."""
import os
import shutil
import subprocess
import tempfile


def draw(folder, points, cwd):
    """Draws range over days with gnuplot. Returns the name of the picture, or None, and the reason."""
    if shutil.which("gnuplot") is None:
        return None, "no picture: gnuplot is not installed"
    if not points:
        return None, "no picture: no echo has a time"
    with tempfile.NamedTemporaryFile("w", suffix=".dat") as data:
        data.writelines(f"{t:.3f} {r / 1e3:.6g} {s:.3g}\n" for t, r, s in points)
        data.flush()
        path = os.path.join(folder, "ranges.png")
        script = f"""set terminal pngcairo size 1800,1000 font ',16'
set output '{path}.partial'
set xdata time
set timefmt '%s'
set format x "%Y-%m-%d\\n%H:%M"
set xlabel 'UTC'
set ylabel 'range, km'
set cblabel 'SNR, dB'
set offsets graph 0.03, graph 0.03, graph 0.03, graph 0.03
set palette defined (0 '#440154', 1 '#31688e', 2 '#35b779', 3 '#e0a800')
plot '{data.name}' using 1:2:3 with points pointtype 7 pointsize 0.4 palette notitle
"""
        run = subprocess.run(["gnuplot"], input=script, text=True, capture_output=True, check=False)
    if run.returncode != 0:
        return None, f"no picture: gnuplot: {run.stderr.strip().splitlines()[-1]}"
    os.replace(path + ".partial", path)
    return "ranges.png", None
