# SPDX-License-Identifier: MIT
"""What the tests of the page share: TAP, a browser, and the programs."""
import subprocess
import time

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

count = 0


def report(is_good, name, detail=""):
    global count
    count += 1
    print(f"{'ok' if is_good else 'not ok'} {count} - {name}", flush=True)
    if not is_good:
        print(f"# {detail}", flush=True)


def plan():
    print(f"1..{count}")


def until(condition, seconds=30):
    """The first true value of a condition; None: it never was."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.1)
    return None


def open_view(bin_folder, socket):
    """Starts pnradar-view. Returns it and its address."""
    view = subprocess.Popen([f"{bin_folder}/pnradar-view", "--listen", "127.0.0.1:0", socket],
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return view, view.stdout.readline().strip()


def open_browser(width, height, trace=None):
    """Chromium without a display. trace: categories of trace events in the log `performance`."""
    options = Options()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                     f"--window-size={width},{height}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    if trace:
        options.add_experimental_option("perfLoggingPrefs", {"traceCategories": trace})
    return webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
