/* What the person chose; it is kept in the address. */

const asked = { kind: "ports", sort: "rate", order: "desc", filter: "", top: "50", flow: "" };
// One card per flow makes a long page.
if (matchMedia("(max-width: 47.4rem)").matches) asked.top = "25";
const defaults = { ...asked };

function recall() {
  const wanted = new URLSearchParams(location.hash.slice(1));
  for (const key of Object.keys(asked)) {
    if (wanted.has(key)) asked[key] = wanted.get(key);
  }
  if (!columns.flows.some(({ sort }) => sort && sort === asked.sort)) asked.sort = "rate";
  if (asked.order !== "asc") asked.order = "desc";
  if (asked.kind !== "rules") asked.kind = "ports";
  if (![...$("top").options].some(({ value }) => value === asked.top)) asked.top = "50";
  if (!/^[0-9a-f]{16}$/.test(asked.flow)) asked.flow = "";
}

function remember() {
  const changed = Object.entries(asked).filter(([key, value]) => value !== defaults[key]);
  history.replaceState(null, "", changed.length ? `#${new URLSearchParams(changed)}` : location.pathname);
}
