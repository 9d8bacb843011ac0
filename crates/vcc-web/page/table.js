/* Tables whose cells are made once and then only filled. */

/** Marks the sides on which columns are cut off. A table that scrolls takes the keyboard focus. */
function hintAt(scroll) {
  const left = scroll.scrollLeft > 1;
  const right = scroll.scrollLeft + scroll.clientWidth < scroll.scrollWidth - 1;
  tell(scroll.parentElement, "data-more", left && right ? "both" : left ? "left" : right ? "right" : null);
  tell(scroll, "tabindex", left || right ? "0" : null);
}

/** A table whose cells are made once and then only filled, from { name, key, kind, fill }. */
function table(id, cells, items, keyOf, change = () => {}) {
  const [head, body] = $(id).children;
  if (!head.firstElementChild) {
    head.append(el("tr", {}, ...cells.map(({ name, kind = "" }) => el("th", { scope: "col", class: kind }, name))));
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

const text = (value, title) => (cell, item) => {
  say(cell, value(item));
  if (title) tell(cell, "title", title(item));
};

/** Some text, and smaller text below. */
const two = (first, second) => (cell, item) => {
  if (!cell.firstElementChild) cell.append(el("span"), el("small"));
  say(cell.firstElementChild, first(item));
  say(cell.lastElementChild, second(item));
};
