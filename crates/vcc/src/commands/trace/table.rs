//! A trace as comma-separated values, a line per ACK. An empty cell: unknown, or none.

use std::collections::HashMap;
use std::fmt::Display;
use std::io::{self, Write};

use vcc_command::table;
use vcc_engine::{FlowState, Params, sys};
use vcc_net::seq::advance;
use vcc_port::{Flow, FlowId, TraceEvent};

struct Column {
    name: &'static str,
    /// For `--help` and docs/enforcement.md.
    meaning: &'static str,
    cell: fn(&Line) -> String,
}

/// What a line is made of.
struct Line<'a> {
    /// Since the first line.
    time_s: f64,
    flow: &'a Flow,
    /// Since the first line of the connection.
    acked_bytes: u64,
    params: &'a Params,
}

macro_rules! columns {
    ($($name:literal, $meaning:literal, $cell:expr;)*) => {
        const COLUMNS: &[Column] =
            &[$(Column { name: $name, meaning: $meaning, cell: $cell }),*];
    };
}

columns! {
    "time_s", "since the first line", |line| format!("{:.6}", line.time_s);
    "guest", "the guest's end", |line| line.flow.guest.to_string();
    "peer", "the peer's end", |line| line.flow.peer.to_string();
    "vlan", "the 802.1Q tag", |line| or_nothing(line.flow.vlan);
    "acked_bytes", "acknowledged since the connection's first line",
        |line| line.acked_bytes.to_string();
    "snd_una", "SND.UNA (RFC 9293): the first sequence number of the guest that is not acknowledged",
        |line| line.flow.state.snd_una.to_string();
    "snd_nxt", "SND.NXT: the next sequence number that the guest sends",
        |line| line.flow.state.snd_nxt.to_string();
    "flight_bytes", "sent by the guest and not yet acknowledged",
        |line| line.flow.state.flight_bytes().to_string();
    "mss_bytes", "the payload of a full segment", |line| line.flow.state.mss_bytes.to_string();
    "cwnd_segs", "the congestion window of the underlay",
        |line| or_nothing(line.flow.state.cwnd());
    "ssthresh_segs", "the slow start threshold of the underlay", |line| or_nothing(line.flow.state.ssthresh_segs());
    "alpha", "of the DCTCP family: the estimate of the fraction of marked bytes (RFC 8257)",
        |line| or_nothing(line.flow.state.alpha().map(|alpha| format!("{alpha:.4}")));
    "window_shown_bytes", "the window shown to the guest",
        |line| or_nothing(line.flow.state.window_shown_bytes());
    "window_received_bytes", "the peer's own window, which it replaced",
        |line| or_nothing(line.flow.state.window_received_bytes());
    "srtt_us", "the smoothed round-trip time (RFC 6298)",
        |line| or_nothing(line.flow.state.srtt_us());
    "rttvar_us", "RTTVAR, the variation of the round-trip time (RFC 6298)",
        |line| or_nothing(line.flow.state.srtt_us().map(|_| line.flow.state.rttvar_us4 / 4));
    "rto_us", "the retransmission timeout (RFC 6298)", |line| line.flow.state.rto_us(line.params).to_string();
    "fabric_delay_us", "the time that fabric and peer take to answer, without the delay of delayed ACKs",
        |line| or_nothing(line.flow.state.fabric_delay_us());
    "guest_delay_us", "the time that the guest takes to answer a segment",
        |line| or_nothing(line.flow.state.guest_delay_us());
    "needless", "segments so far that the guest retransmitted although their acknowledgement had reached it",
        |line| line.flow.state.needless.to_string();
    "ca_state", "`open`, `cwr` (reducing for marks), `recovery` (for a loss), `loss` (after a timeout)",
        |line| ca_state(&line.flow.state).to_owned();
    "dupacks", "duplicate ACKs in a row; lowered, not cleared, during a recovery",
        |line| line.flow.state.dupacks.to_string();
    "marks", "ACKs and reports so far that carried congestion marks",
        |line| line.flow.state.marks.to_string();
    "reductions", "reductions of the window so far", |line| line.flow.state.reductions.to_string();
    "retransmissions", "segments that the guest retransmitted so far, probes included",
        |line| line.flow.state.retransmissions.to_string();
    "heard_ect0_bytes",
        "the far end's counter of bytes that arrived as ECT(0), if it reports",
        |line| heard(&line.flow.state, line.flow.state.heard.ect0_bytes);
    "heard_ce_bytes", "the far end's counter of bytes that arrived as CE",
        |line| heard(&line.flow.state, line.flow.state.heard.ce_bytes);
}

/// The help of the columns in `--help`.
pub fn help() -> String {
    let lines =
        table::pairs(COLUMNS.iter().map(|column| (column.name, column.meaning.replace('`', ""))));
    format!("Columns, empty where unknown or not applicable:\n{lines}")
}

pub struct Csv<W> {
    to: W,
    params: Params,
    began_us: Option<u64>,
    flows: HashMap<FlowId, Progress>,
}

/// The bytes that were acknowledged since the first event, across wraps of the sequence number.
struct Progress {
    snd_una: u32,
    acked_bytes: u64,
}

impl<W: Write> Csv<W> {
    pub fn begin(mut to: W, params: Params) -> io::Result<Self> {
        let names: Vec<&str> = COLUMNS.iter().map(|column| column.name).collect();
        writeln!(to, "{}", names.join(","))?;
        to.flush()?;
        Ok(Self { to, params, began_us: None, flows: HashMap::new() })
    }

