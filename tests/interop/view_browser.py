# SPDX-License-Identifier: MIT
"""Drives the page of pnradar-view in headless Chromium, over the real chain.
usage: view_browser.py BIN WORK [SCREENSHOT_FOLDER]; prints TAP."""
import csv
import http.server
import json
import os
import subprocess
import sys
import threading
import time

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from view_chain import open_browser, open_view, plan, report, until

bin_folder, work = sys.argv[1], sys.argv[2]
pictures = sys.argv[3] if len(sys.argv) > 3 else None
socket = f"ipc://{work}/socket"


# A still target, and one that comes nearer by 4 km/s, so that the picture shows it within seconds.
settings = f"""
[stream]
name = seen
[source]
rate_hz = 1e6
format = ci16
pace = real-time
start_time = 2026-11-23T10:00:00Z
[code]
type = m-sequence
degree = 10
[radar]
carrier_hz = 1e7
max_range_m = 100e3
[dwell]
periods = 16
combine = doppler
[engine]
deadline = 1s
[publisher]
endpoint = {socket}
profile = power
wait_s = 30
[echo]
periods = 6000
noise_rms = 0.05
[target.1]
range_m = 30000
amplitude = 0.05
[target.2]
range_m = 80000
velocity_mps = 4000
amplitude = 0.05
"""
with open(f"{work}/radar.conf", "w", encoding="utf-8") as file:
    file.write(settings)
radar = [f"{bin_folder}/pnradar", "-c", f"{work}/radar.conf"]
subprocess.run([f"{bin_folder}/pnradar-echo", "-c", f"{work}/radar.conf", "-s", "source.pace=fast",
                f"{work}/echo.ci16"], check=True, capture_output=True)
view, url = open_view(bin_folder, socket)


def publish(*options):
    """Starts a run, which waits for the view."""
    return subprocess.Popen([*radar, "--print", "csv", *options, f"{work}/echo.ci16"],
                            stdout=open(f"{work}/results.csv", "w", encoding="utf-8"),
                            stderr=subprocess.DEVNULL)


def publish_other():
    """Starts a run with another code, gate, rate and target, and with profiles in place of maps."""
    other = []
    for assignment in ("code.degree=9", "radar.max_range_m=60e3", "source.rate_hz=5e5", "code.chip_rate_hz=5e5", "dwell.combine=coherent",
                       "target.1.range_m=10000", "target.1.amplitude=0.15", "target.2.amplitude=0.000001", "echo.periods=12000"):
        other += ["-s", assignment]
    subprocess.run([f"{bin_folder}/pnradar-echo", "-c", f"{work}/radar.conf", "-s", "source.pace=fast", *other,
                    f"{work}/other.ci16"], check=True, capture_output=True)
    return subprocess.Popen([*radar, *other, "--quiet", f"{work}/other.ci16"], stderr=subprocess.DEVNULL)


browser = open_browser(1280, 800)


def get(identity):
    return browser.find_element(By.ID, identity)


def text_of(identity):
    return get(identity).text


def script(code, *arguments):
    return browser.execute_script(code, *arguments)


def value_of(name, panel="health"):
    return script("return document.querySelector(`#${arguments[1]} dd[data-name=\"${arguments[0]}\"]`)?.textContent ?? ''", name, panel)


def state_is(word):
    return lambda: word in text_of("state")


def ranges_shown():
    return script("return [...document.querySelectorAll('#echoes tbody tr')].map((r) => Number(r.dataset.range))")


def colours_at(x_share, y_share):
    """The pixel of the picture at a share of its plot."""
    return script("""
        const c = document.getElementById('rti'), r = devicePixelRatio, left = Math.round(58 * r), top = Math.round(6 * r);
        const w = c.width - left - Math.round(10 * r), h = c.height - top - Math.round(22 * r);
        return [...c.getContext('2d').getImageData(left + Math.floor(arguments[0] * w), top + Math.floor(arguments[1] * h), 1, 1).data]""",
                  x_share, y_share)


def bright_columns(y_share):
    """The columns that are as bright as an echo at a height of the plot."""
    return script("""
        const c = document.getElementById('rti'), r = devicePixelRatio, left = Math.round(58 * r), top = Math.round(6 * r);
        const w = c.width - left - Math.round(10 * r), h = c.height - top - Math.round(22 * r);
        const p = c.getContext('2d').getImageData(left, top + Math.round(arguments[0] * h) - 3, w, 7).data;
        const found = [];
        for (let x = 0; x < w; x++)
          for (let y = 0; y < 7; y++)
            if (p[4 * (y * w + x)] > 200 && p[4 * (y * w + x) + 1] > 200 && p[4 * (y * w + x) + 2] < 120) {
              found.push(x);
              break;
            }
        return found""", y_share)


