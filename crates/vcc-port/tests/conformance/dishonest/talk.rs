//! One connection with a dishonest peer.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::thread;
use std::time::{Duration, Instant};

use vcc_engine::sys;
use vcc_frames::wire::*;
use vcc_port::{Flow, FlowId};

use super::generate::{Generator, Step, View, stamp};
use crate::application::Application;
use crate::bed::{GUEST, Lane, Settings};
use crate::option::TcpOption;
use crate::peer::Peer;
use crate::play::{LISTENER_PORT, OPENER_PORT};
use crate::segment::{Segment, relative};
use crate::wire::Seen;

const STEPS: u64 = 40;
/// The guest and the port agree by then, or never.
const SETTLED: Duration = Duration::from_secs(1);
const LOOK_AGAIN: Duration = Duration::from_millis(5);
const UNACKED_MOST_BYTES: i64 = 10_000;
const FIRST_TIME: u32 = 1000;
/// The largest window that a SYN can offer ends here: a port cannot see what the guest has behind it.
const SYN_EDGE: i64 = 1 + 65_535;

struct Talk<'a> {
    lane: &'a mut Lane,
    settings: Settings,
    application: Application,
    generator: Generator,
    peer: Peer,
    view: View,
    guest_opens: bool,
    /// TCP_INFO's counts when the connection was made, when all of these numbers were 1.
    acked_before: u64,
    received_before: u64,
    scale: u8,
    has_shut_down: bool,
    /// What the peer has done that a port does not judge as the stack does.
    unjudged: Unjudged,
    history: Vec<String>,
}

#[derive(Default)]
struct Unjudged {
    /// A FIN behind data that are missing, or at a byte that came before: the port notes it when it
    /// passes.
    odd_fin: bool,
    /// A segment with a timestamp of the past, which the stack discards by PAWS (RFC 7323, 5).
    stale: bool,
    /// A RST that Linux takes and a port does not: with SYN, as no TCP sends it, or at the end of what
    /// the guest has reported by SACK.
    odd_rst: bool,
    /// The guest's answer to a stray segment, which the peer would not believe.
    rst_of_guest: bool,
    /// By an odd FIN both ends had finished, and a SYN of the peer's began anew.
    began_anew: bool,
}

/// What the end believes, or the port.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Belief {
    snd_una: i64,
    snd_nxt: i64,
    rcv_nxt: i64,
    fin_of_guest: bool,
    fin_of_peer: bool,
}

/// Plays a seed in the lane, inside of its guest, with a peer of this address. Returns the number of
/// steps.
///
/// # Errors
/// Where the port and the guest differ, and all that was sent.
pub fn play(seed: u64, lane: &mut Lane, address: Ipv4Addr) -> Result<u64, String> {
    let mut generator = Generator::new(seed);
    let guest_opens = generator.is_one_in(2);
    let (ours, theirs) =
        if guest_opens { (OPENER_PORT, LISTENER_PORT) } else { (LISTENER_PORT, OPENER_PORT) };
    let isn = generator.number();
    let isn = generator.any(&[isn, isn, u32::MAX - isn % 5000, i32::MAX as u32 - isn % 5000]);
    let is_stale = generator.is_one_in(8);
    let mode = lane.mode.name();
    let (guest, address) = (SocketAddrV4::new(GUEST, ours), SocketAddrV4::new(address, theirs));
    let mut talk = Talk {
        lane,
        settings: Settings::begin(),
        application: Application::default(),
        generator,
        peer: Peer::new(guest, address, isn),
        view: View { is_stale, ..View::default() },
        guest_opens,
        acked_before: 0,
        received_before: 0,
        scale: 0,
        has_shut_down: false,
        unjudged: Unjudged::default(),
        history: Vec::new(),
    };
    let outcome = talk.open().and_then(|()| talk.go_on());
    talk.application.end();
    talk.fence();
    talk.lane.forget();
    outcome.map_err(|why| format!("seed {seed}, {mode}: {why}\n{}", talk.history.join("\n")))
}

