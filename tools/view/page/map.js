// SPDX-License-Identifier: MIT
// Draws the newest dwell: a map of range and Doppler if maps are published, else the profile with its floor,
// its threshold and its echoes.
import * as colour from './colour.js';
import { decimalsOf, fixed, rangeUnit, ticks } from './units.js';

const margin = { left: 54, right: 12, top: 8, bottom: 34 };

export class NewestMap {
  constructor(canvas, over) {
    this.canvas = canvas;
    this.over = over;
    this.data = null;
    this.echoes = [];
    this.selected = null;
    this.colours = { palette: 'viridis', low: 0, high: 40 };
    this.resize();
  }

  resize() {
    const ratio = devicePixelRatio || 1;
    const width = Math.round(this.canvas.clientWidth * ratio), height = Math.round(this.canvas.clientHeight * ratio);
    const is = width !== this.canvas.width || height !== this.canvas.height;
    for (const c of [this.canvas, this.over])
      if (is)
        [c.width, c.height] = [width, height];
    this.ratio = ratio;
    this.left = margin.left * ratio;
    this.top = margin.top * ratio;
    this.width = Math.max(16, Math.round(width - this.left - margin.right * ratio));
    this.height = Math.max(16, Math.round(height - this.top - margin.bottom * ratio));
    this.draw();
    return is;
  }

  get isMap() {
    return this.data !== null && this.data.rows > 1;
  }

  show(data, cells) {
    this.data = data.width ? data : null;
    this.cells = cells;
    this.draw();
  }

  // Returns the limits of the axes: in metres, and in Hz or dB.
  limits() {
    const d = this.data, half = d.height > 1 || this.isMap ? d.step_hz / 2 : 0;
    const low = this.isMap ? d.first_hz - half : Math.min(-5, this.colours.low);
    const high = this.isMap ? d.first_hz + (d.height - 1) * d.step_hz + half : Math.max(this.topDb(), d.threshold_db + 5, 20);
    const half_m = d.step_m / 2;
    return { r0: d.first_m - half_m, r1: d.first_m + (d.width - 1) * d.step_m + half_m, low, high };
  }

  // Returns the top of the axis of a profile, in dB. It rises at once, but falls only by more than 10 dB.
  topDb() {
    let greatest = 0;
    for (const db of this.data.db)
      greatest = db > greatest ? db : greatest;
    const wanted = 10 * Math.ceil((greatest + 3) / 10);
    this.top_db = !this.top_db || wanted > this.top_db || wanted < this.top_db - 10 ? wanted : this.top_db;
    return this.top_db;
  }

  x(rangeM) {
    const { r0, r1 } = this.limits();
    return this.left + (rangeM - r0) / (r1 - r0) * this.width;
  }

  y(value) {
    const { low, high } = this.limits();
    return this.top + (1 - (value - low) / (high - low)) * this.height;
  }

  draw() {
    const context = this.canvas.getContext('2d');
    context.fillStyle = colour.themeColour('--panel');
    context.fillRect(0, 0, this.canvas.width, this.canvas.height);
    this.over.getContext('2d').clearRect(0, 0, this.over.width, this.over.height);
    if (this.data === null) {
      this.drawEmpty(context);
      return;
    }
    if (this.isMap)
      this.drawCells(context);
    else
      this.drawProfile(context);
    this.drawAxes(context);
    this.drawEchoes();
  }

  drawEmpty(context) {
    context.fillStyle = colour.themeColour('--faint');
    context.font = `${13 * this.ratio}px system-ui, "DejaVu Sans", sans-serif`;
    context.textAlign = 'center';
    context.textBaseline = 'middle';
    context.fillText('No profile or map yet:', this.canvas.width / 2, this.canvas.height / 2 - 10 * this.ratio);
    context.fillText('publisher.profile = power sends them', this.canvas.width / 2, this.canvas.height / 2 + 10 * this.ratio);
  }

  drawCells(context) {
    const { width, height } = this.data, image = new ImageData(width, height);
    const pixels = new Uint32Array(image.data.buffer), { palette, low, high } = this.colours;
    const lut = colour.table(palette, low, high, this.leastDb, this.stepDb);
    for (let row = 0; row < height; row++)
      for (let i = 0; i < width; i++)
        pixels[(height - 1 - row) * width + i] = lut[this.cells[row * width + i]];
    this.picture ??= document.createElement('canvas');
    [this.picture.width, this.picture.height] = [width, height];
    this.picture.getContext('2d').putImageData(image, 0, 0);
    context.imageSmoothingEnabled = false; // draws only measured values, without interpolation
    context.drawImage(this.picture, this.left, this.top, this.width, this.height);
  }

  drawProfile(context) {
    const d = this.data, bottom = this.top + this.height;
    context.save();
    context.beginPath();
    context.rect(this.left, this.top, this.width, this.height);
    context.clip();
    context.fillStyle = colour.themeColour('--empty');
    context.fillRect(this.left, this.top, this.width, this.height);
    context.beginPath();
    context.moveTo(this.left, bottom);
    d.db.forEach((db, i) => context.lineTo(this.x(d.first_m + i * d.step_m), this.y(db ?? -100)));
    context.lineTo(this.left + this.width, bottom);
    context.fillStyle = `${colour.themeColour('--accent')}40`;
    context.fill();
    context.strokeStyle = colour.themeColour('--accent');
    context.lineWidth = this.ratio;
    context.stroke();
    this.level(context, 0, [2, 3], 'noise');
    if (Number.isFinite(d.threshold_db))
      this.level(context, d.threshold_db, [6, 3], 'threshold');
    context.restore();
  }

