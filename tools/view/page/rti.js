// SPDX-License-Identifier: MIT
// Draws range over time as a scrolling picture. Its columns are in a ring, so each frame only copies
// two rectangles.
import * as colour from './colour.js';
import { clock, decimalsOf, rangeUnit, secondOfDay, ticks, timeTicks, utc } from './units.js';

const spare = 24;                            // columns of the ring that no frame shows
const margin = { left: 58, right: 10, top: 6, bottom: 22 }; // CSS pixels
const most = 4096;                           // most pixels that the server sends
const keptEchoes = 60000;

export class Rti {
  constructor(canvas, over) {
    this.canvas = canvas;
    this.over = over;
    this.picture = document.createElement('canvas');
    this.marks = document.createElement('canvas');
    this.echoes = [];
    this.losses = [];
    this.cleared = 0;
    this.turn = 0;          // changes when the columns are emptied; answers to older requests are then ignored
    this.gate = null;       // { first, most, rate, dwell, epoch }: metres, seconds
    this.endS = 0;
    this.endAt = 0;         // performance.now() at the arrival of endS
    this.view = { span: 60, to: null, r0: 0, r1: 1, showMarks: true };
    this.selected = null;
    this.lut = new Uint32Array(256);
    this.resize();
  }

  // Adapts to the size of the canvas. Returns true if the size has changed; the columns are then empty.
  resize() {
    const ratio = devicePixelRatio || 1;
    const width = Math.round(this.canvas.clientWidth * ratio), height = Math.round(this.canvas.clientHeight * ratio);
    if (width === this.canvas.width && height === this.canvas.height && this.cells)
      return false;
    for (const c of [this.canvas, this.over])
      [c.width, c.height] = [width, height];
    this.ratio = ratio;
    this.left = Math.round(margin.left * ratio);
    this.top = Math.round(margin.top * ratio);
    this.columns = Math.min(Math.max(16, width - this.left - Math.round(margin.right * ratio)), most);
    this.rows = Math.min(Math.max(16, height - this.top - Math.round(margin.bottom * ratio)), most);
    this.ring = this.columns + spare;
    this.clear();
    return true;
  }

  // Empties the columns, but keeps the echoes.
  clear() {
    this.turn++;
    this.cells = new Uint8Array(this.ring * this.rows);
    this.owner = new Float64Array(this.ring).fill(-1);
    this.cleared = this.firstColumn() - spare / 2 + this.ring - 1;
    this.image = new ImageData(1, this.rows);
    this.pixels = new Uint32Array(this.image.data.buffer);
    for (const c of [this.picture, this.marks])
      [c.width, c.height] = [this.ring, this.rows];
    this.dirty = true;
  }

  // Removes all data of a run.
  forget() {
    this.echoes = [];
    this.losses = [];
    this.endS = 0;
    this.clear();
  }

  get columnS() {
    return this.view.span / this.columns;
  }

  // Returns the time at the right edge. Between two lines, a live picture moves by at most a quarter of a second.
  edge() {
    if (this.view.to !== null)
      return this.view.to;
    const since = this.moves ? Math.min((performance.now() - this.endAt) / 1000, 0.25) : 0;
    return this.endS + since;
  }

  firstColumn() {
    return Math.ceil(this.edge() / this.columnS - 1e-6) - this.columns;
  }

  noteEnd(endS) {
    if (endS <= this.endS)
      return;
    this.endS = endS;
    this.endAt = performance.now();
    this.dirty = true;
  }

  setColours(palette, low, high, leastDb, stepDb) {
    this.lut = colour.table(palette, low, high, leastDb, stepDb);
    this.leastDb = leastDb;
    this.stepDb = stepDb;
    this.repaint();
  }

  // --- columns ---

  slot(column) {
    return ((column % this.ring) + this.ring) % this.ring;
  }

  // Returns the slot of a column. Empties the slot if it has another column.
  take(column) {
    const slot = this.slot(column);
    if (this.owner[slot] !== column) {
      this.owner[slot] = column;
      this.cells.fill(0, slot * this.rows, (slot + 1) * this.rows);
    }
    return slot;
  }

