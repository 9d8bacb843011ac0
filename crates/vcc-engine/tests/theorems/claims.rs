//! What is claimed after each event.

use super::guest::{Halves, Sent};
use super::native::State;
use super::run::Run;
use vcc_engine::sys;

impl Run {
    pub fn place(&self, what: &str) -> String {
        format!("seed {}, event {}: {what}", self.seed, self.counts.events)
    }

    /// The engine computes the native sender's window (law 11, with losses).
    pub fn same_law(&self) {
        let flow = &self.conn.flow;
        let native = &self.native;
        let ours = (u64::from(flow.cc.cwnd_segs), u64::from(flow.cc.ssthresh_segs));
        let theirs = (native.window.cwnd, native.window.ssthresh);
        assert_eq!(ours, theirs, "{}", self.place("cwnd and ssthresh of engine and native sender"));
        let state = match native.state {
            State::Open => sys::CA_OPEN,
            State::Cwr => sys::CA_CWR,
            State::Recovery => sys::CA_RECOVERY,
            State::Loss => sys::CA_LOSS,
        };
        assert_eq!(u32::from(flow.ca_state), state, "{}", self.place("state"));
        if let Some(alpha) = &native.alpha {
            let ours = u64::from(flow.cc.own[sys::DCTCP_ALPHA as usize]);
            assert_eq!(ours, alpha.value, "{}", self.place("alpha"));
        }
    }

    /// Lemma 1 and 2: the engine's window is not above the guest's, nor, at the same window, its
    /// credit; and the engine's slow start ends where the guest's does, or within its window.
    ///
    /// The papers' ssthresh is not above the guest's either. It may be: a mark halves a window that
    /// has grown since the guest's last loss, and the guest knows nothing of it.
    ///
    /// Some things may end that, until it is so again. A loss that a mark's reduction has answered:
    /// the guest halves, but alpha may have taken less. A guest that halves its flight, while that
    /// is less than the window is, or was before the mark. A restart after an idle period, which
    /// takes the guest's window, but not ssthresh. And a window that was not used: it shrinks, but
    /// keeps its credit.
    pub fn lemma_1(&mut self) {
        let (ours, guests) = (self.native.window, self.guest.window);
        let repairs = matches!(self.native.state, State::Recovery | State::Loss);
        let ends = if repairs { guests.ssthresh } else { guests.ssthresh.max(guests.cwnd) };
        self.ordered =
            (ours.cwnd, ours.credit) <= (guests.cwnd, guests.credit) && ours.ssthresh <= ends;
        let less = self.native.alpha.is_some() || self.halves == Halves::Flight;
        self.excused |= std::mem::take(&mut self.native.answered) && less;
        self.excused |= std::mem::take(&mut self.restarted) || self.native.has_old_credit();
        // A reduction for a mark is of the window before it.
        self.excused &= !self.ordered || self.native.state == State::Cwr;
        let place = self.place("lemma 1");
        assert!(self.ordered || self.excused, "{place}: {ours:?} {guests:?}");
    }

    /// Lemma 3: both recover at the same time, up to the same segment.
    pub fn lemma_3(&self) {
        assert_eq!(
            self.guest.in_recovery,
            self.native.is_recovering(),
            "{}",
            self.place("lemma 3")
        );
        if self.guest.in_recovery {
            let recover = self.conn.seq((self.guest.recover.unwrap() * self.mss) as u32);
            assert_eq!(self.conn.flow.recover, recover, "{}", self.place("recover"));
        }
    }

    /// Equation 16: the guest sends what the native sender would, but
    ///
    /// - up to the right edge that it was shown before a reduction, since that stays (law 2);
    /// - nothing new from a duplicate ACK, which repeats its window (law 4), to the next new one;
    /// - after a timeout, what was in flight, by its own window alone;
    /// - and less, where Lemma 1 does not hold.
    pub fn compare(&mut self, sent: &Sent, native: &Sent, first: u64) {
        let at = |what| format!("{}: {sent:?}, natively {native:?}", self.place(what));
        let admitted = self.native.at.una + self.native.admits().min(self.offered());
        let highest = sent.new.last().map_or(first, |last| last + 1);
        assert!(highest <= first.max(admitted).max(self.edge), "{}", at("more than admitted"));
        if !self.ordered {
            self.counts.below += 1;
        } else if self.native.state == State::Loss && sent.again != native.again {
            assert!(sent.again.starts_with(&native.again), "{}", at("after a timeout"));
            self.counts.caught_up += 1;
        } else if self.edge > admitted.max(first) {
            assert_eq!(sent.again, native.again, "{}", at("retransmissions"));
            assert!(sent.new.starts_with(&native.new), "{}", at("less than admitted"));
            self.counts.edge_kept += 1;
        } else if self.repeats && self.guest.in_recovery {
            assert_eq!(sent.again, native.again, "{}", at("retransmissions"));
            assert!(native.new.starts_with(&sent.new), "{}", at("a duplicate"));
            self.counts.repeated += 1;
        } else {
            assert_eq!(sent, native, "{}", at("equation 16"));
            self.counts.equal += 1;
            self.counts.equal_sent += u64::from(!sent.again.is_empty() || !sent.new.is_empty());
        }
    }
}
