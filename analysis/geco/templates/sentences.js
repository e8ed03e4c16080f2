"use strict";
// Sentences: a model is chosen, all methods are shown, all forms of a source sentence together.
document.addEventListener("DOMContentLoaded", () => {
  const place = document.querySelector('.rows[data-kind="sentences"]'), groups = page.data(place);
  const alphabet = Array.from({ length: 94 }, (_, k) => String.fromCharCode(33 + k)).filter((c) => !'"\\<>&'.includes(c)).join("");
  const middle = (alphabet.length - 1) / 2;
  const list = page.make("div", {});
  const pager = page.pager(5, "source sentences", (shown) => list.replaceChildren(...shown.map(article)));
  const numbers = page.make("input", { type: "checkbox" });
  const set = page.choice("Data set", groups.map((g, k) => [k, `${g.title} (${g.protocol})`]), () => { begin(); refresh(); });
  const model = page.choice("Model", [], refresh), group = () => groups[set.select.value];
  const kind = page.choice("Show", [["all", "all sentences"], ["wrong", "a form classified wrongly"], ["right", "all forms classified correctly"]], refresh);
  const order = page.choice("Sort by", [], refresh), text = page.search("Words", refresh);
  numbers.addEventListener("change", refresh);
  const said = (form) => form.m[model.select.value];

  function begin() {
    const options = (texts) => texts.map(([value, textContent]) => page.make("option", { value, textContent }));
    model.select.replaceChildren(...options(group().models.map((name, k) => [k, name])));
    order.select.replaceChildren(...options([
      ["order", "order in the data"], ["disagreement", "disagreement between methods, largest first"], ["p", "p, smallest first"],
      ...group().methods.flatMap((name, k) => [[`-${k}`, `MA of ${name}, largest first`], [`+${k}`, `MA of ${name}, smallest first`]]),
    ]));
  }
  // Largest less smallest mass accuracy of the methods; of several forms the largest.
  function disagreement([, forms]) {
    return Math.max(...forms.map((form) => {
      const known = said(form) ? said(form)[3].filter((mass) => mass !== null) : [];
      return known.length ? Math.max(...known) - Math.min(...known) : -1;
    }));
  }
  function key(entry) {
    const wanted = order.select.value, forms = entry[1].map(said).filter(Boolean);
    if (wanted === "order") return 0;
    if (wanted === "disagreement") return -disagreement(entry);
    if (wanted === "p") return Math.min(...forms.map((one) => (one[1] === null ? 2 : one[1])));
    const masses = forms.map((one) => one[3][Number(wanted.slice(1))]).filter((mass) => mass !== null);
    if (!masses.length) return Infinity;
    return wanted[0] === "-" ? -Math.max(...masses) : Math.min(...masses);
  }
  function refresh() {
    const wanted = text.input.value.trim().toLowerCase();
    const kept = group().sentences.filter(([, forms]) => {
      const here = forms.map(said).filter(Boolean);
      if (!here.length || (kind.select.value !== "all" && here.every((one) => one[2]) !== (kind.select.value === "right"))) return false;
      return !wanted || forms.some((form) => form.w.join(" ").toLowerCase().includes(wanted));
    });
    const keyed = kept.map((entry, k) => [key(entry), k, entry]).sort((a, b) => (a[0] === b[0] ? a[1] - b[1] : a[0] - b[0]));
    pager.set(keyed.map(([, , entry]) => entry));
  }
  function words(form, line) {
    const unsigned = line[0] === "=", codes = unsigned ? line.slice(1) : line, marked = new Set(form.t);
    return form.w.flatMap((word, k) => {
      const level = (alphabet.indexOf(codes[k]) - middle) / middle, size = Math.abs(level);
      const colour = unsigned ? "110,110,110" : level < 0 ? "200,84,0" : "0,114,178";
      const span = page.make("span", { className: `w${marked.has(k) ? " m" : ""}${!unsigned && level < 0 ? " against" : ""}`, textContent: word });
      span.style.background = `rgba(${colour},${(0.5 * size).toFixed(2)})`;
      const percent = numbers.checked ? page.make("small", { textContent: ` ${level < 0 && !unsigned ? "−" : ""}${Math.round(100 * size)}` }) : "";
      return [span, percent, " "];
    });
  }
  function form(one) {
    const own = said(one), classes = group().classes, head = page.make("p", { className: "form" });
    if (!own) return [];
    const predicted = own[0] < 0 ? "no class" : classes[own[0]] ?? String(own[0]);
    head.append(`Class ${classes[one.c]}; predicted ${predicted}, ${own[2] ? "correct" : "wrong"}; p ${page.number(own[1], 3)}`);
    const rows = group().methods.map((name, k) => own[4][k] === null ? null : page.make("tr", {},
      page.make("th", { scope: "row", textContent: name }), page.make("td", { className: "ma", textContent: page.number(own[3][k], 2) }),
      page.make("td", { className: "line" }, ...words(one, own[4][k]))));
    const header = page.make("tr", {}, ...["Method", "MA", "Words"].map((name) => page.make("th", { scope: "col", textContent: name })));
    return [head, page.make("table", { className: "words" }, page.make("thead", {}, header), page.make("tbody", {}, ...rows))];
  }
  function article(entry) {
    const spread = disagreement(entry), tail = spread < 0 ? "" : `: methods differ by up to ${spread.toFixed(2)}`;
    return page.make("article", {}, page.make("h4", { textContent: `Source sentence ${entry[0]}${tail}` }), ...entry[1].flatMap(form));
  }
  const switcher = page.make("label", {}, numbers, " numbers (percent of the line’s largest)");
  place.append(page.make("div", { className: "controls" }, set.box, model.box, kind.box, order.box, text.box, switcher), pager.box, list);
  begin();
  refresh();
});
