/* Asks the daemon, shows what it answers, and listens to the person. */

const POLL_MS = 2000;
let paused = false;

function show() {
  showHead();
  showTiles();
  showCharts();
  showPorts();
  showRules();
  showPools();
  showTrial();
}

let silentSince = null;

function answered() {
  silentSince = null;
  $("silence").hidden = true;
  document.body.classList.remove("stale");
}

function silent(why) {
  silentSince ??= Date.now();
  say($("silence"), `vcc has not answered since ${clock(silentSince)}: ${why}. The page shows older values and tries again.`);
  $("silence").hidden = false;
  document.body.classList.add("stale");
  state("bad", "no answer");
}

async function ask(path) {
  let response;
  try {
    response = await fetch(path, { cache: "no-store", signal: AbortSignal.timeout(10_000) });
  } catch {
    throw new Error("the daemon does not answer: check that it is running (`vcc status`)");
  }
  if (!response.ok) throw new Error((await response.text()).trim() || `status ${response.status}`);
  return response.json();
}

let asking = 0;

async function askFlows() {
  asking += 1;
  const mine = asking;
  const { top, sort, order, filter, flow } = asked;
  const wanted = new URLSearchParams({ top, sort, order, filter, ...(flow && { flow }) });
  try {
    const answer = await ask(`/api/flows.json?${wanted}`);
    // A later request is under way.
    if (mine !== asking) return;
    flows = answer;
    noteFlows();
    showFlows();
  } catch (error) {
    silent(error.message.replace(/[.;]?$/, ""));
  }
}

async function round() {
  if (!paused && !document.hidden) {
    try {
      if (!points.length) {
        const past = await ask("/api/history.json");
        points = past.map(pointOf);
      }
      snapshot = await ask("/api/snapshot.json");
      answered();
      note();
      show();
      await askFlows();
    } catch (error) {
      silent(error.message.replace(/[.;]?$/, ""));
    }
  }
  setTimeout(round, POLL_MS);
}

function listen() {
  portControls.listen();
  flowControls.listen();
  $("kind").addEventListener("change", (event) => {
    asked.kind = event.target.value;
    remember();
    if (snapshot) showCharts();
  });
  $("pause").addEventListener("click", () => {
    paused = !paused;
    set($("pause"), "aria-pressed", String(paused));
    say($("pause"), paused ? "Resume" : "Pause");
    if (paused) state("part", "paused");
  });
  $("close").addEventListener("click", unselect);
  $("flows").tBodies[0].addEventListener("click", (event) => {
    const row = event.target.closest("tr");
    // Marking an address to copy it does not open the flow.
    if (row && getSelection().isCollapsed) select(row.dataset.key);
  });
  document.addEventListener("keydown", (event) => {
    const typingNow = event.target.matches("input, select");
    const button = event.target.closest?.("#flows tbody button");
    if (event.key === "/" && !typingNow && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      $("filter").focus();
    } else if (event.key === "Escape" && asked.flow) {
      unselect();
    } else if (button && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      event.preventDefault();
      const row = button.closest("tr");
      const next = event.key === "ArrowDown" ? row.nextElementSibling : row.previousElementSibling;
      next?.querySelector("button").focus();
    }
  });
}

// What sticks below the header sticks at its height.
new ResizeObserver(([{ target }]) => document.documentElement.style.setProperty("--header", `${target.offsetHeight}px`)).observe(document.querySelector("header"));
for (const scroll of document.querySelectorAll(".scroll")) {
  scroll.addEventListener("scroll", () => hintAt(scroll), { passive: true });
  new ResizeObserver(() => hintAt(scroll)).observe(scroll);
}
async function begin() {
  try {
    ({ units, ...columns } = await ask("/api/columns.json"));
  } catch (error) {
    silent(error.message.replace(/[.;]?$/, ""));
    setTimeout(begin, POLL_MS);
    return;
  }
  makePortsAndRules();
  makeFlows();
  recall();
  listen();
  document.querySelector(`#kind input[value=${asked.kind}]`).checked = true;
  portControls.settle();
  flowControls.settle();
  round();
}

begin();
