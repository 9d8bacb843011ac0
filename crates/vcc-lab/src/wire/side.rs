//! One of the two sides of a pair: a wire with its treatment, and the traffic over it.

use super::connections::{OpenFiles, PORT, accept_all, connect_all, own_file_table};
use super::devices::{Limited, Place, Wire};
use super::half::{Half, Mark};
use super::parameters::{Parameters, Treatment};
use super::traffic::{self, Progress};
use super::translated::{Attached, PassedBy};
use crate::backend::live::hosts::Proxy;
use crate::base::error::Result;
use crate::base::meter::Reading;
use crate::base::system::now_ns;
use std::net::SocketAddr;
use std::sync::mpsc;
use std::thread::{Scope, ScopedJoinHandle};
use vcc_port::RunTimes;
use vcc_traffic::pin_to_cpu;

/// One CPU for each end, as on two hosts: the scheduler does not decide which end pays for a
/// segment.
const SENDER_CPU: usize = 0;
const RECEIVER_CPU: usize = 1;

/// A side before its connections are made.
pub struct Side<'a> {
    wire: &'a Wire,
    case: &'a Parameters,
    /// The address that the sender connects to.
    to: SocketAddr,
    attached: Attached,
    progress: Progress,
    _limited: Option<Limited<'a>>,
    _proxy: Option<Proxy>,
    _files: OpenFiles,
}

impl<'a> Side<'a> {
    pub fn treat(wire: &'a Wire, case: &'a Parameters, treatment: &Treatment) -> Result<Self> {
        wire.set_ecn(Place::Sender, treatment.sender.ecn)?;
        wire.set_ecn(Place::Receiver, treatment.receiver.ecn)?;
        let limited = treatment.rate_limit_bps.map(|bps| wire.limit(bps)).transpose()?;
        let vcc = [
            (Place::Sender, treatment.sender.translation.as_ref()),
            (Place::Receiver, treatment.receiver.translation.as_ref()),
        ];
        let attached = Attached::attach(wire, vcc)?;
        let to = SocketAddr::new(Place::Receiver.address(), PORT);
        // Each end has a table of files of its own. A proxy inherits the limit, and has two sockets
        // a flow; without one that limit need not be raised so far, for not everybody may.
        let sockets_a_flow = 1 + usize::from(treatment.proxy.is_some());
        let files = OpenFiles::allow(sockets_a_flow * case.flows)?;
        let proxy = treatment.proxy.as_ref().map(|name| wire.proxy(name, to)).transpose()?;
        Ok(Self {
            wire,
            case,
            to: proxy.as_ref().map_or(to, Proxy::address),
            attached,
            progress: Progress::default(),
            _limited: limited,
            _proxy: proxy,
            _files: files,
        })
    }

    /// Makes the connections, over which nothing goes before its first turn. The threads end when
    /// `stop` is called, or one of them fails.
    pub fn start<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
    ) -> Result<Running<'scope>> {
        let (case, to, progress) = (self.case, self.to, &self.progress);
        // Each end of a channel is moved into the thread that uses it, so that the other thread
        // notices when that thread has failed.
        let (ready, is_ready) = mpsc::channel();
        let (connected, is_connected) = mpsc::channel();
        let receive = move || {
            own_file_table()?;
            let _ = pin_to_cpu(RECEIVER_CPU);
            let sockets = accept_all(case.flows, &ready, &|| progress.is_stopped())?;
            traffic::receive(&sockets, progress)
        };
        let send = move || {
            own_file_table()?;
            let _ = pin_to_cpu(SENDER_CPU);
            let sockets = connect_all(to, case.flows, &is_ready)?;
            // Sending fails only if this run has failed.
            let _ = connected.send(());
            traffic::send(&sockets, case.demand, progress)
        };
        let ends = [
            scope.spawn(move || self.wire.guest(Place::Receiver).inside(receive)),
            scope.spawn(move || self.wire.guest(Place::Sender).inside(send)),
        ];
        // An end that fails reports it when it is joined.
        let is_whole = is_connected.recv().is_ok();
        let passed_by_before = self.attached.passed_by()?;
        Ok(Running { side: self, ends, is_whole, passed_by_before })
    }

    /// Ends its traffic, at once.
    pub fn stop(&self) {
        self.progress.stop();
    }
}

/// A side with its connections and the two threads that hold them.
pub struct Running<'scope> {
    side: &'scope Side<'scope>,
    ends: [ScopedJoinHandle<'scope, Result<()>>; 2],
    is_whole: bool,
    passed_by_before: Vec<PassedBy>,
}

impl Running<'_> {
    /// Whether one of its threads has ended; the thread reports the reason when it is joined.
    pub fn has_ended(&self) -> bool {
        !self.is_whole || self.ends.iter().any(ScopedJoinHandle::is_finished)
    }

    /// Begins or ends the side's turn. Segments in flight still arrive.
    pub fn set_turn(&self, is_on: bool) {
        self.side.progress.set_turn(is_on);
    }

    pub fn count_run_times(&self) -> Result<Option<RunTimes>> {
        self.side.attached.count_run_times()
    }

    pub fn mark(&self) -> Result<Mark> {
        Ok(Mark {
            at_ns: now_ns(),
            programs: self.side.attached.run_time()?,
            received_bytes: self.side.progress.received_bytes(),
            reading: Reading::take()?,
        })
    }

    /// Why its measurement is not valid. Call it while the connections exist: flows that have ended
    /// are no longer managed.
    pub fn doubts(&self, half: &Half) -> Result<Vec<String>> {
        let case = self.side.case;
        let mut doubts = self.side.attached.doubts(case.flows, &self.passed_by_before)?;
        doubts.extend(half.doubts(case.demand.bytes_per_s(case.flows)));
        Ok(doubts)
    }

    pub fn join(self) -> Result<()> {
        // If both ends failed, the receiver's error is the cause.
        let [receiver, sender] = self.ends.map(join);
        receiver.and(sender)
    }
}

fn join(handle: ScopedJoinHandle<'_, Result<()>>) -> Result<()> {
    handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Ends the threads of a scope on every way out of it.
pub struct StopOnDrop<'a>(pub &'a [Side<'a>]);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.iter().for_each(Side::stop);
    }
}
