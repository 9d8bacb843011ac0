//! Filters of flows.

use vcc_engine::Underlay;

use crate::column::Column;
use crate::end::End;
use crate::flow::FlowView;

/// A flow has to match one of the alternatives of each field that has any.
#[derive(Clone, Default)]
pub struct Filter {
    pub guest: Vec<End>,
    pub peer: Vec<End>,
    /// Names of [`vcc_engine::Stage`].
    pub stage: Vec<String>,
    pub underlay: Vec<Underlay>,
    pub ecn: Vec<EcnOwner>,
    /// Names of [`vcc_engine::Limit`].
    pub limited_by: Vec<String>,
    /// Counters above 0.
    pub with: Vec<&'static Column>,
}

/// The user of ECN on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcnOwner {
    /// vcc, toward the peer.
    Fabric,
    Guest,
    Nobody,
}

impl Filter {
    pub fn admits(&self, flow: &FlowView) -> bool {
        let id = flow.id();
        let has = |column: &Column| (column.value)(flow).number() > Some(0.0);
        any(&self.guest, |end| end.matches(id.guest))
            && any(&self.peer, |end| end.matches(id.peer))
            && any(&self.stage, |stage| stage == flow.state.stage().name())
            && any(&self.underlay, |underlay| underlay.number() == flow.state.underlay)
            && any(&self.ecn, |owner| owner.is_of(flow))
            && any(&self.limited_by, |limit| limit == flow.limit.name())
            && any(&self.with, |column| has(column))
    }
}

fn any<T>(alternatives: &[T], matches: impl Fn(&T) -> bool) -> bool {
    alternatives.is_empty() || alternatives.iter().any(matches)
}

impl EcnOwner {
    fn is_of(self, flow: &FlowView) -> bool {
        let [guest, fabric] =
            [flow.state.ecn_guest(), flow.state.ecn_fabric()].map(|ecn| ecn != "no");
        match self {
            Self::Fabric => fabric,
            Self::Guest => guest,
            Self::Nobody => !guest && !fabric,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::key_of;
    use crate::testing::flow;

    #[test]
    fn all_fields_and_any_of_their_alternatives() {
        let mut flow = flow("10.1.0.1:5001", "192.0.2.9:80");
        flow.state.0.marks = 3;
        let end = |text: &str| text.parse().expect("an end");
        let underlay = |name: &str| name.parse().expect("an underlay");
        let counter = |key| key_of(key).expect("a column");
        let none = Filter::default;
        for (filter, is_admitted) in [
            (none(), true),
            (Filter { guest: vec![end(":5001")], ..none() }, true),
            (Filter { guest: vec![end(":5002")], ..none() }, false),
            (Filter { guest: vec![end(":5002"), end("10.0.0.0/8")], ..none() }, true),
            (Filter { peer: vec![end("192.0.2.9")], ..none() }, true),
            (
                Filter { guest: vec![end("10.0.0.0/8")], peer: vec![end("192.0.2.10")], ..none() },
                false,
            ),
            (Filter { stage: vec!["established".into(), "closed".into()], ..none() }, true),
            (Filter { stage: vec!["closed".into()], ..none() }, false),
            (Filter { underlay: vec![underlay("cubic"), underlay("dctcp")], ..none() }, true),
            (Filter { underlay: vec![underlay("cubic")], ..none() }, false),
            (Filter { ecn: vec![EcnOwner::Fabric], ..none() }, true),
            (Filter { ecn: vec![EcnOwner::Guest], ..none() }, false),
            (Filter { ecn: vec![EcnOwner::Nobody], ..none() }, false),
            (Filter { limited_by: vec!["underlay".into()], ..none() }, true),
            (Filter { limited_by: vec!["guest".into()], ..none() }, false),
            (Filter { with: vec![counter("marks")], ..none() }, true),
            (Filter { with: vec![counter("reductions")], ..none() }, false),
            (Filter { with: vec![counter("reductions"), counter("marks")], ..none() }, true),
        ] {
            assert_eq!(filter.admits(&flow), is_admitted);
        }
    }
}
