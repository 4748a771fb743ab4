// SPDX-License-Identifier: MIT
// The page: receives the events of one stream, and passes them to the panels.
import { palettes, themeColour } from './colour.js';
import { EchoChart } from './charts.js';
import { gestures } from './gestures.js';
import { showEvents, showHealth, showLosses, shownEvents, showRadar } from './health.js';
import { ask, bytes, follow } from './link.js';
import { NewestMap } from './map.js';
import { Rti } from './rti.js';
import { address, change, onChange, state } from './state.js';
import { EchoTable } from './table.js';
import { clock, fixed, rangeUnit, utc, withSigma, withUnit } from './units.js';

const get = (id) => document.getElementById(id);
const rti = new Rti(get('rti'), get('rti-over'));
const map = new NewestMap(get('map'), get('map-over'));
let server = null;        // the last list of streams
let stream = null;        // the entry of the shown stream
let live = null;          // the event source
let isFrozen = false, isAway = false;
let status = null, selected = null, lastSeq = -1, lastT = 0, unseen = 0;
let newest = [];          // echoes of the newest result
let events = [], latencies = [];
let mapCount = 0, mapShown = -1, isAskingMap = false, mapAt = 0;
let isSlowDirty = true;

// --- helpers ---

function notice(text) {
  get('notice').textContent = text;
  get('notice').hidden = text === '';
}

let passing = 0;
function tell(text) {
  notice(text);
  clearTimeout(passing);
  passing = setTimeout(showState, 2500);
}

function isDark() {
  return (state.theme || (matchMedia('(prefers-color-scheme: light)').matches ? 'light' : 'dark')) === 'dark';
}

function applyTheme() {
  document.documentElement.dataset.theme = isDark() ? 'dark' : 'light';
  get('theme').textContent = isDark() ? 'Light' : 'Dark';
  rti.repaint();
  map.draw();
  for (const chart of [ranges, velocities])
    chart.recolour();
  isSlowDirty = true;
}

function gateEnds() {
  const first = stream?.columns ? stream.first_m : 0;
  let last = stream?.columns ? stream.first_m + stream.columns * stream.step_m : 0;
  if (!stream?.columns) // without a picture, the axis follows the echoes
    for (const e of rti.echoes)
      last = Math.max(last, e.range_m * 1.1);
  return [first, last > first ? last : first + 1000];
}

function shownRange() {
  const [first, last] = gateEnds(), r0 = state.r0 ?? first, r1 = state.r1 ?? last;
  return r1 > r0 ? [r0, r1] : [first, last];
}

// Shows the whole gate if the shown ranges are outside of it: a new run may have another gate.
function keepInGate() {
  const [first, last] = gateEnds();
  if (stream?.columns && state.r0 !== null && !(state.r0 < last && state.r1 > first))
    change({ r0: null, r1: null });
}

function applyView() {
  const [r0, r1] = shownRange(), before = rti.view;
  rti.view = { span: state.span, to: state.to, r0, r1, showMarks: state.marks };
  rti.moves = stream?.state === 'live' && !isFrozen && !isAway;
  if (before.span !== state.span || before.r0 !== r0 || before.r1 !== r1) {
    rti.clear();
    askPast();
  }
  rti.dirty = true;
  isSlowDirty = true;
  get('live').setAttribute('aria-pressed', String(state.to === null && !isFrozen));
}

function applyColours() {
  if (!server)
    return;
  rti.setColours(state.palette, state.low, state.high, server.least_db, server.step_db);
  Object.assign(map, { colours: { palette: state.palette, low: state.low, high: state.high }, leastDb: server.least_db, stepDb: server.step_db });
  map.draw();
}

// --- received events ---

function echoesOf(results) {
  const out = [];
  for (const [seq, t, , , , , , list] of results)
    list.forEach((values, i) => {
      const echo = { seq, t, i };
      server.fields.forEach((name, k) => { echo[name] = values[k]; });
      out.push(echo);
    });
  return out;
}

function showState() {
  const word = isAway ? 'away' : stream?.state ?? 'waiting', badge = get('state');
  badge.dataset.state = word;
  badge.textContent = isAway ? 'no server' : isFrozen ? `${word}, frozen` : word;
  clearTimeout(passing);
  if (isAway)
    notice('The server does not answer. The page connects again by itself.');
  else if (!stream)
    notice('No stream yet. Start pnradar; the page shows it by itself.');
  else if (stream.state === 'ended')
    notice(`The run has ended: ${stream.reason ?? 'see the log of pnradar'}. A new run is shown by itself.`);
  else if (stream.state === 'silent')
    notice('Nothing has arrived for 3 s. The picture goes on when messages do.');
  else
    notice('');
}