  level(context, db, dash, name) {
    const y = this.y(db);
    context.strokeStyle = context.fillStyle = colour.themeColour('--text');
    context.setLineDash(dash.map((n) => n * this.ratio));
    context.beginPath();
    context.moveTo(this.left, y);
    context.lineTo(this.left + this.width, y);
    context.stroke();
    context.setLineDash([]);
    context.font = `${11 * this.ratio}px system-ui, "DejaVu Sans", sans-serif`;
    context.textAlign = 'right';
    context.textBaseline = 'bottom';
    context.fillText(name, this.left + this.width - 4 * this.ratio, y - 2 * this.ratio);
  }

  // Returns the unit of the vertical axis: m/s, Hz if the carrier is not known, or dB for a profile.
  scale() {
    if (!this.isMap)
      return { factor: 1, name: 'dB over the noise' };
    const isSpeed = Number.isFinite(this.data.mps_per_hz) && this.data.mps_per_hz !== 0;
    return isSpeed ? { factor: this.data.mps_per_hz, name: 'velocity, m/s' } : { factor: 1, name: 'Doppler, Hz' };
  }

  drawAxes(context) {
    const { r0, r1, low, high } = this.limits(), unit = rangeUnit(Math.max(Math.abs(r0), Math.abs(r1)));
    const scale = this.scale(), bottom = this.top + this.height;
    context.font = `${11 * this.ratio}px system-ui, "DejaVu Sans", sans-serif`;
    context.fillStyle = colour.themeColour('--text');
    context.strokeStyle = colour.themeColour('--faint');
    context.lineWidth = 1;
    context.strokeRect(this.left - 0.5, this.top - 0.5, this.width + 1, this.height + 1);
    context.textAlign = 'right';
    context.textBaseline = 'middle';
    const up = ticks(low * scale.factor, high * scale.factor, this.height / this.ratio, 40);
    for (const value of up.values) {
      const at = Math.min(Math.max(this.y(value / scale.factor), this.top + 7 * this.ratio), bottom - 7 * this.ratio);
      context.fillText(value.toFixed(decimalsOf(up.step)), this.left - 6 * this.ratio, at);
    }
    context.textAlign = 'center';
    context.textBaseline = 'top';
    const across = ticks(r0 * unit.factor, r1 * unit.factor, this.width / this.ratio, 70);
    for (const value of across.values) {
      const x = this.x(value / unit.factor), half = 20 * this.ratio;
      if (x - half > 0 && x + half < this.canvas.width)
        context.fillText(value.toFixed(decimalsOf(across.step)), x, bottom + 4 * this.ratio);
    }
    context.fillText(`range, ${unit.unit}`, this.left + this.width / 2, bottom + 18 * this.ratio);
    context.save();
    context.translate(8 * this.ratio, this.top + this.height / 2);
    context.rotate(-Math.PI / 2);
    context.textBaseline = 'middle';
    context.fillText(scale.name, 0, 0);
    context.restore();
  }

  drawEchoes() {
    const context = this.over.getContext('2d');
    context.clearRect(0, 0, this.over.width, this.over.height);
    if (this.data === null)
      return;
    for (const echo of this.echoes) {
      const value = this.isMap ? echo.doppler_hz : echo.statistic_db;
      const x = this.x(echo.range_m), y = this.y(value ?? 0);
      if (x < this.left || x > this.left + this.width || y < this.top || y > this.top + this.height)
        continue;
      const isSelected = this.selected && this.selected.seq === echo.seq && this.selected.i === echo.i;
      const r = (isSelected ? 8 : 4.5) * this.ratio;
      for (const [style, radius] of [['#000', r + this.ratio], ['#fff', r], [colour.codeColour(echo.code), r - this.ratio]]) {
        context.strokeStyle = style;
        context.lineWidth = this.ratio * 1.2;
        context.beginPath();
        context.arc(x, y, radius, 0, 2 * Math.PI);
        context.stroke();
      }
    }
  }

  // Returns range, Doppler and power at a point in CSS pixels; null: the point is outside the picture.
  at(cssX, cssY) {
    const x = cssX * this.ratio - this.left, y = cssY * this.ratio - this.top;
    if (this.data === null || x < 0 || y < 0 || x >= this.width || y >= this.height)
      return null;
    const { r0, r1, low, high } = this.limits(), d = this.data;
    const rangeM = r0 + x / this.width * (r1 - r0), value = low + (1 - y / this.height) * (high - low);
    const column = Math.min(Math.floor(x / this.width * d.width), d.width - 1);
    const row = this.isMap ? Math.min(Math.floor((1 - y / this.height) * d.height), d.height - 1) : 0;
    const v = this.cells[row * d.width + column];
    const db = d.db.length > 0 ? d.db[row * d.width + column] : v > 0 ? this.leastDb + (v - 1) * this.stepDb : null;
    return { rangeM, hz: this.isMap ? value : null, db, speed: this.isMap && Number.isFinite(d.mps_per_hz) ? value * d.mps_per_hz : null, text: fixed(db, 1) };
  }
}
