//! The page on screens of all sizes, light and dark.

use crate::browser::Screen;
use crate::visit::{DESK, visit};

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
