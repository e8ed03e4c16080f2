// Last in the page: a user's hands. What is found is left in the document, or in that around the frame.
addEventListener("load", () => {
const found = {}, one = (query, from = document) => from.querySelector(query), all = (query, from = document) => [...from.querySelectorAll(query)];
const pick = (label, value, from) => { const box = all("label", from).find((each) => each.textContent.startsWith(label)).querySelector("select, input");
  box.value = value; box.dispatchEvent(new Event(box.tagName === "SELECT" ? "change" : "input")); };
const table = all(".scroll > table").find((each) => each.textContent.includes("Uniform random")), head = table.tHead.rows[0].cells[1];
const column = () => all("tbody tr:not(.foot)", table).map((row) => parseFloat(row.cells[1].textContent));
found.order = [column()];
for (const _ of [1, 2, 3]) { one("button", head).click(); found.order.push(column()); (found.sorted ||= []).push(head.getAttribute("aria-sort")); }
const filter = one("input", table.parentElement.previousElementSibling);
filter.value = "lime"; filter.dispatchEvent(new Event("input"));
found.filtered = all("tbody tr:not(.foot)", table).filter((row) => row.getClientRects().length).map((row) => row.cells[0].textContent);
const sentences = one('.rows[data-kind="sentences"]'), count = () => one(".pager .count", sentences).textContent;
found.pages = [count()];
all(".pager button", sentences)[2].click(); found.pages.push(count());
pick("Sort by", "disagreement", sentences);
found.spread = all("h4", sentences).map((each) => parseFloat(each.textContent.split("up to")[1]));
pick("Words", "no such words", sentences); found.pages.push(count());
pick("Words", "", sentences);
const answers = one('.rows[data-kind="counterfactuals"]');
pick("Sort by", "far", answers);
found.far = all("tbody tr", answers).map((row) => parseFloat(row.cells[4].textContent));
pick("Method", "0", answers);
found.methods = [...new Set(all("tbody tr", answers).map((row) => row.cells[2].textContent))];
one("tbody button", answers).click();
found.values = all(".inner tbody tr", answers).map((row) => [...row.cells].map((cell) => cell.textContent));
found.width = innerWidth; found.overflow = document.documentElement.scrollWidth - innerWidth;
found.figure = one("figure svg").getBoundingClientRect().width;
const line = one(".line", sentences); found.words = line.getBoundingClientRect().width;
const box = one(".scroll", answers); box.scrollLeft = 50; const first = one("tbody th", box);
found.scrolled = box.scrollLeft; found.first = Math.round(first.getBoundingClientRect().left - box.getBoundingClientRect().left);
found.faults = faults;
parent.document.body.append(Object.assign(document.createElement("pre"), { className: "found", textContent: JSON.stringify(found) }));
});
