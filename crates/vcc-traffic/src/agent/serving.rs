//! Requests: the guest's clients ask, and the guest responds to others, for which it may have to
//! ask others itself.

use crate::outgoing::Outgoing;
use crate::poll::{Poll, Source, Timer};
use crate::receiving::Receiving;
use std::collections::BTreeMap;
use vcc_traffic::Result;
use vcc_traffic::clients::Client;
use vcc_traffic::flow::Served;
use vcc_traffic::requests::RequestsPlan;
use vcc_traffic::system::now_ns;
use vcc_traffic::tier::{Step, Tier};

pub struct Serving<'a> {
    clients: Vec<(Client<'a>, Timer)>,
    /// The client of each flow that belongs to one.
    client_of: BTreeMap<usize, usize>,
    tier: Tier<'a>,
}

/// The guest's sockets.
pub struct Ends<'b, 'a> {
    pub sends: &'b mut [Box<dyn Outgoing + 'a>],
    pub receiving: &'b mut Receiving<'a>,
    pub poll: &'b Poll,
    pub scratch: &'b mut [u8],
}

impl<'a> Serving<'a> {
    pub fn new(plan: &'a RequestsPlan, poll: &Poll) -> Result<Self> {
        let mut clients = Vec::with_capacity(plan.clients.len());
        for (number, plan) in plan.clients.iter().enumerate() {
            let (mut client, timer) = (Client::new(plan), Timer::new()?);
            poll.add_timer(&timer, Source::Client(number))?;
            timer.set(plan.starts_at_ns + client.think_ns())?;
            clients.push((client, timer));
        }
        let flows = plan.clients.iter().map(|client| &client.flows);
        let client_of =
            flows.enumerate().flat_map(|(number, own)| own.iter().map(move |&flow| (flow, number)));
        let client_of = client_of.collect();
        Ok(Self { clients, client_of, tier: Tier::new(plan) })
    }

    /// A client has thought.
    pub fn thought(&mut self, client: usize, ends: &mut Ends<'_, 'a>) -> Result<()> {
        let (kind, flows) = self.clients[client].0.ask();
        let steps = flows.iter().map(|&flow| Step::Ask { flow, kind });
        self.carry_out(steps.collect(), ends)
    }

    /// The response has come that an own flow has asked for.
    pub fn response(&mut self, flow: usize, ends: &mut Ends<'_, 'a>) -> Result<()> {
        let steps = self.after_response(flow)?;
        self.carry_out(steps, ends)
    }

    fn after_response(&mut self, flow: usize) -> Result<Vec<Step>> {
        let Some(&client) = self.client_of.get(&flow) else { return Ok(self.tier.response(flow)) };
        let (client, timer) = &mut self.clients[client];
        if client.take_response() {
            timer.set(now_ns() + client.think_ns())?;
        }
        Ok(Vec::new())
    }

    /// A connection of another host has progressed by `served`.
    pub fn served(
        &mut self,
        connection: usize,
        served: Served,
        ends: &mut Ends<'_, 'a>,
    ) -> Result<()> {
        let steps = self.after_served(connection, served);
        self.carry_out(steps, ends)
    }

    fn after_served(&mut self, connection: usize, served: Served) -> Vec<Step> {
        let mut steps = match served.has_responded {
            true => self.tier.responded(connection),
            false => Vec::new(),
        };
        steps.extend(served.request.into_iter().flat_map(|it| self.tier.request(connection, it)));
        steps
    }

    fn carry_out(&mut self, mut steps: Vec<Step>, ends: &mut Ends<'_, 'a>) -> Result<()> {
        while !steps.is_empty() {
            for step in std::mem::take(&mut steps) {
                steps.extend(match step {
                    Step::Ask { flow, kind } => {
                        let sender = &mut ends.sends[flow];
                        sender.ask(kind, ends.poll)?;
                        sender.advance(ends.poll, ends.scratch)?;
                        match sender.take_response() {
                            true => self.after_response(flow)?,
                            false => Vec::new(),
                        }
                    }
                    Step::Respond { connection, kind } => {
                        let served = ends.receiving.respond(connection, kind, ends.scratch)?;
                        self.after_served(connection, served)
                    }
                });
            }
        }
        Ok(())
    }
}
