# SPDX-License-Identifier: MIT
"""Traces the page while a picture of 2000 x 600 pixels scrolls, with 100 echoes a second.
usage: view_frames.py BIN WORK [SECONDS]; prints TAP. The times are printed, not judged: they depend on the machine.
From 60 SECONDS on the memory of the page is printed, too."""
import json
import subprocess
import sys
import time

from view_chain import open_browser, open_view, plan, report, until

bin_folder, work = sys.argv[1], sys.argv[2]
seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 10
socket = f"ipc://{work}/frames"
WIDTH, HEIGHT, MARGIN_X, MARGIN_Y = 2000, 600, 68, 28  # pixels of the picture, and of its axes

# 20.3 results a second, each with five echoes.
settings = f"""
[stream]
name = frames
[source]
rate_hz = 1e6
format = ci16
pace = real-time
[code]
type = m-sequence
degree = 12
[radar]
carrier_hz = 1e8
max_range_m = 400e3
[dwell]
periods = 12
combine = coherent
[engine]
deadline = 1s
[detector]
subtract = 0
[publisher]
endpoint = {socket}
profile = power
[echo]
periods = {int((seconds + 60) * 1e6 / 4095)}
noise_rms = 0.05
"""
for i in range(5):
    settings += f"[target.{i + 1}]\nrange_m = {40000 + 60000 * i}\nvelocity_mps = {2 * i - 4}\namplitude = 0.05\n"
with open(f"{work}/frames.conf", "w", encoding="utf-8") as file:
    file.write(settings)

# The calls that draw on the scrolling picture, and the frames, since the start of the count.
COUNT = """
window.counted = { frames: 0, mostCopies: 0, fetched: 0 };
const draw = CanvasRenderingContext2D.prototype.drawImage;
let copies = 0;
CanvasRenderingContext2D.prototype.drawImage = function (...values) {
  if (this.canvas.id === 'rti')
    copies++;
  return draw.apply(this, values);
};
const frame = window.requestAnimationFrame;
window.requestAnimationFrame = (callback) => frame((time) => {
  copies = 0;
  callback(time);
  Object.assign(counted, { frames: counted.frames + 1, mostCopies: Math.max(counted.mostCopies, copies) });
});
const original = window.fetch;
window.fetch = (...values) => { counted.fetched += String(values[0]).startsWith('/api/past') ? 1 : 0; return original(...values); };
"""


def size_picture(browser):
    """Makes the plot of the picture WIDTH x HEIGHT pixels, by the size of the window."""
    width, height = 3100, 1200
    for _ in range(12):
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})
        time.sleep(0.4)
        got = browser.execute_script("const c = document.getElementById('rti'); return [c.width, c.height]")
        wrong = WIDTH + MARGIN_X - got[0], HEIGHT + MARGIN_Y - got[1]
        if wrong == (0, 0):
            return True
        width, height = [size + round(1.5 * by) if abs(by) > 1 else size + by for size, by in zip((width, height), wrong)]
    return False


def heap_mib(browser):
    browser.execute_cdp_cmd("HeapProfiler.collectGarbage", {})
    usage = browser.execute_cdp_cmd("Runtime.getHeapUsage", {})
    return usage["usedSize"] / 2**20


def events_of_page(browser):
    """The trace events of the page's main thread, by their begin."""
    events = []
    for entry in browser.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Tracing.dataCollected":
            events.append(message["params"])
    return events


SCRIPT = {"FunctionCall", "EvaluateScript", "FireAnimationFrame", "TimerFire", "EventDispatch", "RunMicrotasks",
          "v8.callFunction", "MinorGC", "MajorGC"}


def frame_times(events, last_s):
    """The last seconds: milliseconds of script from each animation frame to the next: by the clock, and of the processor."""
    threads = {}
    for e in events:
        if e["name"] == "FireAnimationFrame":
            threads[(e["pid"], e["tid"])] = threads.get((e["pid"], e["tid"]), 0) + 1
    page = max(threads, key=threads.get)
    mine = sorted((e for e in events if (e["pid"], e["tid"]) == page and e["ph"] == "X" and e["name"] in SCRIPT),
                  key=lambda e: (e["ts"], -e["dur"]))
    frames, end, parts = [], -1, {}
    for e in mine:
        if e["name"] == "FireAnimationFrame":
            frames.append([e["ts"], 0, 0, {}])
        if e["ts"] < end:
            continue  # inside of an event that is counted
        end = e["ts"] + e["dur"]
        if frames:
            frames[-1][1] += e["dur"] / 1000
            frames[-1][2] += e.get("tdur", e["dur"]) / 1000
            frames[-1][3][e["name"]] = frames[-1][3].get(e["name"], 0) + e.get("tdur", 0) / 1000
    return [f for f in frames[:-1] if f[0] > frames[-1][0] - last_s * 1e6]


def share(values, of):
    return sorted(values)[int(of * (len(values) - 1))]


view, url = open_view(bin_folder, socket)
config = ["-c", f"{work}/frames.conf"]
echo = subprocess.Popen([f"{bin_folder}/pnradar-echo", *config, "-"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
radar = subprocess.Popen([f"{bin_folder}/pnradar", *config, "--quiet", "-"], stdin=echo.stdout, stderr=subprocess.DEVNULL)
browser = open_browser(3100, 1200, "devtools.timeline,v8")
try:
    browser.get(f"{url}#span=60&theme=dark")
    report(size_picture(browser), f"a picture of {WIDTH} x {HEIGHT} pixels")
    live = until(lambda: "live" in browser.find_element("id", "state").text)
    report(live is not None, "a live picture")
    browser.execute_script(COUNT)
    begin = time.monotonic()
    time.sleep(min(seconds, 30))
    took = time.monotonic() - begin
    counted = browser.execute_script("return counted")
    frames = frame_times(events_of_page(browser), took)
    echoes = json.loads(browser.execute_script("return fetch('/api/streams').then((r) => r.text())"))["streams"][0]
    wall, cpu = [f[1] for f in frames], [f[2] for f in frames]
    print(f"# {len(frames) / took:.1f} frames a second; script a frame: median {share(wall, 0.5):.2f}, p99 {share(wall, 0.99):.2f}, "
          f"worst {max(wall):.2f} ms by the clock; median {share(cpu, 0.5):.2f}, p99 {share(cpu, 0.99):.2f}, worst {max(cpu):.2f} ms of the processor")
    if len(sys.argv) > 4:
        for f in sorted(frames, key=lambda f: -f[2])[:20]:
            print("#", [round(x, 2) for x in f[1:3]], {k: round(v, 2) for k, v in f[3].items()})
    report(counted["frames"] > 0 and 0 < counted["mostCopies"] <= 8,
           "a frame copies a few rectangles, however many echoes there are", counted)
    report(counted["fetched"] == 0, "a live picture does not ask for the past again", counted)
    while seconds >= 60 and time.monotonic() - begin < seconds:
        print(f"# after {time.monotonic() - begin:.0f} s: {heap_mib(browser):.1f} MiB of script objects", flush=True)
        time.sleep(60)
finally:
    browser.quit()
    for program in (radar, echo, view):
        program.kill()
plan()
