//! The page on screens of all sizes, light and dark.

use vcc_web::testing::Fake;

use crate::browser::Screen;
use crate::visit::{DESK, visit, visit_to};

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

#[test]
fn a_wide_window_is_used_and_shows_every_column() {
    let Some(mut visit) = visit_to("wide", Fake::sized(30, 200)) else { return };
    visit.open(&DESK, "light");
    for width in [1600, 1920, 2560] {
        visit.turn_to(&Screen { width, height: 1000, is_phone: false }, "light");
        let cut =
            visit.list("[...document.querySelectorAll('[data-more] table')].map(it => it.id)");
        assert!(cut.is_empty(), "{width}: {cut:?}");
        let unused =
            "document.documentElement.clientWidth - document.querySelector('#flows').offsetWidth";
        let unused = visit.browser.evaluate(unused).as_f64().expect("a number");
        assert!(unused < 60.0, "{unused} of {width} are unused");
    }
}

/// Wherever the page, and a table that is wider than its card, are scrolled to.
#[test]
fn heads_of_tables_stay_in_sight() {
    let Some(mut visit) = visit_to("heads", Fake::sized(30, 200)) else { return };
    visit.open(&DESK, "light");
    visit.browser.evaluate(
        "window.isSeen = table => {
            const cell = table.tHead.rows[0].cells[1];
            const { left, top, width, height } = cell.getBoundingClientRect();
            return cell.contains(document.elementFromPoint(left + width / 2, top + height / 2));
        }",
    );
    for width in [1024, 1280, 1600, 2560] {
        visit.turn_to(&Screen { width, height: 1000, is_phone: false }, "light");
        for table in ["ports", "flows"] {
            let scrolled = format!(
                "(table => {{
                    scrollTo(0, scrollY + table.tBodies[0].rows[12].getBoundingClientRect().top - 400);
                    table.parentElement.scrollTop = 500;
                    return isSeen(table);
                }})(document.querySelector('#{table}'))"
            );
            assert!(visit.is(&scrolled), "{table} at {width}");
        }
        let at_the_end = "scrollTo(0, document.documentElement.scrollHeight); isSeen(document.querySelector('#flows'))";
        assert!(visit.is(at_the_end), "the end of the page at {width}");
    }
    visit.assert_quiet();
}