function takeStreams(list) {
  if (isNewLink) { // results that arrived between the two connections are in the past
    askPast();
    lastSeq = -1;
  }
  isNewLink = false;
  const before = stream?.run, first = server === null;
  server = list;
  const found = list.streams.find((s) => s.stream === state.stream) ?? (state.stream === '' ? list.streams[0] : undefined);
  const names = list.streams.map((s) => s.stream);
  if (state.stream !== '' && !names.includes(state.stream))
    names.push(state.stream);
  const pick = get('stream');
  pick.replaceChildren(...names.map((name) => new Option(name, name, false, name === (found?.stream ?? state.stream))));
  pick.parentElement.hidden = names.length === 0;
  stream = found ? { ...found } : null;
  if (stream) {
    rti.gate = { dwell: stream.dwell_s ?? 0, epoch: stream.epoch };
    get('engine').textContent = stream.engine;
    rti.noteEnd(stream.end_s);
  }
  if (first)
    applyColours();
  if (stream?.run !== before)
    beginRun(before !== undefined);
  applyView();
  showState();
}

// Begins a new run: removes all data of the previous run from the pictures.
function beginRun(isRestart) {
  rti.forget();
  map.data = null;
  map.echoes = newest = [];
  status = selected = rti.selected = map.selected = null;
  [lastSeq, lastT, unseen, events, latencies, mapCount, mapShown] = [-1, 0, stream?.unseen ?? 0, [], [], 0, -1];
  if (isRestart)
    change({ to: null });
  if (stream)
    rti.noteEnd(stream.end_s);
  askPast();
  askMap();
  if (isRestart)
    tell('A new run of pnradar has begun.');
}

function takeResults(data) {
  if (data.run !== stream?.run)
    return;
  const echoes = echoesOf(data.results), losses = [];
  for (const [seq, t, lost, before, latency] of data.results) {
    if (lastSeq >= 0 && seq > lastSeq + 1 && data.skipped === 0)
      losses.push([lastT + (stream.dwell_s ?? 0), t, 1, true]);
    if (before > 0)
      losses.push([t - before / stream.rate_hz, t, 1, false]);
    if (lost > 0 && stream.dwell_s > 0)
      losses.push([t, t + stream.dwell_s, Math.min(1, lost / stream.rate_hz / stream.dwell_s), false]);
    [lastSeq, lastT] = [seq, t];
    latencies.push(latency);
  }
  latencies.splice(0, Math.max(0, latencies.length - 500));
  unseen = data.unseen;
  rti.noteEnd(lastT + (stream.dwell_s ?? 0)); // comes first, because only columns up to the end are painted
  if (losses.length > 0)
    rti.addLosses(losses);
  rti.addEchoes(echoes);
  newest = echoes.filter((e) => e.seq === lastSeq);
  map.echoes = newest;
  map.drawEchoes();
  if (!stream.columns)
    applyView();
  isSlowDirty = true;
}

function takeLines(data) {
  if (data.run !== stream?.run || linkView !== viewOfLines())
    return; // the ranges of the lines are not those of the picture: the next connection requests the past
  for (const [from, to, cells] of data.lines) {
    rti.noteEnd(to);
    rti.addLine(from, to, bytes(cells));
  }
}

// --- requests ---

let pastTimer = 0, pastTurn = 0;
function askPast() {
  clearTimeout(pastTimer);
  pastTimer = setTimeout(askPastNow, 60);
}

