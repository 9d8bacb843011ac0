//! Laws 1 to 4 and 12: the windows that the guest is shown.

use vcc_engine::{Action, FlowState, Segment, sys};

use super::{FIN, Laws};

/// An ACK with the window as received and as shown to the guest.
#[derive(Clone, Copy)]
pub(super) struct Shown {
    pub(super) received: u16,
    pub(super) field: u16,
}

/// An ACK's relation to the ones before it.
pub(super) struct Place {
    pub(super) ack: i64,
    pub(super) is_old: bool,
    pub(super) acked_bytes: i64,
    /// Data was in flight.
    pub(super) in_flight: bool,
}

impl Laws {
    pub(super) fn windows(
        &mut self,
        segment: &Segment,
        action: &Action,
        after: &FlowState,
        place: &Place,
    ) {
        let Place { ack, is_old, acked_bytes, in_flight } = *place;
        let (peer_scale, guest_scale) =
            if self.scaled() { (self.peer_wscale, self.peer.wscale) } else { (0, 0) };
        let offered_bytes = i64::from(segment.window) << peer_scale;
        let shown_bytes = i64::from(action.window) << guest_scale;
        // The window that the guest's scale can express.
        let said_bytes = offered_bytes.min(65535 << guest_scale);
        let edge = ack + shown_bytes;

        if self.left_alone() {
            assert_eq!(shown_bytes, said_bytes, "windows of a flow left alone are unchanged");
            assert_eq!(u32::from(action.verdict), sys::VCC_PASS);
            return;
        }
        assert!(shown_bytes <= offered_bytes, "law 1: {shown_bytes} of {offered_bytes} bytes");
        assert_eq!(action.window == 0, segment.window == 0, "law 3");
        self.counts.zero_windows += u64::from(segment.window == 0);

        let pure = segment.payload_bytes == 0 && segment.flags & FIN == 0;
        let repeats = self.last.is_some_and(|_| !is_old && acked_bytes == 0 && pure && in_flight);
        let last = self.last.unwrap_or(Shown { received: 0, field: 0 });
        let duplicate = repeats && segment.window == last.received;
        let has_sack = segment.options & sys::OPT_SACK as u16 != 0;
        let by_blocks = has_sack && self.guest.sacks && self.peer.sacks;
        if duplicate {
            self.counts.duplicates += 1;
            assert_eq!(
                u32::from(action.verdict),
                sys::VCC_PASS,
                "law 4: a duplicate ACK must pass"
            );
        }
        if duplicate && !by_blocks {
            assert_eq!(action.window, last.field, "law 4: a duplicate ACK repeats the window");
        }
        self.counts.grants += u64::from(by_blocks && repeats && action.window > last.field);
        if u32::from(action.verdict) == sys::VCC_DROP {
            self.counts.updates_dropped += 1;
            assert!(
                repeats && !duplicate && !has_sack,
                "law 4: only a would-be duplicate ACK is dropped"
            );
            assert_eq!(action.window, last.field, "law 4: a dropped update had news");
        } else if repeats && !duplicate && !has_sack {
            assert_ne!(action.window, last.field, "law 4: a window update became a duplicate");
        }

        let unit_bytes = 1 << guest_scale;
        // An old ACK matters only if the guest missed the newer ones: it is rounded down.
        let old_slack_bytes = if is_old { unit_bytes - 1 } else { 0 };
        let edge = edge + old_slack_bytes;
        assert!(
            edge >= self.furthest_edge.min(ack + said_bytes),
            "law 2: the right edge moved left"
        );
        // A FIN may be one beyond the window; a duplicate ACK repeats the window even so.
        let repeated = duplicate && !by_blocks;
        if !repeated {
            assert!(
                edge >= self.nxt.min(ack + said_bytes),
                "law 2: the window is below the flight"
            );
        }
        if is_old {
            self.counts.old_acks += 1;
            return;
        }
        let mss_bytes = i64::from(after.mss_bytes);
        let by_cwnd = shown_bytes < said_bytes
            && !repeated
            && edge >= self.furthest_edge.max(self.nxt) + unit_bytes;
        if by_cwnd {
            self.counts.exact_windows += 1;
            let in_flight_bytes = self.nxt - self.una;
            let reduces = [sys::CA_CWR, sys::CA_RECOVERY].contains(&u32::from(after.ca_state));
            // Rounded up to the scale's unit, or down for a guest that sends runts. PRR counts from
            // the flight, which may end within a segment.
            let sends_runts = after.fills != 0;
            let is_whole = |bytes: i64| {
                let behind_bytes = bytes % mss_bytes;
                behind_bytes < unit_bytes || (sends_runts && mss_bytes - behind_bytes < unit_bytes)
            };
            let from_flight = reduces || sends_runts;
            assert!(
                is_whole(shown_bytes) || (from_flight && is_whole(shown_bytes - in_flight_bytes)),
                "law 12: {shown_bytes} bytes are not whole segments of {mss_bytes}"
            );
            let in_flight_segs = (in_flight_bytes + mss_bytes - 1) / mss_bytes;
            // A paced window has the part of a segment, too, which the pace sees to.
            let has_part = after.cc.part_1024 > 0;
            let cwnd_segs = i64::from(after.cc.cwnd_segs) + i64::from(has_part);
            let dupacks = i64::from(after.dupacks);
            let most_segs = (cwnd_segs + dupacks).max(in_flight_segs + 1).max(2);
            assert!(
                shown_bytes < most_segs * mss_bytes + unit_bytes,
                "law 12: {shown_bytes} bytes for cwnd {cwnd_segs}, flight {in_flight_segs}"
            );
        }
        self.furthest_edge = self.furthest_edge.max(edge);
        self.last = Some(Shown { received: segment.window, field: action.window });
    }
}
