/* The order, the filter and the length of a table, which the person chooses. */

class Controls {
  /** `prefix`: of its elements' ids, and of its settings. `changed` asks for the rows, or shows them. */
  constructor(table, prefix, changed) {
    Object.assign(this, { table, prefix, changed, cells: [] });
  }

  element(name) {
    return $(`${this.prefix}${name}`);
  }

  get(name) {
    return asked[`${this.prefix}${name}`];
  }

  set(values) {
    for (const [name, value] of Object.entries(values)) asked[`${this.prefix}${name}`] = value;
    this.settle();
  }

  makeHead(cells) {
    this.cells = cells;
    makeHead(this.table, cells, (sort) => this.sortBy(sort));
    for (const { name, sort } of cells) {
      if (sort) this.element("sort").append(el("option", { value: sort }, name));
    }
  }

  sortBy(sort) {
    const isText = this.cells.some((cell) => cell.sort === sort && cell.unit === "text");
    if (this.get("sort") === sort) this.reverse();
    else this.set({ sort, order: isText ? "asc" : "desc" });
  }

  reverse() {
    this.set({ order: this.get("order") === "asc" ? "desc" : "asc" });
  }

  /** Shows the settings, and has the table follow. */
  settle() {
    const [sort, order] = [this.get("sort"), this.get("order") === "asc" ? "ascending" : "descending"];
    for (const cell of $(this.table).tHead.rows[0].cells) set(cell, "aria-sort", cell.dataset.sort === sort ? order : null);
    this.element("sort").value = sort;
    set(this.element("order"), "data-order", order);
    set(this.element("order"), "aria-label", `Order: ${order}`);
    this.element("top").value = this.get("top");
    if (this.element("filter").value !== this.get("filter")) this.element("filter").value = this.get("filter");
    remember();
    this.changed();
  }

  listen() {
    let typing = 0;
    this.element("filter").addEventListener("input", ({ target }) => {
      clearTimeout(typing);
      typing = setTimeout(() => this.set({ filter: target.value }), 150);
    });
    this.element("filter").addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.preventDefault();
      // The page closes a flow by this key.
      event.stopPropagation();
      this.set({ filter: "" });
      event.target.blur();
    });
    this.element("top").addEventListener("change", ({ target }) => this.set({ top: target.value }));
    this.element("sort").addEventListener("change", ({ target }) => this.sortBy(target.value));
    this.element("order").addEventListener("click", () => this.reverse());
  }
}
