use std::process::ExitCode;

use serde::Serialize;
use vcc_engine::{Feedback, FlowState, Underlay, sys};
use vcc_port::Flow;

use super::ports_of;
use crate::output;
use crate::table::{Align, Table};

/// Show the connections at ports
///
/// cwnd and ssthresh are the underlay's, in segments; the window is the one that the guest was
/// shown last, in bytes. Where the guest's ECN is its own, nothing is computed. Alpha is DCTCP's
/// mean of marks. Feedback says whether the far end is under vcc too and tells of marked bytes:
/// agreed, lost again, or none. Policed segments were dropped for they were beyond the window,
/// forged feedback was not believed. The JSON has more.
#[derive(clap::Args)]
pub struct Arguments {
    /// Ports to look at [default: all]
    #[arg(value_name = "DEV")]
    devices: Vec<String>,

    /// Print the connections as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct View {
    port: String,
    guest: String,
    peer: String,
    vlan: Option<u16>,
    stage: &'static str,
    underlay: String,
    /// What the guest negotiated, as far as it knows.
    ecn_guest: &'static str,
    /// What was negotiated between vcc and the peer.
    ecn_fabric: &'static str,
    snd_una: u32,
    cwnd_segs: Option<u32>,
    /// None: not yet found.
    ssthresh_segs: Option<u32>,
    mss_bytes: u16,
    window_shown_bytes: Option<u32>,
    srtt_us: Option<u32>,
    alpha: Option<f64>,
    marks: u32,
    reductions: u32,
    retransmissions: u32,
    drops: u32,
    policed: u16,
    /// Between two ends under vcc.
    feedback: &'static str,
    forged: u16,
    /// What the far end told of the guest's data; 24 bits each, as they are on the wire.
    heard_ect0_bytes: Option<u32>,
    heard_ce_bytes: Option<u32>,
    /// What this end tells of the peer's.
    counted_ect0_bytes: Option<u32>,
    counted_ce_bytes: Option<u32>,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut views = Vec::new();
    for port in ports_of(&arguments.devices)? {
        views.extend(port.flows()?.iter().map(|flow| view(port.device(), flow)));
    }
    views.sort_by(|a, b| (&a.port, &a.guest, &a.peer).cmp(&(&b.port, &b.guest, &b.peer)));
    if arguments.json {
        output::say_json(&views)?;
    } else {
        output::say(&table(&views));
    }
    Ok(ExitCode::SUCCESS)
}

fn view(port: &str, flow: &Flow) -> View {
    let state = &flow.state;
    let managed = state.is_managed();
    let heard = state.has(sys::FLOW_FEEDBACK_HEARD).then_some(state.heard);
    let counted = state.has(sys::FLOW_FEEDBACK).then_some(state.counted);
    View {
        port: port.into(),
        guest: flow.guest.to_string(),
        peer: flow.peer.to_string(),
        vlan: flow.vlan,
        stage: stage(state),
        underlay: Underlay::from_number(state.underlay)
            .map_or_else(|| state.underlay.to_string(), |underlay| underlay.to_string()),
        ecn_guest: if state.has(sys::FLOW_ACCECN_GUEST) {
            "accurate"
        } else if state.has(sys::FLOW_ECN_GUEST) {
            "yes"
        } else {
            "no"
        },
        ecn_fabric: if state.has(sys::FLOW_ECN_FABRIC) { "yes" } else { "no" },
        snd_una: state.snd_una,
        cwnd_segs: managed.then_some(state.cc.cwnd_segs),
        ssthresh_segs: (managed && state.cc.ssthresh_segs < sys::SSTHRESH_INFINITE)
            .then_some(state.cc.ssthresh_segs),
        mss_bytes: state.mss_bytes,
        window_shown_bytes: state.has(sys::FLOW_WINDOW_SHOWN).then(|| state.window_shown_bytes()),
        srtt_us: (state.srtt_us8 != 0).then_some(state.srtt_us8 / 8),
        alpha: state.alpha(),
        marks: state.marks,
        reductions: state.reductions,
        retransmissions: state.retransmissions,
        drops: state.drops.into(),
        policed: state.policed,
        feedback: match state.feedback() {
            Feedback::None => "none",
            Feedback::Agreed => "agreed",
            Feedback::Lost => "lost",
        },
        forged: state.forged.into(),
        heard_ect0_bytes: heard.map(|heard| heard.ect0_bytes),
        heard_ce_bytes: heard.map(|heard| heard.ce_bytes),
        counted_ect0_bytes: counted.map(|counted| counted.ect0_bytes),
        counted_ce_bytes: counted.map(|counted| counted.ce_bytes),
    }
}

fn stage(state: &FlowState) -> &'static str {
    match state.stage.into() {
        sys::STAGE_SYN_SENT => "syn-sent",
        sys::STAGE_SYN_RECEIVED => "syn-received",
        sys::STAGE_ESTABLISHED => "established",
        sys::STAGE_CLOSED => "closed",
        _ => "new",
    }
}

fn table(views: &[View]) -> String {
    use Align::{Left, Right};
    let mut table = Table::new([
        ("PORT", Left),
        ("GUEST", Left),
        ("PEER", Left),
        ("STAGE", Left),
        ("UNDERLAY", Left),
        ("ECN-GUEST", Left),
        ("ECN-FABRIC", Left),
        ("SND-UNA", Right),
        ("CWND", Right),
        ("SSTHRESH", Right),
        ("WINDOW", Right),
        ("ALPHA", Right),
        ("FEEDBACK", Left),
        ("MARKS", Right),
        ("REDUCTIONS", Right),
        ("RETRANS", Right),
        ("DROPS", Right),
        ("POLICED", Right),
        ("FORGED", Right),
    ]);
    let or_dash = |value: Option<u32>| value.map_or("-".to_owned(), |value| value.to_string());
    for view in views {
        table.row([
            view.port.clone(),
            view.guest.clone(),
            view.peer.clone(),
            view.stage.into(),
            view.underlay.clone(),
            view.ecn_guest.into(),
            view.ecn_fabric.into(),
            view.snd_una.to_string(),
            or_dash(view.cwnd_segs),
            or_dash(view.ssthresh_segs),
            or_dash(view.window_shown_bytes),
            view.alpha.map_or("-".to_owned(), |alpha| format!("{alpha:.3}")),
            view.feedback.into(),
            view.marks.to_string(),
            view.reductions.to_string(),
            view.retransmissions.to_string(),
            view.drops.to_string(),
            view.policed.to_string(),
            view.forged.to_string(),
        ]);
    }
    table.render()
}
