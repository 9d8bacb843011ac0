//! What a person chooses: the order, the filter and the length of a table.

use vcc_web::testing::Fake;

use crate::visit::{DESK, PHONE, Visit, visit_to};

/// The ports in the order of their rows.
fn ports(visit: &mut Visit) -> Vec<String> {
    let names = "[...document.querySelectorAll('#ports tbody tr')].map(row => row.querySelector('th span').textContent)";
    visit.list(names).iter().map(|name| name.as_str().expect("a name").to_owned()).collect()
}

#[test]
fn ports_are_sorted_and_filtered_by_keyboard_and_stay_so() {
    let Some(mut visit) = visit_to("choices", Fake::sized(12, 60)) else { return };
    visit.open(&DESK, "light");
    let expected: Vec<String> = (1..=12).map(|at| format!("tap{at}")).collect();
    assert_eq!(ports(&mut visit), expected);
    assert!(
        visit.is("document.querySelector('#ports [aria-sort=ascending]').dataset.sort === 'port'")
    );

    visit.browser.evaluate("document.querySelector('#ports [data-sort=port] button').focus()");
    visit.press("Enter");
    visit.wait("document.querySelector('#ports [aria-sort=descending]')?.dataset.sort === 'port'");
    assert!(ports(&mut visit).iter().eq(expected.iter().rev()));

    visit.browser.evaluate(
        "document.querySelector('#ports [data-sort=untranslated_segments] button').focus()",
    );
    visit.press("Enter");
    visit.wait("document.querySelector('#ports th span').textContent === 'tap12'");
    visit.press("Enter");
    visit.wait("document.querySelector('#ports th span').textContent === 'tap1'");

    visit.browser.evaluate("document.querySelector('#ports-filter').focus()");
    visit.type_text("TAP1 globex");
    visit.wait(
        "document.querySelector('#ports-matching').textContent === '2 of 2 that match, of 12'",
    );
    assert_eq!(ports(&mut visit), ["tap1", "tap10"]);
    visit.wait_for_data();
    assert_eq!(ports(&mut visit), ["tap1", "tap10"]);
    visit.reopen(&DESK);
    visit.wait(
        "document.querySelector('#ports-matching').textContent === '2 of 2 that match, of 12'",
    );
    assert_eq!(
        visit.browser.evaluate("document.querySelector('#ports-filter').value"),
        "TAP1 globex"
    );

    visit.browser.evaluate("document.querySelector('#ports-filter').focus()");
    visit.type_text(" nobody");
    visit.wait("!document.querySelector('#no-port').hidden");
    assert_eq!(visit.text("#no-port"), "No port matches the filter.");
    visit.press("Escape");
    visit.wait("document.querySelector('#ports-matching').textContent === '12 of 12'");
    assert!(visit.is("document.activeElement.id !== 'ports-filter'"));
    visit.assert_quiet();
}

#[test]
fn an_empty_page_says_why_it_is_empty() {
    for (ports, flows, expected) in [
        (0, 0, "vcc is attached nowhere: `vcc attach DEV`"),
        (
            2,
            0,
            "no connections, but 1603 segments of connections that began before vcc was attached: \
                these pass untranslated, and new ones are shown as they begin",
        ),
    ] {
        let Some(mut visit) = visit_to("empty", Fake::sized(ports, flows)) else { return };
        visit.open_small(&DESK);
        visit.wait("!document.querySelector('#no-flow').hidden");
        assert_eq!(visit.text("#no-flow"), expected);
        assert!(visit.is("document.querySelector('#flows').hidden"));
        visit.assert_quiet();
    }
}

