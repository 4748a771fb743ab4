// SPDX-License-Identifier: MIT
// The settings of the view. The address of the page has all of them, so that a link shows the same view.

const defaults = {
  stream: '', span: 60, to: null, r0: null, r1: null, f0: null, f1: null, low: 0, high: 40,
  palette: 'viridis', theme: '', marks: true, code: 0, sort: 'snr_db', up: false,
};
export const state = { ...defaults };
const listeners = [];

function parse(name, text) {
  const like = defaults[name];
  if (typeof like === 'boolean')
    return text === '1';
  if (typeof like === 'string')
    return text;
  const value = Number(text);
  return text !== '' && Number.isFinite(value) ? value : like;
}

function fromAddress() {
  const asked = new URLSearchParams(location.hash.slice(1));
  for (const name of Object.keys(defaults))
    state[name] = asked.has(name) ? parse(name, asked.get(name)) : defaults[name];
  if (!(state.high > state.low))
    [state.low, state.high] = [defaults.low, defaults.high];
  state.span = Math.min(Math.max(state.span, 0.5), 7200);
}

function text(value) {
  if (typeof value === 'boolean')
    return value ? '1' : '0';
  return typeof value === 'number' ? String(Number(value.toPrecision(9))) : value;
}

let timer = 0;
function toAddress() {
  const out = new URLSearchParams();
  for (const name of Object.keys(defaults))
    if (state[name] !== defaults[name] && state[name] !== null)
      out.set(name, text(state[name]));
  history.replaceState(null, '', `#${out}`);
}

// Changes some values, calls the listeners with the names of these values, and soon updates the address.
export function change(values) {
  const names = Object.keys(values).filter((name) => state[name] !== values[name]);
  if (names.length === 0)
    return;
  Object.assign(state, values);
  clearTimeout(timer);
  timer = setTimeout(toAddress, 200);
  for (const listener of listeners)
    listener(new Set(names));
}

export function onChange(listener) {
  listeners.push(listener);
}

export function address() {
  clearTimeout(timer);
  toAddress();
  return location.href;
}

fromAddress();
addEventListener('hashchange', () => {
  const before = { ...state };
  fromAddress();
  const names = Object.keys(defaults).filter((name) => state[name] !== before[name]);
  for (const listener of listeners)
    listener(new Set(names));
});
