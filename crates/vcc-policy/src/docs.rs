//! Tables of the documentation that are generated from the lists they describe.

use vcc_engine::Underlay;

use crate::keys::KEYS;

/// docs/policy.md: the keys that say how connections are treated.
pub fn keys() -> String {
    let mut table = "| key | value | by default | |\n|---|---|---|---|\n".to_owned();
    for key in KEYS {
        let (name, bounds, help) = (key.name, key.kind.bounds(), key.markdown());
        let default = match key.default() {
            None => "none".to_owned(),
            Some(number) if key.kind.is_none(number) => "none".to_owned(),
            Some(number) => format!("`{}`", key.kind.toml(number)),
        };
        table += &format!("| `{name}` | {bounds} | {default} | {help} |\n");
    }
    table
}

/// docs/congestion-control.md: the underlays and their traits.
pub fn underlays() -> String {
    let mut table = "| underlay | | traits |\n|---|---|---|\n".to_owned();
    for underlay in Underlay::built_in() {
        let traits = [
            (underlay.controls(), "controls the window"),
            (underlay.wants_ecn(), "ECN on the fabric"),
            (underlay.sends_all_ect(), "all segments ECT"),
            (underlay.has_alpha(), "DCTCP's alpha"),
            (underlay.heeds_priority(), "knows priorities"),
            (underlay.heeds_delay(), "led by delay"),
            (underlay.heeds_target(), "has a target of the RTT"),
        ];
        let traits: Vec<&str> = traits.iter().filter(|it| it.0).map(|it| it.1).collect();
        let traits = if traits.is_empty() { "none".to_owned() } else { traits.join(", ") };
        table += &format!("| `{underlay}` | {} | {traits} |\n", underlay.about());
    }
    table
}

/// The page with the part between the markers of that name replaced. None without markers.
pub fn replaced(page: &str, name: &str, part: &str) -> Option<String> {
    let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->\n"));
    let (before, rest) = page.split_once(&begin)?;
    let (_, after) = rest.split_once(&end)?;
    Some(format!("{before}{begin}\n{part}\n{end}{after}"))
}
