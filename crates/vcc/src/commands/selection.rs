//! Options that filter and sort flows.

use std::iter;

use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use vcc_engine::{Limit, Stage, Underlay};
use vcc_view::{Column, EcnOwner, End, Filter, Sort, counters, sortable};

/// Alternatives are separated by commas; a connection has to match all options
#[derive(clap::Args, Clone)]
#[command(next_help_heading = "Which connections")]
pub struct FilterArguments {
    /// Guests at ADDRESS, ADDRESS:PORT, :PORT, or in the network ADDRESS/BITS
    #[arg(long, value_name = "END", value_delimiter = ',')]
    guest: Vec<End>,

    #[command(flatten)]
    peers: PeerArguments,

    /// The congestion control that the fabric sees
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    underlay: Vec<Underlay>,

    /// What limits the rate at present
    #[arg(long, value_name = "LIMIT", value_delimiter = ',', value_parser = PossibleValuesParser::new(Limit::NAMES))]
    limited_by: Vec<String>,
}

/// Those that also apply where the guests and the underlay are given
#[derive(clap::Args, Clone)]
#[command(next_help_heading = "Which connections")]
pub struct PeerArguments {
    /// Peers at ADDRESS, ADDRESS:PORT, :PORT, or in the network ADDRESS/BITS
    #[arg(long, value_name = "END", value_delimiter = ',')]
    peer: Vec<End>,

    /// The state of the connection
    #[arg(long, value_name = "STAGE", value_delimiter = ',', value_parser = PossibleValuesParser::new(Stage::ALL.map(Stage::name)))]
    stage: Vec<String>,

    /// Who uses ECN: vcc toward the fabric, the guest, or neither
    #[arg(long, value_name = "OWNER", value_delimiter = ',')]
    ecn: Vec<Ecn>,

    /// With any of these counters above 0
    #[arg(long, value_name = "COUNTER", value_delimiter = ',', value_parser = counter_parser())]
    with: Vec<Counter>,
}

/// The order of connections, and how many are shown
#[derive(clap::Args, Clone)]
#[command(next_help_heading = "How they are shown")]
pub struct OrderArguments {
    /// Sort by this column: the largest number first, names from A to Z
    #[arg(long, value_name = "KEY", default_value = "place", value_parser = sort_parser())]
    sort: SortBy,

    #[command(flatten)]
    part: PartArguments,
}

/// Those that apply to any order
#[derive(clap::Args, Clone)]
#[command(next_help_heading = "How they are shown")]
pub struct PartArguments {
    /// Invert the order
    #[arg(long)]
    reverse: bool,

    /// Show at most N
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    top: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Ecn {
    Fabric,
    Guest,
    None,
}

#[derive(Clone, Copy)]
struct Counter(&'static Column);

/// None: by place.
#[derive(Clone, Copy)]
pub struct SortBy(pub Option<&'static Column>);

impl FilterArguments {
    pub fn filter(&self) -> Filter {
        Filter {
            guest: self.guest.clone(),
            underlay: self.underlay.clone(),
            limited_by: self.limited_by.clone(),
            ..self.peers.filter()
        }
    }
}

impl PeerArguments {
    pub fn filter(&self) -> Filter {
        let owner = |ecn: &Ecn| match ecn {
            Ecn::Fabric => EcnOwner::Fabric,
            Ecn::Guest => EcnOwner::Guest,
            Ecn::None => EcnOwner::Nobody,
        };
        Filter {
            peer: self.peer.clone(),
            stage: self.stage.clone(),
            ecn: self.ecn.iter().map(owner).collect(),
            with: self.with.iter().map(|counter| counter.0).collect(),
            ..Filter::default()
        }
    }
}

impl OrderArguments {
    pub fn sort(&self) -> Sort {
        self.part.directed(self.sort.sort())
    }

    pub fn is_by_rate(&self) -> bool {
        self.sort.0.is_some_and(|column| column.unit.is_rate())
    }

    pub fn keep_first<T>(&self, rows: &mut Vec<T>) {
        self.part.keep_first(rows);
    }
}

impl PartArguments {
    pub fn is_reversed(&self) -> bool {
        self.reverse
    }

    pub fn directed(&self, sort: Sort) -> Sort {
        if self.reverse { sort.reversed() } else { sort }
    }

    pub fn keep_first<T>(&self, rows: &mut Vec<T>) {
        rows.truncate(self.top.unwrap_or(usize::MAX));
    }
}

impl SortBy {
    pub fn from_name(name: &str) -> Self {
        Self(column(name))
    }

    pub fn sort(self) -> Sort {
        Sort::natural(self.0)
    }
}

fn counter_parser() -> impl TypedValueParser<Value = Counter> {
    let names = counters().map(|(name, column)| value(name, column));
    PossibleValuesParser::new(names).try_map(|name| column(&name).map(Counter).ok_or("no counter"))
}

pub fn sort_parser() -> impl TypedValueParser<Value = SortBy> {
    PossibleValuesParser::new(sort_names()).map(|name| SortBy::from_name(&name))
}

/// What [`SortBy::from_name`] takes.
pub fn sort_names() -> impl Iterator<Item = PossibleValue> {
    let place = PossibleValue::new(Sort::PLACE).help("by port, guest and peer");
    iter::once(place).chain(sortable().map(|(name, column)| value(name, column)))
}

fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|count| *count > 0)
        .ok_or_else(|| "must be a number of 1 or more".to_owned())
}

pub fn value<T>(name: &'static str, column: &Column<T>) -> PossibleValue {
    PossibleValue::new(name).help(column.plain_help())
}

fn column(name: &str) -> Option<&'static Column> {
    sortable().find(|(sort, _)| *sort == name).map(|(_, column)| column)
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use vcc_view::testing::flow;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        filter: FilterArguments,
        #[arg(long, default_value = "place", value_parser = sort_parser())]
        sort: SortBy,
    }

    fn parsed(line: &str) -> Result<Line, clap::Error> {
        Line::try_parse_from(std::iter::once("vcc").chain(line.split_whitespace()))
    }

    #[test]
    fn options_are_combined_and_their_alternatives_are_not() {
        let mut flow = flow("10.1.0.1:5001", "192.0.2.9:80");
        flow.state.0.marks = 3;
        for (line, is_admitted) in [
            ("", true),
            ("--guest :5002,10.0.0.0/8", true),
            ("--guest 10.0.0.0/8:5001 --peer 192.0.2.9", true),
            ("--guest 10.0.0.0/8 --peer 192.0.2.10", false),
            ("--stage established,closed", true),
            ("--underlay cubic", false),
            ("--ecn fabric", true),
            ("--ecn guest,none", false),
            ("--limited-by underlay", true),
            ("--with reductions", false),
            ("--with reductions,marks", true),
        ] {
            let filter = parsed(line).unwrap_or_else(|e| panic!("{line}: {e}")).filter.filter();
            assert_eq!(filter.admits(&flow), is_admitted, "{line}");
        }
        for bad in [
            "--stage open",
            "--underlay westwood",
            "--limited-by fate",
            "--guest 10",
            "--with snd-una",
            "--sort speed",
        ] {
            assert!(parsed(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn flows_are_sorted_by_columns_or_by_place() {
        let sort = |line| parsed(line).unwrap_or_else(|e| panic!("{line}: {e}")).sort.sort();
        assert_eq!(sort("").name(), "place");
        assert_eq!(sort("--sort limited-by").by.map(|column| column.key), Some("limited_by"));
        assert_eq!(sort("--sort rate").by.map(|column| column.key), Some("goodput_bits_per_s"));
    }
}
