use crate::common::sim::Rng;
use crate::common::*;
use vcc_engine::{Params, sys};

use super::counts::Counts;
use super::guest::{Guest, Halves};
use super::native::{Marks, Native};
use super::peer::{Ack, Packet, Peer, Reporting};

/// How path and application behave for a while.
#[derive(Clone, Copy)]
struct Phase {
    mark_permille: u32,
    loss_permille: u32,
    ack_loss_permille: u32,
    timeout_permille: u32,
    /// A delayed ACK for this many segments.
    acks_every: u64,
    packets_max: u64,
}

impl Phase {
    fn new(rng: &mut Rng) -> Self {
        Phase {
            mark_permille: rng.pick(&[0, 5, 20, 100, 500, 1000]),
            loss_permille: rng.pick(&[0, 0, 0, 5, 20, 100]),
            ack_loss_permille: rng.pick(&[0, 0, 0, 50, 300]),
            timeout_permille: rng.pick(&[0, 0, 0, 5]),
            acks_every: rng.pick(&[1, 2, 2, 8]),
            packets_max: rng.pick(&[1, 2, 4, 16]),
        }
    }
}

/// The paper's guest behind the engine, and a native sender that gets the same events.
pub struct Run {
    pub seed: u64,
    rng: Rng,
    pub conn: Conn,
    pub guest: Guest,
    pub native: Native,
    peer: Peer,
    phase: Phase,
    reporting: Reporting,
    pub mss: u64,
    peer_window: u16,
    /// The application has written so many segments, or always has more.
    written: u64,
    backlogged: bool,
    /// The highest segment that a window shown to the guest has admitted.
    pub edge: u64,
    /// The last ACK was a duplicate.
    pub repeats: bool,
    /// The retransmission timer was restarted.
    progress_us: u64,
    last_report: [u64; 2],
    pub halves: Halves,
    /// Lemma 1 holds, or it is known why it does not.
    pub ordered: bool,
    pub excused: bool,
    pub restarted: bool,
    pub counts: Counts,
}

const INITIAL_SEGS: u64 = 10;
const SYNACK_FIELD: u16 = 64240;

fn params_of(dctcp: bool, police: bool) -> Params {
    let mut params = underlay(if dctcp { "dctcp" } else { "reno-ecn" });
    // The papers' senders reduce at once and know no DSACK.
    (params.0.prr, params.0.undo, params.0.police) = (0, 0, police.into());
    // Their guest answers each ACK before the next one arrives, so nothing is about to be sent.
    params.0.delays = 0;
    params
}

impl Run {
    pub fn new(seed: u64, dctcp: bool) -> Self {
        let mut rng = Rng::new(seed);
        let reporting = match dctcp {
            true => rng.pick(&[Reporting::DctcpEcho, Reporting::Reports]),
            false => Reporting::ClassicEcho,
        };
        let params = params_of(dctcp, rng.chance(500));
        let syn = linux_syn().without(sys::OPT_SACK_PERMITTED);
        let isn = rng.pick(&ISNS);
        let conn = match reporting {
            Reporting::Reports => Conn::opened(params, isn, syn.room(ROOM_BYTES), syn.accept()),
            Reporting::DctcpEcho => Conn::opened(params, isn, syn, syn.ect0()),
            Reporting::ClassicEcho => Conn::opened(params, isn, syn, syn),
        };
        assert!(conn.flow.is_managed() && conn.flow.has(sys::FLOW_ECN_FABRIC));
        let mss = u64::from(conn.mss());
        let backlogged = rng.chance(600);
        let halves =
            if backlogged { rng.pick(&[Halves::Window, Halves::Flight]) } else { Halves::Window };
        Run {
            seed,
            guest: Guest::new(INITIAL_SEGS, mss, SYNACK_FIELD.into(), halves),
            native: Native::new(INITIAL_SEGS, dctcp, SYNACK_FIELD),
            peer: Peer::new(reporting),
            phase: Phase::new(&mut rng),
            reporting,
            mss,
            peer_window: rng.pick(&[20, 64, 256]),
            written: if backlogged { u64::MAX } else { 0 },
            backlogged,
            edge: 0,
            repeats: false,
            progress_us: conn.now_us,
            last_report: [0, 0],
            halves,
            ordered: true,
            excused: false,
            restarted: false,
            counts: Counts::default(),
            conn,
            rng,
        }
    }

