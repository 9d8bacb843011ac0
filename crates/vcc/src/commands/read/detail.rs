//! One connection, with all that is known of it.

use vcc_capture::{Cause, Stall, Syn};
use vcc_command::table;
use vcc_view::Unit::Text;
use vcc_view::{Value, rows, units};

use super::columns::{MORE, Row, ecn_flags};

pub fn text(row: &Row) -> String {
    let id = row.flow.id();
    let unknown = Text.alone(&Value::Unknown);
    // The longest stall has a line of its own.
    let more = MORE.iter().filter(|column| !column.key.starts_with("longest_stall"));
    let more = more.map(|column| (column.name, column.unit.alone(&(column.value)(row))));
    let mut lines: Vec<_> =
        rows(&row.flow).into_iter().chain(more).filter(|(_, value)| *value != unknown).collect();
    for (name, syn) in [("Guest's SYN", row.life.guest_syn), ("Peer's SYN", row.life.peer_syn)] {
        lines.extend(syn.map(|syn| (name, syn_text(&syn))));
    }
    lines.push(("Limited by, over time", limits(row)));
    if let Some(guess) = &row.guess {
        lines.push(("Why this overlay", guess.reasons.join("; ")));
    }
    if let Some(stall) = row.life.stalls.longest {
        lines.push(("The longest stall", stall_text(&stall)));
    }
    if row.life.is_joined {
        let text = "not in the file: windows and scales are unknown, the MSS and SACK are assumed";
        lines.push(("SYN", text.into()));
    }
    format!("{} to {}, in {}:\n{}", id.guest, id.peer, row.flow.port, table::pairs(lines))
}

fn syn_text(syn: &Syn) -> String {
    let number = |name: &str, value: Option<u16>| match value {
        Some(value) => format!("{name} {value}"),
        None => format!("no {name}"),
    };
    let option = |name: &str, is_there: bool| {
        if is_there { name.to_owned() } else { format!("no {name}") }
    };
    let ecn = match ecn_flags(syn) {
        flags if flags.is_empty() => "no ECN".to_owned(),
        flags => format!("ECN ({flags})"),
    };
    let parts = [
        number("MSS", syn.mss_bytes),
        number("scale", syn.scale.map(u16::from)),
        option("SACK", syn.permits_sack),
        option("timestamps", syn.has_timestamps),
        ecn,
    ];
    parts.join(", ")
}

fn limits(row: &Row) -> String {
    let mut held: Vec<_> = row.limits().filter(|(_, share)| *share > 0.0).collect();
    held.sort_by(|one, other| other.1.total_cmp(&one.1));
    let share = |(name, share): &(&str, f64)| format!("{name} {:.1} %", share * 100.0);
    let shares: Vec<String> = held.iter().map(share).collect();
    if shares.is_empty() { "no time has passed".into() } else { shares.join(", ") }
}

fn stall_text(stall: &Stall) -> String {
    let time = |ns: u64| units::duration(ns as f64 / 1e3);
    let cause = match stall.cause {
        Cause::Handshake => "the handshake was not answered",
        Cause::Window => "the peer's window was closed",
        Cause::Loss => "the guest's retransmission ended it",
        Cause::LateAck => "the peer's ACK came late",
    };
    format!("{} from {} on: {cause}", time(stall.lasted_ns), time(stall.began_ns))
}
