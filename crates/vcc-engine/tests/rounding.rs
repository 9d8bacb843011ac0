//! Windows have the unit 1 << scale, and a guest's segments need not be a multiple of it: a
//! listener answers as it likes to the MSS and scale it was shown. Whatever its segment size, it
//! gets what a native ECN sender with such segments gets on that path (law 12).

use crate::common::sim::{HostConfig, PathConfig, Runts, Scenario, Sim};
use crate::common::*;
use vcc_engine::sys;

const OPTIONS: u16 = (sys::OPT_MSS | sys::OPT_WSCALE) as u16;
const TIMESTAMPS: u16 = sys::OPT_TIMESTAMPS as u16;
const SACK: u16 = sys::OPT_SACK_PERMITTED as u16;
const TRANSFER_MARKS: i64 = 2000;
const ETHERNET_SEG_BYTES: u32 = 1460;

/// The sender, and the rate of marks.
#[derive(Clone, Copy, Debug)]
struct Sender {
    opens: bool,
    options: u16,
    /// The MTU of its own path to the host, as an MSS.
    mss_option: u16,
    runts: Runts,
    /// Full segments per mark.
    mark_each_segs: u32,
}

fn host(sender: &Sender) -> HostConfig {
    HostConfig {
        opens: sender.opens,
        ecn: false,
        native: false,
        iss: 0xffff_0000,
        options: OPTIONS | sender.options,
        mss_option: sender.mss_option,
        wscale: 7,
        option_room_bytes: 20,
        initial_cwnd_segs: 5000,
        gso_segs: 1,
        runts: sender.runts,
        probes_tail: false,
        fin_on_data: false,
        total_bytes: i64::MAX / 8,
        burst_bytes: i64::MAX / 4,
        pause_us: 1000,
        capacity_bytes: 8_000_000,
        reading_us: (u64::MAX / 4, 0),
        shrinks: false,
        resets_at: None,
    }
}

/// Data segments per second that arrive at the peer.
fn segs_per_s(guest: HostConfig, mark_each_segs: u32, params: vcc_engine::Params) -> (f64, Sim) {
    let peer = HostConfig {
        opens: !guest.opens,
        ecn: true,
        options: OPTIONS | TIMESTAMPS | SACK,
        mss_option: 1460,
        wscale: 10,
        total_bytes: 0,
        ..guest.clone()
    };
    let path = PathConfig { delay_us: 10_000, spacing_us: 12, ..PathConfig::default() };
    let mut sim = Sim::new(Scenario {
        seed: 1,
        params,
        guest,
        peer,
        to_peer: PathConfig { mark_each_bytes: mark_each_segs * ETHERNET_SEG_BYTES, ..path },
        to_guest: path,
        tap_loss_permille: 0,
        far: None,
        counted_before: Default::default(),
    });
    sim.open();
    let begun_us = sim.now_us;
    while sim.guest.negotiated.mss_bytes == 536
        || sim.peer.receiver.rcv_nxt
            < i64::from(mark_each_segs) * TRANSFER_MARKS * sim.guest.negotiated.mss_bytes
    {
        sim.advance();
    }
    let seconds = (sim.now_us - begun_us) as f64 / 1e6;
    let segs = sim.peer.receiver.rcv_nxt as f64 / sim.guest.negotiated.mss_bytes as f64;
    assert_eq!(sim.guest.sender.retransmissions, 0, "nothing is lost here");
    (segs / seconds, sim)
}

/// Share relative to a native sender with segments of the same size.
fn share(sender: &Sender) -> f64 {
    let (translated, sim) = segs_per_s(host(sender), sender.mark_each_segs, params(|_| ()));
    assert!(sim.flow().reductions > 10);
    let overhead_bytes = if sender.options & TIMESTAMPS != 0 { 12 } else { 0 };
    let native = HostConfig {
        ecn: true,
        native: true,
        initial_cwnd_segs: 10,
        mss_option: (sim.guest.negotiated.mss_bytes + overhead_bytes) as u16,
        ..host(sender)
    };
    let mode = vcc_engine::Mode::Shadow.number();
    let (own, watched) = segs_per_s(native, sender.mark_each_segs, params(|p| p.mode = mode));
    assert_eq!(watched.guest.negotiated.mss_bytes, sim.guest.negotiated.mss_bytes);
    translated / own
}

/// Segment sizes of different MTUs; one is a multiple of the unit.
const MSS_OPTIONS: [u16; 5] = [1360, 1373, 1410, 1427, 1460];

fn senders(opens: bool, runts: Runts, mark_each_segs: u32) -> impl Iterator<Item = Sender> {
    [SACK, TIMESTAMPS | SACK].into_iter().flat_map(move |options| {
        MSS_OPTIONS.map(|mss_option| Sender { opens, options, mss_option, runts, mark_each_segs })
    })
}

#[test]
fn whole_segments_of_any_size_get_their_share() {
    for opens in [false, true] {
        for mark_each_segs in [4, 20] {
            for sender in senders(opens, Runts::Never, mark_each_segs) {
                let share = share(&sender);
                assert!((0.9..1.1).contains(&share), "{share:.3} of its share: {sender:?}");
            }
        }
    }
}