def old_lines():
    """Columns that have the still target of the first configuration, at 30 of 100 km."""
    return len(bright_columns(0.7))


def note_mixture(found):
    """Notes when the radar of one run and the picture of the other are seen together. True."""
    chips, lines = value_of("Chips", "radar"), old_lines()
    if chips == "511" and lines > 0:
        found.append(lines)
    return True


def press(key):
    ActionChains(browser).send_keys(key).perform()


def seconds_of_hash(name):
    return script("return new URLSearchParams(location.hash.slice(1)).get(arguments[0])", name)


def shoot(name, width, height, theme, whole=False):
    """A screenshot; also checks that nothing is wider than the page and that no texts overlap."""
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500})
    script("location.hash = 'span=10&theme=' + arguments[0]", theme)
    time.sleep(1.5)
    wide = script("return document.documentElement.scrollWidth > innerWidth")
    overlaps = script("""
        const boxes = [...document.querySelectorAll('header > *, nav > *, .panel')].filter((e) => e.offsetParent && e.offsetWidth > 2)
          .map((e) => ({ e, b: e.getBoundingClientRect() }));
        const out = [];
        for (const [i, a] of boxes.entries())
          for (const c of boxes.slice(i + 1))
            if (!a.e.contains(c.e) && !c.e.contains(a.e) && a.b.left < c.b.right - 1 && c.b.left < a.b.right - 1 && a.b.top < c.b.bottom - 1 && c.b.top < a.b.bottom - 1)
              out.push((a.e.id || a.e.tagName) + ' ' + (c.e.id || c.e.tagName));
        return out""")
    cut = script("""
        return [...document.querySelectorAll('header *, h2, .controls *, dt, dd, button')]
          .filter((e) => e.offsetParent && e.scrollWidth > e.clientWidth + 2 && getComputedStyle(e).overflow !== 'visible').map((e) => e.id || e.textContent.slice(0, 30))""")
    if pictures:
        os.makedirs(pictures, exist_ok=True)
        browser.save_screenshot(f"{pictures}/{name}.png")
    report(not wide and not overlaps and not cut, f"{name}: nothing cut, nothing overlapping", (wide, overlaps, cut))


