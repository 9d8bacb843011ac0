//! What limits a flow, in words; the engine decides it.

use vcc_engine::{Awaited, Elsewhere, Limit, Phase, Repair, Untranslated, Unused, sys};

use crate::flow::FlowView;
use crate::units;

/// Of a guest behind `hold` that does not fill the buffer, with the remedy.
pub fn text_of(flow: &FlowView) -> String {
    let text = text(flow.limit);
    let is_short = matches!(flow.limit, Limit::Guest(Unused::Window { .. }));
    if !(flow.holds && is_short && flow.held_bytes() == Some(0)) {
        return text;
    }
    format!(
        "{text}; nothing is held, as with Reno and CUBIC in slow start: install vcc-guest in the guest, or \
         use `act = \"split\"`"
    )
}

pub fn text(limit: Limit) -> String {
    match limit {
        Limit::Handshake(awaited) => format!("handshake: {}", awaited_text(awaited)),
        Limit::Closed => "the connection is closed".into(),
        Limit::Untranslated(why) => format!("not by vcc: {}", untranslated_text(why)),
        Limit::OneDirection(whose) => format!("not by vcc: {}", elsewhere_text(whose)),
        Limit::Idle { idle_us } => {
            let time = units::duration(idle_us as f64);
            format!("idle: the guest has sent nothing for {time}")
        }
        Limit::Loss(repair) => format!("loss: {}", repair_text(repair)),
        Limit::Receiver { window_bytes: 0 } => "the receiver: its window is closed".into(),
        Limit::Receiver { window_bytes } => {
            format!("the receiver's window of {}", bytes(window_bytes))
        }
        Limit::WindowMax { window_bytes } => {
            let window = bytes(window_bytes);
            format!("the largest window that the port shows, {window} (window_max)")
        }
        Limit::Policing { window_bytes } => {
            let window = bytes(window_bytes);
            format!("policing: an overdraft is withheld from the window of {window}")
        }
        Limit::Cap { cap_bytes, cwnd_bytes } => {
            let [cap, cwnd] = [cap_bytes, cwnd_bytes].map(bytes);
            format!("the cap of {cap}; the underlay would grant {cwnd}")
        }
        Limit::Pool { share_bytes, pool_bytes, weight } => {
            let [share, pool] = [share_bytes, pool_bytes].map(bytes);
            format!("its pool: a share of {share} of {pool}, at weight {weight}")
        }
        Limit::Underlay { cwnd_1024, cwnd_bytes, phase } => {
            let cwnd_segs = f64::from(cwnd_1024) / f64::from(sys::SEGMENT_1024);
            let (segments, size) = (units::SEGS.write_alone(cwnd_segs), bytes(cwnd_bytes));
            format!("the underlay's window, {segments}, {size}: {}", phase_text(phase))
        }
        Limit::Guest(unused) => format!("the guest itself: {}", unused_text(unused)),
    }
}

fn awaited_text(awaited: Awaited) -> &'static str {
    match awaited {
        Awaited::Syn => "it has not begun",
        Awaited::SynAck => "the peer has not answered the guest's SYN",
        Awaited::GuestSynAck => "the guest has not answered the peer's SYN",
        Awaited::Ack => "the guest's SYN-ACK is not acknowledged",
    }
}

fn untranslated_text(why: Untranslated) -> &'static str {
    match why {
        Untranslated::Released => {
            "its rule no longer controls it; only what the handshake negotiated is still translated"
        }
        Untranslated::Fragments => {
            "the guest's segments leave in IP fragments; only what the handshake negotiated is still translated"
        }
        Untranslated::GuestEcn => "the guest uses ECN itself, so vcc does not translate it",
        Untranslated::Underlay => "its underlay leaves it to the guest",
    }
}

fn elsewhere_text(whose: Elsewhere) -> &'static str {
    match whose {
        Elsewhere::Guest => {
            "one direction: the guest's answers take another path, so only its window's scale is translated"
        }
        Elsewhere::Peer => {
            "one direction: the peer's answers take another path, so the port does not know what the guest may send"
        }
    }
}

fn repair_text(repair: Repair) -> String {
    match repair {
        Repair::FastRecovery => "fast recovery".into(),
        Repair::Timeout { backoff: 0 } => "slow start after a timeout".into(),
        Repair::Timeout { backoff: 1 } => "a timeout, and nothing acknowledged since".into(),
        Repair::Timeout { backoff } => {
            format!("{backoff} timeouts, and nothing acknowledged since the first")
        }
    }
}

fn phase_text(phase: Phase) -> &'static str {
    match phase {
        Phase::SlowStart => "slow start",
        Phase::CongestionAvoidance => "congestion avoidance",
        Phase::Reduced => "reduced after a mark",
    }
}

fn unused_text(unused: Unused) -> String {
    match unused {
        Unused::NoWindowShown => "its peer's window is not known".into(),
        Unused::Shadow => "vcc limits nothing in shadow mode".into(),
        Unused::Window { used_bytes, window_bytes } => {
            let [used, window] = [used_bytes, window_bytes].map(bytes);
            format!("its flight was {used} at most in a round trip and may be {window}")
        }
    }
}

fn bytes(bytes: impl Into<u64>) -> String {
    units::bytes(bytes.into() as f64)
}

#[cfg(test)]
mod tests {
    use vcc_domain::BufferShare;

    use super::*;

