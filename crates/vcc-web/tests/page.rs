//! The live page in a real browser.

#[path = "../../vcc/tests/command/browser.rs"]
mod browser;

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use browser::{Browser, Screen};
use serde_json::{Value, json};
use vcc_engine::Limit;
use vcc_view::{COLUMNS, Page, units};
use vcc_web::testing::{Fake, HOSTILE};
use vcc_web::{Server, serve};

/// Interval at which a condition is checked; the browser's own limit ends the wait.
const LOOKS: usize = 1200;

const DESK: Screen = Screen { width: 1600, height: 1000, is_phone: false };

/// A browser that shares the CPUs with others may draw no frame for as long as a test waits.
static ONE_BROWSER: Mutex<()> = Mutex::new(());

struct Visit {
    server: Option<Server>,
    browser: Browser,
    url: String,
    _alone: MutexGuard<'static, ()>,
}

/// None where there is no browser.
#[track_caller]
fn visit(name: &str) -> Option<Visit> {
    visit_to(name, Fake::live())
}

#[track_caller]
fn visit_to(name: &str, host: Fake) -> Option<Visit> {
    // A test that failed leaves nothing behind the lock.
    let alone = ONE_BROWSER.lock().unwrap_or_else(PoisonError::into_inner);
    let profile = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let browser = Browser::start(&profile)?;
    let listen = "127.0.0.1:0".parse().expect("an address");
    let server = serve(listen, Arc::new(host)).expect("a server");
    let url = format!("http://{}/", server.address());
    Some(Visit { server: Some(server), browser, url, _alone: alone })
}

impl Visit {
    fn open(&mut self, screen: &Screen, scheme: &str) {
        // From elsewhere, or one that differs by its hash would not be loaded again.
        self.browser.open("about:blank", screen, scheme);
        self.browser.open(&self.url, screen, scheme);
        self.wait("document.querySelectorAll('#flows tbody tr').length >= 25");
        // Rates need two snapshots.
        self.wait("document.querySelectorAll('#rules tbody tr').length > 0");
        self.wait("!document.querySelector('#tiles').textContent.includes('–')");
    }

    #[track_caller]
    fn wait(&mut self, condition: &str) {
        for _ in 0..LOOKS {
            if self.is(condition) {
                return;
            }
            thread::sleep(Duration::from_millis(50));
        }
        panic!("never: {condition}");
    }

    fn is(&mut self, condition: &str) -> bool {
        self.browser.evaluate(condition) == true
    }

    fn text(&mut self, selector: &str) -> String {
        let asked = format!("document.querySelector({}).textContent", json!(selector));
        self.browser.evaluate(&asked).as_str().expect("text").into()
    }

    fn press(&mut self, key: &str) {
        let text = match key {
            "Enter" => "\r",
            key if key.len() == 1 => key,
            _ => "",
        };
        let code = [("Enter", 13), ("Escape", 27), ("Tab", 9), ("ArrowUp", 38), ("ArrowDown", 40)];
        let code = code.iter().find(|(name, _)| *name == key).map_or(0, |(_, code)| *code);
        for kind in ["keyDown", "keyUp"] {
            let mut event = json!({"type": kind, "key": key, "windowsVirtualKeyCode": code});
            if kind == "keyDown" && !text.is_empty() {
                event["text"] = text.into();
            }
            self.browser.call("Input.dispatchKeyEvent", event);
        }
    }

    /// Another screen for the page as it is.
    fn turn_to(&mut self, screen: &Screen, scheme: &str) {
        let Screen { width, height, is_phone } = screen;
        let metrics = json!({
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": is_phone,
        });
        self.browser.call("Emulation.setDeviceMetricsOverride", metrics);
        let feature = json!({"name": "prefers-color-scheme", "value": scheme});
        self.browser.call("Emulation.setEmulatedMedia", json!({"features": [feature]}));
        // ResizeObserver callbacks run after the layout, before the next frame but one.
        self.browser.evaluate(
            "window.drawn = false; \
             requestAnimationFrame(() => requestAnimationFrame(() => { window.drawn = true; }))",
        );
        self.wait("drawn");
    }

