//! Every column of rules. A new one is one entry here.

use super::sums::{self, Summed};
use crate::column::{self, Page};
use crate::rule::RuleView;
use crate::sums::Sums;
use crate::value::Unit::{Count, Text};

type Column = column::Column<RuleView>;

impl Summed for RuleView {
    fn sums(&self) -> Option<&Sums> {
        Some(&self.sums)
    }
}

/// In the order in which they are shown.
pub static RULE_COLUMNS: &[Column] = &[
    Column::new("Rule", "name", Text, |rule| (&*rule.name).into(), "the name in the policy")
        .top_wide(0, 15)
        .page(Page::Table),
    Column::new(
        "Underlay",
        "underlay",
        Text,
        |rule| (&*rule.underlay).into(),
        "the congestion control that the fabric sees",
    )
    .top_wide(3, 8),
    Column::new(
        "Mode",
        "mode",
        Text,
        |rule| (&*rule.mode).into(),
        "what vcc does with connections: `enforce`, `shadow`, `ignore`",
    )
    .top_wide(4, 7)
    .page(Page::Table),
    sums::flows().top_wide(2, 5).page(Page::Table),
    sums::rate().top(1, None),
    Column::new(
        "Connections",
        "connections",
        Count,
        |rule| rule.connections.into(),
        "the connections that came under the rule, by a SYN or a reload: on the page since the daemon \
         started, in `vcc top` since the policy's edition came into force",
    )
    .top_wide(5, 8)
    .page(Page::Table),
    sums::window(),
    sums::marks_per_s().top(6, None).page(Page::Table),
    sums::reductions_per_s(),
    sums::retransmissions_per_s().top(7, None),
    sums::drops_per_s(),
    sums::acked(),
    sums::marks().page(Page::Table),
    sums::reductions().page(Page::Table),
    sums::retransmissions().page(Page::Table),
    sums::drops().page(Page::Table),
];
