"use strict";
(function () {
  const svg = document.querySelector("svg");
  const byId = (id) => document.getElementById(id);
  const number = (key) => Number(svg.dataset[key]);
  const [units, span, left, right, top] = [number("units"), number("span"), number("left"), number("right"), number("top")];
  // Nanoseconds since boot may exceed the precision of JavaScript's numbers.
  const start = BigInt(svg.dataset.start);
  const height = Number(svg.getAttribute("height"));
  const plot = byId("plot"), hover = byId("hover"), mark = byId("mark"), search = byId("search");
  const range = byId("range"), reset = byId("reset"), wakes = byId("wakes");
  const space = "http://www.w3.org/2000/svg";
  const legend = new Map(Array.from(document.querySelectorAll("#legend rect"), (rect) =>
    [rect.dataset.c, rect.nextElementSibling.textContent]));
  const labels = Array.from(document.querySelectorAll("#labels .label"));
  const rows = Array.from(document.querySelectorAll("g.row"), (g, index) => ({
    g, label: labels[index], name: g.dataset.n, y: Number(g.dataset.y), h: Number(g.dataset.h), weight: Number(g.dataset.w),
    isCpu: g.querySelector(".lane").classList.contains("cpu"), boxes: null,
  }));
  let width = Number(svg.getAttribute("width"));
  let view = { from: 0, to: units };
  let pattern = "", summary = "";

  const room = () => width - left - right;
  const scale = () => room() / (view.to - view.from);
  const toX = (unit) => left + (unit - view.from) * scale();
  const toUnit = (x) => view.from + (x - left) / scale();
  const nanoseconds = (unit) => Math.round(unit * span / units);

  function seconds(nanos) {
    const digits = String(start + BigInt(nanos)).padStart(10, "0");
    return digits.slice(0, -9) + "." + digits.slice(-9);
  }

  function duration(nanos) {
    for (const [size, name] of [[1e9, "s"], [1e6, "ms"], [1e3, "us"]]) {
      if (nanos >= size) return (nanos / size).toPrecision(4) + " " + name;
    }
    return nanos + " ns";
  }

  // The boxes of a row, read from its paths on first use.
  function boxes(row) {
    if (row.boxes) return row.boxes;
    row.boxes = [];
    for (const path of row.g.querySelectorAll("path:not(.freq)")) {
      const title = path.querySelector("title");
      const merged = path.classList.contains("m");
      for (const [, x, , w, h] of path.getAttribute("d").matchAll(/M([\d.]+) ([\d.]+)h([\d.]+)v([\d.]+)/g)) {
        row.boxes.push({ path, merged, name: title ? title.textContent : "", x: Number(x), w: Number(w), h: Number(h) });
      }
    }
    row.boxes.sort((a, b) => a.x - b.x);
    return row.boxes;
  }

  const state = (box) => legend.get(box.path.getAttribute("class").split(" ")[0]) || "";

  function rowAt(y) {
    return rows.find((row) => y >= row.y && y < row.y + row.h + 3);
  }

  // Text about a place in a row: what is there, since when and for how long.
  function about(row, unit) {
    const found = boxes(row).filter((box) => unit >= box.x && unit <= box.x + Math.max(box.w, 1 / scale()));
    const lines = [row.name + "   " + seconds(nanoseconds(unit)) + " s"];
    for (const box of found) {
      const share = box.merged ? " " + Math.round(100 * box.h / row.h) + "% of " : " for ";
      lines.push((row.isCpu && box.name ? box.name + ": " : "") + state(box) + share + duration(nanoseconds(box.w)));
      // The stack of a task that sleeps.
      if (!row.isCpu && box.name) for (const frame of box.name.split(" <- ")) lines.push("    " + frame);
    }
    return lines;
  }

  function showHover(x, y, lines) {
    const text = hover.querySelector("text"), rect = hover.querySelector("rect");
    text.replaceChildren(...lines.map((line, index) => {
      const part = document.createElementNS(space, "tspan");
      part.setAttribute("x", 8);
      part.setAttribute("y", 16 + 15 * index);
      part.textContent = line;
      return part;
    }));
    hover.classList.remove("off");
    const wide = text.getComputedTextLength ? Math.max(...Array.from(text.children, (part) => part.getComputedTextLength())) + 16 : 300;
    const high = 15 * lines.length + 8;
    rect.setAttribute("width", wide);
    rect.setAttribute("height", high);
    const at = [Math.max(0, Math.min(x + 14, width - wide - 4)), y + 16 + high > height ? Math.max(0, y - high - 8) : y + 16];
    hover.setAttribute("transform", "translate(" + at.map((place) => place.toFixed(1)) + ")");
  }

  function element(kind, attributes, text) {
    const made = document.createElementNS(space, kind);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  function tickStep(nanos, most) {
    const least = Math.max(nanos / most, 1);
    for (let power = 1; ; power *= 10) {
      for (const factor of [1, 2, 5]) if (power * factor >= least) return power * factor;
    }
  }

  function drawAxis() {
    const from = start + BigInt(nanoseconds(view.from)), to = start + BigInt(nanoseconds(view.to));
    const shown = Math.max(Number(to - from), 1), step = BigInt(tickStep(shown, room() / 110));
    let decimals = 9;
    for (let rest = step; decimals > 0 && rest % 10n === 0n; rest /= 10n) decimals--;
    const parts = [];
    for (let time = (from + step - 1n) / step * step; time <= to; time += step) {
      const x = (left + room() * Number(time - from) / shown).toFixed(1);
      const digits = String(time).padStart(10, "0");
      const text = digits.slice(0, -9) + (decimals ? "." + digits.slice(-9, digits.length - 9 + decimals) : "") + " s";
      if (x < width - right - 90) parts.push(element("text", { class: "tick", x: Number(x) + 3, y: top - 6 }, text));
      parts.push(element("line", { class: "grid", x1: x, x2: x, y1: top - 16, y2: height - 16 }));
    }
    byId("axis").replaceChildren(...parts);
  }

  // Names in the boxes of CPUs.
  function drawInner() {
    const parts = [];
    for (const row of rows.filter((row) => row.isCpu)) {
      for (const box of boxes(row)) {
        if (!box.name || box.merged || box.x + box.w < view.from || box.x > view.to) continue;
        const [from, to] = [Math.max(toX(box.x), left), Math.min(toX(box.x + box.w), width - right)];
        const fits = Math.floor((to - from - 6) / 6.05), name = box.name;
        if (fits < 3) continue;
        const text = name.length <= fits ? name : name.slice(0, fits - 1) + "\u2026";
        parts.push(element("text", { class: "inner", x: (from + 3).toFixed(1), y: row.y + row.h / 2 + 4 }, text));
      }
    }
    byId("inner").replaceChildren(...parts);
  }

  function draw() {
    const wide = scale();
    plot.setAttribute("transform", "translate(" + (left - view.from * wide) + ",0) scale(" + wide + ",1)");
    const whole = view.from === 0 && view.to === units;
    reset.classList.toggle("off", whole);
    const ends = [nanoseconds(view.from), nanoseconds(view.to)];
    range.textContent = summary || (whole ? " " : "--time " + ends.map(seconds).join(","));
    drawAxis();
    drawInner();
  }

  function matcher(text) {
    const flags = text === text.toLowerCase() ? "i" : "";
    try {
      return new RegExp(text, flags);
    } catch (error) {
      return new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), flags);
    }
  }

  // Fades the boxes that do not match.
  function find(text) {
    pattern = text;
    if (search.value !== text) search.value = text;
    const expression = text ? matcher(text) : null;
    let sum = 0, count = 0;
    for (const row of rows) {
      const hit = expression !== null && !row.isCpu && expression.test(row.name);
      const fade = expression !== null && !row.isCpu && !hit;
      for (const part of [row.g, row.label]) part.classList.toggle("faded", fade);
      row.label.classList.toggle("found", hit);
      if (hit) {
        sum += row.weight;
        count++;
      }
      if (!row.isCpu) continue;
      for (const path of row.g.querySelectorAll("path.ru, path.hi")) {
        const title = path.querySelector("title");
        path.classList.toggle("faded", expression !== null && !(title && expression.test(title.textContent)));
      }
    }
    summary = text ? count + (count === 1 ? " task, " : " tasks, ") + duration(sum) : "";
    draw();
  }

  function remember() {
    const state = new URLSearchParams();
    if (view.from > 0 || view.to < units) {
      state.set("from", view.from);
      state.set("to", view.to);
    }
    if (pattern) state.set("s", pattern);
    try {
      history.replaceState(null, "", "#" + state);
    } catch (error) {
      // A picture inside another document has no address of its own.
    }
  }

  function show(from, to) {
    const wide = Math.max(Math.min(to - from, units), 64);
    const at = Math.min(Math.max(from, 0), units - wide);
    view = { from: Math.round(at), to: Math.round(at + wide) };
    draw();
    remember();
  }

  function recall() {
    const state = new URLSearchParams(location.hash.slice(1));
    const [from, to] = ["from", "to"].map((key) => Number(state.get(key)));
    view = from >= 0 && to <= units && to - from >= 64 ? { from, to } : { from: 0, to: units };
    draw();
    find(state.get("s") || "");
  }

  function resize() {
    const bar = height > window.innerHeight ? 17 : 0;
    width = Math.max((window.innerWidth || width) - bar, 500);
    svg.setAttribute("width", width);
    svg.setAttribute("viewBox", "0 0 " + width + " " + height);
    byId("window").setAttribute("width", room());
    byId("tools").setAttribute("x", width - right - 180);
    for (const [part, distance] of [[range, 375], [reset, 292], [wakes, 200]]) part.setAttribute("x", width - distance);
    draw();
  }

  function point(event) {
    return new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
  }

  const inPlot = (at) => at.x >= left && at.x <= width - right && at.y >= top;
  let drag = null;
  svg.addEventListener("mousedown", (event) => {
    const at = point(event);
    if (event.button !== 0 || !inPlot(at)) return;
    drag = at.x;
    event.preventDefault();
  });
  svg.addEventListener("mousemove", (event) => {
    const at = point(event);
    if (drag !== null) {
      const [from, to] = [Math.max(Math.min(drag, at.x), left), Math.min(Math.max(drag, at.x), width - right)];
      mark.classList.remove("off");
      mark.setAttribute("x", from);
      mark.setAttribute("width", Math.max(to - from, 0));
    }
    const row = inPlot(at) ? rowAt(at.y) : undefined;
    if (row) showHover(at.x, at.y, about(row, toUnit(at.x)));
    else hover.classList.add("off");
  });
  window.addEventListener("mouseup", (event) => {
    if (drag === null) return;
    const x = Math.min(Math.max(point(event).x, left), width - right);
    const [from, to] = [Math.min(drag, x), Math.max(drag, x)].map(toUnit);
    const moved = Math.abs(x - drag);
    drag = null;
    mark.classList.add("off");
    if (moved >= 4) show(from, to);
  });
  svg.addEventListener("mouseleave", () => hover.classList.add("off"));
  reset.addEventListener("click", () => show(0, units));
  wakes.addEventListener("click", () => {
    const off = byId("arrows").classList.toggle("off");
    wakes.textContent = (off ? "show" : "hide") + " wakeups";
  });
  search.addEventListener("input", () => {
    find(search.value);
    remember();
  });
  function key(name) {
    const wide = view.to - view.from;
    if (name === "+" || name === "=") show(view.from + wide / 4, view.to - wide / 4);
    else if (name === "-") show(view.from - wide / 2, view.to + wide / 2);
    else if (name === "ArrowLeft") show(view.from - wide / 4, view.to - wide / 4);
    else if (name === "ArrowRight") show(view.from + wide / 4, view.to + wide / 4);
    else return false;
    return true;
  }
  window.addEventListener("keydown", (event) => {
    const typing = event.target === search;
    if (event.key === "Escape") {
      if (pattern) find("");
      else show(0, units);
      remember();
      search.blur();
    } else if (!typing && (event.key === "/" || (event.key === "f" && (event.ctrlKey || event.metaKey)))) {
      event.preventDefault();
      search.focus();
      search.select();
    } else if (!typing && !event.ctrlKey && !event.metaKey && key(event.key)) {
      event.preventDefault();
    }
  });
  window.addEventListener("hashchange", recall);
  if (svg.dataset.fluid === "true") {
    window.addEventListener("resize", resize);
    resize();
  }
  if (location.hash) recall();
})();
