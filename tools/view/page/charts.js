// SPDX-License-Identifier: MIT
// Draws the echoes over time with Chart.js: range and velocity, each with error bars.
import * as colour from './colour.js';
import { clock, decimalsOf, secondOfDay, timeTicks, utc, withSigma } from './units.js';

const mostPoints = 1200;

// Draws a vertical error bar at each point: one sigma up and one sigma down.
const bars = {
  id: 'bars',
  beforeDatasetsDraw(chart) {
    const { ctx, chartArea, scales } = chart;
    ctx.save();
    ctx.beginPath();
    ctx.rect(chartArea.left, chartArea.top, chartArea.width, chartArea.height);
    ctx.clip();
    for (const set of chart.data.datasets) {
      ctx.strokeStyle = set.borderColor;
      ctx.lineWidth = 1;
      ctx.beginPath();
      for (const p of set.data) {
        const x = scales.x.getPixelForValue(p.x);
        ctx.moveTo(x, scales.y.getPixelForValue(p.y - p.sigma));
        ctx.lineTo(x, scales.y.getPixelForValue(p.y + p.sigma));
      }
      ctx.stroke();
    }
    ctx.restore();
  },
};

export class EchoChart {
  // value, sigma: names of the fields of an echo that the chart shows.
  constructor(canvas, value, sigma, title) {
    this.value = value;
    this.sigma = sigma;
    this.epoch = '';
    this.chart = new window.Chart(canvas, {
      type: 'scatter',
      data: { datasets: [] },
      plugins: [bars],
      options: {
        animation: false, parsing: false, responsive: true, maintainAspectRatio: false, normalized: true,
        interaction: { mode: 'nearest', intersect: true },
        plugins: {
          legend: { display: false },
          tooltip: { callbacks: { label: (item) => `${this.time(item.raw.x, 3)}  ${withSigma(item.raw.y, item.raw.sigma)} ± ${item.raw.sigma?.toPrecision(2) ?? '–'}` } },
        },
        scales: {
          x: { type: 'linear', ticks: { maxRotation: 0, autoSkip: false, callback: (v) => this.time(v, this.decimals) }, afterBuildTicks: (axis) => this.placeTicks(axis) },
          y: { title: { display: true, text: title }, ticks: { maxTicksLimit: 6 } },
        },
      },
    });
    this.recolour();
  }

  // Returns the UTC as text if it is known, else the time since the start.
  time(seconds, decimals) {
    return utc(this.epoch, seconds + 0.0005).slice(11, decimals ? 20 + decimals : 19) || clock(seconds, decimals);
  }

  placeTicks(axis) {
    const shift = secondOfDay(this.epoch);
    const { values, step } = timeTicks(axis.min + shift, axis.max + shift, axis.width, 90);
    this.decimals = Math.min(decimalsOf(step), 1);
    axis.ticks = values.map((value) => ({ value: value - shift }));
  }

  recolour() {
    const text = colour.themeColour('--text'), line = colour.themeColour('--line');
    for (const axis of Object.values(this.chart.options.scales)) {
      axis.ticks.color = text;
      axis.grid = { color: line };
      if (axis.title)
        axis.title.color = text;
    }
    this.chart.update('none');
  }

  // Shows the echoes from fromS to toS. epoch: UTC of the start; factor: 1e-3 shows km. Returns the number of echoes.
  show(echoes, epoch, fromS, toS, factor, title, selected) {
    this.epoch = epoch;
    const sets = new Map();
    const shown = echoes.filter((e) => e.t >= fromS && e.t <= toS && e[this.value] !== null && Number.isFinite(e[this.value]));
    const point = (e) => ({ x: e.t, y: e[this.value] * factor, sigma: (e[this.sigma] ?? 0) * factor });
    for (const e of this.thin(shown, (toS - fromS) / this.chart.width)) {
      if (!sets.has(e.code))
        sets.set(e.code, { data: [], borderColor: colour.codeColour(e.code), backgroundColor: colour.codeColour(e.code), pointRadius: 2 });
      sets.get(e.code).data.push(point(e));
    }
    const chosen = selected && shown.find((e) => e.seq === selected.seq && e.i === selected.i);
    this.chart.data.datasets = [...sets.values()];
    if (chosen)
      this.chart.data.datasets.unshift({ data: [point(chosen)], borderColor: colour.themeColour('--text'), backgroundColor: colour.codeColour(chosen.code), pointRadius: 7 });
    Object.assign(this.chart.options.scales.x, { min: fromS, max: toS });
    this.chart.options.scales.y.title.text = title;
    this.chart.update('none');
    return shown.length;
  }

  // Returns at most mostPoints echoes: if there are more, the strongest echo of each small area. The areas do not move with time.
  thin(echoes, pixelS) {
    let kept = echoes;
    if (echoes.length <= mostPoints)
      return kept;
    let [least, most] = [Infinity, -Infinity];
    for (const e of echoes)
      [least, most] = [Math.min(least, e[this.value]), Math.max(most, e[this.value])];
    const pixel = (most - least) / this.chart.height || 1;
    for (let size = 3; kept.length > mostPoints; size *= 1.5) {
      const strongest = new Map();
      for (const e of kept) {
        const row = Math.floor((e[this.value] - least) / pixel / size);
        const area = (Math.floor(e.t / pixelS / size) * 1000 + e.code) * 10000 + row;
        const before = strongest.get(area);
        if (!before || e.snr_db > before.snr_db)
          strongest.set(area, e);
      }
      kept = [...strongest.values()];
    }
    return kept;
  }
}