try:
    # --- before and during a run ---
    browser.get(url)
    report(until(lambda: "No stream yet" in text_of("notice")) is not None, "an empty page says what to do")
    run = publish()
    report(until(state_is("live")) is not None, "a run is shown by itself", text_of("state"))
    report(until(lambda: len(ranges_shown()) >= 2) is not None, "the echoes are in the table", ranges_shown())
    first = max(ranges_shown(), default=0)
    report(until(lambda: 1000 < first - max(ranges_shown(), default=first) < 25000) is not None, "the moving target moves",
           (first, ranges_shown()))
    bright, dark = colours_at(0.99, 0.7), colours_at(0.99, 0.05)
    for name, width, height in (("desk", 1920, 1080), ("laptop", 1280, 800), ("phone", 390, 844)):
        for theme in ("dark", "light"):
            shoot(f"{name}-{theme}", width, height, theme)
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})

    # --- the end: what is shown equals what was printed ---
    report(until(state_is("ended"), 20) is not None, "the end of the run is said", text_of("state"))
    run.wait()
    time.sleep(1)
    with open(f"{work}/results.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    last = max(int(r["seq"]) for r in rows)
    want = sorted(float(r["range_m"]) for r in rows if int(r["seq"]) == last and r["echo"] != "")
    got = sorted(ranges_shown())
    report(len(want) > 0 and len(want) == len(got) and
           all(abs(a - b) < 1e-6 * a for a, b in zip(want, got)), "the ranges shown are those published", (want, got))
    report(value_of("Account") == "closes" and value_of("Not received here") == "0", "the account is shown and closes",
           (value_of("Account"), value_of("Not received here")))

    # --- controls ---
    time.sleep(0.5)
    press("0")
    press("+")
    report(until(lambda: seconds_of_hash("span") is not None) is not None, "a key zooms the time, and the address says it")
    press(Keys.ARROW_LEFT)
    report(until(lambda: seconds_of_hash("to") is not None) is not None, "a key moves to an earlier time")
    press("l")
    report(until(lambda: seconds_of_hash("to") is None) is not None, "a key goes back to the newest time")
    canvas = get("rti")
    ActionChains(browser).move_to_element(canvas).perform()
    report("UTC" in text_of("rti-cursor") and "km" in text_of("rti-cursor"), "the cursor has time, range and power", text_of("rti-cursor"))
    script("""arguments[0].dispatchEvent(new WheelEvent('wheel', { deltaY: -300, shiftKey: true, clientX: 400, clientY: 250, bubbles: true, cancelable: true }))""", canvas)
    report(until(lambda: seconds_of_hash("r0") is not None) is not None, "the wheel with Shift zooms the range")
    ActionChains(browser).double_click(canvas).perform()
    report(until(lambda: seconds_of_hash("r0") is None) is not None, "a double click shows the whole gate")
    before = colours_at(0.99, 0.5)
    press("k")
    time.sleep(0.5)
    report(seconds_of_hash("palette") == "magma" and colours_at(0.99, 0.5) != before, "a key changes the colours")
    press("k")
    press("k")
    script("const e = document.getElementById('high'); e.value = 20; e.dispatchEvent(new Event('change'))")
    report(until(lambda: seconds_of_hash("high") == "20") is not None, "the limits of the colours are taken")
    script("const e = document.getElementById('high'); e.value = 40; e.dispatchEvent(new Event('change'))")
    theme = script("return document.documentElement.dataset.theme")
    get("theme").click()
    report(script("return document.documentElement.dataset.theme") != theme, "dark and light")
    head = browser.find_element(By.CSS_SELECTOR, "#echoes th:nth-child(2) button")
    head.click()
    time.sleep(0.7)
    shown = ranges_shown()
    report(shown == sorted(shown, reverse=True) and len(shown) >= 1, "a column sorts the table", shown)
    place = script("const b = document.querySelector('#echoes tbody tr').getBoundingClientRect(); return [b.x + 20, b.y + 5]")
    script("document.elementFromPoint(...arguments[0]).dispatchEvent(new PointerEvent('pointerdown', { bubbles: true }))", place)
    report(until(lambda: len(browser.find_elements(By.CSS_SELECTOR, '#echoes tr[aria-selected="true"]')) == 1, 5) is not None,
           "a click marks an echo")
    press("?")
    report(get("keys").is_displayed(), "the list of keys")
    press(Keys.ESCAPE)
    get("png").click()
    report("history.csv?" in get("csv").get_attribute("href"), "the echoes can be saved as CSV")

    # --- numbers, and a panel that grows ---
    texts = browser.execute_async_script("""
        import('/units.js').then((u) => arguments[0]([u.withUnit(0.88, 's'), u.withUnit(100e3, 'm'), u.withUnit(1e-3, 's'),
          u.withUnit(0, 'Hz'), u.withUnit(1.5e9, 'Hz'), u.withUnit(NaN, 's'), u.withUnit(0.0999999, 's'), u.withUnit(299792458, 'm/s', 6)]))""")
    report(texts == ["880 ms", "100 km", "1 ms", "0 Hz", "1.5 GHz", "–", "100 ms", "299.792 Mm/s"], "numbers with units", texts)
    script("document.getElementById('radar').style.minHeight = '400px'")
    whole = "const c = document.getElementById(arguments[0]); return [c.width, c.height].join() === [c.clientWidth, c.clientHeight].join()"
    report(until(lambda: script(whole, "rti") and script(whole, "map"), 5) is not None, "pictures follow the size of their panel")
    script("document.getElementById('radar').style.minHeight = ''")

    # --- freeze, a new run, a loss ---
    get("freeze").click()
    report("frozen" in text_of("state"), "the page can be frozen", text_of("state"))
    get("freeze").click()
    old = script("return fetch('/api/streams').then((r) => r.json()).then((j) => j.streams[0].run)")
    run = publish("-s", "source.lost=1023000+1023000")
    until(lambda: script("return fetch('/api/streams').then((r) => r.json()).then((j) => j.streams[0].run)") != old)
    report(until(state_is("live")) is not None, "a new run is shown by itself", text_of("state"))
    script("location.hash = 'span=8&theme=dark'")
    report(until(lambda: value_of("Lost at the source") not in ("", "0"), 20) is not None, "the loss is in the account",
           value_of("Lost at the source"))
    grey = until(lambda: any(colours_at(i / 100, 0.6)[:3] == [123, 123, 123] for i in range(100)), 10)
    report(grey is not None, "lost samples are grey")
    report(len(browser.find_elements(By.CSS_SELECTOR, "#losses li")) > 0, "the list of losses names them")

    # --- frames ---
    times = browser.execute_async_script("""
        const done = arguments[0], spans = [];
        let before = performance.now(), n = 0;
        const observer = new PerformanceObserver((l) => l.getEntries().forEach((e) => spans.push(e.duration)));
        observer.observe({ entryTypes: ['longtask'] });
        function step() { if (++n < 120) requestAnimationFrame(step); else done([n / (performance.now() - before) * 1000, spans.length]); }
        requestAnimationFrame(step);""")
    print(f"# {times[0]:.1f} frames a second, {times[1]} tasks above 50 ms")

    # --- a crash, and a run with another configuration ---
    run.terminate()
    run.wait()
    run = publish()
    until(state_is("live"))
    until(lambda: old_lines() > 100)
    run.kill()
    run.wait()
    report(until(state_is("silent"), 20) is not None and "Nothing has arrived" in text_of("notice"),
           "the page says that nothing arrives any more", (text_of("state"), text_of("notice"), run.poll(),
                                                            script("return fetch('/api/streams').then((r) => r.text())")[-400:]))
    report(old_lines() > 100, "the picture of the run before has its still target", old_lines())
    run = publish_other()
    mixed = []
    report(until(lambda: note_mixture(mixed) and state_is("live")(), 20) is not None, "the page goes on by itself", text_of("state"))
    report(until(lambda: note_mixture(mixed) and len(ranges_shown()) == 1 and abs(ranges_shown()[0] - 10000) < 100, 20) is not None,
           "it shows the echoes of the new run", ranges_shown())
    report(until(lambda: note_mixture(mixed) and value_of("Chips", "radar") == "511") is not None, "and its radar",
           value_of("Chips", "radar"))
    report(until(lambda: note_mixture(mixed) and len(bright_columns(5 / 6)) > 10) is not None, "and its picture", len(bright_columns(5 / 6)))
    for _ in range(20):
        note_mixture(mixed)
    report(old_lines() == 0 and not mixed, "nothing of the run before is in the picture", (old_lines(), mixed))
    newest = script("return fetch('/api/map?width=100&height=100').then((r) => r.json())")
    past = script("return fetch('/api/past?from=0&to=100&width=10&height=10').then((r) => r.json())")
    now = script("return fetch('/api/streams').then((r) => r.json()).then((j) => j.streams[0].run)")
    report(newest["run"] == past["run"] == now and newest["rows"] == 1, "the newest profile and the past are of the new run",
           (newest["run"], past["run"], now, newest["rows"]))
    run.terminate()
    run.wait()
    report(until(state_is("ended"), 20) is not None and "stopped" in text_of("notice"), "a stopped run is said to have ended",
           (text_of("state"), text_of("notice")))

    # --- what the browser saw ---
    bad = [entry for entry in browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING") and "willReadFrequently" not in entry["message"]]
    report(not bad, "no error on the console", bad[:3])
    hosts = set()
    for entry in browser.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            hosts.add("/".join(message["params"]["request"]["url"].split("/")[:3]))
    hosts = {h for h in hosts if not h.startswith(("blob:", "data:", "chrome"))}
    report(hosts == {url.rstrip("/")}, "no request to another host", hosts)

    # --- a page of another site, in the same browser ---
    class Empty(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Empty) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        port, own = other.server_port, url.split(":")[2].strip("/")
        for site in (f"127.0.0.1:{port}", f"localhost:{port}"):
            browser.get(f"http://{site}/")
            stolen = browser.execute_async_script("""
                const view = arguments[0], done = arguments[1], got = [];
                const load = (kind, path) => new Promise((resolve) => {
                  const e = document.createElement(kind);
                  e.onload = () => { got.push(kind); resolve(); };
                  e.onerror = resolve;
                  e.src = view + path;
                  document.body.append(e);
                });
                const events = new Promise((resolve) => {
                  const s = new EventSource(view + '/api/live');
                  s.addEventListener('streams', () => { got.push('events'); resolve(); });
                  s.onerror = () => { s.close(); resolve(); };
                });
                Promise.all([
                  ...['cors', 'no-cors'].map((mode) => fetch(view + '/api/latest', { mode }).then(async (r) => { if ((await r.text()) !== '') got.push(mode); }).catch(() => {})),
                  load('img', '/icon.svg'), load('script', '/units.js'), events,
                ]).then(() => done(got));""", f"http://127.0.0.1:{own}")
            report(stolen == [], f"a page of http://{site.split(':')[0]} with another port reads nothing", stolen)
        other.shutdown()
    browser.get(url)
    report(until(state_is("ended")) is not None, "the page itself is served", text_of("state"))
    view.terminate()
    report(view.wait(10) == 0, "a signal ends the view")
    report(until(lambda: "does not answer" in text_of("notice")) is not None, "the page says that the server is gone")
finally:
    browser.quit()
    view.kill()
plan()