    /// A list that an expression gives.
    fn list(&mut self, expression: &str) -> Vec<Value> {
        self.browser.evaluate(expression).as_array().expect("a list").clone()
    }

    /// A picture of the whole page, for people.
    fn picture(&mut self, name: &str) {
        let asked = json!({"format": "png", "captureBeyondViewport": true});
        let answer = self.browser.call("Page.captureScreenshot", asked);
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("pictures");
        fs::create_dir_all(&folder).expect("a folder");
        let bytes = from_base64(answer["data"].as_str().expect("a picture"));
        fs::write(folder.join(format!("{name}.png")), bytes).expect("written");
    }

    /// The cells of a column of the flows.
    fn column(&mut self, key: &str) -> Vec<String> {
        let asked = format!(
            "[...document.querySelectorAll('#flows tbody [data-key={key}]')].map(cell => cell.textContent)"
        );
        let values = self.browser.evaluate(&asked);
        let values = values.as_array().expect("a column").iter();
        values.map(|value| value.as_str().expect("text").to_owned()).collect()
    }

    #[track_caller]
    fn assert_quiet(&self) {
        assert_eq!(self.browser.complaints(), Vec::<&Value>::new());
        for url in self.browser.requested() {
            assert!(url.starts_with(&self.url) || url.starts_with("data:"), "{url}");
        }
    }
}

#[test]
fn it_fits_every_screen_and_asks_nobody_else() {
    let Some(mut visit) = visit("screens") else { return };
    let mut grounds = Vec::new();
    for screen in [
        DESK,
        Screen { width: 820, height: 1180, is_phone: true },
        Screen { width: 360, height: 740, is_phone: true },
    ] {
        for scheme in ["light", "dark"] {
            visit.open(&screen, scheme);
            visit.browser.evaluate("document.querySelector('#flows tbody button').click()");
            visit.wait("!document.querySelector('#selected').hidden");
            visit
                .browser
                .evaluate("document.querySelectorAll('details').forEach(it => it.open = true)");
            let of_page =
                "[document.documentElement.scrollWidth, document.documentElement.clientWidth]";
            let widths = visit.browser.evaluate(of_page);
            let [content, view] = [&widths[0], &widths[1]].map(|it| it.as_u64().expect("a width"));
            assert!(content <= view && view <= screen.width.into(), "{content} in {view}");
            let drawn = "[...document.querySelectorAll('.chart svg')]\
                         .every(it => it.getBoundingClientRect().width > 200 && it.querySelector('polyline'))";
            visit.wait(drawn);
            let ground = "getComputedStyle(document.body).backgroundColor";
            grounds.push(visit.browser.evaluate(ground));
            visit.assert_quiet();
        }
    }
    assert!(grounds.chunks(2).all(|pair| pair[0] != pair[1]), "dark is as light: {grounds:?}");
}

/// By RFC 4648.
fn from_base64(text: &str) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits: Vec<u32> = text
        .bytes()
        .filter_map(|byte| DIGITS.iter().position(|digit| *digit == byte))
        .map(|digit| digit as u32)
        .collect();
    let bytes = digits.chunks(4).flat_map(|four| {
        let bits = four.iter().fold(0, |bits, digit| bits << 6 | digit) << (6 * (4 - four.len()));
        bits.to_be_bytes()[1..four.len()].to_vec()
    });
    bytes.collect()
}

/// The texts that are to be seen in an element; those of a `<details>` that is closed are not.
const SEEN: &str = "window.textsOf = (part) => {
    const [walker, found] = [document.createTreeWalker(part, NodeFilter.SHOW_TEXT), []];
    while (walker.nextNode()) {
        const text = walker.currentNode;
        if (text.parentElement.checkVisibility({ visibilityProperty: true })) found.push(text);
    }
    return found;
}; true";

