//! A trace as comma-separated values, a line per ACK. An empty cell: unknown, or none.

use std::collections::HashMap;
use std::fmt::Display;
use std::io::{self, Write};

use vcc_engine::{FlowState, Params, sys};
use vcc_port::{FlowId, TraceEvent};

const COLUMNS: [&str; 24] = [
    "time_s",
    "guest",
    "peer",
    "vlan",
    "acked_bytes",
    "snd_una",
    "snd_nxt",
    "flight_bytes",
    "mss_bytes",
    "cwnd_segs",
    "ssthresh_segs",
    "alpha",
    "window_shown_bytes",
    "window_received_bytes",
    "srtt_us",
    "rttvar_us",
    "rto_us",
    "ca_state",
    "dupacks",
    "marks",
    "reductions",
    "retransmissions",
    "heard_ect0_bytes",
    "heard_ce_bytes",
];

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
        writeln!(to, "{}", COLUMNS.join(","))?;
        to.flush()?;
        Ok(Self { to, params, began_us: None, flows: HashMap::new() })
    }

    pub fn line(&mut self, event: &TraceEvent) -> io::Result<()> {
        let began_us = *self.began_us.get_or_insert(event.at_us);
        // Events of two CPUs may be slightly out of order.
        let time_s = event.at_us.saturating_sub(began_us) as f64 / 1e6;
        let acked_bytes = self.acked_bytes(event);
        let cells = cells(event, &self.params);
        writeln!(self.to, "{time_s:.6},{},{acked_bytes},{}", place(event), cells.join(","))?;
        Ok(())
    }

    pub fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }

    fn acked_bytes(&mut self, event: &TraceEvent) -> u64 {
        let snd_una = event.flow.state.snd_una;
        let progress =
            self.flows.entry(event.flow.id()).or_insert(Progress { snd_una, acked_bytes: 0 });
        let step = snd_una.wrapping_sub(progress.snd_una);
        // Only forward: a new connection may begin between the same ends.
        if step < 1 << 31 {
            progress.acked_bytes += u64::from(step);
        }
        progress.snd_una = snd_una;
        progress.acked_bytes
    }
}

fn place(event: &TraceEvent) -> String {
    let flow = &event.flow;
    format!("{},{},{}", flow.guest, flow.peer, or_nothing(flow.vlan))
}

fn cells(event: &TraceEvent, params: &Params) -> [String; 19] {
    let state = &event.flow.state;
    [
        state.snd_una.to_string(),
        state.snd_nxt.to_string(),
        state.flight_bytes().to_string(),
        state.mss_bytes.to_string(),
        or_nothing(state.cwnd_segs()),
        or_nothing(state.ssthresh_segs()),
        or_nothing(state.alpha().map(|alpha| format!("{alpha:.4}"))),
        or_nothing(state.window_shown_bytes()),
        or_nothing(state.window_received_bytes()),
        or_nothing(state.srtt_us()),
        or_nothing(state.srtt_us().map(|_| state.rttvar_us4 / 4)),
        state.rto_us(params).to_string(),
        ca_state(state).to_owned(),
        state.dupacks.to_string(),
        state.marks.to_string(),
        state.reductions.to_string(),
        state.retransmissions.to_string(),
        heard(state, state.heard.ect0_bytes),
        heard(state, state.heard.ce_bytes),
    ]
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
    use vcc_port::Flow;

    use super::*;

    fn event(at_us: u64, state: sys::vcc_flow) -> TraceEvent {
        let [guest, peer] = ["192.0.2.1:40000", "[2001:db8::1]:80"];
        let flow = Flow {
            guest: guest.parse().expect("an end"),
            peer: peer.parse().expect("an end"),
            vlan: Some(5),
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
            .map(|line| COLUMNS.into_iter().zip(line.split(',')).collect())
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
}
