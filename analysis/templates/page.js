"use strict";
// Shared by all rows of the page: elements, numbers, controls, pages. No library, nothing from the network.
const page = {
  make(tag, properties, ...children) {
    const element = document.createElement(tag);
    for (const [key, value] of Object.entries(properties || {})) {
      if (key in element) element[key] = value; else element.setAttribute(key, value);
    }
    element.append(...children.filter((child) => child !== null && child !== undefined));
    return element;
  },
  number(value, digits) {
    return value === null || value === undefined ? "–" : value.toFixed(digits);
  },
  short(value) { // six significant digits, without zeros at the end
    return value === null || value === undefined ? "–" : String(Number(value.toPrecision(6))).replace("-", "−");
  },
  choice(label, options, changed) { // options: [value, text]
    const select = page.make("select", {}, ...options.map(([value, text]) => page.make("option", { value, textContent: text })));
    select.addEventListener("change", changed);
    return { select, box: page.make("label", {}, label + " ", select) };
  },
  search(label, changed) {
    const input = page.make("input", { type: "search", autocomplete: "off", spellcheck: false });
    input.addEventListener("input", changed);
    return { input, box: page.make("label", {}, label + " ", input) };
  },
  // A list that shows `size` of its items at a time; `show(item)` makes an element.
  pager(size, what, fill) {
    let items = [], from = 0;
    const status = page.make("span", { role: "status", className: "count" });
    const button = (text, move) => {
      const element = page.make("button", { type: "button", textContent: text });
      element.addEventListener("click", () => { from = move(); draw(); });
      return element;
    };
    const last = () => Math.max(0, Math.floor((items.length - 1) / size) * size);
    const first = button("First", () => 0), back = button("Previous", () => Math.max(0, from - size));
    const next = button("Next", () => Math.min(last(), from + size)), end = button("Last", last);
    function draw() {
      const to = Math.min(items.length, from + size);
      status.textContent = items.length ? `${from + 1} to ${to} of ${items.length.toLocaleString("en")} ${what}` : `no ${what}`;
      first.disabled = back.disabled = from === 0;
      next.disabled = end.disabled = to >= items.length;
      fill(items.slice(from, to));
    }
    return {
      box: page.make("div", { className: "pager" }, first, back, next, end, status),
      set(found) { items = found; from = 0; draw(); },
    };
  },
  data(place) { return JSON.parse(document.getElementById(place.dataset.source).textContent); },
};

// Every table of the report: headers sort, and one of eight rows or more has a filter. Rows at the foot stay there.
(() => {
  const value = (row, column) => row.cells[column] ? row.cells[column].textContent.trim() : "";
  const number = (text) => {
    const found = /^[><≈]?\s*([-−]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?|[-−]?\.\d+)/.exec(text);
    return found ? Number(found[1].replace(/,/g, "").replace("−", "-")) : null;
  };
  function compare(column, sign) {
    return (one, other) => {
      const [a, b] = [value(one, column), value(other, column)], [x, y] = [number(a), number(b)];
      if (x === null && y === null) return sign * a.localeCompare(b, "en");
      if (x === null || y === null) return x === null ? 1 : -1; // what has no number comes last, either way
      return sign * (x - y);
    };
  }
  function enhance(table) {
    const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
    const all = [...body.rows], foot = all.filter((row) => row.classList.contains("foot"));
    const rows = all.filter((row) => !row.classList.contains("foot"));
    if (rows.length < 2) return;
    heads.forEach((head, column) => {
      const button = page.make("button", { type: "button", className: "sort", textContent: head.textContent });
      head.replaceChildren(button);
      head.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => {
        const before = head.getAttribute("aria-sort");
        const order = { none: "descending", descending: "ascending", ascending: "none" }[before];
        heads.forEach((other) => other.setAttribute("aria-sort", "none"));
        head.setAttribute("aria-sort", order);
        const sorted = order === "none" ? rows : [...rows].sort(compare(column, order === "ascending" ? 1 : -1));
        body.append(...sorted, ...foot);
      });
    });
    if (rows.length < 8) return;
    const status = page.make("span", { role: "status", className: "count" });
    const filter = page.search("Filter rows", () => {
      const wanted = filter.input.value.trim().toLowerCase();
      const kept = rows.filter((row) => (row.hidden = !row.textContent.toLowerCase().includes(wanted)) === false);
      status.textContent = wanted ? `${kept.length} of ${rows.length} rows` : "";
    });
    table.parentElement.before(page.make("div", { className: "controls" }, filter.box, status));
  }
  document.addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll(".scroll > table:not(.words)").forEach(enhance);
    document.querySelectorAll(".scroll").forEach((box) => { box.tabIndex = 0; }); // so that keys can scroll it
  });
})();
