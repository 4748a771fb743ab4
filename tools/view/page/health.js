// SPDX-License-Identifier: MIT
// Shows the health of the chain and the parameters of the radar from the status messages.
import { clock, count, fixed, utc, withUnit } from './units.js';

function fill(list, rows) {
  list.replaceChildren(...rows.map(([name, value, isBad]) => {
    const [div, dt, dd] = ['div', 'dt', 'dd'].map((kind) => document.createElement(kind));
    dt.textContent = name;
    dd.textContent = value;
    dd.dataset.name = name;
    dd.classList.toggle('bad', Boolean(isBad));
    div.append(dt, dd);
    return div;
  }));
}

function lines(list, texts) {
  list.replaceChildren(...texts.map((text) => {
    const li = document.createElement('li');
    li.textContent = text;
    return li;
  }));
}

const some = (text) => text !== undefined && text !== '0' && text !== 0;

export function showHealth(list, status, page) {
  const a = status?.account, l = status?.latency_us;
  if (!a) {
    fill(list, [['', 'no status yet']]);
    return;
  }
  const ring = status.ring_fill ?? null;
  const unsent = Number(a.results) - Number(a.sent);
  const rows = [
    ['Engine', status.engine],
    ['Samples', count(a.positions)],
    ['Lost at the source', count(a.lost_source), some(a.lost_source)],
    ['Lost in a full ring', count(a.lost_ring_full), some(a.lost_ring_full)],
    ['Ring', ring === null ? '–' : `${fixed(100 * ring, 1)} % full`, ring > 0.8],
    ['Clipped', count(a.n_clipped), some(a.n_clipped)],
    ['Not finite', count(a.n_nonfinite), some(a.n_nonfinite)],
    ['Windows', count(a.windows)],
    ['Without result', count(Number(a.dropped_engine_error) + Number(a.refused_too_much_lost)), some(a.dropped_engine_error) || some(a.refused_too_much_lost)],
    ['Results', count(a.results)],
    ['Unsent results', count(unsent), unsent > 0],
    ['Late results', count(a.deadline_missed), some(a.deadline_missed)],
    ['Not received here', count(page.unseen), page.unseen > 0],
    ['Latency, median', withUnit(l?.p50 * 1e-6, 's')],
    ['Latency, 99 %', withUnit(l?.p99 * 1e-6, 's')],
    ['Latency, worst', withUnit(l?.max * 1e-6, 's')],
    ['Account', a.closes ? 'closes' : 'does not close', !a.closes],
    ['Loss is seen', status.source?.loss_visibility ?? '–'],
    ['Subscribers', String(status.subscribers)],
  ];
  fill(list, rows);
}

// The parameters of the radar that are shown first, by their names in the status message. All others follow.
const titles = {
  code_type: 'Code', n_chips: 'Chips', n_samples: 'Samples N', period_s: 'Period Tr', chip_rate_hz: 'Chip rate', rate_hz: 'Sample rate',
  resolution_m: 'Resolution', unambiguous_m: 'Unambiguous', dwell_periods: 'Periods a dwell', combine: 'Combined', gain_db: 'Gain of a period',
  carrier_hz: 'Carrier', wavelength_m: 'Wavelength', speed_mps: 'Speed', min_range_m: 'Gate from', max_range_m: 'Gate to', path: 'Path',
  zero: 'Zero range', zero_delay_s: 'Zero delay', zero_alarm_m: 'Zero alarm', pfa: 'False alarms', max_echoes: 'Most echoes', oversample: 'Cells a sample',
  pulse: 'Pulse', tune_hz: 'Tuned by', pack: 'Results a message',
};

export function showRadar(list, status) {
  const r = status?.radar;
  if (!r) {
    fill(list, [['', 'no status yet']]);
    return;
  }
  const names = [...Object.keys(titles), ...Object.keys(r).filter((name) => !(name in titles) && name !== 'metres_per_second')];
  fill(list, names.filter((name) => r[name] !== undefined && r[name] !== null && typeof r[name] !== 'object').map((name) => parameter(name, r[name])));
}

const units = [['_hz', 'Hz'], ['_mps', 'm/s'], ['_m', 'm'], ['_s', 's']];

// 'unambiguous_m', 149896 -> ['Unambiguous', '149.896 km']
function parameter(name, value) {
  const unit = units.find(([ending]) => name.endsWith(ending));
  const title = titles[name] ?? name.replace(/_(hz|mps|m|s|db)$/, '').replaceAll('_', ' ');
  if (typeof value === 'number' && unit)
    return [title, withUnit(value, unit[1], 6)];
  return [title, name.endsWith('_db') ? `${Number(value.toPrecision(6))} dB` : String(value)];
}

export function showLosses(list, losses, epoch) {
  lines(list, losses.slice(-20).reverse().map(([from, to, share, unseen]) => {
    const when = utc(epoch, from) || clock(from, 3);
    return `${when}: ${withUnit(to - from, 's')} ${unseen ? 'not received here' : share < 1 ? `with ${(100 * share).toPrecision(2)} % lost` : 'lost'}`;
  }));
}

export const shownEvents = 50;

export function showEvents(list, events) {
  lines(list, events.slice(-shownEvents).reverse().map((e) => `${(e.time ?? '').slice(11, 19)} ${e.event}: ${e.text ?? ''}`));
}