/// Words of tables and pools that are torn: short ones at all, long ones into small pieces.
const TORN: &str = "[...document.querySelectorAll('table, #pools')].flatMap(part =>
    textsOf(part).flatMap(text => [...text.data.matchAll(/[^\\s-]+/g)].flatMap(word => {
        const range = document.createRange();
        range.setStart(text, word.index);
        range.setEnd(text, word.index + word[0].length);
        const lines = new Set([...range.getClientRects()].map(it => Math.round(it.top))).size;
        const torn = lines > 1 && (word[0].length < 16 || word[0].length / lines < 10);
        return torn ? [`${part.id}: ${word[0]} on ${lines} lines`] : [];
    })))";

/// Cells whose text goes beyond them.
const SPILT: &str = "[...document.querySelectorAll('table :is(th, td)')].flatMap(cell =>
    textsOf(cell).filter(text => {
        const range = document.createRange();
        range.selectNode(text);
        const right = Math.max(0, ...[...range.getClientRects()].map(it => it.right));
        return right > cell.getBoundingClientRect().right + 1;
    }).map(text => `${cell.closest('table').id}: ${text.data}`))";

/// Content that is cut off without a sign of it on the screen.
const CUT: &str = "[...document.querySelectorAll('main *')].filter(it => {
    if (it.scrollWidth <= it.clientWidth + 1 || !it.clientWidth) return false;
    if (getComputedStyle(it).overflowX === 'visible' || it.closest('.unseen, .switch')) return false;
    const view = document.documentElement.clientWidth;
    return ![...it.parentElement.querySelectorAll('.more')].some(hint => {
        const { left, right, height } = hint.getBoundingClientRect();
        const said = getComputedStyle(hint, '::after').content;
        return height > 10 && left >= 0 && right <= view && said.includes('More columns');
    });
}).map(it => `${it.id || it.className || it.tagName} ${it.querySelector('[id]')?.id} \
    ${it.scrollWidth} > ${it.clientWidth}, ${it.parentElement.dataset.more}`)";

/// Scrolled to their end, tables show their last column, and say where the others are.
const UNREACHED: &str = "[...document.querySelectorAll('.scroll')].filter(it => {
    it.scrollLeft = it.scrollWidth;
    it.dispatchEvent(new Event('scroll'));
    const last = it.querySelector('tbody tr > :last-child');
    const hidden = last && last.getBoundingClientRect().right > it.getBoundingClientRect().right + 1;
    const said = getComputedStyle(it.parentElement.querySelector('.more'), '::after').content;
    const wrong = it.scrollLeft > 1 && (!said.includes('←') || it.tabIndex !== 0);
    it.scrollLeft = 0;
    it.dispatchEvent(new Event('scroll'));
    return hidden || wrong;
}).map(it => it.querySelector('table').id)";

fn screen(width: u32) -> Screen {
    Screen { width, height: 1000, is_phone: width < 600 }
}

#[test]
fn names_and_columns_of_any_length_can_be_read_on_any_screen() {
    for (rules, characters) in [(5, 3), (30, 40)] {
        let host = Fake::crowded(rules, characters);
        let Some(mut visit) = visit_to(&format!("names-{characters}"), host) else { return };
        visit.open(&DESK, "light");
        let rows = format!("document.querySelectorAll('#rules tbody tr').length === {rules}");
        visit.wait(&rows);
        visit.browser.evaluate(SEEN);
        let mut wrong = Vec::new();
        let screens: Vec<(Screen, &str)> = [390, 1024, 1280, 1440, 1920]
            .into_iter()
            .flat_map(|width| ["light", "dark"].map(|scheme| (screen(width), scheme)))
            .collect();
        for (screen, scheme) in &screens {
            let width = screen.width;
            visit.turn_to(screen, scheme);
            for (what, list) in
                [("torn", TORN), ("spilt", SPILT), ("cut", CUT), ("unreached", UNREACHED)]
            {
                let found = visit.list(list);
                if !found.is_empty() {
                    let some = &found[..found.len().min(3)];
                    wrong.push(format!("{width}, {what}: {} such as {some:?}", found.len()));
                }
            }
            let wider =
                "document.documentElement.scrollWidth > document.documentElement.clientWidth";
            if visit.is(wider) {
                wrong.push(format!("{width}: the page is wider than the screen"));
            }
        }
        // Not between the checks: for a picture the browser resizes its window, and the page follows
        // only some frames later.
        for (screen, scheme) in &screens {
            visit.turn_to(screen, scheme);
            visit.picture(&format!("{characters}-{}-{scheme}", screen.width));
        }
        assert!(wrong.is_empty(), "names of {characters}:\n{}", wrong.join("\n"));
        visit.assert_quiet();
    }
}