  // Returns the lost share of a column, 0 .. 1.
  lostIn(column) {
    const from = column * this.columnS, to = from + this.columnS;
    let share = 0;
    for (const [begin, end, part] of this.losses)
      if (begin < to && end > from)
        share += part * (Math.min(end, to) - Math.max(begin, from)) / this.columnS;
    return Math.min(share, 1);
  }

  paint(column) {
    const slot = this.slot(column), rows = this.rows, base = slot * rows;
    const lost = this.losses.length > 0 ? this.lostIn(column) : 0;
    let some = false;
    for (let i = 0; i < rows; i++) {
      const v = this.cells[base + i];
      some ||= v > 0;
      this.pixels[rows - 1 - i] = this.lut[v];
    }
    if (lost > 0) {
      const grey = this.grey ??= colour.pixel(...hex(colour.themeColour('--lost')));
      const band = some ? Math.max(4, Math.round(rows * 0.03)) : rows;
      for (let i = 0; i < band; i++)
        this.pixels[i] = grey;
    }
    this.picture.getContext('2d').putImageData(this.image, slot, 0);
    this.dirty = true;
  }

  // Adds a line of cells for the time from fromS to toS. The first cell is the nearest.
  addLine(fromS, toS, cells) {
    const first = Math.floor(fromS / this.columnS + 1e-6);
    const last = Math.max(first, Math.ceil(toS / this.columnS - 1e-6) - 1);
    const shown = this.firstColumn() - spare / 2;
    if (cells.length !== this.rows)
      return; // the line has the previous size; the past will have it in the new size
    if (this.view.to !== null && (last < shown || first > shown + this.ring))
      return;
    for (let column = Math.max(first, last - this.ring + 1); column <= last; column++) {
      const base = this.take(column) * this.rows;
      for (let i = 0; i < this.rows; i++)
        if (cells[i] > this.cells[base + i])
          this.cells[base + i] = cells[i];
      this.paint(column);
    }
  }

  // Adds the past from the server: a row for each column. The first cell of a row is the nearest.
  addPast(firstColumn, width, height, cells) {
    for (let row = 0; row < height; row++) {
      const line = cells.subarray(row * width, (row + 1) * width);
      if (line.some((v) => v > 0)) {
        const base = this.take(firstColumn + row) * this.rows;
        for (let i = 0; i < this.rows && i < width; i++)
          if (line[i] > this.cells[base + i])
            this.cells[base + i] = line[i];
      }
    }
    this.repaint();
  }

  addLosses(list) {
    this.losses.push(...list);
    if (this.losses.length > 8192)
      this.losses.splice(0, this.losses.length - 4096);
    for (const [from, to] of list)
      this.paintTime(from, to);
  }

  paintTime(from, to) {
    const first = this.firstColumn(), last = first + this.columns;
    for (let c = Math.max(first, Math.floor(from / this.columnS)); c <= Math.min(last, Math.ceil(to / this.columnS)); c++) {
      this.take(c);
      this.paint(c);
    }
  }

  repaint() {
    const first = this.firstColumn();
    this.grey = undefined;
    this.picture.getContext('2d').clearRect(0, 0, this.ring, this.rows);
    for (let column = first - spare / 2; column < first + this.columns + spare / 2; column++)
      if (this.owner[this.slot(column)] === column || this.lostIn(column) > 0) {
        this.take(column);
        this.paint(column);
      }
    this.repaintMarks();
  }

  // --- marks ---

  // Adds echoes, and removes those before the shown time. The page requests them again when it shows their time.
  addEchoes(all) {
    const list = this.view.to === null ? all : all.filter((e) => e.t <= this.view.to);
    const from = this.edge() - this.view.span;
    this.echoes.push(...list);
    if (this.echoes.length > 1000 && this.echoes[0].t < from - this.view.span / 4)
      this.echoes = this.echoes.filter((e) => e.t >= from);
    if (this.echoes.length > keptEchoes)
      this.echoes.splice(0, this.echoes.length - keptEchoes + 10000);
    for (const echo of list)
      this.mark(echo);
    this.dirty = true;
  }

  x(timeS) {
    return timeS / this.columnS;
  }

  y(rangeM) {
    return (1 - (rangeM - this.view.r0) / (this.view.r1 - this.view.r0)) * this.rows;
  }

