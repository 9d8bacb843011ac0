//! The columns of `vcc flows`. One more is one more line here.

use super::FlowView;
use crate::table::{Align, Table};
use crate::units;

struct Column {
    name: &'static str,
    align: Align,
    shown: Shown,
    cell: fn(&FlowView) -> String,
}

/// A table that is wider than a terminal helps nobody.
enum Shown {
    Always,
    /// Where it says something of any of the flows.
    Where(fn(&FlowView) -> bool),
    Wide,
}

use Align::{Left, Right};
use Shown::{Always, Where, Wide};

const COLUMNS: &[Column] = &[
    column("PORT", Left, Always, |flow| flow.port.clone()),
    column("VLAN", Right, Where(|flow| flow.vlan.is_some()), |flow| {
        or_dash(flow.vlan, |vlan| vlan.to_string())
    }),
    column("GUEST", Left, Always, |flow| flow.guest.clone()),
    column("PEER", Left, Always, |flow| flow.peer.clone()),
    column("STAGE", Left, Always, |flow| flow.stage.into()),
    column("UNDERLAY", Left, Always, |flow| flow.underlay.clone()),
    column("RULE", Left, Where(|flow| flow.rule.is_some()), |flow| {
        flow.rule.clone().unwrap_or_else(|| "-".into())
    }),
    column("ECN-GUEST", Left, Wide, |flow| flow.ecn_guest.into()),
    column("ECN-FABRIC", Left, Wide, |flow| flow.ecn_fabric.into()),
    column("SND-UNA", Right, Wide, |flow| flow.snd_una.to_string()),
    column("RATE", Right, Where(|flow| flow.goodput_bits_per_s.is_some()), |flow| {
        or_dash(flow.goodput_bits_per_s, units::bit_rate)
    }),
    // What is cut off by a narrow terminal shall not be this.
    column("LIMITED-BY", Left, Always, |flow| flow.limited_by.into()),
    column("CWND", Right, Always, |flow| or_dash(flow.cwnd_segs, |segs| segs.to_string())),
    column("SSTHRESH", Right, Wide, |flow| or_dash(flow.ssthresh_segs, |segs| segs.to_string())),
    column("WINDOW", Right, Always, |flow| {
        or_dash(flow.window_shown_bytes, |bytes| units::bytes(bytes.into()))
    }),
    column("FLIGHT", Right, Always, |flow| units::bytes(flow.flight_bytes.into())),
    column("SRTT", Right, Always, |flow| or_dash(flow.srtt_us, |us| units::duration(us.into()))),
    column("ALPHA", Right, Where(|flow| flow.alpha.is_some()), |flow| {
        or_dash(flow.alpha, |alpha| format!("{alpha:.3}"))
    }),
    column("FEEDBACK", Left, Where(|flow| flow.feedback != "none"), |flow| flow.feedback.into()),
    column("MARKS", Right, Always, |flow| flow.marks.to_string()),
    column("REDUCTIONS", Right, Always, |flow| flow.reductions.to_string()),
    column("RETRANS", Right, Always, |flow| flow.retransmissions.to_string()),
    column("DROPS", Right, Where(|flow| flow.drops > 0), |flow| flow.drops.to_string()),
    column("POLICED", Right, Where(|flow| flow.policed > 0), |flow| flow.policed.to_string()),
    column("FORGED", Right, Where(|flow| flow.forged > 0), |flow| flow.forged.to_string()),
];

const fn column(
    name: &'static str,
    align: Align,
    shown: Shown,
    cell: fn(&FlowView) -> String,
) -> Column {
    Column { name, align, shown, cell }
}

fn or_dash<T>(value: Option<T>, told: impl Fn(T) -> String) -> String {
    value.map_or("-".to_owned(), told)
}

pub fn table(flows: &[FlowView], wide: bool) -> String {
    let is_shown = |column: &&Column| match column.shown {
        Always => true,
        Where(says_something) => wide || flows.iter().any(says_something),
        Wide => wide,
    };
    let columns: Vec<&Column> = COLUMNS.iter().filter(is_shown).collect();
    let mut table = Table::new(columns.iter().map(|column| (column.name, column.align)));
    for flow in flows {
        table.row(columns.iter().map(|column| (column.cell)(flow)));
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seen::Limit;
    use crate::seen::testing::flow;

    #[test]
    fn the_documentation_explains_each_column_key_and_limit() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/seeing.md");
        let text = std::fs::read_to_string(path).expect("the page");
        let rows: Vec<&str> =
            text.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next()).collect();
        let is_row = |name: &str| {
            rows.iter().any(|row| row.split([' ', ',', '*', '(', ')']).any(|word| word == name))
        };
        for column in COLUMNS {
            assert!(is_row(column.name), "no row of {}", column.name);
        }
        for limit in Limit::ALL {
            assert!(is_row(&format!("`{limit}`")), "no row of {limit}");
        }
        let view = serde_json::to_value(flow("192.0.2.1:1", "192.0.2.2:2")).expect("JSON");
        let is_alone = |key: &&String| !key.starts_with("heard_") && !key.starts_with("counted_");
        for key in view.as_object().expect("an object").keys().filter(is_alone) {
            assert!(text.contains(&format!("`{key}`")), "{key} is not explained");
        }
    }

    #[test]
    fn columns_come_where_they_say_something() {
        let plain = flow("192.0.2.1:40000", "192.0.2.2:80");
        let text = table(std::slice::from_ref(&plain), false);
        let [header, line] = text.lines().collect::<Vec<_>>()[..] else { panic!("{text}") };
        assert!(!header.contains("RATE") && !header.contains("POLICED"), "{text}");
        for word in ["192.0.2.1:40000", "14.4 kB", "1.25 ms", "underlay"] {
            assert!(line.contains(word), "{word}: {text}");
        }
        let mut policed = plain.clone();
        (policed.policed, policed.goodput_bits_per_s) = (7, Some(9.41e6));
        let text = table(&[plain.clone(), policed], false);
        assert!(text.contains("POLICED") && text.contains("9.41 Mbit/s"), "{text}");
        let wide = table(&[plain], true);
        let names = wide.lines().next().unwrap_or_default().split_whitespace();
        assert!(names.eq(COLUMNS.iter().map(|column| column.name)), "{wide}");
    }
}
