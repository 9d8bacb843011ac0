//! What files have shown besides their connections, as text and as JSON.

use std::collections::BTreeMap;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use vcc_capture::{Point, Replayed, Vantage};
use vcc_engine::Underlay;
use vcc_policy::{Policy, Rule};
use vcc_port::counters;
use vcc_view::units;

use super::columns::Row;
use super::file::Outcome;
use super::hosts::Pair;

#[derive(Serialize)]
pub struct Document<'a> {
    pub files: &'a [Outcome],
    /// Either the connections, or the sums over those of each pair of hosts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flows: Option<&'a [Row]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosts: Option<&'a [Pair]>,
}

const NS_PER_S: f64 = 1e9;

/// Segments that were not translated, by reason, summed over the ports of a file.
fn untranslated(seen: &Replayed) -> impl Iterator<Item = (vcc_port::Counter, u64)> {
    let sum = |reason| seen.counters.iter().map(|counters| counters.get(reason)).sum();
    (0..).zip(counters::ALL).map(move |(reason, counter)| (counter, sum(reason)))
}

/// In seconds.
fn span_s(seen: &Replayed) -> Option<f64> {
    seen.span_ns.map(|(first_ns, last_ns)| (last_ns - first_ns) as f64 / NS_PER_S)
}

impl Serialize for Outcome {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let seen = &self.seen;
        let counters: BTreeMap<&str, u64> =
            untranslated(seen).map(|(counter, value)| (counter.name, value)).collect();
        let first_s = seen.span_ns.map(|(first_ns, _)| first_ns as f64 / NS_PER_S);
        let mut file = to.serialize_struct("file", 16)?;
        file.serialize_field("file", &self.name)?;
        file.serialize_field("packets", &seen.packets)?;
        file.serialize_field("segments", &seen.segments)?;
        file.serialize_field("connections", &self.connections)?;
        file.serialize_field("first_time_s", &first_s)?;
        file.serialize_field("span_s", &span_s(seen))?;
        file.serialize_field("counters", &counters)?;
        file.serialize_field("segments_cut", &seen.cut)?;
        file.serialize_field("segments_of_others", &seen.others)?;
        file.serialize_field("packets_backwards", &seen.backwards)?;
        file.serialize_field("connections_left_out", &seen.left_out)?;
        file.serialize_field("connections_without_syn", &seen.unopened)?;
        let vantage = self.vantage.as_ref();
        let point = vantage.map(|vantage| vantage.point.name());
        file.serialize_field("captured_at", &point)?;
        file.serialize_field("guest_part", &vantage.map(|vantage| vantage.guest_part))?;
        file.serialize_field("captured_at_by", &vantage.map(|vantage| vantage.shown_by))?;
        file.serialize_field("problems", &self.problems)?;
        file.end()
    }
}

pub fn files(files: &[Outcome]) -> String {
    let mut text = String::new();
    for file in files {
        let seen = &file.seen;
        text += &format!(
            "{}: {} in {}, {}, {}\n",
            file.name,
            counted(seen.packets, "packet"),
            units::duration(span_s(seen).unwrap_or_default() * 1e6),
            counted(seen.segments, "TCP segment"),
            counted(file.connections as u64, "connection")
        );
        if let Some(vantage) = &file.vantage {
            text += &vantage_text(vantage);
        }
        let mut line = |count: u64, meaning: &str| {
            if count > 0 {
                text += &format!("{count:>12}  {meaning}\n");
            }
        };
        for (counter, count) in untranslated(seen) {
            line(count, meaning(&counter));
        }
        line(
            seen.unopened,
            "connections without a SYN in the file: their windows are unknown; without a SYN-ACK, the end with the \
             larger port is taken for the opener",
        );
        line(seen.left_out, "connections left out: --max-flows has the limit");
        line(seen.others, "left out: segments where --guest names neither end");
        line(
            seen.cut,
            "left out: TCP headers cut short: capture more of each packet (tcpdump -s 128)",
        );
        line(seen.backwards, "packets earlier than the one before them");
    }
    text
}

/// The connections or ends of each rule, in the policy's order.
pub fn rules(policy: &Policy, rows: &[Row], noun: &str) -> String {
    let line = |(index, rule): (usize, &Rule)| {
        let rows = rows.iter().filter(|row| usize::from(row.flow.state.rule) == index).count();
        let (mode, underlay) = (rule.treatment().mode(), rule.treatment().underlay());
        let rows = counted(rows as u64, noun);
        format!("rule {}, {underlay} in {mode} mode: {rows}\n", rule.name())
    };
    policy.rules().iter().enumerate().map(line).collect()
}

/// `underlay`: None if rules have theirs.
pub fn caveat(underlay: Option<Underlay>) -> String {
    let whose = underlay.map_or("the rules' underlays".into(), |it| it.to_string());
    format!(
        "\nThe windows, marks and reductions are those of {whose}, computed beside the connections. How the \
         guests would have\nanswered its windows is not known from a file.\n"
    )
}

/// Where that of a port is not true of a file.
fn meaning(counter: &vcc_port::Counter) -> &'static str {
    match counter.name {
        "unknown" => {
            "segments of connections that are not shown: the file has neither SYN nor data before them"
        }
        "not_ip" => "packets that are not IP",
        _ => counter.meaning,
    }
}

fn vantage_text(vantage: &Vantage) -> String {
    let Vantage { point, guest_part, shown_by, agreeing } = vantage;
    let place = match point {
        Point::Guest => "at the guest",
        Point::Between => "between guest and peer",
        Point::Peer => "at the peer, so round-trip times and losses on the path do not show",
    };
    format!(
        "captured {place}: {:.0} % of the handshake's round trip is on the guest's side ({agreeing} of {} agree)\n",
        guest_part * 100.0,
        counted(*shown_by as u64, "connection"),
    )
}

fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
