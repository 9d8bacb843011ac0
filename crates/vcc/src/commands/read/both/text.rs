//! What two files have shown besides their table.

use vcc_capture::both::{
    Alone, ByFace, Change, Counts, Delays, Direction, Face, Seen, WAITING_MAX_BYTES,
};
use vcc_view::units;

use super::Report;

const NS_PER_US: f64 = 1000.0;

pub fn text(report: &Report) -> String {
    let total = &report.outcome.total;
    let mut text = String::new();
    for face in Face::BOTH {
        text += &seen(&report.files[face], &report.outcome.seen[face]);
    }
    text += &unopened(report);
    text += &payload(total);
    text += &changes(total);
    text += &alone(total);
    text += &delays(report.outcome.delays);
    text += &errors(report);
    text
}

fn line(count: u64, meaning: &str) -> String {
    if count > 0 { format!("{count:>12}  {meaning}\n") } else { String::new() }
}

fn bytes(bytes: u64) -> String {
    units::BYTES.write(bytes as f64)
}

fn seen(file: &str, seen: &Seen) -> String {
    let Seen { packets, segments, unread, cut, others, left_out } = *seen;
    format!("{file}: {packets} packets, {segments} TCP segments\n")
        + &line(unread, "left out: not TCP, fragments, or malformed")
        + &line(cut, "left out: TCP headers cut short: capture more of each packet (tcpdump -s 0)")
        + &line(others, "left out: segments where --guest names neither end")
        + &line(left_out, "left out: segments of connections beyond the limit of --max-flows")
}

fn unopened(report: &Report) -> String {
    let without_syn = report.outcome.connections.iter().filter(|it| !it.has_syn).count();
    let meaning =
        "connections without their SYN in the files: the scales of their windows are unknown";
    line(without_syn as u64, meaning)
}

fn payload(total: &Counts) -> String {
    if total.pairs + total.copies == 0 {
        return "\nNo segment is in both files: are they of one port, and of the same time?\n"
            .to_owned();
    }
    let payload = &total.payload;
    let equality = match (payload.compared_bytes(), payload.different_bytes) {
        (0, _) => "none could be compared".to_owned(),
        (compared, 0) => format!("{} compared, all equal", bytes(compared)),
        (compared, different) => {
            format!("{} compared, {} differ", bytes(compared), bytes(different))
        }
    };
    let cut = match payload.uncaptured_bytes {
        0 => String::new(),
        cut => format!("; {} not in both files: capture whole packets (tcpdump -s 0)", bytes(cut)),
    };
    let copies = "segments compared by payload alone: two copies of the same bytes, or changed under hold or split";
    format!("\nPayload: {equality}{cut}\n{}", line(total.copies, copies))
}

fn changes(total: &Counts) -> String {
    let lines = |is_of_vcc: bool| -> String {
        let changes = total.changes.iter().filter(|(change, _)| change.is_of_vcc() == is_of_vcc);
        changes.map(|(change, count)| line(*count, &meaning(*change))).collect()
    };
    let heading = |heading: &str, lines: String| match lines.is_empty() {
        true => lines,
        false => format!("\n{heading}:\n{lines}"),
    };
    heading("Changes that vcc makes", lines(true)) + &heading("Changes by others", lines(false))
}

fn meaning(change: Change) -> String {
    let meaning = match change {
        Change::WindowLowered => "windows lowered toward the guest",
        Change::WindowRaised => {
            "windows raised toward the guest: only a port under hold or split shows more than the receiver's window"
        }
        Change::WindowUnscaled => {
            "windows changed toward the guest, by unknown scales: the handshake is not in both files"
        }
        Change::Scale { from, to } => {
            return format!("window scales of {from} shown to the guest as {to}");
        }
        Change::Mss { from, to } => {
            return format!("MSS options of {from} bytes shown to the guest as {to} bytes");
        }
        Change::MssOther => "MSS of other sizes",
        Change::EctSet => "ECN field: ECT set",
        Change::EctCleared => "ECN field: ECT cleared",
        Change::EctChanged => "ECN field: ECT(0) and ECT(1) exchanged",
        Change::CeCleared => "ECN field: CE cleared",
        Change::EceAdded => "ECE set",
        Change::EceRemoved => "ECE cleared",
        Change::CwrAdded => "CWR set",
        Change::CwrRemoved => "CWR cleared",
        Change::AeAdded => "AE set",
        Change::AeRemoved => "AE cleared",
        Change::PshAdded => "PSH set",
        Change::PshRemoved => "PSH cleared",
        Change::OptionAdded { kind } => return format!("options added: {}", option(kind)),
        Change::OptionRemoved { kind } => return format!("options removed: {}", option(kind)),
        Change::CeSet => "ECN field: CE set, by a queue between the two captures",
        Change::Hops => "TTL or hop limit, by a router between the two captures",
    };
    meaning.to_owned()
}