async function askPastNow() {
  if (!stream)
    return;
  const asked = ++pastTurn, turn = rti.turn, run = stream.run, [r0, r1] = shownRange();
  const first = rti.firstColumn(), s = rti.columnS;
  const shown = { stream: stream.stream, from: first * s, to: (first + rti.columns) * s, from_m: r0, to_m: r1 };
  try {
    const [past, echoes] = await Promise.all([
      ask('past', { ...shown, width: rti.rows, height: rti.columns }),
      ask('echoes', { ...shown, width: 512, height: rti.columns }),
    ]);
    if (asked !== pastTurn || turn !== rti.turn || run !== past.run || run !== stream?.run)
      return;
    rti.losses = mergeLosses(past.losses, rti.losses);
    rti.echoes = merge(echoesOf(echoes.results), rti.echoes, shown.from, shown.to);
    rti.addPast(first, past.width, past.height, bytes(past.cells));
    if (lastSeq < 0 && rti.echoes.length > 0)
      newest = map.echoes = rti.echoes.filter((e) => e.seq === rti.echoes.at(-1).seq);
    isSlowDirty = true;
  } catch (error) {
    if (!isAway)
      tell(`The past is not shown: ${error.message}`);
  }
}

// Returns the echoes of the past, and the newer echoes that arrived live.
function merge(past, here, from, to) {
  const last = past.length > 0 ? past.at(-1).seq : -1;
  return [...past, ...here.filter((e) => e.seq > last && e.t >= from && e.t < to + 3600)];
}

// Returns the losses of the past, and the newer losses that arrived live.
function mergeLosses(past, here) {
  const last = past.length > 0 ? past.at(-1)[0] : -1;
  return [...past, ...here.filter((loss) => loss[0] > last + 1e-6)];
}

// Connects to the stream. Its lines have as many cells as the picture has rows.
let isNewLink = false, linkView = '';
function viewOfLines() {
  return `${rti.rows} ${state.r0} ${state.r1}`;
}

function connect() {
  live?.close();
  isNewLink = true;
  linkView = viewOfLines();
  const [r0, r1] = shownRange();
  live = follow({ stream: stream?.stream ?? state.stream, width: rti.rows, from_m: state.r0 === null ? null : r0, to_m: state.r1 === null ? null : r1 }, {
    streams: unlessFrozen(takeStreams),
    results: unlessFrozen(takeResults),
    lines: unlessFrozen(takeLines),
    map: (data) => { if (data.run === stream?.run) mapCount = data.n; },
    status: unlessFrozen((data) => { if (data.run === stream?.run) status = data; isSlowDirty = true; }),
    event: unlessFrozen((data) => { if (data.run === stream?.run) events = [...events.slice(-shownEvents), data]; isSlowDirty = true; }),
    end: unlessFrozen((data) => {
      if (data.run !== stream?.run)
        return;
      status = data;
      Object.assign(stream, { state: 'ended', reason: data.reason });
      applyView();
      showState();
    }),
    away: () => { isAway = true; applyView(); showState(); },
    back: () => { isAway = false; isNewLink = true; applyView(); showState(); },
  });
}

// Ignores events while the page is frozen. Afterwards the page requests them from the past of the server.
function unlessFrozen(handler) {
  return (data) => { if (!isFrozen) handler(data); };
}

async function askMap() {
  if (isAskingMap || isFrozen || !stream || document.hidden)
    return;
  isAskingMap = true;
  mapAt = performance.now();
  const wanted = mapCount;
  try {
    const data = await ask('map', { stream: stream.stream, width: Math.min(map.width, 2048), height: Math.min(map.height, 1024), code: state.code, from_m: state.r0, to_m: state.r1 });
    if (data.run === stream?.run && data.width) {
      mapShown = Math.max(wanted, data.n);
      map.show(data, bytes(data.cells));
      showMapTitle(data);
    }
  } catch { /* the next request follows soon; `away` reports a lost server */ }
  isAskingMap = false;
}

function showMapTitle(data) {
  get('map-title').textContent = data.rows > 1 ? 'Range and Doppler, newest dwell' : 'Profile, newest dwell';
  const pick = get('code');
  get('code-label').hidden = data.codes < 2;
  if (pick.options.length !== data.codes + 1)
    pick.replaceChildren(new Option('all', '0'), ...Array.from({ length: data.codes }, (_, i) => new Option(String(i + 1), String(i + 1))));
  pick.value = String(state.code);
}

// --- panels that change twice a second ---

const ranges = new EchoChart(get('delay-chart'), 'range_m', 'range_sigma_m', 'range, m');
const velocities = new EchoChart(get('velocity-chart'), 'velocity_mps', 'velocity_sigma_mps', 'm/s');
const echoTable = new EchoTable(get('echoes'), (sort, up) => change({ sort, up }), select);