  mark(echo) {
    const column = Math.floor(this.x(echo.t + (this.gate?.dwell ?? 0) / 2));
    const first = this.firstColumn() - spare / 2, y = this.y(echo.range_m);
    if (!(y >= -4 && y <= this.rows + 4) || column < first || column >= first + this.ring)
      return;
    this.clearMarks(column + spare / 2);
    const context = this.marks.getContext('2d'), x = this.slot(column) + 0.5;
    const bar = Math.max(7 * this.ratio, echo.range_sigma_m / (this.view.r1 - this.view.r0) * this.rows);
    // Draws a stroke above the echo and one below it, with a dark and a light edge, so the echo stays visible.
    for (const at of x < spare ? [x, x + this.ring] : x > this.ring - spare ? [x, x - this.ring] : [x])
      for (const [style, width] of [['#000', 3.4], ['#fff', 2.2], [colour.codeColour(echo.code), 1.2]]) {
        const edge = (3.4 - width) / 2 * this.ratio;
        context.strokeStyle = style;
        context.lineWidth = width * this.ratio;
        context.beginPath();
        for (const side of [-1, 1]) {
          context.moveTo(at, y + side * (3 * this.ratio + edge));
          context.lineTo(at, y + side * (bar - edge));
        }
        context.stroke();
      }
  }

  // Clears the marks of the previous turn of the ring, up to a column.
  clearMarks(column) {
    const context = this.marks.getContext('2d');
    this.cleared = Math.max(this.cleared, column - this.ring); // a page in the background may be hours behind
    for (; this.cleared < column; this.cleared++)
      context.clearRect(this.slot(this.cleared + 1), 0, 1, this.rows);
  }

  repaintMarks() {
    this.marks.getContext('2d').clearRect(0, 0, this.ring, this.rows);
    this.cleared = this.firstColumn() - spare / 2 + this.ring - 1;
    for (const echo of this.echoes)
      this.mark(echo);
    this.dirty = true;
  }

  // --- frames ---

  draw() {
    if (!this.dirty && !(this.view.to === null && this.moves))
      return;
    const first = this.firstColumn();
    if (!this.dirty && first === this.drawn)
      return;
    this.drawn = first;
    this.dirty = false;
    const context = this.canvas.getContext('2d');
    context.fillStyle = colour.themeColour('--panel');
    context.fillRect(0, 0, this.canvas.width, this.canvas.height);
    context.fillStyle = colour.themeColour('--empty');
    context.fillRect(this.left, this.top, this.columns, this.rows);
    this.copyRing(context, this.picture, first);
    this.clearMarks(first + this.columns);
    if (this.view.showMarks)
      this.copyRing(context, this.marks, first);
    this.drawAxes(context, first);
    this.drawOver();
  }

  copyRing(context, from, first) {
    const begin = this.slot(first), n = Math.min(this.columns, this.ring - begin);
    context.drawImage(from, begin, 0, n, this.rows, this.left, this.top, n, this.rows);
    if (n < this.columns)
      context.drawImage(from, 0, 0, this.columns - n, this.rows, this.left + n, this.top, this.columns - n, this.rows);
  }

