// SPDX-License-Identifier: MIT
// Colours: three scales for power, which colour-blind people can read, and a set of colours for codes.

const stops = {
  viridis: ['440154', '482878', '3e4989', '31688e', '26828e', '1f9e89', '35b779', '6ece58', 'b5de2b', 'fde725'],
  magma: ['000004', '180f3d', '440f76', '721f81', '9e2f7f', 'cd4071', 'f1605d', 'fd9668', 'feca8d', 'fcfdbf'],
  cividis: ['00224e', '123570', '3b496c', '575d6d', '707173', '8a8678', 'a59c74', 'c3b369', 'e1cc55', 'fee838'],
};
export const palettes = Object.keys(stops);

function byte(hex, i) {
  return parseInt(hex.slice(2 * i, 2 * i + 2), 16);
}

// Returns the colour at place 0 .. 1 of a scale, as [red, green, blue].
export function colourAt(palette, place) {
  const list = stops[palette], at = Math.min(Math.max(place, 0), 1) * (list.length - 1);
  const i = Math.min(Math.floor(at), list.length - 2), part = at - i;
  return [0, 1, 2].map((c) => Math.round(byte(list[i], c) * (1 - part) + byte(list[i + 1], c) * part));
}

export function pixel(red, green, blue) {
  return (255 << 24 | blue << 16 | green << 8 | red) >>> 0;
}

// Returns the pixels (little-endian RGBA) for the bytes 0 .. 255. Byte 0 means no data, and is transparent.
export function table(palette, lowDb, highDb, leastDb, stepDb) {
  const out = new Uint32Array(256);
  for (let v = 1; v < 256; v++) {
    const db = leastDb + (v - 1) * stepDb;
    out[v] = pixel(...colourAt(palette, (db - lowDb) / (highDb - lowDb)));
  }
  return out;
}

// The colours of Okabe and Ito, without black, for codes 1, 2, ...
const marks = ['#e69f00', '#56b4e9', '#009e73', '#f0e442', '#0072b2', '#d55e00', '#cc79a7'];
export function codeColour(code) {
  return marks[(code - 1) % marks.length];
}

// Returns the value of a colour in the theme of the page.
export function themeColour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