function select(echo) {
  selected = selected && echo && selected.seq === echo.seq && selected.i === echo.i ? null : echo;
  rti.selected = map.selected = selected;
  rti.dirty = true;
  map.drawEchoes();
  isSlowDirty = true;
  showSlowly();
}

function median(list, share) {
  const sorted = [...list].sort((a, b) => a - b);
  return sorted[Math.floor(share * (sorted.length - 1))];
}

function shownTime() {
  const to = rti.edge();
  return [Math.max(0, to - state.span), to];
}

function showHead() {
  const [from, to] = shownTime();
  get('clock').textContent = stream ? timeText(rti.endS, 1) : '';
  get('latency').textContent = latencies.length > 0 ? `${withUnit(median(latencies, 0.5) * 1e-6, 's')} · ${withUnit(median(latencies, 0.99) * 1e-6, 's')}` : '';
  get('csv').href = `/api/history.csv?${new URLSearchParams({ stream: stream?.stream ?? '', from: String(from), to: String(to) })}`;
}

function showTable() {
  echoTable.show(newest, gateEnds()[1], state.sort, state.up, selected);
  get('table-time').textContent = newest.length > 0 ? timeText(newest[0].t, 3) : '';
}

function showRanges() {
  const unit = rangeUnit(gateEnds()[1]);
  ranges.show(rti.echoes, stream?.epoch, ...shownTime(), unit.factor, `range, ${unit.unit}`, selected);
}

function showVelocities() {
  get('velocity-panel').hidden = velocities.show(rti.echoes, stream?.epoch, ...shownTime(), 1, 'm/s', selected) === 0;
}

function showNumbers() {
  showHealth(get('health'), status, { unseen });
  showRadar(get('radar'), status);
  showLosses(get('losses'), rti.losses, stream?.epoch);
  showEvents(get('events'), events);
}

// Changes one panel in each frame, so that the picture scrolls smoothly.
const panels = [showTable, showHead, showRanges, showVelocities, showNumbers];
let due = [];
function showSlowly() {
  if (!isSlowDirty || due.length > 0)
    return;
  isSlowDirty = false;
  due = [...panels];
}

function timeText(seconds, decimals) {
  const date = utc(stream?.epoch, seconds);
  return date ? `${date.slice(0, 19 + (decimals ? decimals + 1 : 0))} UTC` : `${clock(seconds, decimals)} since the start`;
}

// --- controls ---

function follows() {
  change({ to: null });
}

function setFrozen(on) {
  isFrozen = on;
  get('freeze').setAttribute('aria-pressed', String(on));
  if (!on) {
    connect();
    askPast();
  }
  applyView();
  showState();
}

// Saves a copy of the picture, with a title, as a file.
function savePng() {
  const source = get('rti'), out = document.createElement('canvas'), ratio = devicePixelRatio || 1, head = 24 * ratio;
  [out.width, out.height] = [source.width, source.height + head];
  const context = out.getContext('2d');
  context.fillStyle = themeColour('--panel');
  context.fillRect(0, 0, out.width, out.height);
  context.fillStyle = themeColour('--text');
  context.font = `${13 * ratio}px system-ui, "DejaVu Sans", sans-serif`;
  context.textBaseline = 'middle';
  context.fillText(`${stream?.stream ?? ''}  ${timeText(rti.edge() - state.span, 0)}  ${state.low} to ${state.high} dB over the noise`, 8 * ratio, head / 2, out.width - 16 * ratio);
  context.drawImage(source, 0, head);
  context.drawImage(get('rti-over'), 0, head);
  out.toBlob((blob) => {
    const a = document.createElement('a');
    a.href = URL.createObjectURL(blob);
    a.download = `pnradar-${stream?.stream ?? 'view'}.png`;
    a.click();
    setTimeout(() => URL.revokeObjectURL(a.href), 1000);
  });
}

async function copyLink() {
  const text = address();
  try {
    await navigator.clipboard.writeText(text);
    tell('The link is in the clipboard.');
  } catch {
    tell(`The link is in the address bar: ${text}`);
  }
}

function zoomTime(factor, at) {
  const end = rti.edge(), place = end - state.span * (1 - at);
  const span = Math.min(Math.max(state.span * factor, 0.5), 7200);
  const to = state.to === null && at > 0.8 ? null : place + span * (1 - at);
  change({ span, to: to === null || to >= rti.endS ? null : Math.max(to, span * 0.1) });
}

