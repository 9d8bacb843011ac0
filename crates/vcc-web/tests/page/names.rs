//! Names that are long, and names that are hostile.

use serde_json::json;
use vcc_web::testing::{Fake, HOSTILE};

use crate::browser::Screen;
use crate::visit::{DESK, visit, visit_to};

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
        const output = getComputedStyle(hint, '::after').content;
        return height > 10 && left >= 0 && right <= view && output.includes('More columns');
    });
}).map(it => `${it.id || it.className || it.tagName} ${it.querySelector('[id]')?.id} \
    ${it.scrollWidth} > ${it.clientWidth}, ${it.parentElement.dataset.more}`)";

/// Scrolled to their end, tables show their last column, and say where the others are.
const UNREACHED: &str = "[...document.querySelectorAll('.scroll')].filter(it => {
    it.scrollLeft = it.scrollWidth;
    it.dispatchEvent(new Event('scroll'));
    const last = it.querySelector('tbody tr > :last-child');
    const hidden = last && last.getBoundingClientRect().right > it.getBoundingClientRect().right + 1;
    const output = getComputedStyle(it.parentElement.querySelector('.more'), '::after').content;
    const wrong = it.scrollLeft > 1 && (!output.includes('←') || it.tabIndex !== 0);
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
