//! Words that are typed to find flows.

use std::fmt::Write;

use crate::columns::FLOW_COLUMNS;
use crate::end::End;
use crate::flow::FlowView;

/// All of them have to be found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words(Vec<Word>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Word {
    /// One end of the connection.
    End(End),
    /// Part of a text in its columns.
    Part(String),
}

impl Words {
    pub fn new(text: &str) -> Self {
        let word =
            |word: &str| word.parse().map_or_else(|_| Word::Part(word.to_lowercase()), Word::End);
        Self(text.split_whitespace().map(word).collect())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn are_in(&self, flow: &FlowView) -> bool {
        if self.is_empty() {
            return true;
        }
        let text = searched(flow);
        let ends = [flow.id().guest, flow.id().peer];
        self.0.iter().all(|word| match word {
            Word::End(end) => ends.iter().any(|it| end.matches(*it)),
            Word::Part(part) => text.contains(part.as_str()),
        })
    }
}

fn searched(flow: &FlowView) -> String {
    let mut text = String::new();
    for column in FLOW_COLUMNS.iter().filter(|column| column.is_searched()) {
        let value = (column.value)(flow);
        if value.is_known() {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{}", column.unit.cell(&value));
        }
    }
    if let Some(vlan) = flow.id().vlan {
        let _ = writeln!(text, "vlan {vlan}");
    }
    text.to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::flow;

    #[test]
    fn every_word_is_an_end_or_part_of_a_text() {
        let mut flow = flow("10.1.0.1:5001", "192.0.2.9:80");
        flow.rule = Some("Legacy web".into());
        flow.key.1.vlan = Some(12);
        for (text, are_in) in [
            ("", true),
            ("10.1.0.1", true),
            ("10.1.0.10", false),
            ("10.1.", true),
            (":80", true),
            ("10.0.0.0/8 192.0.2.0/24", true),
            ("10.0.0.0/16", false),
            ("LEGACY", true),
            ("veth3 dctcp", true),
            ("veth3 cubic", false),
            ("vlan 12", true),
            ("underlay", true),
            ("nowhere", false),
        ] {
            assert_eq!(Words::new(text).are_in(&flow), are_in, "{text}");
        }
    }
}