function zoomRange(factor, at) {
  const [first, last] = gateEnds(), [r0, r1] = shownRange(), place = r0 + (r1 - r0) * at;
  const width = Math.min((r1 - r0) * factor, last - first);
  const low = Math.min(Math.max(place - width * at, first), last - width);
  change(width >= (last - first) * 0.999 ? { r0: null, r1: null } : { r0: low, r1: low + width });
}

function moveTime(seconds) {
  const to = rti.edge() + seconds;
  change({ to: to >= rti.endS ? null : Math.max(to, 0.1 * state.span) });
}

function moveRange(metres) {
  const [first, last] = gateEnds(), [r0, r1] = shownRange();
  const by = Math.min(Math.max(metres, first - r0), last - r1);
  if (by !== 0 && state.r0 !== null)
    change({ r0: r0 + by, r1: r1 + by });
}

function reset() {
  change({ r0: null, r1: null, to: null });
}

function showCursor(at) {
  rti.pointer = at ? { x: at.x * rti.ratio, y: at.y * rti.ratio } : null;
  const found = at ? rti.at(at.x, at.y) : null;
  if (!found)
    rti.pointer = null;
  rti.drawOver();
  get('rti-cursor').textContent = found ? cursorText(found) : '\u00a0';
}

function cursorText({ timeS, rangeM, db, isLost, echo }) {
  const [, most] = gateEnds(), unit = rangeUnit(most);
  const power = db !== null ? `${fixed(db, 1)} dB over the noise` : isLost ? 'samples were lost here' : 'no data';
  const near = echo ? `  |  echo ${echo.code_name || echo.code}: ${withSigma(echo.range_m * unit.factor, echo.range_sigma_m * unit.factor)} ± ${Number((echo.range_sigma_m * unit.factor).toPrecision(2))} ${unit.unit}, SNR ${fixed(echo.snr_db, 1)} dB${echo.velocity_mps !== null ? `, ${withSigma(echo.velocity_mps, echo.velocity_sigma_mps, 4)} m/s` : ''}` : '';
  return `${timeText(timeS, 3)}  |  ${(rangeM * unit.factor).toFixed(3)} ${unit.unit}  |  ${power}${near}`;
}

function showMapCursor(at) {
  const found = at ? map.at(at.x, at.y) : null, [, most] = gateEnds(), unit = rangeUnit(most);
  get('map-cursor').textContent = !found ? '\u00a0' : [
    `${(found.rangeM * unit.factor).toFixed(3)} ${unit.unit}`,
    found.speed !== null ? `${fixed(found.speed, 3)} m/s` : null,
    found.hz !== null ? `${fixed(found.hz, 2)} Hz` : null,
    `${found.text} dB over the noise`].filter((t) => t !== null).join('  |  ');
}

const keys = {
  f: () => setFrozen(!isFrozen), l: follows, c: copyLink, p: savePng, s: () => get('csv').click(),
  d: () => change({ theme: isDark() ? 'light' : 'dark' }), m: () => change({ marks: !state.marks }),
  k: () => change({ palette: palettes[(palettes.indexOf(state.palette) + 1) % palettes.length] }),
  '+': () => zoomTime(1 / 1.5, 1), '-': () => zoomTime(1.5, 1), '=': () => zoomTime(1 / 1.5, 1), 0: reset,
  ArrowLeft: () => moveTime(-state.span / 5), ArrowRight: () => moveTime(state.span / 5),
  ArrowUp: () => moveRange((rti.view.r1 - rti.view.r0) / 5), ArrowDown: () => moveRange((rti.view.r0 - rti.view.r1) / 5),
  '?': () => get('keys').showModal(),
};

