//! The main loop of a guest: one thread that sleeps until a socket is ready or the timer expires.

use crate::outgoing::{Outgoing, outgoing};
use crate::pings::Pings;
use crate::poll::{Poll, Source};
use crate::receiving::Receiving;
use crate::serving::{Ends, Serving};
use crate::timeline::{Act, timeline};
use vcc_traffic::agenda;
use vcc_traffic::flow::CHUNK_BYTES;
use vcc_traffic::plan::GuestPlan;
use vcc_traffic::report::Report;
use vcc_traffic::system::now_ns;
use vcc_traffic::workers::{Post, Worker};
use vcc_traffic::{Error, Result, TcpCounters};

/// Carries out the plan. The network is set up already.
pub fn run(plan: &GuestPlan) -> Result<Vec<Report>> {
    let mut guest = Guest::new(plan)?;
    let timeline = timeline(plan);
    if let Some(&(first_ns, _)) = timeline.first() {
        require_before(first_ns)?;
    }
    for (at_ns, act) in timeline {
        guest.until(at_ns)?;
        guest.act(act)?;
    }
    guest.into_reports()
}

fn require_before(first_ns: u64) -> Result<()> {
    let ready_ns = now_ns();
    if ready_ns > first_ns {
        return Err(Error::Plan(format!(
            "begins at {first_ns} ns, but the guest was ready at {ready_ns} ns"
        )));
    }
    Ok(())
}

struct Guest<'a> {
    plan: &'a GuestPlan,
    poll: Poll,
    sends: Vec<Box<dyn Outgoing + 'a>>,
    workers: Vec<Worker<'a>>,
    receiving: Receiving<'a>,
    serving: Serving<'a>,
    pings: Option<Pings>,
    scratch: Vec<u8>,
    ready: Vec<Source>,
    /// A lower bound of the current time: the time of the last act.
    reached_ns: u64,
    /// At the start of the measurement window, and from its end on what they grew by within it.
    counters: TcpCounters,
}

impl<'a> Guest<'a> {
    fn new(plan: &'a GuestPlan) -> Result<Self> {
        let poll = Poll::new()?;
        let pings = Pings::open(&plan.pings)?;
        if let Some(pings) = &pings {
            pings.watch(&poll)?;
        }
        let (from, kinds) = (plan.network.address, plan.requests.kinds.as_slice());
        let sends = plan.sends.iter().enumerate();
        Ok(Self {
            plan,
            sends: sends.map(|(number, flow)| outgoing(flow, kinds, from, number)).collect(),
            workers: plan.workers.iter().map(Worker::new).collect(),
            receiving: Receiving::open(plan, &poll)?,
            serving: Serving::new(&plan.requests, &poll)?,
            pings,
            poll,
            scratch: vec![0; CHUNK_BYTES],
            ready: Vec::new(),
            reached_ns: 0,
            counters: TcpCounters::default(),
        })
    }

    /// Moves data until then. It does not read the clock, which in a guest costs as much as reading
    /// from a socket.
    fn until(&mut self, at_ns: u64) -> Result<()> {
        if at_ns > self.reached_ns {
            self.poll.set_timer(at_ns)?;
        }
        while at_ns > self.reached_ns {
            self.ready.clear();
            self.ready.extend(self.poll.wait()?);
            for i in 0..self.ready.len() {
                self.serve(self.ready[i], at_ns)?;
            }
        }
        Ok(())
    }

    fn serve(&mut self, ready: Source, timer_ns: u64) -> Result<()> {
        match ready {
            Source::Timer => {
                self.reached_ns = timer_ns;
                Ok(())
            }
            Source::Pings => self.pings.as_mut().map_or(Ok(()), Pings::take_answers),
            Source::Listener(number) => self.receiving.accept(number, &self.poll),
            Source::Sender(number) => {
                self.sends[number].advance(&self.poll, &mut self.scratch)?;
                for worker in self.sends[number].take_answered() {
                    if self.plan.workers[worker].follows_answers() {
                        self.post(worker)?;
                    }
                }
                if self.sends[number].take_response() {
                    let (serving, mut ends) = self.serving();
                    return serving.response(number, &mut ends);
                }
                Ok(())
            }
            Source::Receiver(number) => {
                let served = self.receiving.receive(number, &self.poll, &mut self.scratch)?;
                let (serving, mut ends) = self.serving();
                serving.served(number, served, &mut ends)
            }
            Source::Client(number) => {
                let (serving, mut ends) = self.serving();
                serving.thought(number, &mut ends)
            }
        }
    }

    fn serving(&mut self) -> (&mut Serving<'a>, Ends<'_, 'a>) {
        let ends = Ends {
            sends: &mut self.sends,
            receiving: &mut self.receiving,
            poll: &self.poll,
            scratch: &mut self.scratch,
        };
        (&mut self.serving, ends)
    }

    fn act(&mut self, act: Act) -> Result<()> {
        match act {
            Act::Connect(number) => self.sends[number].connect(&self.poll),
            Act::Traffic(act) => self.act_on_flows(act),
            Act::Ping(number) => self.pings.as_mut().map_or(Ok(()), |pings| pings.ask(number)),
            Act::Transfer(number) => self.sends[number].let_transfer(&self.poll),
            Act::Post(worker) => self.post(worker),
            Act::Report => Ok(()),
        }
    }

    fn post(&mut self, worker: usize) -> Result<()> {
        let Post { flow, bytes } = self.workers[worker].next_post();
        self.sends[flow].post(worker, bytes)
    }

    fn act_on_flows(&mut self, act: agenda::Act) -> Result<()> {
        let start_ns = self.plan.measure.start_ns;
        let at_us = now_ns().saturating_sub(start_ns) / 1000;
        match act {
            agenda::Act::StartMeasuring => {
                self.counters = TcpCounters::read()?;
                self.sends.iter_mut().try_for_each(|flow| flow.start_measuring(start_ns))
            }
            agenda::Act::Bound => {
                self.sends.iter_mut().for_each(|flow| flow.note_bound());
                self.receiving.note_bound()
            }
            agenda::Act::Join(number) => self.sends[number].join(&self.poll, &mut self.scratch),
            agenda::Act::Leave(number) => self.sends[number].leave(),
            agenda::Act::SampleWindows => {
                self.sends.iter_mut().try_for_each(|flow| flow.sample(at_us))
            }
            agenda::Act::SampleReceived => self.receiving.note_received(at_us),
            agenda::Act::Finish => self.finish(),
        }
    }

    /// Ignores all flows from now on; other guests may power off.
    fn finish(&mut self) -> Result<()> {
        self.counters = TcpCounters::read()?.since(&self.counters);
        self.poll = Poll::new()?;
        if let Some(pings) = &self.pings {
            pings.watch(&self.poll)?;
        }
        self.receiving.finish()?;
        self.sends.iter_mut().try_for_each(|flow| flow.finish())
    }

    fn into_reports(self) -> Result<Vec<Report>> {
        let mut reports = Vec::new();
        for flow in self.sends {
            reports.push(Report::Sender(flow.into_half()?));
        }
        reports.extend(self.receiving.into_halves()?.into_iter().map(Report::Receiver));
        let pings = self.pings.map_or_else(Vec::new, Pings::into_reports);
        reports.extend(pings.into_iter().map(Report::Pings));
        reports.push(Report::Tcp(self.counters));
        Ok(reports)
    }
}
