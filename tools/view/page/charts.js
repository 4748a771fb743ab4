// SPDX-License-Identifier: MIT
// Line charts of the echoes over time, by Chart.js: range with error bars, and velocity.
import * as colour from './colour.js';
import { clock, withSigma } from './units.js';

const mostPoints = 3000;

// Draws a vertical bar of one sigma to each side.
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
  // value, sigma: names of fields of an echo.
  constructor(canvas, value, sigma, title) {
    this.value = value;
    this.sigma = sigma;
    this.title = title;
    this.chart = new window.Chart(canvas, {
      type: 'scatter',
      data: { datasets: [] },
      plugins: [bars],
      options: {
        animation: false, responsive: true, maintainAspectRatio: false, normalized: true,
        interaction: { mode: 'nearest', intersect: true },
        plugins: {
          legend: { display: false },
          tooltip: { callbacks: { label: (item) => `${clock(item.raw.x)}  ${withSigma(item.raw.y, item.raw.sigma)} ± ${item.raw.sigma?.toPrecision(2) ?? '–'}` } },
        },
        scales: {
          x: { type: 'linear', ticks: { maxRotation: 0, autoSkipPadding: 20, callback: (v) => clock(v, 0) } },
          y: { title: { display: true, text: title }, ticks: { maxTicksLimit: 6 } },
        },
      },
    });
    this.recolour();
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

  // Shows the echoes of a time. factor: 1e-3 shows km.
  show(echoes, fromS, toS, factor, title, selected) {
    const sets = new Map();
    const shown = echoes.filter((e) => e.t >= fromS && e.t <= toS && e[this.value] !== null && Number.isFinite(e[this.value]));
    const every = Math.max(1, Math.ceil(shown.length / mostPoints));
    const isChosen = (e) => selected && e.seq === selected.seq && e.i === selected.i;
    for (const [n, e] of shown.entries()) {
      if (n % every !== 0 && !isChosen(e))
        continue;
      if (!sets.has(e.code))
        sets.set(e.code, { data: [], borderColor: colour.codeColour(e.code), backgroundColor: colour.codeColour(e.code), pointRadius: (c) => (c.raw?.chosen ? 7 : 2), pointBorderColor: (c) => (c.raw?.chosen ? colour.themeColour('--text') : colour.codeColour(e.code)) });
      sets.get(e.code).data.push({ x: e.t, y: e[this.value] * factor, sigma: (e[this.sigma] ?? 0) * factor, chosen: isChosen(e) });
    }
    this.chart.data.datasets = [...sets.values()];
    Object.assign(this.chart.options.scales.x, { min: fromS, max: toS });
    this.chart.options.scales.y.title.text = title;
    this.chart.update('none');
    return shown.length;
  }
}
