"use strict";
(function () {
  const svg = document.querySelector("svg");
  const margin = 10, character = 7.05;
  const whole = Number(svg.dataset.whole), total = Number(svg.dataset.total);
  const least = Number(svg.dataset.least);
  const byId = (id) => document.getElementById(id);
  const details = byId("details"), matched = byId("matched"), reset = byId("reset"), search = byId("search");
  const frames = Array.from(document.querySelectorAll("g.f"), (g) => {
    const title = g.querySelector("title").textContent;
    const name = title.slice(0, title.lastIndexOf(" (")).replace(/ \[inlined\]$/, "");
    const rect = g.querySelector("rect");
    return {
      g, title, name, rect, text: g.querySelector("text"),
      x: Number(g.dataset.x), w: Number(g.dataset.w), d: Number(g.dataset.d), y: Number(rect.getAttribute("y")),
    };
  });
  let width = Number(svg.getAttribute("width"));
  let view = { x: 0, w: whole, d: 0 };
  let pattern = "";

  function fit(name, pixels) {
    const room = Math.floor((pixels - 6) / character);
    if (name.length <= room) return name;
    return room < 3 ? "" : name.slice(0, room - 2) + "..";
  }

  function label(frame, x, pixels) {
    const text = fit(frame.name, pixels);
    if (!frame.text) {
      if (!text) return;
      frame.text = document.createElementNS("http://www.w3.org/2000/svg", "text");
      frame.text.setAttribute("y", frame.y + 12);
      frame.g.appendChild(frame.text);
    }
    frame.text.textContent = text;
    frame.text.setAttribute("x", (x + 3).toFixed(2));
  }

  // Places every frame: callers of the zoomed frame span the picture, its callees share it, others are hidden.
  function draw() {
    const room = width - 2 * margin, scale = room / view.w;
    for (const frame of frames) {
      const above = frame.d < view.d && frame.x <= view.x && frame.x + frame.w >= view.x + view.w;
      const within = frame.d >= view.d && frame.x >= view.x && frame.x + frame.w <= view.x + view.w;
      const pixels = above ? room : frame.w * scale;
      const shown = above || (within && pixels >= least);
      frame.g.classList.toggle("off", !shown);
      frame.g.classList.toggle("above", above);
      if (!shown) continue;
      const x = above ? margin : margin + (frame.x - view.x) * scale;
      frame.rect.setAttribute("x", x.toFixed(2));
      frame.rect.setAttribute("width", pixels.toFixed(2));
      label(frame, x, pixels);
    }
    reset.classList.toggle("off", view.d === 0);
  }

  // Lower-case text matches upper case, too; text that is not a regular expression is searched literally.
  function matcher(text) {
    const flags = text === text.toLowerCase() ? "i" : "";
    try {
      return new RegExp(text, flags);
    } catch (error) {
      return new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), flags);
    }
  }

  // Marks the matching frames. A match within another match is not counted again; parents precede their children.
  function find(text) {
    pattern = text;
    if (search.value !== text) search.value = text;
    const expression = text ? matcher(text) : null;
    let sum = 0, end = 0;
    for (const frame of frames) {
      const hit = expression !== null && frame.d > 0 && expression.test(frame.name);
      frame.g.classList.toggle("hit", hit);
      if (hit && frame.x >= end) {
        sum += frame.w;
        end = frame.x + frame.w;
      }
    }
    matched.textContent = text ? "Matched: " + (100 * sum / Math.max(whole, 1)).toFixed(2) + "%" : " ";
  }

  // The address of the page contains zoom and search, so that a link shows the same.
  function remember() {
    const state = new URLSearchParams();
    if (view.d > 0) {
      state.set("x", view.x);
      state.set("w", view.w);
      state.set("d", view.d);
    }
    if (pattern) state.set("s", pattern);
    try {
      history.replaceState(null, "", "#" + state);
    } catch (error) {
      // A picture inside another document has no address of its own.
    }
  }

  function recall() {
    const state = new URLSearchParams(location.hash.slice(1));
    const [x, w, d] = ["x", "w", "d"].map((key) => Number(state.get(key)));
    const known = frames.some((frame) => frame.x === x && frame.w === w && frame.d === d);
    view = known ? { x, w, d } : { x: 0, w: whole, d: 0 };
    draw();
    find(state.get("s") || "");
  }

  function zoom(frame) {
    view = { x: frame.x, w: frame.w, d: frame.d };
    draw();
    remember();
  }

  function unzoom() {
    zoom({ x: 0, w: whole, d: 0 });
  }

  // Fits the picture to the window.
  function resize() {
    const height = Number(svg.getAttribute("height"));
    // A picture higher than the window has a scroll bar beside it.
    const bar = height > window.innerHeight ? 17 : 0;
    width = Math.max((window.innerWidth || width) - bar, 500);
    svg.setAttribute("width", width);
    svg.setAttribute("viewBox", "0 0 " + width + " " + height);
    for (const id of ["title", "subtitle"]) if (byId(id)) byId(id).setAttribute("x", width / 2);
    matched.setAttribute("x", width - margin);
    byId("tools").setAttribute("x", width - margin - 230);
    draw();
  }

  const byElement = new Map(frames.map((frame) => [frame.g, frame]));
  const under = (event) => byElement.get(event.target.closest && event.target.closest("g.f"));
  svg.addEventListener("click", (event) => {
    const frame = under(event);
    if (frame) zoom(frame);
  });
  svg.addEventListener("mouseover", (event) => {
    const frame = under(event);
    details.textContent = frame ? frame.title : " ";
  });
  reset.addEventListener("click", unzoom);
  search.addEventListener("input", () => {
    find(search.value);
    remember();
  });
  window.addEventListener("keydown", (event) => {
    const typing = event.target === search;
    if (event.key === "Escape") {
      if (pattern) {
        find("");
        remember();
      } else {
        unzoom();
      }
      search.blur();
    } else if (!typing && (event.key === "/" || (event.key === "f" && (event.ctrlKey || event.metaKey)))) {
      event.preventDefault();
      search.focus();
      search.select();
    }
  });
  window.addEventListener("hashchange", recall);
  if (svg.dataset.fluid === "true") {
    window.addEventListener("resize", resize);
    resize();
  }
  if (location.hash) recall();
})();
