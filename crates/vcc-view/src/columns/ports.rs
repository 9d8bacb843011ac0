//! Every column of ports. A new one is one entry here.

use vcc_engine::Delays;

use super::sums::{self, Summed};
use crate::column::{self, Page};
use crate::port::PortView;
use crate::sums::Sums;
use crate::value::Unit::{Bytes, Count, Fraction, Ns, Number, PerS, Text, Us};

type Column = column::Column<PortView>;

impl Summed for PortView {
    fn sums(&self) -> Option<&Sums> {
        // 0 would say that its connections ended.
        self.is_counted().then_some(&self.sums)
    }
}

/// In the order in which they are shown.
pub static PORT_COLUMNS: &[Column] = &[
    Column::new("Port", "port", Text, |port| (&*port.port).into(), "the device")
        .top_wide(0, 15)
        .page(Page::Table),
    Column::new(
        "Tenant",
        "tenant",
        Text,
        |port| port.tenant.as_deref().into(),
        "the tenant of the port; only the daemon knows it",
    ),
    Column::new(
        "Number",
        "index",
        Number,
        |port| port.index.into(),
        "its number among the policy's ports; none at a port that was attached by hand",
    ),
    Column::new(
        "Same guest as",
        "same_guest_as",
        Text,
        |port| port.same_guest_as.as_deref().into(),
        "the other devices of the guest, which are the same port",
    ),
    Column::new(
        "Shown at",
        "shown_at",
        Text,
        |port| port.shown_at.as_deref().into(),
        "the first listed of these devices, if it is not this one: it has the port's counters",
    ),
    Column::new(
        "Underlay",
        "underlay",
        Text,
        |port| port.underlay.as_deref().into(),
        "the congestion control that the fabric sees, or `by rule`",
    )
    .top_wide(3, 8),
    Column::new(
        "Mode",
        "mode",
        Text,
        |port| port.mode.as_deref().into(),
        "what vcc does with connections: `enforce`, `shadow`, `drain`, or `by rule`",
    )
    .top_wide(7, 7),
    sums::flows().top_wide(2, 5).page(Page::Table),
    Column::new(
        "Max flows",
        "max_flows",
        Count,
        |port| port.max_flows.into(),
        "the size of its table",
    ),
    sums::rate().top(1, None).page(Page::Table),
    sums::window().page(Page::Table),
    sums::marks_per_s().top(4, None).page(Page::Table),
    sums::reductions_per_s().top(6, None),
    sums::retransmissions_per_s().top(5, None),
    sums::drops_per_s(),
    sums::acked(),
    sums::marks(),
    sums::reductions(),
    sums::retransmissions(),
    sums::drops(),
    Column::new(
        "Fabric delay",
        "fabric_delay_us",
        Us,
        |port| port.quantile_us(Delays::fabric, 0.5).into(),
        "the median time that fabric and peer took to answer, since the port was attached; `delays` has the histogram",
    )
    .page(Page::Table),
    Column::new(
        "Fabric delay, 99 %",
        "fabric_delay_p99_us",
        Us,
        |port| port.quantile_us(Delays::fabric, 0.99).into(),
        "its 99th percentile",
    ),
    Column::new(
        "Guest delay",
        "guest_delay_us",
        Us,
        |port| port.quantile_us(Delays::guest, 0.5).into(),
        "the median time that the guest took to answer, since the port was attached; `delays` has the histogram",
    )
    .page(Page::Table),
    Column::new(
        "Guest delay, 99 %",
        "guest_delay_p99_us",
        Us,
        |port| port.quantile_us(Delays::guest, 0.99).into(),
        "its 99th percentile",
    ),
    Column::new(
        "Untranslated",
        "untranslated_segments",
        Count,
        |port| port.untranslated_segments().into(),
        "segments of TCP passed untouched, dropped or not sent since the port was attached; `counters` has the reasons, and what is not TCP",
    )
    .page(Page::Table),
    Column::new(
        "Held",
        "held_bytes",
        Bytes,
        |port| port.held_bytes.into(),
        "bytes in the buffer of `vcc domain`; none at a port in the kernel",
    ),
    Column::new(
        "Promised",
        "promised_bytes",
        Bytes,
        |port| port.promised_bytes.into(),
        "bytes that `vcc domain` acknowledged for an end that has not done so yet; none at a port in the kernel",
    ),
    Column::new(
        "Channel",
        "channel",
        Text,
        |port| port.channel.as_deref().into(),
        "`up` while the guest's congestion control follows the channel of `vcc domain`, else `down`; none without one",
    ),
    Column::new(
        "Malformed",
        "channel_malformed",
        Count,
        |port| port.channel_malformed.into(),
        "messages of the guest on that channel that were none",
    ),
    Column::new(
        "Machine",
        "machine",
        Text,
        |port| port.cpu.as_ref().and_then(|cpu| cpu.machine.as_deref()).into(),
        "the name of the guest's virtual machine; the daemon sees neither this nor its CPU",
    ),
    Column::new(
        "CPU waits",
        "cpu_waiting",
        Fraction,
        |port| port.cpu.as_ref().map(|cpu| cpu.shares.waiting).into(),
        "the share of the time, half a second or that between two reads, in which the guest's virtual CPU had work and the host ran something else",
    )
    .top(8, None),
    Column::new(
        "CPU runs",
        "cpu_running",
        Fraction,
        |port| port.cpu.as_ref().map(|cpu| cpu.shares.running).into(),
        "the share in which it ran",
    )
    .top(9, None),
    Column::new(
        "CPU idle",
        "cpu_idle",
        Fraction,
        |port| port.cpu.as_ref().map(|cpu| cpu.shares.idle).into(),
        "the share in which it had no work",
    ),
    Column::new(
        "Cost",
        "cost_cpu",
        Fraction,
        |port| port.cost.map(|cost| cost.cpu).into(),
        "the share of one CPU that the port's own programs take, or its `vcc domain`; known to `vcc top` and `vcc ports --cost` of root, and to the daemon while the kernel counts run times (`sysctl kernel.bpf_stats_enabled=1`)",
    )
    .top(10, None)
    .page(Page::Table),
    Column::new(
        "From guest",
        "cost_from_guest_ns",
        Ns,
        |port| port.work(|cost| cost.from_guest).and_then(|work| work.frame_ns).into(),
        "the mean time that they take for a frame from the guest, of which a super-segment is one",
    )
    .top(11, None)
    .page(Page::Table),
    Column::new(
        "To guest",
        "cost_to_guest_ns",
        Ns,
        |port| port.work(|cost| cost.to_guest).and_then(|work| work.frame_ns).into(),
        "the same for a frame to the guest; of `vcc domain`, both are the mean of both directions",
    )
    .top(12, None)
    .page(Page::Table),
    Column::new(
        "Frames from",
        "frames_from_guest_per_s",
        PerS,
        |port| port.work(|cost| cost.from_guest).map(|work| work.frames_per_s).into(),
        "frames from the guest, of all protocols",
    ),
    Column::new(
        "Frames to",
        "frames_to_guest_per_s",
        PerS,
        |port| port.work(|cost| cost.to_guest).map(|work| work.frames_per_s).into(),
        "frames to the guest",
    ),
    Column::new(
        "Fast from",
        "fast_path_from_guest",
        Fraction,
        |port| port.work(|cost| cost.from_guest).and_then(|work| work.fast_part).into(),
        "the part of the frames from the guest that the fast path took, the others being left to the whole engine; `null` for devices that share a port",
    ),
    Column::new(
        "Fast to",
        "fast_path_to_guest",
        Fraction,
        |port| port.work(|cost| cost.to_guest).and_then(|work| work.fast_part).into(),
        "the same of the frames to the guest",
    ),
    Column::new(
        "Failure",
        "failure",
        Text,
        |port| port.failure.as_deref().into(),
        "why the port cannot be read; its unknown values are then `null`",
    ),
];