    #[test]
    fn every_limit_has_its_words() {
        let cwnd = |cwnd_segs: u32, phase| {
            let cwnd_bytes = u64::from(cwnd_segs) * 1440;
            Limit::Underlay { cwnd_1024: cwnd_segs * sys::SEGMENT_1024, cwnd_bytes, phase }
        };
        let timeout = |backoff| Limit::Loss(Repair::Timeout { backoff });
        let window_bytes = 14_400;
        let unused = Unused::Window { used_bytes: 2000, window_bytes };
        for (limit, expected) in [
            (Limit::Handshake(Awaited::Syn), "handshake: it has not begun"),
            (
                Limit::Handshake(Awaited::SynAck),
                "handshake: the peer has not answered the guest's SYN",
            ),
            (
                Limit::Handshake(Awaited::GuestSynAck),
                "handshake: the guest has not answered the peer's SYN",
            ),
            (Limit::Handshake(Awaited::Ack), "handshake: the guest's SYN-ACK is not acknowledged"),
            (Limit::Closed, "the connection is closed"),
            (
                Limit::Untranslated(Untranslated::Released),
                "not by vcc: its rule no longer controls it; only what the handshake negotiated is still translated",
            ),
            (
                Limit::Untranslated(Untranslated::Fragments),
                "not by vcc: the guest's segments leave in IP fragments; only what the handshake negotiated is still translated",
            ),
            (
                Limit::OneDirection(Elsewhere::Guest),
                "not by vcc: one direction: the guest's answers take another path, so only its window's scale is translated",
            ),
            (
                Limit::OneDirection(Elsewhere::Peer),
                "not by vcc: one direction: the peer's answers take another path, so the port does not know what the guest may send",
            ),
            (
                Limit::Untranslated(Untranslated::GuestEcn),
                "not by vcc: the guest uses ECN itself, so vcc does not translate it",
            ),
            (
                Limit::Untranslated(Untranslated::Underlay),
                "not by vcc: its underlay leaves it to the guest",
            ),
            (Limit::Idle { idle_us: 3_200_000 }, "idle: the guest has sent nothing for 3.20 s"),
            (Limit::Loss(Repair::FastRecovery), "loss: fast recovery"),
            (timeout(0), "loss: slow start after a timeout"),
            (timeout(1), "loss: a timeout, and nothing acknowledged since"),
            (timeout(3), "loss: 3 timeouts, and nothing acknowledged since the first"),
            (Limit::Receiver { window_bytes: 0 }, "the receiver: its window is closed"),
            (Limit::Receiver { window_bytes }, "the receiver's window of 14.1 KiB"),
            (
                Limit::WindowMax { window_bytes: 65_535 << 5 },
                "the largest window that the port shows, 2.00 MiB (window_max)",
            ),
            (
                Limit::Policing { window_bytes },
                "policing: an overdraft is withheld from the window of 14.1 KiB",
            ),
            (
                Limit::Cap { cap_bytes: 14_400, cwnd_bytes: 28_800 },
                "the cap of 14.1 KiB; the underlay would grant 28.1 KiB",
            ),
            (
                Limit::Pool { share_bytes: 14_400, pool_bytes: 1 << 20, weight: 3 },
                "its pool: a share of 14.1 KiB of 1.00 MiB, at weight 3",
            ),
            (
                cwnd(10, Phase::CongestionAvoidance),
                "the underlay's window, 10 segments, 14.1 KiB: congestion avoidance",
            ),
            (cwnd(1, Phase::SlowStart), "the underlay's window, 1 segment, 1.41 KiB: slow start"),
            (
                Limit::Underlay {
                    cwnd_1024: 256,
                    cwnd_bytes: 360,
                    phase: Phase::CongestionAvoidance,
                },
                "the underlay's window, 0.25 segments, 360 B: congestion avoidance",
            ),
            (
                cwnd(10, Phase::Reduced),
                "the underlay's window, 10 segments, 14.1 KiB: reduced after a mark",
            ),
            (
                Limit::Guest(Unused::NoWindowShown),
                "the guest itself: its peer's window is not known",
            ),
            (Limit::Guest(Unused::Shadow), "the guest itself: vcc limits nothing in shadow mode"),
            (
                Limit::Guest(unused),
                "the guest itself: its flight was 1.95 KiB at most in a round trip and may be 14.1 KiB",
            ),
        ] {
            assert_eq!(text(limit), expected);
        }
    }

    #[test]
    fn the_remedy_for_an_empty_buffer_of_hold_is_named() {
        let unused = Unused::Window { used_bytes: 2000, window_bytes: 14_400 };
        let mut flow = crate::testing::flow("10.0.0.1:1", "10.0.0.2:2");
        flow.limit = Limit::Guest(unused);
        for (holds, held_bytes, limit, helps) in [
            (true, Some(0), Limit::Guest(unused), true),
            (true, Some(5), Limit::Guest(unused), false),
            (false, Some(0), Limit::Guest(unused), false),
            (true, None, Limit::Guest(unused), false),
            (true, Some(0), Limit::Closed, false),
        ] {
            let share = |held_bytes| BufferShare { held_bytes, ..BufferShare::default() };
            (flow.holds, flow.share, flow.limit) = (holds, held_bytes.map(share), limit);
            assert_eq!(
                text_of(&flow).contains("install vcc-guest"),
                helps,
                "{holds} {held_bytes:?}"
            );
        }
    }
}
