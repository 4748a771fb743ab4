// SPDX-License-Identifier: MIT
// Moves and zooms a picture with the wheel, a drag, two fingers or a double click.

// actions: zoom(factor, x, y, isRange), move(dx, dy), done(), hover({ x, y }) or hover(null), click(x, y),
// reset(). x and y are in CSS pixels from the top left of the element.
export function gestures(element, actions) {
  const pointers = new Map();
  let moved = 0, apart = null;

  const place = (event) => {
    const box = element.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  const pair = () => {
    const [a, b] = [...pointers.values()];
    return { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2, dx: Math.abs(a.x - b.x), dy: Math.abs(a.y - b.y) };
  };

  element.addEventListener('wheel', (event) => {
    const { x, y } = place(event), turn = event.deltaY || event.deltaX;
    event.preventDefault();
    actions.zoom(Math.exp(Math.max(-1, Math.min(1, turn / 400))), x, y, event.shiftKey);
    actions.done();
  }, { passive: false });
  element.addEventListener('pointerdown', (event) => {
    element.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, place(event));
    apart = pointers.size === 2 ? pair() : null;
    moved = pointers.size === 1 ? 0 : 99;
    if (event.pointerType !== 'mouse')
      actions.hover(pointers.get(event.pointerId));
  });
  element.addEventListener('pointermove', (event) => {
    const now = place(event), before = pointers.get(event.pointerId);
    if (!before) {
      actions.hover(now);
      return;
    }
    pointers.set(event.pointerId, now);
    if (pointers.size === 1) {
      moved += Math.abs(now.x - before.x) + Math.abs(now.y - before.y);
      if (moved > 4)
        actions.move(now.x - before.x, now.y - before.y);
    } else if (pointers.size === 2 && apart) {
      const next = pair();
      if (Math.max(apart.dx, next.dx) > 30)
        actions.zoom(Math.max(apart.dx, 10) / Math.max(next.dx, 10), next.x, next.y, false);
      if (Math.max(apart.dy, next.dy) > 30)
        actions.zoom(Math.max(apart.dy, 10) / Math.max(next.dy, 10), next.x, next.y, true);
      actions.move(next.x - apart.x, next.y - apart.y);
      apart = next;
    }
  });
  const end = (event) => {
    const at = pointers.get(event.pointerId);
    if (!at)
      return;
    pointers.delete(event.pointerId);
    apart = null;
    if (event.type === 'pointerup' && moved <= 4 && pointers.size === 0)
      actions.click(at.x, at.y);
    else
      actions.done();
  };
  element.addEventListener('pointerup', end);
  element.addEventListener('pointercancel', end);
  element.addEventListener('pointerleave', (event) => {
    if (event.pointerType === 'mouse')
      actions.hover(null);
  });
  element.addEventListener('dblclick', () => actions.reset());
}