    pub fn line(&mut self, event: &TraceEvent) -> io::Result<()> {
        let began_us = *self.began_us.get_or_insert(event.at_us);
        // Events of two CPUs may be slightly out of order.
        let time_s = event.at_us.saturating_sub(began_us) as f64 / 1e6;
        let acked_bytes = self.acked_bytes(event);
        let line = Line { time_s, flow: &event.flow, acked_bytes, params: &self.params };
        let cells: Vec<String> = COLUMNS.iter().map(|column| (column.cell)(&line)).collect();
        writeln!(self.to, "{}", cells.join(","))?;
        Ok(())
    }

    pub fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }

    fn acked_bytes(&mut self, event: &TraceEvent) -> u64 {
        let snd_una = event.flow.state.snd_una;
        let progress =
            self.flows.entry(event.flow.id()).or_insert(Progress { snd_una, acked_bytes: 0 });
        // Only forward: a new connection may begin between the same ends.
        progress.acked_bytes += u64::from(advance(progress.snd_una, snd_una));
        progress.snd_una = snd_una;
        progress.acked_bytes
    }
}

fn heard(state: &FlowState, bytes: u32) -> String {
    or_nothing(state.has(sys::FLOW_FEEDBACK_HEARD).then_some(bytes))
}

fn ca_state(state: &FlowState) -> &'static str {
    match state.ca_state.into() {
        sys::CA_OPEN => "open",
        sys::CA_CWR => "cwr",
        sys::CA_RECOVERY => "recovery",
        sys::CA_LOSS => "loss",
        _ => "",
    }
}

fn or_nothing(value: Option<impl Display>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use vcc_engine::Underlay;
    use vcc_testing::documents::Document;

    use super::*;

    fn event(at_us: u64, state: sys::vcc_flow) -> TraceEvent {
        let [guest, peer] = ["192.0.2.1:40000", "[2001:db8::1]:80"];
        let flow = Flow {
            guest: guest.parse().expect("an end"),
            peer: peer.parse().expect("an end"),
            vlan: Some(5),
            inside: false,
            state: FlowState(state),
        };
        TraceEvent { at_us, flow }
    }

    #[test]
    fn a_line_says_what_the_header_promises() {
        let dctcp: Underlay = "dctcp".parse().expect("an underlay");
        let state = sys::vcc_flow {
            flags: sys::FLOW_WINDOW_SHOWN | sys::FLOW_FEEDBACK_HEARD,
            stage: sys::STAGE_ESTABLISHED as u8,
            underlay: dctcp.number(),
            snd_una: u32::MAX - 99,
            snd_nxt: 2900,
            mss_bytes: 1440,
            cc: sys::vcc_cc_state {
                cwnd_segs: 12,
                ssthresh_segs: 7,
                own: [512, 0, 0, 0],
                ..Default::default()
            },
            window_shown: 540,
            wscale_shown: 5,
            window_received: 2,
            wscale_peer: 10,
            srtt_us8: 8 * 1500,
            rttvar_us4: 4 * 300,
            ca_state: sys::CA_CWR as u8,
            dupacks: 1,
            marks: 4,
            reductions: 3,
            retransmissions: 2,
            heard: sys::vcc_feedback { ect0_bytes: 1001, ce_bytes: 1440 },
            ..Default::default()
        };
        let mut text = Vec::new();
        let mut csv = Csv::begin(&mut text, Params::default()).expect("a header");
        csv.line(&event(5_000_000, state)).expect("a line");
        let later = sys::vcc_flow { snd_una: 1340, flags: 0, srtt_us8: 0, ..state };
        csv.line(&event(6_500_001, later)).expect("a line");
        drop(csv);

        let text = String::from_utf8(text).expect("UTF-8");
        let rows: Vec<HashMap<&str, &str>> = text
            .lines()
            .skip(1)
            .map(|line| COLUMNS.iter().map(|it| it.name).zip(line.split(',')).collect())
            .collect();
        let counts = text.lines().map(|line| line.split(',').count());
        assert!(counts.eq([COLUMNS.len(); 3]), "{text}");
        for (column, first, second) in [
            ("time_s", "0.000000", "1.500001"),
            ("guest", "192.0.2.1:40000", "192.0.2.1:40000"),
            ("peer", "[2001:db8::1]:80", "[2001:db8::1]:80"),
            ("vlan", "5", "5"),
            ("acked_bytes", "0", "1440"),
            ("snd_una", "4294967196", "1340"),
            ("snd_nxt", "2900", "2900"),
            ("flight_bytes", "3000", "1560"),
            ("mss_bytes", "1440", "1440"),
            ("cwnd_segs", "12", "12"),
            ("ssthresh_segs", "7", "7"),
            ("alpha", "0.5000", "0.5000"),
            ("window_shown_bytes", "17280", ""),
            ("window_received_bytes", "2048", ""),
            ("srtt_us", "1500", ""),
            ("rttvar_us", "300", ""),
            ("rto_us", "201500", "1000000"),
            ("ca_state", "cwr", "cwr"),
            ("dupacks", "1", "1"),
            ("marks", "4", "4"),
            ("reductions", "3", "3"),
            ("retransmissions", "2", "2"),
            ("heard_ect0_bytes", "1001", ""),
            ("heard_ce_bytes", "1440", ""),
        ] {
            assert_eq!((rows[0][column], rows[1][column]), (first, second), "{column}");
        }
    }

    #[test]
    fn the_table_in_the_documentation_is_the_list_of_columns() {
        let page = Document::new("docs/enforcement.md", "cargo test -p vcc --bin vcc trace::table");
        let row = |column: &Column| format!("| `{}` | {} |\n", column.name, column.meaning);
        let rows: String = COLUMNS.iter().map(row).collect();
        page.assert_generated(
            "columns of a trace",
            &format!("\n| column | |\n|---|---|\n{rows}\n"),
        );
    }
}
