// SPDX-License-Identifier: MIT
// Shows the echoes of the newest result as a table that the user can sort by any column.
import { fixed, rangeUnit, withSigma, withUnit } from './units.js';

// name: the field for sorting; title; text(echo, unit); has: the column is shown if an echo has this field.
const columns = [
  { name: 'code', title: 'Code', text: (e) => e.code_name || String(e.code) },
  { name: 'range_m', title: (u) => `Range, ${u.unit}`, text: (e, u) => withSigma(e.range_m * u.factor, e.range_sigma_m * u.factor) },
  { name: 'range_sigma_m', title: '±', text: (e, u) => Number((e.range_sigma_m * u.factor).toPrecision(2)).toString() },
  { name: 'snr_db', title: 'SNR, dB', text: (e) => fixed(e.snr_db, 1) },
  { name: 'velocity_mps', title: 'm/s', text: (e) => withSigma(e.velocity_mps, e.velocity_sigma_mps, 4), has: 'velocity_mps' },
  { name: 'doppler_hz', title: 'Hz', text: (e) => withSigma(e.doppler_hz, e.doppler_sigma_hz, 4), has: 'doppler_hz' },
  { name: 'delay_s', title: 'Delay', text: (e) => withUnit(e.delay_s, 's', 6) },
  { name: 'amplitude', title: 'Amplitude', text: (e) => Number(e.amplitude.toPrecision(3)).toString() },
];

export class EchoTable {
  // Calls onSort(name, up) and onSelect(echo).
  constructor(table, onSort, onSelect) {
    this.head = table.tHead.rows[0];
    this.body = table.tBodies[0];
    this.onSort = onSort;
    this.onSelect = onSelect;
    this.shown = '';
  }

  drawHead(shown, unit, sort, up) {
    this.head.replaceChildren(...shown.map((column) => {
      const th = document.createElement('th'), button = document.createElement('button');
      const title = typeof column.title === 'function' ? column.title(unit) : column.title;
      th.scope = 'col';
      button.textContent = title + (column.name === sort ? (up ? ' ▲' : ' ▼') : '');
      th.setAttribute('aria-sort', column.name === sort ? (up ? 'ascending' : 'descending') : 'none');
      button.addEventListener('click', () => this.onSort(column.name, column.name === sort ? !up : false));
      th.append(button);
      return th;
    }));
  }

  show(echoes, mostM, sort, up, selected) {
    const unit = rangeUnit(mostM);
    const shown = columns.filter((c) => !c.has || echoes.some((e) => e[c.has] !== null));
    const head = shown.map((c) => c.name).join() + unit.unit + sort + up;
    if (head !== this.shown)
      this.drawHead(shown, unit, sort, up);
    this.shown = head;
    const sorted = [...echoes].sort((a, b) => ((a[sort] ?? -Infinity) - (b[sort] ?? -Infinity)) * (up ? 1 : -1));
    this.body.replaceChildren(...sorted.map((echo) => {
      const tr = document.createElement('tr');
      tr.setAttribute('aria-selected', String(Boolean(selected && selected.seq === echo.seq && selected.i === echo.i)));
      tr.dataset.range = String(echo.range_m);
      tr.append(...shown.map((column) => {
        const td = document.createElement('td');
        td.textContent = column.text(echo, unit);
        return td;
      }));
      // The rows are replaced often, so a click is handled at its begin.
      tr.addEventListener('pointerdown', () => this.onSelect(echo));
      return tr;
    }));
  }
}
