//! The measurements of all rounds.

use vcc_command::table::{Align, Table};
use vcc_results::report::bench::{Figures, Spread};

use super::turn::Turn;

/// Neighbouring turns, without and with the flood.
pub struct Pair {
    pub quiet: Turn,
    pub flooded: Turn,
}

pub struct Round {
    /// With vcc at the ports.
    pub with: Pair,
    pub without: Pair,
}

pub fn from_rounds(rounds: &[Round]) -> Vec<Figures> {
    let of = |name: &str, what: &str, unit: &str, value: &dyn Fn(&Round) -> f64| Figures {
        name: name.into(),
        what: what.into(),
        value: Spread::from_samples(rounds.iter().map(value).collect()),
        unit: unit.into(),
    };
    vec![
        of("syns", "SYNs a minute", "", &|it| it.with.flooded.syns_a_minute),
        of("paced", "goodput of the others at a rate", "Gbit/s", &|it| {
            it.with.quiet.paced_bps / 1e9
        }),
        of("paced_ratio", "flooded over quiet, with vcc", "", &|it| paced(&it.with)),
        of("paced_without", "flooded over quiet, without", "", &|it| paced(&it.without)),
        of("greedy", "goodput of the others as fast as they can", "Gbit/s", &|it| {
            it.with.quiet.greedy_bps / 1e9
        }),
        of("greedy_ratio", "flooded over quiet, with vcc", "", &|it| greedy(&it.with)),
        of("greedy_without", "flooded over quiet, without", "", &|it| greedy(&it.without)),
        of("connect", "a connection of the others, median, with vcc", "us", &|it| {
            at(50, &it.with.flooded)
        }),
        of("connect_p99", "99 in 100 of them", "us", &|it| at(99, &it.with.flooded)),
        of("connect_quiet", "median without the flood", "us", &|it| at(50, &it.with.quiet)),
        of("connect_without", "median with the flood, without vcc", "us", &|it| {
            at(50, &it.without.flooded)
        }),
        of("others", "connections of the others, old and new", "", &|it| {
            it.with.flooded.others.there as f64
        }),
        of("others_unknown", "that their ports do not know", "", &|it| {
            let others = it.with.flooded.others;
            (others.there - others.known) as f64
        }),
        of("own", "connections of the flooding guest, old and new", "", &|it| {
            it.with.flooded.own.there as f64
        }),
        of("own_unknown", "that its port does not know", "", &|it| {
            let own = it.with.flooded.own;
            (own.there - own.known) as f64
        }),
        of("half_open", "half-open connections there at the end", "", &|it| {
            f64::from(it.with.flooded.half_open)
        }),
    ]
}

fn paced(pair: &Pair) -> f64 {
    pair.flooded.paced_bps / pair.quiet.paced_bps
}

fn greedy(pair: &Pair) -> f64 {
    pair.flooded.greedy_bps / pair.quiet.greedy_bps
}

/// How long so many in a hundred new connections took at most, in microseconds.
fn at(percent: usize, turn: &Turn) -> f64 {
    let mut all = turn.connect_us.clone();
    all.sort_unstable_by(f64::total_cmp);
    all.get(all.len() * percent / 100).or(all.last()).copied().unwrap_or(0.0)
}

pub fn table(figures: &[Figures]) -> String {
    let mut table = Table::new([
        ("CASE", Align::Left),
        ("MEDIAN", Align::Right),
        ("P10", Align::Right),
        ("P90", Align::Right),
        ("UNIT", Align::Left),
        ("WHAT", Align::Left),
    ]);
    for Figures { name, what, value, unit } in figures {
        let number =
            |value: f64| if value >= 100.0 { format!("{value:.0}") } else { format!("{value:.3}") };
        table.row([
            name.clone(),
            number(value.median),
            number(value.p10),
            number(value.p90),
            unit.clone(),
            what.clone(),
        ]);
    }
    table.render()
}
