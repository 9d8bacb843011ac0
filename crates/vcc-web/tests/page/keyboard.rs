//! The page without a mouse.

use crate::visit::{DESK, visit};

#[test]
fn the_keyboard_is_enough() {
    let Some(mut visit) = visit("keyboard") else { return };
    visit.open(&DESK, "light");
    visit.press("/");
    visit.wait("document.activeElement.id === 'filter'");
    visit.type_text("TAP7 backup");
    visit.wait("document.querySelector('#matching').textContent.includes('that match')");
    assert!(visit.column("port").iter().all(|port| port == "tap7"));
    assert!(visit.column("rule").iter().all(|rule| rule == "backup"));
    assert!(visit.is("location.hash.includes('filter=TAP7')"));
    visit.press("Escape");
    visit.wait("document.querySelector('#filter').value === ''");
    visit.wait("!document.querySelector('#matching').textContent.includes('that match')");

    visit.browser.evaluate("document.querySelector('#flows [data-sort=port] button').focus()");
    visit.press("Enter");
    visit.wait("document.querySelector('#flows [aria-sort=ascending]')?.dataset.sort === 'port'");
    visit.wait("document.querySelector('#flows tbody tr').children[1].textContent.startsWith('<')");
    visit.press("Enter");
    visit.wait("document.querySelector('#flows [aria-sort=descending]')?.dataset.sort === 'port'");
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