#[test]
fn hostile_names_stay_text() {
    let Some(mut visit) = visit("hostile") else { return };
    visit.open(&DESK, "light");
    for part in ["#rules", "#ports", "#pools", "#flows", "#problems", "#events"] {
        let text = visit.text(part);
        assert!(text.contains(HOSTILE), "{part}: {text}");
    }
    visit.browser.evaluate("document.querySelector('#kind input[value=rules]').click()");
    visit.wait(&format!(
        "document.querySelector('#legend').textContent.includes({})",
        json!(HOSTILE)
    ));
    assert!(visit.is("document.querySelectorAll('main script, main img').length === 0"));
    assert!(visit.is("window.bad === undefined"));
    visit.assert_quiet();
}

#[test]
fn the_keyboard_is_enough() {
    let Some(mut visit) = visit("keyboard") else { return };
    visit.open(&DESK, "light");
    visit.press("/");
    visit.wait("document.activeElement.id === 'filter'");
    visit.browser.call("Input.insertText", json!({"text": "TAP7 backup"}));
    visit.wait("document.querySelector('#matching').textContent.includes('that match')");
    assert!(visit.column("port").iter().all(|port| port == "tap7"));
    assert!(visit.column("rule").iter().all(|rule| rule == "backup"));
    assert!(visit.is("location.hash.includes('filter=TAP7')"));
    visit.press("Escape");
    visit.wait("document.querySelector('#filter').value === ''");
    visit.wait("!document.querySelector('#matching').textContent.includes('that match')");

    visit.browser.evaluate("document.querySelector('[data-sort=port] button').focus()");
    visit.press("Enter");
    visit.wait("document.querySelector('[aria-sort=ascending]')?.dataset.sort === 'port'");
    visit.wait("document.querySelector('#flows tbody tr').children[1].textContent.startsWith('<')");
    visit.press("Enter");
    visit.wait("document.querySelector('[aria-sort=descending]')?.dataset.sort === 'port'");
    visit.wait(
        "document.querySelector('#flows tbody tr').children[1].textContent === 'vnet-acme-1'",
    );
    let mut sorted = visit.column("port");
    sorted.sort_by(|a, b| b.cmp(a));
    assert_eq!(visit.column("port"), sorted);

    visit.browser.evaluate("document.querySelector('#flows tbody button').focus()");
    visit.press("ArrowDown");
    let second = "document.activeElement === document.querySelectorAll('#flows tbody button')[1]";
    visit.wait(second);
    visit.press("Enter");
    visit.wait("!document.querySelector('#selected').hidden");
    assert!(visit.is("document.activeElement.getAttribute('aria-pressed') === 'true'"));
    visit.press("Escape");
    visit.wait("document.querySelector('#selected').hidden");
    visit.assert_quiet();
}

/// Every column of the list is in the table, in the detail, or in neither, as the list says.
#[test]
fn the_list_of_columns_makes_the_table_and_the_detail() {
    let Some(mut visit) = visit("columns") else { return };
    visit.open(&DESK, "light");
    visit.browser.evaluate("document.querySelector('#flows tbody button').click()");
    visit.wait("document.querySelectorAll('#facts dd').length > 0");
    let shown = "[...document.querySelectorAll('#flows tbody tr:first-child td')].map(it => it.dataset.key).filter(key => key)";
    let in_table: Vec<Value> = visit.list(shown);
    let in_detail =
        visit.list("[...document.querySelectorAll('#facts > div')].map(it => it.dataset.fact)");
    let keys = |places: [Page; 2]| -> Vec<Value> {
        let columns = COLUMNS.iter().filter(|column| places.contains(&column.page));
        columns.map(|column| column.key.into()).collect()
    };
    assert_eq!(in_table, keys([Page::Table, Page::TableAlone]));
    assert_eq!(in_detail, keys([Page::Table, Page::Detail]));

    let limits = visit.column("limited_by");
    assert!(limits.iter().all(|limit| Limit::NAMES.contains(&limit.as_str())), "{limits:?}");
    assert!(limits.iter().any(|limit| limit == "underlay"), "{limits:?}");
    let words = visit.text("[data-fact=limited_by_text] dd");
    assert!(words.len() > "underlay".len(), "{words}");
    visit.browser.evaluate("document.querySelector('[data-sort=limited-by] button').click()");
    visit.wait("document.querySelector('#flows [data-key=limited_by]').textContent === 'closed'");
    let mut sorted = visit.column("limited_by");
    sorted.sort();
    assert_eq!(visit.column("limited_by"), sorted);
    visit.assert_quiet();
}

