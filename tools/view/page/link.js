// SPDX-License-Identifier: MIT
// The connection to the server: answers as JSON, and live events.

export async function ask(path, values) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values))
    if (value !== null && value !== undefined)
      query.set(name, String(value));
  const answer = await fetch(`/api/${path}?${query}`);
  if (!answer.ok)
    throw new Error(`${path}: ${answer.status} ${(await answer.text()).trim()}`);
  return answer.json();
}

export function bytes(base64) {
  const text = atob(base64), out = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++)
    out[i] = text.charCodeAt(i);
  return out;
}

// Receives the events of a stream. handlers: a function for each kind of event, and `away` and `back` for the
// connection. The browser reconnects automatically. close() of the returned object ends the connection.
export function follow(values, handlers) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values))
    if (value !== null)
      query.set(name, String(value));
  const source = new EventSource(`/api/live?${query}`);
  for (const [name, handler] of Object.entries(handlers))
    if (name !== 'away' && name !== 'back')
      source.addEventListener(name, (event) => handler(JSON.parse(event.data)));
  source.addEventListener('open', handlers.back);
  source.addEventListener('error', handlers.away);
  return source;
}