/// A guest that fills its window to the byte sends a runt per rounded-up window. A runt makes the
/// receiver acknowledge earlier or later than full segments would. With windows of two or three
/// segments, that helps one segment size and hurts another; over all sizes it cancels out.
#[test]
fn runts_gain_nothing() {
    for runts in [Runts::One, Runts::Always, Runts::Alone] {
        for mark_each_segs in [4, 20] {
            let shares = |opens| {
                let shares: Vec<f64> =
                    senders(opens, runts, mark_each_segs).map(|sender| share(&sender)).collect();
                assert!(shares.iter().all(|share| (0.8..1.2).contains(share)), "{shares:?}");
                shares.iter().sum::<f64>() / shares.len() as f64
            };
            // An active opener is shown an MSS that is a multiple of the unit, so its windows are
            // exact.
            let (rounded, exact) = (shares(false), shares(true));
            let line = format!("{rounded:.3} with windows rounded up, {exact:.3} with exact ones");
            assert!((0.9..1.05).contains(&(rounded / exact)), "{runts:?}: {line}");
        }
    }
}

/// What a listener without timestamps sends in a while.
struct Sent {
    bytes_per_s: f64,
    runts_per_seg: f64,
}

/// Both ends are under vcc and DCTCP, and one of `mark_every` packets is marked, whatever its size.
fn dctcp_sends(mss_option: u16, wscale: u8, runts: Runts, gso_segs: u32, mark_every: u32) -> Sent {
    dctcp_reserves(0, mss_option, wscale, runts, gso_segs, mark_every).0
}

/// The guest leaves room for options in each segment. Returns the segment size in which its window
/// counts, too.
fn dctcp_reserves(
    reserve_bytes: i64,
    mss_option: u16,
    wscale: u8,
    runts: Runts,
    gso_segs: u32,
    mark_every: u32,
) -> (Sent, i64) {
    let sender = Sender { opens: false, options: SACK, mss_option, runts, mark_each_segs: 0 };
    let guest = HostConfig { gso_segs, ..host(&sender) };
    let peer = HostConfig {
        opens: true,
        options: OPTIONS | TIMESTAMPS | SACK,
        mss_option: 1460,
        wscale,
        total_bytes: 0,
        ..guest.clone()
    };
    let path = PathConfig { delay_us: 10_000, spacing_us: 12, ..PathConfig::default() };
    let mut sim = Sim::new(Scenario {
        seed: 1,
        params: underlay("dctcp"),
        guest,
        peer,
        to_peer: PathConfig { mark_permille: 1000 / mark_every, ..path },
        to_guest: path,
        tap_loss_permille: 0,
        far: Some(underlay("dctcp")),
        counted_before: Default::default(),
    });
    sim.open();
    let begun_us = sim.now_us;
    let mut reserves = reserve_bytes > 0;
    while sim.steps < 60_000 {
        sim.advance();
        if reserves && sim.guest.negotiated.mss_bytes == i64::from(mss_option) {
            sim.guest.negotiated.mss_bytes -= reserve_bytes;
            reserves = false;
        }
    }
    let sender = &sim.guest.sender;
    let sent = Sent {
        bytes_per_s: sim.peer.receiver.rcv_nxt as f64 / ((sim.now_us - begun_us) as f64 / 1e6),
        runts_per_seg: sender.runts_sent as f64 / sender.segs_sent as f64,
    };
    (sent, sim.flow().mss_bytes.into())
}

/// Linux sends a runt behind a whole segment into whatever is left of its window, and a queue marks
/// packets, not bytes. At the smaller scale a unit is 4 bytes, and each of these segments is whole.
#[test]
fn a_guest_that_sends_runts_has_its_share_of_heavy_marking() {
    const EXACT: u8 = 2;
    for runts in [Runts::One, Runts::Always] {
        for (mark_every, share_allowed) in [(4, 0.95..1.05), (9, 0.95..1.05), (40, 0.9..1.1)] {
            let mut shares = Vec::new();
            for mss_option in [1348, 1388, 1400, 1412] {
                for gso_segs in [1, 40] {
                    let rounded = dctcp_sends(mss_option, 10, runts, gso_segs, mark_every);
                    let exact = dctcp_sends(mss_option, EXACT, runts, gso_segs, mark_every);
                    assert!(
                        rounded.runts_per_seg < 0.01,
                        "{runts:?}, {mss_option}, {gso_segs}: {:.3} runts per segment",
                        rounded.runts_per_seg
                    );
                    assert_eq!(exact.runts_per_seg, 0.0, "no rest");
                    shares.push(rounded.bytes_per_s / exact.bytes_per_s);
                }
            }
            let mean = shares.iter().sum::<f64>() / shares.len() as f64;
            assert!(
                share_allowed.contains(&mean),
                "{runts:?}, {mark_every}: {mean:.3}, {shares:.2?}"
            );
        }
    }
}

/// netstack reserves up to 40 bytes for options in each of its segments, and has no super-segments
/// that show their size.
#[test]
fn a_guest_whose_segments_are_smaller_than_its_mss_has_its_share() {
    for (mark_every, share_allowed) in [(4, 0.95..1.05), (9, 0.95..1.05), (40, 0.9..1.1)] {
        for (mss_option, reserve_bytes) in [(1440, 36), (1448, 12), (1388, 40)] {
            let sends = |reserve_bytes, mss_option| {
                dctcp_reserves(reserve_bytes, mss_option, 10, Runts::Never, 1, mark_every)
            };
            let (sent, counted_bytes) = sends(reserve_bytes, mss_option);
            let (known, _) = sends(0, mss_option - reserve_bytes as u16);
            let share = sent.bytes_per_s / known.bytes_per_s;
            assert_eq!(counted_bytes, i64::from(mss_option) - reserve_bytes);
            assert!(share_allowed.contains(&share), "{mark_every}, {mss_option}: {share:.3}");
        }
    }
}
