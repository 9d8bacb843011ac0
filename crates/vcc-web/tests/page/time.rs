//! The page as time passes.

use crate::visit::{DESK, visit};

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
fn silence_of_the_daemon_is_shown() {
    let Some(mut visit) = visit("silence") else { return };
    visit.open(&DESK, "light");
    visit.assert_quiet();
    visit.server.take().expect("at work").stop();
    visit.wait("!document.querySelector('#silence').hidden");
    assert!(visit.text("#silence").contains("vcc has not answered since"));
    assert_eq!(visit.text("#state"), "no answer");
}