#[test]
fn a_flow_in_shadow_mode_has_both_windows() {
    let Some(mut visit) = visit_to("shadow", Fake::sized(3, 40)) else { return };
    visit.open(&DESK, "light");
    let modes = visit.column("mode");
    let [shown, would_show] =
        ["window_shown_bytes", "would_show_bytes"].map(|key| visit.column(key));
    assert!(
        modes.iter().any(|mode| mode == "shadow") && modes.iter().any(|mode| mode == "enforce")
    );
    for ((mode, shown), would_show) in modes.iter().zip(&shown).zip(&would_show) {
        let is_shadow = mode == "shadow";
        assert_eq!(is_shadow, shown == "512\u{a0}KiB", "{mode}: {shown}");
        assert_eq!(is_shadow, would_show != "–", "{mode}: {would_show}");
    }
    visit.assert_quiet();
}

#[test]
fn a_phone_shows_many_ports_and_flows_on_a_few_screens() {
    let Some(mut visit) = visit_to("phone", Fake::sized(30, 200)) else { return };
    visit.open(&PHONE, "light");
    let screens = "document.documentElement.scrollHeight / innerHeight";
    let screens = visit.browser.evaluate(screens).as_f64().expect("a number");
    assert!(screens < 6.0, "{screens} screens");
    assert_eq!(visit.text("#ports-matching"), "10 of 30");
    assert_eq!(visit.text("#matching"), "25 of 200");

    let retransmissions =
        "document.querySelector('#flows td[data-key=retransmissions]').checkVisibility()";
    assert!(!visit.is(retransmissions));
    visit.choose("#sort", "retransmissions");
    visit.wait(retransmissions);
    let first = "Number(document.querySelector('#flows td[data-key=retransmissions]').textContent)";
    let most = visit.browser.evaluate(first).as_f64();
    visit.browser.evaluate("document.querySelector('#order').click()");
    visit.wait(&format!("{first} < {}", most.expect("a number")));

    let window = "document.querySelector('#ports td[data-key=window_bytes]').checkVisibility()";
    assert!(!visit.is(window));
    visit.browser.evaluate("document.querySelector('#ports .unfold').focus()");
    visit.press("Enter");
    visit.wait(window);
    assert!(visit.is("document.querySelector('#ports .unfold').ariaExpanded === 'true'"));
    visit.wait_for_data();
    assert!(visit.is(window));

    visit.browser.evaluate("document.querySelector('#flows tbody tr:last-child').click()");
    visit.wait("!document.querySelector('#selected').hidden");
    visit.wait("document.querySelector('#selected').getBoundingClientRect().top > 0");
    assert!(
        visit.is(
            "document.querySelector('#selected').getBoundingClientRect().top < innerHeight / 2"
        )
    );
    visit.assert_quiet();
}

#[test]
fn shadow_mode_has_a_trial_and_the_window_that_would_be_shown() {
    let Some(mut visit) = visit_to("trial", Fake::sized(3, 40)) else { return };
    visit.open(&DESK, "light");
    visit.wait("!document.querySelector('#trial-part').hidden");
    visit
        .wait("document.querySelector('#trial [data-key=limited_time_share]').textContent !== '–'");
    let conclusion = visit.text("#trial-conclusion");
    assert!(conclusion.starts_with("cubic would have limited "), "{conclusion}");
    let rows =
        "[...document.querySelectorAll('#trial th[scope=row] span')].map(it => it.textContent)";
    let rows = visit.list(rows);
    assert_eq!(rows.len(), 4, "{rows:?}");
    assert_eq!(rows[3], "all");
    visit.assert_quiet();
    drop(visit);

    let Some(mut visit) = visit_to("no-trial", Fake::sized(3, 2)) else { return };
    visit.open_small(&DESK);
    visit.wait("document.querySelectorAll('#flows tbody tr').length === 2");
    assert!(visit.is("document.querySelector('#trial-part').hidden"));
    let seen =
        "[...document.querySelectorAll('#flows :is(th, td)')].filter(it => it.checkVisibility())";
    assert!(!visit.is(&format!(
        "{seen}.some(it => it.textContent === 'Would show' || it.dataset.key === 'would_show_bytes')"
    )));
    assert!(visit.is(&format!("{seen}.some(it => it.dataset.key === 'mode')")));
    visit.assert_quiet();
}