function wire() {
  const on = (id, kind, handler) => get(id).addEventListener(kind, handler);
  on('freeze', 'click', keys.f);
  on('live', 'click', () => { if (isFrozen) setFrozen(false); follows(); });
  on('link', 'click', copyLink);
  on('png', 'click', savePng);
  on('theme', 'click', keys.d);
  on('help', 'click', keys['?']);
  on('reset', 'click', reset);
  on('stream', 'change', (e) => change({ stream: e.target.value, to: null, r0: null, r1: null, code: 0 }));
  on('span', 'change', (e) => change({ span: Number(e.target.value) }));
  on('palette', 'change', (e) => change({ palette: e.target.value }));
  on('low', 'change', (e) => change({ low: Math.min(Number(e.target.value), state.high - 1) }));
  on('high', 'change', (e) => change({ high: Math.max(Number(e.target.value), state.low + 1) }));
  on('marks', 'change', (e) => change({ marks: e.target.checked }));
  on('code', 'change', (e) => change({ code: Number(e.target.value) }));
  addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || get('keys').open || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName))
      return;
    const nth = Number(event.key), action = keys[event.key];
    if (nth >= 1 && server?.streams[nth - 1])
      change({ stream: server.streams[nth - 1].stream, to: null, r0: null, r1: null });
    else if (action)
      action();
    else
      return;
    event.preventDefault();
  });
  gestures(get('rti'), {
    zoom(factor, x, y, isRange) {
      const ax = (x * rti.ratio - rti.left) / rti.columns, ay = 1 - (y * rti.ratio - rti.top) / rti.rows;
      if (isRange)
        zoomRange(factor, Math.min(Math.max(ay, 0), 1));
      else
        zoomTime(factor, Math.min(Math.max(ax, 0), 1));
    },
    move(dx, dy) {
      moveTime(-dx * rti.ratio * rti.columnS);
      moveRange(dy * rti.ratio / rti.rows * (rti.view.r1 - rti.view.r0));
    },
    done() {},
    hover: showCursor,
    click(x, y) { select(rti.at(x, y)?.echo ?? null); },
    reset,
  });
  get('map').addEventListener('pointermove', (e) => showMapCursor({ x: e.offsetX, y: e.offsetY }));
  get('map').addEventListener('pointerleave', () => showMapCursor(null));
  const sizes = new ResizeObserver(() => {
    if (rti.resize()) {
      applyView();
      reconnectSoon();
      askPast();
    }
    map.resize();
  });
  sizes.observe(get('rti')); // its size also changes when a neighbouring panel grows
  sizes.observe(get('map'));
}

let reconnectTimer = 0;
function reconnectSoon() {
  clearTimeout(reconnectTimer);
  reconnectTimer = setTimeout(connect, 250);
}

function showControls() {
  const known = [...get('span').options].some((o) => Number(o.value) === state.span && !o.dataset.own);
  get('span').querySelector('[data-own]')?.remove();
  if (!known) {
    const own = new Option(withUnit(state.span, 's'), String(state.span));
    own.dataset.own = '1';
    get('span').add(own);
  }
  get('span').value = String(state.span);
  get('palette').value = state.palette;
  [get('low').value, get('high').value, get('marks').checked] = [state.low, state.high, state.marks];
}

onChange((names) => {
  const any = (...list) => list.some((name) => names.has(name));
  showControls();
  if (any('stream')) {
    stream = server?.streams.find((s) => s.stream === state.stream) ?? null;
    beginRun(false);
    reconnectSoon();
    showState();
  }
  if (any('span', 'to', 'r0', 'r1', 'marks'))
    applyView();
  if (any('r0', 'r1'))
    reconnectSoon();
  if (any('span', 'to', 'r0', 'r1'))
    askPast();
  if (any('palette', 'low', 'high'))
    applyColours();
  if (any('theme'))
    applyTheme();
  if (any('code', 'r0', 'r1'))
    mapShown = -1;
  isSlowDirty = true;
});

function frame() {
  rti.draw();
  due.shift()?.();
  if (mapCount !== mapShown && performance.now() - mapAt > 100)
    askMap();
  requestAnimationFrame(frame);
}

async function refresh() {
  // A silent stream changes its state, but no event reports this.
  if (!isFrozen && !isAway && server)
    try {
      const list = await ask('streams', {});
      const now = list.streams.find((s) => s.stream === (stream?.stream ?? state.stream));
      if (stream && now && now.run === stream.run && now.state !== 'ended')
        Object.assign(stream, { state: now.state, dwell_s: now.dwell_s, columns: now.columns, first_m: now.first_m, step_m: now.step_m, epoch: now.epoch, rate_hz: now.rate_hz });
      if (stream)
        rti.gate = { dwell: stream.dwell_s ?? 0, epoch: stream.epoch };
      keepInGate();
      applyView();
      showState();
    } catch { /* `away` reports it */ }
  setTimeout(refresh, 1000);
}

wire();
showControls();
applyTheme();
connect();
requestAnimationFrame(frame);
setInterval(showSlowly, 500);
refresh();