impl Talk<'_> {
    fn fence(&mut self) {
        self.lane.fabric.fence(&self.peer.blank());
    }

    fn log(&mut self, what: String) {
        self.history.push(format!("  {what}"));
    }

    fn send(&mut self, segment: &Segment) -> Result<(), String> {
        self.log(format!("< {segment}"));
        let frame = self.peer.packet(segment)?.frame();
        self.lane.fabric.send(&frame);
        Ok(())
    }

    /// Takes what has come from the guest.
    fn collect(&mut self) {
        self.fence();
        while let Some(outer) = self.lane.fabric.poll() {
            if !self.peer.knows(&outer.packet) {
                continue;
            }
            while let Some(inner) = self.lane.listener.poll(true) {
                if self.peer.knows(&inner.packet) && inner.packet.seq == outer.packet.seq {
                    self.learn(&inner, &outer);
                    break;
                }
            }
        }
        while self.lane.listener.poll(false).is_some() {}
    }

    fn learn(&mut self, inner: &Seen, outer: &Seen) {
        self.peer.learn(inner, outer);
        let segment = Segment::from_packet(&inner.packet, true, self.peer.initial);
        self.log(format!("> {segment}"));
        self.unjudged.rst_of_guest = segment.flags & RST != 0;
        if self.unjudged.rst_of_guest {
            return;
        }
        let ends = i64::from(segment.bytes)
            + i64::from(segment.flags & SYN != 0)
            + i64::from(segment.flags & FIN != 0);
        self.view.snd_nxt = self.view.snd_nxt.max(segment.seq + ends);
        for option in segment.options.iter().flatten() {
            match option {
                TcpOption::WindowScale(Some(scale)) => self.scale = *scale,
                TcpOption::Timestamps { echo: Some(echo), .. } if segment.ack.is_some() => {
                    if echo.wrapping_sub(self.view.recent) as i32 > 0 {
                        self.view.recent = *echo;
                    }
                    self.view.has_timestamps = true;
                }
                _ => {}
            }
        }
        if let Some(ack) = segment.ack {
            let scale = if segment.flags & SYN == 0 { self.scale } else { 0 };
            let window_bytes = i64::from(segment.window.unwrap_or(0)) << scale;
            self.view.rcv_nxt = self.view.rcv_nxt.max(ack);
            self.view.rcv_edge = self.view.rcv_edge.max(ack + window_bytes);
        }
    }

    fn syn_options(&mut self, has_scale: bool) -> Vec<TcpOption> {
        let scale = TcpOption::WindowScale(Some(self.generator.any(&[0, 2, 8, 14])));
        let mut options = vec![TcpOption::Mss(Some(self.generator.any(&[536, 1000, 1460])))];
        options.push(TcpOption::SackPermitted);
        options.push(stamp(FIRST_TIME));
        options.extend(has_scale.then_some(scale));
        options
    }

    fn open(&mut self) -> Result<(), String> {
        for name in ["tcp_sack", "tcp_timestamps", "tcp_window_scaling"] {
            let value = self.generator.any(&["0", "1", "1"]);
            self.settings.set(name, value)?;
            self.log(format!("set {name} {value}"));
        }
        let has_scale = !self.generator.is_one_in(3);
        if self.guest_opens {
            self.guest_opens(has_scale)?
        } else {
            self.guest_listens(has_scale)?
        }
        if !has_scale {
            self.scale = 0;
        }
        self.application.set_option("SO_OOBINLINE", 1)?;
        let info = self.application.info()?;
        (self.acked_before, self.received_before) = (info.bytes_acked, info.bytes_received);
        self.view.snd_una = 1;
        self.agree()
    }

    fn guest_opens(&mut self, has_scale: bool) -> Result<(), String> {
        self.application.connect(self.peer.guest, self.peer.address)?;
        self.log("connect".into());
        self.collect();
        let has_time = self.history.last().is_some_and(|entry| entry.contains("TS"));
        let mut answer = Segment {
            flags: SYN | ACK,
            ece_if_asked: true,
            ack: Some(1),
            window: Some(20_000),
            ..Segment::default()
        };
        let mut options = self.syn_options(has_scale);
        options.retain(|option| has_time || !matches!(option, TcpOption::Timestamps { .. }));
        answer.options = Some(options);
        for _ in 0..self.generator.below(3) {
            let wrong = Segment {
                flags: self.generator.any(&[SYN | ACK, RST | ACK, RST, ACK]),
                seq: i64::from(self.generator.number() as i32),
                ack: Some(self.generator.any(&[0, 2, -1, 100_000])),
                ..answer.clone()
            };
            let ack = wrong.ack.filter(|_| wrong.flags & ACK != 0);
            self.send(&Segment { ack, ..wrong })?;
        }
        self.send(&answer)?;
        if self.generator.is_one_in(3) {
            // Another, which is too late.
            let seq = i64::from(self.generator.number() as i32);
            self.send(&Segment { seq, window: Some(7), ..answer })?;
        }
        self.collect();
        self.application.connected()
    }

    fn guest_listens(&mut self, has_scale: bool) -> Result<(), String> {
        self.application.listen(self.peer.guest)?;
        self.log("listen".into());
        let flags = self.generator.any(&[SYN, SYN | ECE | CWR]);
        let options = Some(self.syn_options(has_scale));
        let syn = Segment { flags, window: Some(20_000), options, ..Segment::default() };
        self.send(&syn)?;
        self.collect();
        for _ in 0..self.generator.below(3) {
            let seq = i64::from(self.generator.number() as i32);
            let flags = self.generator.any(&[SYN, RST]);
            let options = syn.options.clone().filter(|_| flags & SYN != 0);
            let stray = Segment { flags, seq, options, ..syn.clone() };
            self.send(&stray)?;
            self.collect();
        }
        let time = self.view.has_timestamps.then(|| vec![stamp(FIRST_TIME + 1)]);
        let last = Segment {
            flags: ACK,
            seq: 1,
            ack: Some(1),
            window: Some(20_000),
            options: time,
            ..Segment::default()
        };
        self.send(&last)?;
        self.application.accept()?;
        self.collect();
        Ok(())
    }

    fn go_on(&mut self) -> Result<u64, String> {
        for step in 0..STEPS {
            match self.generator.step(&self.view) {
                Step::Peer(segment) => self.peer_sends(&segment)?,
                Step::Send { bytes } => self.guest_sends(bytes)?,
                Step::Read => self.application.receive_available()?,
                Step::ShutDown if !self.has_shut_down => {
                    self.log("shutdown".into());
                    self.has_shut_down = true;
                    self.application.shut_down()?;
                }
                Step::ShutDown => {}
            }
            self.collect();
            self.agree()?;
            if self.application.state()? == "CLOSE" {
                return Ok(step + 1);
            }
        }
        Ok(STEPS)
    }

    fn guest_sends(&mut self, bytes: usize) -> Result<(), String> {
        let is_full = self.application.sent_bytes() + 1 - self.view.snd_una > UNACKED_MOST_BYTES;
        if self.has_shut_down || is_full {
            return Ok(());
        }
        self.log(format!("send {bytes}"));
        self.application.send(bytes, false)
    }

    fn peer_sends(&mut self, segment: &Segment) -> Result<(), String> {
        let (before, sent_before) = (self.flow()?, self.view.snd_nxt);
        let is_acceptable = self.is_acceptable(segment);
        self.note(segment, is_acceptable);
        self.send(segment)?;
        if is_acceptable {
            return Ok(());
        }
        self.collect();
        let is_over = |flow: &Flow| u32::from(flow.state.stage) == sys::STAGE_CLOSED;
        let core = |flow: &Option<Flow>| flow.as_ref().map(core);
        let after = self.flow()?;
        if before.as_ref().is_some_and(is_over) && segment.flags & SYN != 0 {
            self.unjudged.began_anew = true;
        }
        // A guest's segments are tracked, for any cause of sending.
        let was_over = self.unjudged.began_anew || before.as_ref().is_some_and(is_over);
        if !was_over && self.view.snd_nxt == sent_before && core(&before) != core(&after) {
            let states = [core(&before), core(&after)];
            return Err(format!("a segment that every end discards changed the flow: {states:#?}"));
        }
        Ok(())
    }

    fn note(&mut self, segment: &Segment, is_acceptable: bool) {
        let is_behind = segment.seq > self.view.rcv_nxt;
        self.unjudged.odd_rst = segment.flags & RST != 0 && (segment.flags & SYN != 0 || is_behind);
        if !is_acceptable || segment.flags & RST != 0 {
            return;
        }
        let time = segment.options.iter().flatten().find_map(|option| match option {
            TcpOption::Timestamps { value, .. } => *value,
            _ => None,
        });
        let is_early = segment.seq > self.view.rcv_nxt;
        let is_new = segment.seq + i64::from(segment.bytes) >= self.view.rcv_nxt;
        self.unjudged.odd_fin |= (is_early || !is_new) && segment.flags & FIN != 0;
        let Some(time) = time.filter(|_| self.view.has_timestamps) else { return };
        let newer_by = time.wrapping_sub(self.view.recent) as i32;
        self.unjudged.stale |= newer_by < 0;
        let is_of_this = segment.ack.is_some_and(|ack| ack >= 1);
        if newer_by > 0 && !is_early && is_of_this {
            self.view.recent = time;
        }
    }

    /// Whether an end may take it (RFC 9293, 3.10.7.4; RFC 5961).
    fn is_acceptable(&self, segment: &Segment) -> bool {
        let view = &self.view;
        let end = segment.seq + i64::from(segment.bytes) + i64::from(segment.flags & FIN != 0);
        if segment.flags & SYN != 0 {
            return false;
        }
        if segment.flags & RST != 0 {
            // At a FIN, too.
            return [view.rcv_nxt, view.rcv_nxt - 1].contains(&segment.seq);
        }
        let edge = view.rcv_edge.max(SYN_EDGE);
        let is_in_window = end >= view.rcv_nxt && segment.seq <= edge;
        is_in_window && segment.ack.is_some_and(|ack| ack <= view.snd_nxt)
    }

    fn flow(&self) -> Result<Option<Flow>, String> {
        let port = self.lane.port.as_ref().ok_or("a lane without a port")?;
        let (guest, peer) = (self.peer.guest.into(), self.peer.address.into());
        port.flow(&FlowId { guest, peer, vlan: None, inside: false }).map_err(|e| e.to_string())
    }

    /// The state that the guest's stack reports.
    fn real(&mut self) -> Result<(&'static str, Belief), String> {
        let (state, info) = (self.application.state()?, self.application.info()?);
        let since = |now: u64, before: u64| 1 + (now - before) as i64;
        self.view.snd_una = since(info.bytes_acked, self.acked_before);
        let belief = Belief {
            snd_una: self.view.snd_una,
            snd_nxt: self.view.snd_nxt,
            rcv_nxt: since(info.bytes_received, self.received_before),
            fin_of_guest: self.has_shut_down
                && self.application.sent_bytes() + 2 == self.view.snd_nxt,
            fin_of_peer: ["CLOSE_WAIT", "LAST_ACK", "CLOSING"].contains(&state),
        };
        Ok((state, belief))
    }

    fn believed(&self, flow: &Flow) -> Belief {
        let (state, initial) = (&flow.state, self.peer.initial);
        let of_guest = |number| relative(number, initial.guest.unwrap_or(0));
        Belief {
            snd_una: of_guest(state.snd_una),
            snd_nxt: of_guest(state.snd_nxt),
            rcv_nxt: relative(state.rcv_nxt, initial.peer),
            fin_of_guest: state.has(sys::FLOW_FIN_GUEST),
            fin_of_peer: state.has(sys::FLOW_FIN_PEER),
        }
    }

    /// The port believes what the guest believes, as soon as what is under way has arrived.
    fn agree(&mut self) -> Result<(), String> {
        let deadline = Instant::now() + SETTLED;
        loop {
            let Err(why) = self.compare()? else { return Ok(()) };
            if Instant::now() > deadline {
                return Err(why);
            }
            thread::sleep(LOOK_AGAIN);
            self.collect();
        }
    }

    fn compare(&mut self) -> Result<Result<(), String>, String> {
        let (state, real) = self.real()?;
        let flow = self.flow()?;
        let Some(flow) = flow else {
            let gone = || "the port has no flow".to_string();
            return Ok(if state == "CLOSE" { Ok(()) } else { Err(gone()) });
        };
        if !flow.state.is_sound() {
            return Ok(Err(format!("the flow's state is not sound: {:?}", flow.state.0)));
        }
        let is_closed = u32::from(flow.state.stage) == sys::STAGE_CLOSED;
        let believed = self.believed(&flow);
        let different = || {
            let stage = flow.state.stage;
            format!("the guest is {state}: {real:?}\nthe port's stage is {stage}: {believed:?}")
        };
        let agrees = self.may_be(state, &real, is_closed, &believed);
        Ok(if agrees { Ok(()) } else { Err(different()) })
    }

    /// Whether a port may believe this.
    fn may_be(&self, state: &str, real: &Belief, is_closed: bool, believed: &Belief) -> bool {
        let unjudged = &self.unjudged;
        if unjudged.began_anew {
            return true;
        }
        if unjudged.stale {
            // It is ahead of the stack, and never behind.
            return believed.snd_una >= real.snd_una && believed.rcv_nxt >= real.rcv_nxt;
        }
        if state == "CLOSE" {
            return is_closed || unjudged.odd_rst || unjudged.rst_of_guest;
        }
        let sees_fin = real.fin_of_peer || (unjudged.odd_fin && believed.fin_of_peer);
        let is_over = real.fin_of_guest && sees_fin;
        // By a RST at what a port takes for the peer's FIN; what the guest sends next opens it again.
        let is_closed_by_fin = is_closed && unjudged.odd_fin;
        *believed == Belief { fin_of_peer: sees_fin, ..*real }
            && (is_closed == is_over || is_closed_by_fin)
    }
}

/// What no segment changes that its receiver discards.
fn core(flow: &Flow) -> impl PartialEq + std::fmt::Debug + use<> {
    let flow = &flow.state;
    let fins = flow.flags & (sys::FLOW_FIN_GUEST | sys::FLOW_FIN_PEER);
    let cc = (flow.cc.cwnd_segs, flow.cc.ssthresh_segs, flow.cc.credit_bytes, flow.cc.own);
    (
        (flow.stage, fins, flow.ca_state, flow.underlay, cc),
        (flow.snd_una, flow.snd_nxt, flow.rcv_nxt, flow.right_edge),
        (flow.dupacks, flow.marks, flow.reductions, flow.recover, flow.retransmissions),
        (flow.mss_bytes, flow.wscale_peer, flow.wscale_shown, flow.window_received),
        (flow.srtt_us8, flow.counted.ce_bytes, flow.counted.ect0_bytes),
    )
}