type Format = fn(f64) -> String;

#[test]
fn the_page_writes_numbers_as_the_command_does() {
    let Some(mut visit) = visit("units") else { return };
    visit.open(&DESK, "light");
    let values = [0.0, 0.4, 1.0, 999.0, 1000.0, 1023.6, 1024.0, 9.996, 99.96, 14_400.0, 608_000.0]
        .into_iter()
        .chain([999_600.0, 1_048_000.0, 9_412_000.0, 3.2e9, 4.7e12, 3e15]);
    let formats: [(&str, Format); 4] = [
        ("bytes", units::bytes),
        ("bits", units::bit_rate),
        ("micros", units::duration),
        ("perS", units::per_s),
    ];
    for value in values {
        for (function, format) in &formats {
            let written = visit.browser.evaluate(&format!("{function}({value})"));
            let written = written.as_str().expect("text").replace('\u{a0}', " ");
            assert_eq!(written, format(value), "{function}({value})");
        }
    }
}

#[test]
fn what_is_there_stays_where_it_is() {
    let Some(mut visit) = visit("flicker") else { return };
    visit.open(&DESK, "light");
    // Two of them have one name.
    assert!(visit.is("document.querySelectorAll('#ports tbody tr').length === 7"));
    let mark = "window.ruleRows = [...document.querySelectorAll('#rules tbody tr')]; \
                window.portRows = [...document.querySelectorAll('#ports tbody tr')]; \
                window.rows = document.querySelectorAll('#flows tbody tr').length; \
                window.seen = document.querySelector('#tiles').textContent; \
                document.querySelector('#ports details:not([hidden])').open = true; \
                window.button = document.querySelector('#flows tbody button'); button.focus()";
    visit.browser.evaluate(mark);
    visit.wait("document.querySelector('#tiles').textContent !== seen");
    assert!(visit.is(
        "[...document.querySelectorAll('#rules tbody tr')].every((row, at) => row === ruleRows[at])"
    ));
    assert!(visit.is(
        "[...document.querySelectorAll('#ports tbody tr')].every((row, at) => row === portRows[at])"
    ));
    assert!(visit.is("document.querySelectorAll('#flows tbody tr').length === rows"));
    assert!(visit.is("document.querySelector('#ports details:not([hidden])').open"));
    assert!(visit.is("!button.isConnected || document.activeElement === button"));
    visit.assert_quiet();
}

#[test]
fn history_is_there_at_once_after_a_reload() {
    let Some(mut visit) = visit("history") else { return };
    visit.open(&DESK, "light");
    visit.browser.open("about:blank", &DESK, "light");
    visit.open(&DESK, "light");
    let asked = visit.browser.requested();
    assert_eq!(asked.iter().filter(|url| url.ends_with("/api/history.json")).count(), 1);
}

#[test]
fn silence_of_the_daemon_is_told() {
    let Some(mut visit) = visit("silence") else { return };
    visit.open(&DESK, "light");
    visit.assert_quiet();
    visit.server.take().expect("at work").stop();
    visit.wait("!document.querySelector('#silence').hidden");
    assert!(visit.text("#silence").contains("vcc has not answered since"));
    assert_eq!(visit.text("#state"), "no answer");
}
