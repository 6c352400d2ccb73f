"use strict";
(function () {
  const svg = document.documentElement;
  const byId = (id) => document.getElementById(id);
  const number = (key) => Number(svg.dataset[key]);
  const [slots, columns, rows] = [number("slots"), number("columns"), number("rows")];
  const [left, top, wide, high] = [number("left"), number("top"), number("wide"), number("high")];
  // Nanoseconds since boot may exceed the precision of JavaScript's numbers.
  const start = BigInt(svg.dataset.start), column_duration = BigInt(svg.dataset.column), slot = BigInt(svg.dataset.slot);
  const details = byId("details"), chosen = byId("chosen"), hint = chosen.textContent;
  let first = null, last = null;

  function seconds(nanoseconds) {
    const digits = String(nanoseconds).padStart(10, "0");
    return digits.slice(0, -9) + "." + digits.slice(-9);
  }

  // The slots of a column may not fill it: its duration need not be a multiple of their number.
  function begin_of(index) {
    return start + BigInt(Math.floor(index / slots)) * column_duration + BigInt(index % slots) * slot;
  }

  // Both ends are included.
  function range() {
    const [from, to] = first <= last ? [first, last] : [last, first];
    return [begin_of(from), begin_of(to + 1) - 1n, from, to];
  }

  function mark(x, y, width, height) {
    const rect = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    for (const [key, value] of Object.entries({ x, y, width, height, class: "mark" })) rect.setAttribute(key, value);
    byId("cells").appendChild(rect);
  }

  function draw() {
    for (const old of document.querySelectorAll(".mark")) old.remove();
    if (first === null) {
      chosen.textContent = hint;
      return;
    }
    const [begin, end, from, to] = range();
    chosen.textContent = "--time " + seconds(begin) + "," + seconds(end);
    const each = rows / slots;
    for (let column = Math.floor(from / slots); column <= Math.floor(to / slots); column++) {
      const low = Math.max(from - column * slots, 0), top_slot = Math.min(to - column * slots, slots - 1);
      const height = (top_slot - low + 1) * each * high;
      mark(left + column * wide, top + (rows - (top_slot + 1) * each) * high, wide, height);
    }
  }

  // The address of the page contains the selection, so that a link shows the same.
  function remember() {
    const state = first === null ? "" : "from=" + first + "&to=" + last;
    try {
      history.replaceState(null, "", "#" + state);
    } catch (error) {
      // A picture inside another document has no address of its own.
    }
  }

  function recall() {
    const state = new URLSearchParams(location.hash.slice(1));
    const known = (key) => {
      const value = Number(state.get(key));
      return state.has(key) && Number.isInteger(value) && value >= 0 && value < slots * columns ? value : null;
    };
    first = known("from");
    last = first === null ? null : known("to");
    if (last === null) last = first;
    draw();
  }

  function under(event) {
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    const column = Math.floor((point.x - left) / wide);
    const row = rows - 1 - Math.floor((point.y - top) / high);
    if (column < 0 || column >= columns || row < 0 || row >= rows) return null;
    return column * slots + Math.floor(row * slots / rows);
  }

  let open = false;
  svg.addEventListener("click", (event) => {
    const at = under(event);
    if (at === null) {
      first = last = null;
      open = false;
    } else if (open) {
      last = at;
      open = false;
    } else {
      first = last = at;
      open = true;
    }
    draw();
    remember();
  });
  svg.addEventListener("mouseover", (event) => {
    const title = event.target.querySelector && event.target.querySelector("title");
    details.textContent = title && event.target !== svg ? title.textContent : " ";
  });
  window.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    first = last = null;
    open = false;
    draw();
    remember();
  });
  window.addEventListener("hashchange", recall);
  if (location.hash) recall();
})();