    pub fn run(&mut self, events: u64) {
        self.write();
        while self.counts.events < events {
            if self.rng.chance(10) {
                self.phase = Phase::new(&mut self.rng);
            }
            self.step();
        }
    }

    fn rto_us(&self) -> u64 {
        self.conn.flow.rto_us(&self.conn.params).into()
    }

    fn step(&mut self) {
        if self.guest.at.flight() == 0 {
            self.pause();
            self.write();
        } else if self.peer.path.is_empty() || self.rng.chance(self.phase.timeout_permille) {
            self.timeout();
        } else if !self.backlogged && self.rng.chance(100) {
            self.write();
        } else {
            self.round();
        }
    }

    /// Some packets arrive, and their ACKs return.
    fn round(&mut self) {
        let packets = self.rng.range(1, self.phase.packets_max + 1) as usize;
        let mut acks = self.peer.receive(packets, self.phase.acks_every);
        if self.peer.path.is_empty() {
            acks.extend(self.peer.flush());
        }
        for ack in acks {
            if !self.rng.chance(self.phase.ack_loss_permille) {
                self.ack(ack);
            }
        }
    }

    /// Time passes. The retransmission timer of every sender expires when it is due.
    fn wait_us(&mut self, us: u64) {
        let left_us = (self.progress_us + self.rto_us()).saturating_sub(self.conn.now_us);
        if self.guest.at.flight() > 0 && us >= left_us {
            self.timeout();
        }
        self.conn.wait_us(us);
    }

    /// Puts the marks that an ACK reports into its segment, and returns them.
    fn report_marks(&mut self, ack: &Ack, segment: &mut Seg) -> Marks {
        let acked = ack.up_to - self.guest.at.una;
        let marked = if ack.ece { acked } else { 0 };
        match self.reporting {
            Reporting::ClassicEcho => {}
            Reporting::DctcpEcho => *segment = segment.ect0(),
            Reporting::Reports => {
                let bytes = |segs: u64, first: u64| ((segs * self.mss + first) & 0xff_ffff) as u32;
                *segment = segment.pack(bytes(ack.counted[0], 1), bytes(ack.counted[1], 0));
                let [unmarked, marked] = [0, 1].map(|i| ack.counted[i] - self.last_report[i]);
                self.last_report = ack.counted;
                return Marks { reported: unmarked + marked, marked, has_congestion: marked > 0 };
            }
        }
        if ack.ece {
            *segment = segment.ece();
        }
        Marks { reported: acked, marked, has_congestion: ack.ece }
    }

    fn ack(&mut self, ack: Ack) {
        let us = self.rng.range(1, 300);
        self.wait_us(us);
        let offset = (ack.up_to * self.mss) as u32;
        let mut segment = self.conn.ack(offset).win(self.peer_window);
        let acked = ack.up_to - self.guest.at.una;
        let marks = self.report_marks(&ack, &mut segment);
        self.native.use_in_part(self.rto_us());
        let action = self.conn.guest_gets(segment);
        assert!(!is_dropped(&action), "{}", self.place("an ACK is dropped"));
        let (now_us, rto_us) = (self.conn.now_us, self.rto_us());
        let (before, window) = (self.native.state, self.native.window);
        let duplicate = self.native.on_ack(ack.up_to, self.peer_window, marks, now_us, rto_us);
        if acked > 0 {
            self.progress_us = now_us;
        }
        let was_recovering = self.guest.in_recovery;
        self.guest.on_ack(ack.up_to, self.conn.shown_bytes(&action).into());
        if !duplicate {
            let shown = self.native.shows().min(self.offered());
            self.edge = self.edge.max(ack.up_to + shown);
        }
        self.counts.duplicates += u64::from(duplicate);
        self.counts.reductions += u64::from(
            before != self.native.state && window.ssthresh != self.native.window.ssthresh,
        );
        if self.guest.in_recovery && !was_recovering {
            self.counts.recoveries += 1;
            self.guest_halves(window.cwnd);
        }
        self.counts.partial_acks += u64::from(acked > 0 && self.guest.in_recovery);
        self.repeats = duplicate;
        self.event();
    }

