/* Tables whose cells are made once and then only filled. */

/** Marks the sides on which columns are cut off. A table that scrolls takes the keyboard focus. */
function hintAt(scroll) {
  const left = scroll.scrollLeft > 1;
  const right = scroll.scrollLeft + scroll.clientWidth < scroll.scrollWidth - 1;
  set(scroll.parentElement, "data-more", left && right ? "both" : left ? "left" : right ? "right" : null);
  set(scroll, "tabindex", left || right ? "0" : null);
}

/** Of the columns in a table. `own` has what differs, by key: another kind, or another way to fill it. */
const cellsOf = (listed, own = {}) => listed.filter(({ in_table }) => in_table).map((column) => ({
  ...column, kind: column.unit === "text" ? "" : "number", fill: (cell, item) => fillValue(cell, column, item[column.key]), ...own[column.key],
}));

/** What is written short is whole in the title. */
function fillValue(cell, { unit }, value) {
  say(cell, write(unit, value));
  set(cell, "title", unit === "count" && value >= 1000 ? value.toLocaleString() : null);
}

/** A table whose cells are made once and then only filled, from { name, key, kind, help, fill }. */
function table(id, cells, items, keyOf, change = () => {}) {
  const [head, body] = $(id).children;
  if (!head.firstElementChild) {
    head.append(el("tr", {}, ...cells.map(({ name, kind, help }) => el("th", { scope: "col", class: kind, title: help }, name))));
  }
  keyed(body, items, keyOf,
    () => el("tr", {}, ...cells.map(({ name, key = "", kind = "" }, at) =>
      (at ? el("td", { class: kind, "data-name": name, "data-key": key }) : el("th", { scope: "row", class: kind })))),
    (row, item) => {
      cells.forEach(({ fill }, at) => fill(row.children[at], item));
      change(row, item);
    });
  $(id).hidden = !items.length;
  $(id).closest(".card").lastElementChild.hidden = items.length > 0;
  hintAt($(id).parentElement);
}

/** Some text, and smaller text below. */
const two = (first, second) => (cell, item) => {
  if (!cell.firstElementChild) cell.append(el("span"), el("small"));
  say(cell.firstElementChild, first(item));
  say(cell.lastElementChild, second(item));
};
