/* Tables whose cells are made once and then only filled. */

/** A table that is wider than its card scrolls in it: it takes the keyboard focus, and says on which sides columns are
 * cut off. */
function hintAt(scroll) {
  const card = scroll.parentElement;
  const isWide = scroll.querySelector("table").offsetWidth > card.clientWidth + 1;
  set(card, "data-wide", isWide ? "" : null);
  const left = isWide && scroll.scrollLeft > 1;
  const right = isWide && scroll.scrollLeft + scroll.clientWidth < scroll.scrollWidth - 1;
  set(card, "data-more", left && right ? "both" : left ? "left" : right ? "right" : null);
  set(scroll, "tabindex", isWide ? "0" : null);
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

/** The head of a table. A click on a name sorts by it, if the cell has a `sort`. */
function makeHead(id, cells, sortBy) {
  $(id).tHead.append(el("tr", {}, ...cells.map(({ name, sort, help, kind = "" }) => {
    const cell = el("th", { scope: "col", class: kind, title: help }, sort ? el("button", { type: "button" }, name) : name);
    if (sort) {
      cell.dataset.sort = sort;
      cell.firstElementChild.addEventListener("click", () => sortBy(sort));
    }
    return cell;
  })));
}

/** The rows, from cells of { name, key, kind, sort, brief, fill }. On a narrow screen a row has its brief cells, and that
 * by which the table is sorted. Columns without a value are left out. */
function table(id, cells, items, keyOf, { change = () => {}, sort = null, unknown = [] } = {}) {
  const [head, body] = $(id).children;
  keyed(body, items, keyOf,
    () => el("tr", {}, ...cells.map(({ name, key = "", kind = "", brief }, at) =>
      (at ? el("td", { class: brief ? `${kind} brief` : kind, "data-name": name, "data-key": key }) : el("th", { scope: "row", class: kind })))),
    (row, item) => {
      cells.forEach(({ fill, key, sort: own }, at) => {
        const cell = row.children[at];
        fill(cell, item);
        cell.hidden = unknown.includes(key);
        cell.classList.toggle("sorted", sort !== null && own === sort);
      });
      change(row, item);
    });
  cells.forEach(({ key }, at) => {
    head.rows[0].cells[at].hidden = unknown.includes(key);
  });
  $(id).hidden = !items.length;
  $(id).closest(".card").lastElementChild.hidden = items.length > 0;
  hintAt($(id).parentElement);
}

/** Some text, and smaller text below. */
const two = (first, second) => (cell, item) => {
  if (!cell.firstElementChild) cell.append(el("span"), el("small"));
  say(cell.firstElementChild, first(item));
  say(cell.children[1], second(item));
};

/** On a narrow screen, shows all cells of a row. */
function unfold(row, name) {
  const heading = row.firstElementChild;
  if (!heading.querySelector(".unfold")) {
    const button = el("button", { type: "button", class: "unfold", "aria-expanded": "false" });
    row.addEventListener("click", (event) => {
      if (!NARROW.matches || event.target.closest("details") || !getSelection().isCollapsed) return;
      set(button, "aria-expanded", String(row.classList.toggle("open")));
    });
    heading.append(button);
  }
  set(heading.lastElementChild, "aria-label", `All values of ${name}`);
}
