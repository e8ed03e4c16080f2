"use strict";
// Counterfactuals: a row is a request and one method's answer; “Look” opens its values.
document.addEventListener("DOMContentLoaded", () => {
  const ROW = 0, SEED = 1, METHOD = 2, STATUS = 3, REASON = 4, DISTANCE = 5, VALUES = 6, SURVIVAL = 7;
  const place = document.querySelector('.rows[data-kind="counterfactuals"]'), groups = page.data(place);
  const head = page.make("thead", {}), body = page.make("tbody", {});
  const table = page.make("table", {}, head, body);
  const pager = page.pager(20, "answers", (shown) => body.replaceChildren(...shown.map(row)));
  const group = () => groups[set.select.value];
  const set = page.choice("Data set", groups.map((g, k) => [k, g.title]), () => { begin(); refresh(); });
  const seed = page.choice("Base model", [], refresh), method = page.choice("Method", [], refresh);
  const status = page.choice("Status", [], refresh), wanted = page.search("Row of the table", refresh);
  const order = page.choice("Sort by", [
    ["order", "row of the table"], ["disagreement", "disagreement between methods, largest first"], ["survival", "survival, lowest first"],
    ["near", "distance, smallest first"], ["far", "distance, largest first"], ["changed", "features changed, most first"],
  ], refresh);
  const changed = (answer) => (answer[VALUES] ? answer[VALUES].filter((value) => value !== null).length : null);
  function survival(answer) { // share over all families
    const known = (answer[SURVIVAL] || []).filter(Boolean), asked = known.reduce((sum, [, pairs]) => sum + pairs, 0);
    return asked ? known.reduce((sum, [survived]) => sum + survived, 0) / asked : null;
  }
  // Of one request: the largest less the smallest survival of the methods' answers.
  let spread = new Map();
  const request = (answer) => `${answer[ROW]} ${answer[SEED]}`;
  function begin() {
    const options = (texts) => texts.map(([value, textContent]) => page.make("option", { value, textContent }));
    const values = (place) => [...new Set(group().answers.map((answer) => answer[place]))];
    seed.select.replaceChildren(...options([["", "all"], ...values(SEED).sort((a, b) => a - b).map((value) => [value, value])]));
    method.select.replaceChildren(...options([["", "all"], ...group().methods.map((name, k) => [k, name])]));
    status.select.replaceChildren(...options([["", "all"], ...values(STATUS).sort().map((value) => [value, value.replaceAll("_", " ")])]));
    const names = ["Row", "Base model", "Method", "Status", "Distance", "Changed", ...group().families, "Values"];
    head.replaceChildren(page.make("tr", {}, ...names.map((textContent) => page.make("th", { scope: "col", textContent }))));
    const known = new Map();
    for (const answer of group().answers) {
      const share = survival(answer), ends = known.get(request(answer)) || [Infinity, -Infinity];
      if (share !== null) known.set(request(answer), [Math.min(ends[0], share), Math.max(ends[1], share)]);
    }
    spread = new Map([...known].map(([name, [low, high]]) => [name, high - low]));
  }
  function key(answer) {
    const last = (value, sign) => (value === null || value === undefined ? Infinity : sign * value);
    return {
      order: () => 0, disagreement: () => last(spread.get(request(answer)), -1), survival: () => last(survival(answer), 1),
      near: () => last(answer[DISTANCE], 1), far: () => last(answer[DISTANCE], -1), changed: () => last(changed(answer), -1),
    }[order.select.value]();
  }
  function refresh() {
    const is = (choice, value) => choice.select.value === "" || choice.select.value === String(value);
    const row = wanted.input.value.trim();
    const kept = group().answers.filter((answer) => is(seed, answer[SEED]) && is(method, answer[METHOD]) && is(status, answer[STATUS])
      && (row === "" || String(answer[ROW]) === row));
    const keyed = kept.map((answer, k) => [key(answer), k, answer]).sort((a, b) => (a[0] === b[0] ? a[1] - b[1] : a[0] - b[0]));
    pager.set(keyed.map(([, , answer]) => answer));
  }
  function row(answer) {
    const cell = (textContent) => page.make("td", { textContent }), reason = answer[REASON] ? ` (${answer[REASON].replaceAll("_", " ")})` : "";
    const count = changed(answer), button = page.make("button", { type: "button", textContent: "Look", "aria-expanded": "false" });
    button.setAttribute("aria-label", `Values of row ${answer[ROW]}, base model ${answer[SEED]}, ${group().methods[answer[METHOD]]}`);
    const families = group().families.map((_, k) => {
      const one = answer[SURVIVAL] ? answer[SURVIVAL][k] : null;
      return cell(one ? `${one[0]} of ${one[1]}` : "–");
    });
    const line = page.make("tr", {}, page.make("th", { scope: "row", textContent: answer[ROW] }), cell(answer[SEED]), cell(group().methods[answer[METHOD]]),
      cell(answer[STATUS].replaceAll("_", " ") + reason), cell(page.number(answer[DISTANCE], 3)),
      cell(count === null ? "–" : `${count} of ${group().features.length}`), ...families, page.make("td", {}, button));
    button.addEventListener("click", () => {
      const open = button.getAttribute("aria-expanded") === "true";
      button.setAttribute("aria-expanded", String(!open));
      button.textContent = open ? "Look" : "Close";
      if (open) line.nextElementSibling.remove(); else line.after(values(answer));
    });
    return line;
  }
  function values(answer) {
    const { features, factuals, mad } = group(), before = factuals[answer[ROW]], after = answer[VALUES];
    const rows = features.map((name, k) => {
      const moved = after !== null && after[k] !== null, by = moved ? after[k] - before[k] : 0;
      const units = mad ? by / mad[k] : null;
      return { name, moved, size: mad ? Math.abs(units) : Math.abs(by), texts: [page.short(before[k]), after === null ? "–" : moved ? page.short(after[k]) : "unchanged",
        moved ? page.short(by) : "–", moved && mad ? page.number(units, 2).replace("-", "−") : "–"] };
    }).sort((a, b) => b.size - a.size);
    const names = ["Feature", "Factual", "Counterfactual", "Change", "Change in MAD"];
    const inner = page.make("table", {}, page.make("thead", {}, page.make("tr", {}, ...names.map((textContent) => page.make("th", { scope: "col", textContent })))),
      page.make("tbody", {}, ...rows.map((one) => page.make("tr", { className: one.moved ? "" : "same" }, page.make("th", { scope: "row", textContent: one.name }),
        ...one.texts.map((textContent) => page.make("td", { textContent }))))));
    return page.make("tr", { className: "open" }, page.make("td", { colSpan: 99 }, page.make("div", { className: "inner" }, inner)));
  }
  place.append(page.make("div", { className: "controls" }, set.box, seed.box, method.box, status.box, order.box, wanted.box), pager.box,
    page.make("div", { className: "scroll" }, table));
  begin();
  refresh();
});