    fn timeout(&mut self) {
        let due_us = self.progress_us + self.rto_us();
        self.conn.now_us = due_us.max(self.conn.now_us);
        self.progress_us = self.conn.now_us;
        // The port's deadline may come before the guest's retransmission, or not.
        if self.rng.chance(500) {
            self.conn.deadline();
            let ca_state = self.conn.flow.ca_state;
            assert_eq!(u32::from(ca_state), sys::CA_LOSS, "{}", self.place("the deadline"));
        }
        self.guest.on_timeout();
        self.guest_halves(self.native.window.cwnd);
        self.native.on_timeout(self.conn.now_us);
        self.counts.timeouts += 1;
        self.event();
    }

    /// The guest halves its flight, which may be less than the engine's window of `cwnd`.
    fn guest_halves(&mut self, cwnd: u64) {
        self.excused |= self.halves == Halves::Flight && self.guest.at.flight() < cwnd;
    }

    /// The application pauses with nothing in flight.
    fn pause(&mut self) {
        let rto_us = self.rto_us();
        let us = self.rng.pick(&[0, 100, rto_us / 2, rto_us - 1, rto_us, 3 * rto_us]);
        self.conn.wait_us(us);
    }

    fn write(&mut self) {
        if !self.backlogged {
            let segs = self.rng.pick(&[1, 3, 10, 30, 100]);
            self.written = self.written.max(self.guest.at.nxt) + self.rng.range(1, segs + 1);
        }
        let idle_us = self.conn.now_us - self.progress_us;
        if self.guest.at.flight() == 0 && idle_us >= self.rto_us() {
            self.guest.on_idle();
            self.native.on_idle(self.conn.now_us);
            self.counts.restarts += 1;
            self.restarted = true;
        }
        self.event();
    }

    /// What the peer's window takes, in whole segments.
    pub fn offered(&self) -> u64 {
        (u64::from(self.peer_window) << PEER_WSCALE) / self.mss
    }

    /// All senders send what they may, and are compared.
    fn event(&mut self) {
        self.counts.events += 1;
        let native = self.native.would_send(self.written, self.offered());
        let first = self.guest.at.nxt;
        let was_empty = self.guest.at.flight() == 0;
        let sent = self.guest.send(self.written);
        if was_empty && !sent.new.is_empty() {
            self.progress_us = self.conn.now_us;
        }
        for &segment in sent.again.iter().chain(&sent.new) {
            self.pass(segment);
        }
        self.native.sends(&sent, self.conn.now_us, self.rto_us());
        self.counts.unused = self.native.usage.unused;
        self.same_law();
        self.lemma_1();
        self.lemma_3();
        self.compare(&sent, &native, first);
    }

    /// A segment of the guest passes the port.
    fn pass(&mut self, segment: u64) {
        let data = self.conn.data((segment * self.mss) as u32, self.mss as u32);
        let action = self.conn.guest_sends(data);
        assert!(!is_dropped(&action), "{}", self.place("the guest obeys, and is policed"));
        let marked = is_ect0(&action) && self.rng.chance(self.phase.mark_permille);
        let cwr = has_flags(&action, sys::TCP_CWR);
        if !self.rng.chance(self.phase.loss_permille) {
            self.peer.path.push_back(Packet { segment, marked, cwr });
        }
    }
}
