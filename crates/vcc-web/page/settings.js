/* What the person chose; it is kept in the address. */

const NARROW = matchMedia("(max-width: 47.4rem)");

const asked = {
  kind: "ports", sort: "rate", order: "desc", filter: "", top: "50", flow: "",
  "ports-sort": "port", "ports-order": "asc", "ports-filter": "", "ports-top": "100",
};
// A phone shows few rows at once.
if (NARROW.matches) Object.assign(asked, { top: "25", "ports-top": "10" });
const defaults = { ...asked };

function recall() {
  const wanted = new URLSearchParams(location.hash.slice(1));
  for (const key of Object.keys(asked)) {
    if (wanted.has(key)) asked[key] = wanted.get(key);
  }
  const check = (key, isValid) => {
    if (!isValid(asked[key])) asked[key] = defaults[key];
  };
  const has = (cells) => (wantedSort) => cells.some(({ sort }) => sort && sort === wantedSort);
  const offers = (key) => (top) => [...$(key).options].some(({ value }) => value === top);
  check("sort", has(columns.flows));
  check("ports-sort", has(portCells));
  for (const key of ["order", "ports-order"]) check(key, (order) => ["asc", "desc"].includes(order));
  for (const key of ["top", "ports-top"]) check(key, offers(key));
  check("kind", (kind) => ["ports", "rules"].includes(kind));
  check("flow", (flow) => /^([0-9a-f]{16})?$/.test(flow));
}

function remember() {
  const changed = Object.entries(asked).filter(([key, value]) => value !== defaults[key]);
  history.replaceState(null, "", changed.length ? `#${new URLSearchParams(changed)}` : location.pathname);
}
