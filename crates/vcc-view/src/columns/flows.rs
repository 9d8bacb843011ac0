//! Every column of flows. A new one is one entry here.

use vcc_engine::Mode;

use crate::column::{self, Page};
use crate::delay;
use crate::flow::FlowView;
use crate::limit;
use crate::value::Unit::{BitsPerS, Bytes, Count, Fraction, Number, PerS, Segs, Text, Us};
use crate::value::Value;

type Column = column::Column<FlowView>;

/// In the order in which they are shown. LIMITED-BY is far to the left: a narrow terminal cuts the
/// right end off.
pub static FLOW_COLUMNS: &[Column] = &[
    Column::new("Port", "port", Text, |flow| (&*flow.port).into(), "the device")
        .always()
        .sort("port")
        .top(10, None)
        .page(Page::Table),
    Column::new(
        "Tenant",
        "tenant",
        Text,
        |flow| flow.tenant.as_deref().into(),
        "the tenant of the port; only the daemon knows it",
    )
    .given(|flow| flow.tenant.is_some())
    .page(Page::Detail),
    Column::new("VLAN", "vlan", Number, |flow| flow.id().vlan.into(), "the 802.1Q tag")
        .given(|flow| flow.id().vlan.is_some()),
    Column::new(
        "Inside",
        "inside",
        Text,
        |flow| flow.id().inside.then_some("tunnel").into(),
        "`tunnel`: the connection is [inside one](coexistence.md#inside-tunnels)",
    )
    .given(|flow| flow.id().inside),
    Column::new("Guest", "guest", Text, |flow| flow.id().guest.into(), "the guest's end")
        .always()
        .sort("guest")
        .top(0, None),
    Column::new("Peer", "peer", Text, |flow| flow.id().peer.into(), "the peer's end")
        .always()
        .sort("peer")
        .top(1, None),
    Column::new(
        "Stage",
        "stage",
        Text,
        |flow| flow.state.stage().name().into(),
        "the state of the connection, as far as the port has seen it",
    )
    .always()
    .sort("stage")
    .top(14, None)
    .page(Page::Detail),
    Column::new(
        "Underlay",
        "underlay",
        Text,
        |flow| flow.underlay().into(),
        "the congestion control that the fabric sees",
    )
    .always()
    .sort("underlay")
    .top(13, None)
    .page(Page::Table),
    Column::new(
        "Mode",
        "mode",
        Text,
        |flow| flow.mode.map(Mode::name).into(),
        "the mode of its treatment: in `shadow` mode, vcc computes everything and changes nothing",
    )
    .given(|flow| matches!(flow.mode, Some(Mode::Shadow | Mode::Ignore)))
    .sort("mode")
    .page(Page::Table),
    Column::new(
        "Rule",
        "rule",
        Text,
        |flow| flow.rule.as_deref().into(),
        "the rule of the policy that applies; none at a port that was attached by hand",
    )
    .given(|flow| flow.rule.is_some())
    .sort("rule")
    .page(Page::Table),
    Column::new(
        "ECN guest",
        "ecn_guest",
        Text,
        |flow| flow.state.ecn_guest().into(),
        "the ECN that the guest negotiated: `no`, `yes` (RFC 3168), `accurate` (RFC 9768)",
    )
    .wide()
    .page(Page::Detail),
    Column::new(
        "ECN fabric",
        "ecn_fabric",
        Text,
        |flow| flow.state.ecn_fabric().into(),
        "the ECN that vcc and the peer negotiated: `no`, `yes` (RFC 3168), `accurate` (RFC 9768)",
    )
    .wide()
    .page(Page::Detail),
    Column::new(
        "snd una",
        "snd_una",
        Number,
        |flow| flow.state.snd_una.into(),
        "SND.UNA: the first sequence number that the peer has not acknowledged (RFC 9293)",
    )
    .wide(),
    Column::new(
        "Rate",
        "goodput_bits_per_s",
        BitsPerS,
        |flow| flow.rates.map(|rates| rates.goodput_bits_per_s).into(),
        "acknowledged payload per second between two reads; unknown after the first",
    )
    .given(|flow| flow.rates.is_some())
    .sort("rate")
    .top(2, Some('r'))
    .page(Page::Table),
    Column::new(
        "Limited by",
        "limited_by",
        Text,
        |flow| flow.limit.name().into(),
        "what limits the rate at present",
    )
    .always()
    .sort("limited-by")
    .top(4, Some('l'))
    .page(Page::TableAlone),
    Column::new(
        "Limited by",
        "limited_by_text",
        Text,
        |flow| limit::text_of(flow).into(),
        "what limits the rate at present, in words and figures",
    )
    .page(Page::Detail),
    Column::new(
        "cwnd",
        "cwnd_segs",
        Segs,
        cwnd,
        "the congestion window of the underlay, in segments of `mss_bytes`",
    )
    .always()
    .sort("cwnd")
    .top(5, Some('c'))
    .page(Page::Table),
    Column::new(
        "ssthresh",
        "ssthresh_segs",
        Segs,
        |flow| flow.state.ssthresh_segs().into(),
        "the slow start threshold of the underlay; unknown before the first reduction",
    )
    .wide()
    .page(Page::Detail),
    Column::new(
        "MSS",
        "mss_bytes",
        Bytes,
        |flow| flow.state.mss_bytes.into(),
        "the payload of a full segment",
    )
    .page(Page::Detail),
    Column::new(
        "Window",
        "window_shown_bytes",
        Bytes,
        |flow| flow.state.window_shown_bytes().into(),
        "the last window that the guest was shown",
    )
    .always()
    .sort("window")
    .top(3, Some('w'))
    .page(Page::Table),
    Column::new(
        "Would show",
        "would_show_bytes",
        Bytes,
        |flow| flow.would_show_bytes().into(),
        "in shadow mode: the window that the underlay would have shown instead",
    )
    .given(FlowView::is_shadow)
    .sort("would-show")
    .page(Page::Table),
    Column::new(
        "Window of the peer",
        "window_received_bytes",
        Bytes,
        |flow| flow.state.window_received_bytes().into(),
        "the peer's own window, which it replaced",
    )
    .page(Page::Detail),
    Column::new(
        "Flight",
        "flight_bytes",
        Bytes,
        |flow| flow.state.flight_bytes().into(),
        "sent by the guest and not yet acknowledged",
    )
    .always()
    .sort("flight")
    .top(11, Some('f'))
    .page(Page::Detail),
    Column::new(
        "srtt",
        "srtt_us",
        Us,
        |flow| flow.state.srtt_us().into(),
        "the smoothed round-trip time between this port and the peer (RFC 6298), without the guest's own delay",
    )
    .always()
    .sort("srtt")
    .top(6, Some('s'))
    .page(Page::Table),
    Column::new(
        "Delayed by",
        "delayed_by",
        Text,
        |flow| flow.state.delayed_by().map(vcc_engine::DelayedBy::name).into(),
        "the longer part of its round trips: `guest`, `fabric` (and the peer), `both`, or `neither` if both are below 1 ms",
    )
    .given(delay::is_guests)
    .page(Page::TableAlone),
    Column::new(
        "Delayed by",
        "delayed_by_text",
        Text,
        |flow| delay::text(&flow.state, flow.cpu.as_ref()).into(),
        "the longer part of its round trips, in words and figures",
    )
    .page(Page::Detail),
    Column::new(
        "Guest delay",
        "guest_delay_us",
        Us,
        |flow| flow.state.guest_delay_us().into(),
        "the guest's time to answer a segment, weighted by its length",
    )
    .given(delay::is_guests)
    .sort("guest-delay")
    .top(15, Some('g'))
    .page(Page::Detail),
    Column::new(
        "Guest delay, longest",
        "guest_worst_us",
        Us,
        |flow| flow.state.guest_worst_us().into(),
        "the longest wait for an answer of the guest, including one that still lasts",
    )
    .page(Page::Detail),
    Column::new(
        "Fabric delay",
        "fabric_delay_us",
        Us,
        |flow| flow.state.fabric_delay_us().into(),
        "the time that fabric and peer take to answer, without delayed ACKs, weighted by its length",
    )
    .sort("fabric-delay")
    .page(Page::Detail),
    Column::new(
        "Fabric delay, longest",
        "fabric_worst_us",
        Us,
        |flow| flow.state.fabric_worst_us().into(),
        "the longest time that they took to answer",
    )
    .page(Page::Detail),
    Column::new(
        "RTT, latest",
        "rtt_us",
        Us,
        |flow| flow.state.cc.path.rtt_us.into(),
        "the latest sample of the round-trip time, which `swift` and `vegas` use",
    )
    .page(Page::Detail),
    Column::new(
        "RTT, least",
        "rtt_min_us",
        Us,
        |flow| flow.state.cc.path.rtt_min_us.into(),
        "the minimum of the last minutes, beginning with the handshake",
    )
    .page(Page::Detail),
    Column::new(
        "alpha",
        "alpha",
        Fraction,
        |flow| flow.state.alpha().into(),
        "DCTCP's estimate of the fraction of marked bytes (RFC 8257)",
    )
    .given(|flow| flow.state.alpha().is_some())
    .sort("alpha")
    .top(12, Some('a'))
    .page(Page::Table),
    Column::new(
        "Feedback",
        "feedback",
        Text,
        |flow| flow.state.feedback().name().into(),
        "whether the peer is under vcc and reports marked bytes: `none`, `agreed`, `lost`",
    )
    .given(|flow| flow.state.feedback() != vcc_engine::Feedback::None)
    .page(Page::Detail),
    Column::new(
        "Marks",
        "marks",
        Count,
        |flow| flow.state.marks.into(),
        "ACKs and reports that carried congestion marks",
    )
    .always()
    .sort("marks")
    .page(Page::Table),
    Column::new(
        "Reductions",
        "reductions",
        Count,
        |flow| flow.state.reductions.into(),
        "reductions of the window, for marks or losses",
    )
    .always()
    .sort("reductions")
    .page(Page::Table),
    Column::new(
        "Retrans",
        "retransmissions",
        Count,
        |flow| flow.state.retransmissions.into(),
        "segments that the guest retransmitted, probes included",
    )
    .always()
    .sort("retransmissions")
    .page(Page::Table),
    Column::new(
        "Needless",
        "needless",
        Count,
        |flow| flow.state.needless.into(),
        "segments that the guest retransmitted although their acknowledgement had reached it",
    )
    .given(|flow| flow.state.needless > 0)
    .sort("needless")
    .page(Page::Detail),
    Column::new(
        "Held",
        "held_bytes",
        Bytes,
        |flow| flow.held_bytes().into(),
        "its bytes in the buffer of `vcc domain`; none at a port in the kernel",
    )
    .given(|flow| flow.held_bytes().is_some_and(|bytes| bytes > 0))
    .sort("held")
    .page(Page::Detail),
    Column::new(
        "Granted",
        "granted_bytes",
        Bytes,
        |flow| flow.share.map(|share| share.granted_bytes).into(),
        "bytes of that buffer which it may take besides, by the window that its guest was shown",
    )
    .given(|flow| flow.share.is_some_and(|share| share.granted_bytes > 0))
    .sort("granted")
    .page(Page::Detail),
    Column::new(
        "Share",
        "share_bytes",
        Bytes,
        |flow| flow.share.map(|share| share.share_bytes).into(),
        "the most that it may have of that buffer now",
    )
    .wide()
    .page(Page::Detail),
    Column::new(
        "Offline",
        "offline",
        Text,
        |flow| flow.offline().into(),
        "why its guest may send no more than leaves at once: `no-buffer`, its share is full; `packet-loss`, \
         the guest repairs a loss; `draining`, its treatment has changed",
    )
    .given(|flow| flow.offline().is_some())
    .page(Page::Detail),
    Column::new(
        "No buffer",
        "no_buffer",
        Count,
        |flow| flow.share.map(|share| share.no_buffer).into(),
        "times that its share of the buffer was full",
    )
    .given(|flow| flow.share.is_some_and(|share| share.no_buffer > 0))
    .page(Page::Detail),
    Column::new(
        "Packet loss",
        "packet_loss",
        Count,
        |flow| flow.share.map(|share| share.packet_loss).into(),
        "times that it was offline because its guest repaired a loss",
    )
    .given(|flow| flow.share.is_some_and(|share| share.packet_loss > 0))
    .page(Page::Detail),
    Column::new(
        "Promised",
        "promised_bytes",
        Bytes,
        |flow| flow.promised_bytes.into(),
        "bytes that `vcc domain` acknowledged for an end that has not done so yet; none at a port in the kernel",
    )
    .given(|flow| flow.promised_bytes.is_some_and(|bytes| bytes > 0))
    .sort("promised")
    .page(Page::Detail),
    Column::new(
        "Drops",
        "drops",
        Count,
        |flow| flow.state.drops.into(),
        "segments that vcc dropped: window updates that looked like duplicate ACKs, and policed segments",
    )
    .given(|flow| flow.state.drops > 0)
    .sort("drops")
    .page(Page::Table),
    Column::new(
        "Policed",
        "policed",
        Count,
        |flow| flow.state.policed.into(),
        "of the drops, data beyond the window",
    )
    .given(|flow| flow.state.policed > 0)
    .sort("policed")
    .page(Page::Detail),
    Column::new(
        "Forged",
        "forged",
        Count,
        |flow| flow.state.forged.into(),
        "feedback options that were rejected as implausible",
    )
    .given(|flow| flow.state.forged > 0)
    .sort("forged")
    .page(Page::Detail),
    Column::new(
        "Marks/s",
        "marks_per_s",
        PerS,
        |flow| flow.rates.map(|rates| rates.marks_per_s).into(),
        "marks per second between two reads",
    )
    .sort("marks-rate")
    .top(7, Some('m'))
    .page(Page::Detail),
    Column::new(
        "Reduc/s",
        "reductions_per_s",
        PerS,
        |flow| flow.rates.map(|rates| rates.reductions_per_s).into(),
        "reductions per second between two reads",
    )
    .sort("reductions-rate")
    .top(9, Some('d'))
    .page(Page::Detail),
    Column::new(
        "Retr/s",
        "retransmissions_per_s",
        PerS,
        |flow| flow.rates.map(|rates| rates.retransmissions_per_s).into(),
        "retransmissions per second between two reads",
    )
    .sort("retransmissions-rate")
    .top(8, Some('t'))
    .page(Page::Detail),
    Column::new(
        "Heard ECT(0)",
        "heard_ect0_bytes",
        Number,
        |flow| flow.heard().map(|heard| heard.ect0_bytes).into(),
        "the peer's feedback: bytes of the guest that arrived as ECT(0), modulo 2^24",
    ),
    Column::new(
        "Heard CE",
        "heard_ce_bytes",
        Number,
        |flow| flow.heard().map(|heard| heard.ce_bytes).into(),
        "the peer's feedback: bytes of the guest that arrived as CE, modulo 2^24",
    ),
    Column::new(
        "Counted ECT(0)",
        "counted_ect0_bytes",
        Number,
        |flow| flow.counted().map(|counted| counted.ect0_bytes).into(),
        "the feedback to the peer: its bytes that arrived as ECT(0), modulo 2^24",
    ),
    Column::new(
        "Counted CE",
        "counted_ce_bytes",
        Number,
        |flow| flow.counted().map(|counted| counted.ce_bytes).into(),
        "the feedback to the peer: its bytes that arrived as CE, modulo 2^24",
    ),
];

/// A whole number, but of a window that has a part of a segment.
fn cwnd(flow: &FlowView) -> Value<'_> {
    let with_part = flow.state.cwnd().filter(|segs| segs.fract() != 0.0);
    with_part.map_or_else(|| flow.state.cwnd_segs().into(), Value::from)
}

/// The columns that flows can be sorted by, with their names.
pub fn sortable() -> impl Iterator<Item = (&'static str, &'static Column)> {
    FLOW_COLUMNS.iter().filter_map(|column| Some((column.sort?, column)))
}

/// The counters of events, with their names.
pub fn counters() -> impl Iterator<Item = (&'static str, &'static Column)> {
    sortable().filter(|(_, column)| column.unit == Count)
}

/// The column with a key in JSON.
pub fn key_of(key: &str) -> Option<&'static Column> {
    FLOW_COLUMNS.iter().find(|column| column.key == key)
}

/// The names and values of one flow that the page and `vcc explain` show.
pub fn rows(flow: &FlowView) -> Vec<(&'static str, String)> {
    let columns = FLOW_COLUMNS.iter().filter(|it| [Page::Table, Page::Detail].contains(&it.page));
    columns.map(|column| (column.name, column.unit.alone(&(column.value)(flow)))).collect()
}