  drawAxes(context, first) {
    const { r0, r1 } = this.view, unit = rangeUnit(Math.max(Math.abs(r0), Math.abs(r1)));
    const bottom = this.top + this.rows, t0 = first * this.columnS, t1 = t0 + this.view.span;
    context.font = `${11 * this.ratio}px system-ui, "DejaVu Sans", sans-serif`;
    context.fillStyle = colour.themeColour('--text');
    context.strokeStyle = colour.themeColour('--faint');
    context.lineWidth = 1;
    context.strokeRect(this.left - 0.5, this.top - 0.5, this.columns + 1, this.rows + 1);
    context.textAlign = 'right';
    context.textBaseline = 'middle';
    const range = ticks(r0 * unit.factor, r1 * unit.factor, this.rows / this.ratio, 50);
    for (const value of range.values) {
      const y = this.top + this.y(value / unit.factor);
      this.tick(context, this.left, y, this.left - 4 * this.ratio, y);
      const at = Math.min(Math.max(y, this.top + 7 * this.ratio), bottom - 7 * this.ratio);
      context.fillText(value.toFixed(decimalsOf(range.step)), this.left - 7 * this.ratio, at);
    }
    context.save();
    context.translate(9 * this.ratio, this.top + this.rows / 2);
    context.rotate(-Math.PI / 2);
    context.textAlign = 'center';
    context.fillText(`range, ${unit.unit}`, 0, 0);
    context.restore();
    context.textAlign = 'center';
    context.textBaseline = 'top';
    // with UTC, the ticks are at round times of the day
    const shift = secondOfDay(this.gate?.epoch);
    const time = timeTicks(t0 + shift, t1 + shift, this.columns / this.ratio, 80), half = 34 * this.ratio;
    for (const value of time.values.map((v) => v - shift)) {
      const x = this.left + (value - t0) / this.columnS;
      if (value < 0)
        continue;
      this.tick(context, x, bottom, x, bottom + 4 * this.ratio);
      if (x - half > 0 && x + half < this.canvas.width)
        context.fillText(this.timeText(value, time.step), x, bottom + 6 * this.ratio);
    }
  }

  timeText(value, step) {
    const decimals = Math.min(decimalsOf(step), 1);
    const date = utc(this.gate?.epoch, value);
    return date ? date.slice(11, decimals ? 21 : 19) : clock(value, decimals);
  }

  tick(context, x0, y0, x1, y1) {
    context.beginPath();
    context.moveTo(x0, y0);
    context.lineTo(x1, y1);
    context.stroke();
  }

  // Draws the selected echo and the cursor.
  drawOver() {
    const context = this.over.getContext('2d');
    context.clearRect(0, 0, this.over.width, this.over.height);
    if (this.selected) {
      const x = this.left + this.x(this.selected.t + (this.gate?.dwell ?? 0) / 2) - this.firstColumn();
      const y = this.top + this.y(this.selected.range_m);
      if (x >= this.left && x <= this.left + this.columns && y >= this.top && y <= this.top + this.rows)
        for (const [style, width] of [['#000', 4], ['#fff', 2]]) {
          context.strokeStyle = style;
          context.lineWidth = width * this.ratio;
          context.beginPath();
          context.arc(x, y, 8 * this.ratio, 0, 2 * Math.PI);
          context.stroke();
        }
    }
    if (!this.pointer)
      return;
    context.strokeStyle = '#ffffffb0';
    context.lineWidth = 1;
    this.tick(context, this.pointer.x, this.top, this.pointer.x, this.top + this.rows);
    this.tick(context, this.left, this.pointer.y, this.left + this.columns, this.pointer.y);
  }

  // Returns time, range, power and echo at a point in CSS pixels; null: the point is outside the picture.
  at(cssX, cssY) {
    const x = cssX * this.ratio - this.left, y = cssY * this.ratio - this.top;
    if (x < 0 || y < 0 || x >= this.columns || y >= this.rows)
      return null;
    const column = this.firstColumn() + Math.floor(x), slot = this.slot(column);
    const timeS = (this.firstColumn() + x) * this.columnS;
    const rangeM = this.view.r0 + (1 - y / this.rows) * (this.view.r1 - this.view.r0);
    const v = this.owner[slot] === column ? this.cells[slot * this.rows + (this.rows - 1 - Math.floor(y))] : 0;
    return { timeS, rangeM, db: v > 0 ? this.leastDb + (v - 1) * this.stepDb : null, isLost: this.lostIn(column) > 0, echo: this.near(x, y) };
  }

  // Returns the nearest echo within ten CSS pixels of a point; null: there is none.
  near(x, y) {
    const half = (this.gate?.dwell ?? 0) / 2, first = this.firstColumn(), reach = 10 * this.ratio;
    let best = null, least = reach * reach;
    for (const echo of this.echoes) {
      const dx = this.x(echo.t + half) - first - x;
      if (dx > reach || dx < -reach)
        continue;
      const dy = this.y(echo.range_m) - y, d = dx * dx + dy * dy;
      if (d < least)
        [best, least] = [echo, d];
    }
    return best;
  }
}

function hex(text) {
  return [1, 3, 5].map((i) => parseInt(text.slice(i, i + 2), 16));
}