fn option(kind: u8) -> String {
    let name = match kind {
        30 => " (MPTCP)",
        172 => " (AccECN, or a report of vcc)",
        174 => " (AccECN)",
        253 => " (an offer or a report of vcc)",
        _ => "",
    };
    format!("kind {kind}{name}")
}

fn alone(total: &Counts) -> String {
    let mut lines = String::new();
    for direction in Direction::BOTH {
        for face in Face::BOTH {
            let Alone { segments, payload_bytes } = total.alone[direction][face];
            let payload = match payload_bytes {
                0 => String::new(),
                payload_bytes => format!(" ({} of payload)", bytes(payload_bytes)),
            };
            let reports = match (total.reports[direction], face) {
                (0, _) | (_, Face::Guest) => String::new(),
                (reports, Face::Fabric) => format!(" ({reports} of them reports of vcc)"),
            };
            let (what, why) = place(direction, face);
            lines += &line(segments, &format!("{what}{payload}: {why}{reports}"));
        }
    }
    let given_up = format!(
        "not compared: one file is more than {} behind the other",
        bytes(WAITING_MAX_BYTES as u64)
    );
    lines += &line(total.given_up.segments, &given_up);
    if lines.is_empty() { lines } else { format!("\nSegments on one side only:\n{lines}") }
}

/// Where a segment is, and the reasons why it is not on the other side.
fn place(direction: Direction, face: Face) -> (&'static str, &'static str) {
    const DROPPED: &str = "dropped by vcc or on the way, or missing in the other capture";
    const SENT: &str = "sent by vcc, or missing in the other capture";
    match (direction, face) {
        (Direction::FromGuest, Face::Guest) => ("from the guest, on its side", DROPPED),
        (Direction::FromGuest, Face::Fabric) => ("from the guest, on the fabric's side", SENT),
        (Direction::ToGuest, Face::Fabric) => ("to the guest, on the fabric's side", DROPPED),
        (Direction::ToGuest, Face::Guest) => ("to the guest, on its side", SENT),
    }
}

fn delays(delays: Delays) -> String {
    let duration = |ns: i64| units::duration(ns as f64 / NS_PER_US);
    match delays {
        Delays::Agreed(median) => format!(
            "\nMedian time from one side to the other: {} from the guest, {} to it\n",
            duration(median.from_guest),
            duration(median.to_guest)
        ),
        Delays::Apart(ahead_ns) => {
            let side = if ahead_ns < 0 { "guest" } else { "fabric" };
            format!(
                "\nThe clock of the {side}'s side is about {} ahead, so the time from one side to the other is \
                 unknown\n",
                duration(ahead_ns.saturating_abs())
            )
        }
        Delays::Reversed => {
            "\nSegments reach the fabric's side before they leave the guest's: exchange the files, or name the \
             guests by --guest\n"
                .to_owned()
        }
        Delays::Unknown => String::new(),
    }
}

fn errors(report: &Report) -> String {
    let (total, differences) = (&report.outcome.total, &report.outcome.differences);
    let places = ByFace { guest: &*report.places.guest, fabric: &*report.places.fabric };
    let mut text = match total.errors {
        0 => return format!("\n{}", well(total)),
        1 => "\n1 difference that vcc does not make:\n".to_owned(),
        errors => format!("\n{errors} differences that vcc does not make:\n"),
    };
    for difference in differences {
        text += &format!("error: {}\n", difference.line(places));
    }
    let more = total.errors - differences.len() as u64;
    if more > 0 {
        text += &format!("and {more} more\n");
    }
    text
}

fn well(total: &Counts) -> &'static str {
    match total.pairs {
        0 => "",
        _ => "No differences other than those in docs/translation.md\n",
    }
}
