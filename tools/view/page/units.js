// SPDX-License-Identifier: MIT
// Writes numbers and times as text, and chooses the ticks of axes.

const prefixes = [[1e9, 'G'], [1e6, 'M'], [1e3, 'k'], [1, ''], [1e-3, 'm'], [1e-6, 'µ'], [1e-9, 'n']];

// 1234.5, 'Hz' -> '1.23 kHz'
export function withUnit(value, unit, digits = 3) {
  if (!Number.isFinite(value))
    return '–';
  if (value === 0)
    return `0 ${unit}`;
  const [factor, prefix] = prefixes.find(([f]) => Math.abs(value) >= f * 0.9995) ?? prefixes.at(-1);
  return `${Number((value / factor).toPrecision(digits))} ${prefix}${unit}`;
}

// Writes a value with the decimals of the first two digits of its sigma.
export function withSigma(value, sigma, most = 6) {
  if (value === null || !Number.isFinite(value))
    return '–';
  if (!(sigma > 0))
    return String(Number(value.toPrecision(6)));
  return value.toFixed(Math.min(Math.max(1 - Math.floor(Math.log10(sigma)), 0), most));
}

export function fixed(value, decimals) {
  return value === null || !Number.isFinite(value) ? '–' : value.toFixed(decimals);
}

export function count(text) {
  return String(text).replace(/\B(?=(\d{3})+$)/g, ' ');
}

// Writes seconds since the start, as 1:02:03.25
export function clock(seconds, decimals = 2) {
  if (!Number.isFinite(seconds))
    return '–';
  const sign = seconds < 0 ? '−' : '', all = Math.abs(seconds);
  const tick = 10 ** -decimals, rounded = Math.round(all / tick) * tick;
  const hours = Math.floor(rounded / 3600), minutes = Math.floor(rounded / 60) % 60;
  const rest = (rounded - hours * 3600 - minutes * 60).toFixed(decimals).padStart(decimals ? 3 + decimals : 2, '0');
  return `${sign}${hours ? `${hours}:${String(minutes).padStart(2, '0')}` : minutes}:${rest}`;
}

// Returns the UTC of a time in the stream; '': not known. epoch: UTC of the start of the stream.
export function utc(epoch, seconds) {
  if (!epoch || !Number.isFinite(seconds))
    return '';
  const start = Date.parse(epoch.replace(/(\.\d{3})\d*Z$/, '$1Z'));
  return new Date(start + seconds * 1000).toISOString().replace('T', ' ');
}

// Returns the second of the day at the start of the stream; 0: not known.
export function secondOfDay(epoch) {
  return epoch ? Date.parse(utc(epoch, 0).replace(' ', 'T')) / 1000 % 86400 : 0;
}

// Returns round values from low to high, about room / each values.
export function ticks(low, high, room, each) {
  const least = Math.abs(high - low) * each / Math.max(room, 1);
  if (!(least > 0))
    return { values: [low], step: 1 };
  const power = 10 ** Math.floor(Math.log10(least));
  const step = power * ([1, 2, 5, 10].find((m) => m * power >= least * 0.999999) ?? 10);
  const from = Math.ceil(Math.min(low, high) / step - 1e-9), to = Math.floor(Math.max(low, high) / step + 1e-9);
  const values = [];
  for (let i = from; i <= to; i++)
    values.push(i * step);
  return { values, step };
}

// Returns round times from low to high, about room / each values.
export function timeTicks(low, high, room, each) {
  const least = (high - low) * each / Math.max(room, 1);
  const steps = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600];
  const step = steps.find((s) => s >= least) ?? 7200;
  const values = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9; i++)
    values.push(i * step);
  return { values, step };
}

export function decimalsOf(step) {
  return Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
}

// Returns the unit for ranges up to `most` metres: km, m or cm.
export function rangeUnit(most) {
  if (most >= 1e4)
    return { unit: 'km', factor: 1e-3 };
  return most < 2 ? { unit: 'cm', factor: 100 } : { unit: 'm', factor: 1 };
}
