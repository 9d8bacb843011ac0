//! Which flows are shown.

use clap::ValueEnum;
use clap::builder::PossibleValuesParser;
use vcc_engine::{Stage, Underlay};

use super::{FlowView, Limit};
use crate::end::End;

/// Alternatives are separated by commas; what several options say holds together.
#[derive(clap::Args, Clone, Default)]
#[command(next_help_heading = "Which connections")]
pub struct Filter {
    /// Guests at ADDRESS, ADDRESS:PORT, :PORT, or in the network ADDRESS/BITS
    #[arg(long, value_name = "END", value_delimiter = ',')]
    guest: Vec<End>,

    /// Peers, likewise
    #[arg(long, value_name = "END", value_delimiter = ',')]
    peer: Vec<End>,

    /// How far the connection is
    #[arg(long, value_name = "STAGE", value_delimiter = ',', value_parser = PossibleValuesParser::new(Stage::ALL.map(Stage::name)))]
    stage: Vec<String>,

    /// The congestion control that the fabric sees
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    underlay: Vec<Underlay>,

    /// Whose ECN is on: the fabric's by vcc, the guest's own, or nobody's
    #[arg(long, value_name = "WHOSE", value_delimiter = ',')]
    ecn: Vec<Ecn>,

    /// What limits the rate at present
    #[arg(long, value_name = "WHAT", value_delimiter = ',', value_parser = PossibleValuesParser::new(Limit::ALL.map(Limit::name)))]
    limited_by: Vec<String>,

    /// With any of this: counters above 0
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    with: Vec<Event>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Ecn {
    Fabric,
    Guest,
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Event {
    Marks,
    Reductions,
    Retransmissions,
    Drops,
    Policed,
    Forged,
}

impl Filter {
    pub fn admits(&self, flow: &FlowView) -> bool {
        let (_, id) = &flow.key;
        any(&self.guest, |end| end.is(id.guest))
            && any(&self.peer, |end| end.is(id.peer))
            && any(&self.stage, |stage| stage == flow.stage)
            && any(&self.underlay, |underlay| underlay.name() == flow.underlay)
            && any(&self.ecn, |whose| whose.is_of(flow))
            && any(&self.limited_by, |limit| limit == flow.limited_by)
            && any(&self.with, |event| event.has_happened(flow))
    }
}

/// Without alternatives there is nothing to fail.
fn any<T>(alternatives: &[T], holds: impl Fn(&T) -> bool) -> bool {
    alternatives.is_empty() || alternatives.iter().any(holds)
}

impl Ecn {
    fn is_of(self, flow: &FlowView) -> bool {
        let (guest, fabric) = (flow.ecn_guest != "no", flow.ecn_fabric != "no");
        match self {
            Self::Fabric => fabric,
            Self::Guest => guest,
            Self::None => !guest && !fabric,
        }
    }
}

impl Event {
    fn has_happened(self, flow: &FlowView) -> bool {
        0 < match self {
            Self::Marks => flow.marks,
            Self::Reductions => flow.reductions,
            Self::Retransmissions => flow.retransmissions,
            Self::Drops => flow.drops,
            Self::Policed => flow.policed.into(),
            Self::Forged => flow.forged.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::seen::testing::flow;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        filter: Filter,
    }

    #[test]
    fn options_hold_together_and_alternatives_apart() {
        let mut flow = flow("10.1.0.1:5001", "192.0.2.9:80");
        (flow.stage, flow.underlay) = ("established", "dctcp".into());
        (flow.ecn_guest, flow.ecn_fabric) = ("no", "yes");
        (flow.limited_by, flow.marks) = ("underlay", 3);
        for (line, admitted) in [
            ("", true),
            ("--guest :5001", true),
            ("--guest :5002", false),
            ("--guest :5002,10.0.0.0/8", true),
            ("--guest 10.0.0.0/8:5001 --peer 192.0.2.9", true),
            ("--guest 10.0.0.0/8 --peer 192.0.2.10", false),
            ("--stage established,closed", true),
            ("--stage closed", false),
            ("--underlay cubic,dctcp", true),
            ("--underlay cubic", false),
            ("--ecn fabric", true),
            ("--ecn guest", false),
            ("--ecn none", false),
            ("--limited-by underlay", true),
            ("--limited-by guest", false),
            ("--with marks", true),
            ("--with reductions", false),
            ("--with reductions,marks", true),
        ] {
            let words = std::iter::once("vcc").chain(line.split_whitespace());
            let filter = Line::parse_from(words).filter;
            assert_eq!(filter.admits(&flow), admitted, "{line}");
        }
        for bad in ["--stage open", "--underlay vegas", "--limited-by fate", "--guest 10"] {
            let words = std::iter::once("vcc").chain(bad.split_whitespace());
            assert!(Line::try_parse_from(words).is_err(), "{bad}");
        }
    }
}
