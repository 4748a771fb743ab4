#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Errors against stated sigmas in random scenes: prints one row of a markdown table for each kind of scene.

usage: answer_table.py BIN_FOLDER [--dwells N] [--scenes N] [--only TEXT] [--seed S] [--check] [--snr-limit DB]

--check: exit status 1 if a mean of (error / sigma)^2 lies outside 0.8 to 1.25, or 1 % of the dwells have a false echo;
--snr-limit: also if the mean SNR is wrong by more than DB.
"""
import argparse
import json
import math
import os
import random
import subprocess
import sys
import tempfile

SPEED = 299792458.0
CHIP_HZ = 250e3
CHIPS = 255
CARRIER_HZ = 1e9


def scene(rng, kind, path):
    """Returns the configuration of a scene, and its echoes as (code, lag, bins, amplitude)."""
    per_chip, looks, codes, n_echoes = kind['q'], kind['looks'], kind['codes'], kind['echoes']
    rate = CHIP_HZ * per_chip
    n = CHIPS * per_chip
    # rows of Doppler: 16 periods; looks: of one period
    periods = 16 if kind['doppler'] else 1
    gain = n * periods
    lines = ['[source]', f'rate_hz = {rate:.0f}', f'input = {path}',
             f"format = {'f32' if kind['real'] else 'cf32'}",
             '[code]', f'chip_rate_hz = {CHIP_HZ:.0f}', f"pulse = {kind['pulse']}"]
    if kind['real']:
        lines.insert(4, f'tune_hz = {rate / 4:.0f}')
    if kind['pulse'] == 'filtered':
        lines.append(f'cutoff_hz = {0.6 * CHIP_HZ:.0f}')
    if codes == 1:
        lines += ['type = m-sequence', 'degree = 8']
    else:
        lines += ['type = random', f'length = {CHIPS}']
        for c in range(codes):
            lines += [f'[code.{c + 1}]', f'seed = {c + 1}']
    lines += ['[radar]', f'carrier_hz = {CARRIER_HZ:.0f}', '[echo]', 'noise_rms = 1e-2']
    if kind['coloured']:
        lines.append(f'noise_bandwidth_hz = {0.625 * rate / (2 if kind["real"] else 1):.0f}')
    if kind['doppler']:
        lines += ['[dwell]', 'combine = doppler', f'periods = {periods}', '[doppler]', 'step = half']
    elif looks > 1:
        lines += ['[dwell]', 'combine = incoherent', f'periods = {looks}']
    lines += ['[detector]', 'max_echoes = 16', 'pfa = 1e-3', f"subtract = {kind['subtract']}"]
    echoes = []
    for i in range(n_echoes):
        while True:
            lag = rng.uniform(0, n)
            if all(abs((lag - e[1] + n / 2) % n - n / 2) > 1.6 * per_chip for e in echoes):
                break
        db = rng.uniform(25, 45)
        amplitude = 1e-2 * 10 ** (db / 20) / math.sqrt(gain) * (2 ** 0.5 if kind['real'] else 1)
        hz = rng.uniform(-0.4, 0.4) * rate / n if kind['doppler'] else 0
        code = rng.randrange(codes)
        echoes.append((code, lag, hz, amplitude, db))
        lines += [f'[target.{i + 1}]', f'code = {code + 1}', f'range_m = {lag / rate * SPEED / 2!r}',
                  f'velocity_mps = {hz * SPEED / CARRIER_HZ / 2!r}', f'amplitude = {amplitude!r}',
                  f'phase_rad = {rng.uniform(0, 6.28)!r}']
    return '\n'.join(lines) + '\n', echoes, n, rate, periods * looks


class Tally:
    def __init__(self):
        self.sums = {'delay': [], 'doppler': [], 'amplitude': [], 'snr': []}
        self.planted = self.found = self.false = self.dwells = 0
        self.flags = {}

    def mean(self, name):
        values = sorted(self.sums[name])
        return sum(values) / len(values) if values else math.nan


def run(bin_folder, kind, rng, n_dwells, tally):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'echo.' + ('f32' if kind['real'] else 'cf32'))
        text, echoes, n, rate, windows = scene(rng, kind, path)
        conf = os.path.join(folder, 'scene.conf')
        with open(conf, 'w') as out:
            out.write(text)
        subprocess.run([f'{bin_folder}/pnradar-echo', '-c', conf, '-s', f'echo.periods={n_dwells * windows}',
                        '-s', f'echo.seed={rng.randrange(1 << 30)}', path],
                       check=True, stderr=subprocess.DEVNULL)
        done = subprocess.run([f'{bin_folder}/pnradar', '-c', conf, '-s', 'publisher.endpoint=', '--print', 'json'],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            sys.exit(f'{text}{done.stderr}')
        out = done.stdout
    for d, line in enumerate(out.splitlines()):
        report = json.loads(line)
        seen = set()
        tally.dwells += 1
        tally.planted += len(echoes)
        for flag in report['flags']:
            tally.flags[flag] = tally.flags.get(flag, 0) + 1
        middle = (d + 0.5) * n * windows / rate
        for e in report['echoes']:
            best = None
            for i, (code, lag, hz, amplitude, db) in enumerate(echoes):
                at = lag - hz / CARRIER_HZ * middle * rate
                error = (e['delay_samples'] - at + n / 2) % n - n / 2
                turns = 0 if e['doppler_hz'] is None else (e['doppler_hz'] - hz) * n * windows / rate
                if code == e['code'] - 1 and i not in seen and abs(error) < kind['q'] and abs(turns) < 1:
                    if best is None or abs(error) < abs(best[1]):
                        best = (i, error, turns, e['amplitude'] - amplitude, e['snr_db'] - db)
            if best is None:
                tally.false += 1
                continue
            seen.add(best[0])
            tally.found += 1
            tally.sums['delay'].append((best[1] / (e['delay_sigma_s'] * rate)) ** 2)
            tally.sums['snr'].append(best[4])
            tally.sums['amplitude'].append((best[3] / e['amplitude_sigma']) ** 2)
            if e['doppler_hz'] is not None:
                tally.sums['doppler'].append((best[2] / (e['doppler_sigma_hz'] * n * windows / rate)) ** 2)


def kinds():
    base = {'q': 4, 'looks': 1, 'codes': 1, 'echoes': 1, 'doppler': False, 'real': False, 'coloured': False,
            'pulse': 'rectangular', 'subtract': 0}
    rows = []
    for q in 1, 2, 4, 12, 16:
        for coloured in False, True:
            rows.append({**base, 'q': q, 'coloured': coloured})
    for pulse in 'band-limited', 'rrc', 'filtered':
        rows.append({**base, 'pulse': pulse})
    for echoes in 2, 4, 8:
        rows.append({**base, 'echoes': echoes})
        rows.append({**base, 'echoes': echoes, 'doppler': True})
        rows.append({**base, 'echoes': echoes, 'looks': 16})
        rows.append({**base, 'echoes': echoes, 'codes': 10})
        rows.append({**base, 'echoes': echoes, 'codes': 10, 'doppler': True})
        rows.append({**base, 'echoes': echoes, 'real': True})
        rows.append({**base, 'echoes': echoes, 'coloured': True})
        rows.append({**base, 'echoes': echoes, 'coloured': True, 'doppler': True})
        rows.append({**base, 'echoes': echoes, 'coloured': True, 'real': True, 'doppler': True})
    for echoes in 1, 4:
        rows.append({**base, 'echoes': echoes, 'q': 1, 'doppler': True})
        rows.append({**base, 'echoes': echoes, 'pulse': 'rrc', 'doppler': True})
        rows.append({**base, 'echoes': echoes, 'looks': 16, 'real': True})
        rows.append({**base, 'echoes': echoes, 'looks': 16, 'coloured': True})
    return rows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('bin')
    parser.add_argument('--dwells', type=int, default=400)
    parser.add_argument('--scenes', type=int, default=20)
    parser.add_argument('--only', default='')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--check', action='store_true')
    parser.add_argument('--snr-limit', type=float, help='of the mean error in white noise, dB, with --check')
    arguments = parser.parse_args()
    is_good = True
    print('| samples a chip | pulse | samples | noise | dwell | codes | echoes | found, % | false a dwell | '
          'delay | Doppler | amplitude | SNR, dB | flags |')
    print('|' + '---|' * 14)
    for kind in kinds():
        rng = random.Random(f'{arguments.seed} {sorted(kind.items())}')
        tally = Tally()
        name = (f"| {kind['q']} | {kind['pulse']} | {'real' if kind['real'] else 'complex'} | "
                f"{'coloured' if kind['coloured'] else 'white'} | "
                f"{'16 rows' if kind['doppler'] else str(kind['looks']) + ' looks'} | {kind['codes']} | "
                f"{kind['echoes']} |")
        if arguments.only not in name:
            continue
        for _ in range(arguments.scenes):
            run(arguments.bin, kind, rng, max(arguments.dwells // arguments.scenes, 1), tally)
        flags = ', '.join(f'{k} {v / tally.dwells:.2f}' for k, v in sorted(tally.flags.items()))
        print(f"{name} {100 * tally.found / tally.planted:.1f} | {tally.false / tally.dwells:.4f} | "
              f"{tally.mean('delay'):.2f} | {tally.mean('doppler'):.2f} | {tally.mean('amplitude'):.2f} | "
              f"{'-' if kind['coloured'] else format(tally.mean('snr'), '.2f')} | {flags} |",
              flush=True)
        means = [tally.mean(k) for k in ('delay', 'doppler', 'amplitude') if tally.sums[k]]
        is_good &= bool(means) and all(0.8 <= m <= 1.25 for m in means) and 100 * tally.false <= tally.dwells
        is_good &= arguments.snr_limit is None or abs(tally.mean('snr')) <= arguments.snr_limit
    return 0 if is_good or not arguments.check else 1


if __name__ == '__main__':
    sys.exit(main())
