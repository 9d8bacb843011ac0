//! A datapath under a policy.

mod judging;
mod matching;
mod pools;

use vcc_engine::FlowState;
use vcc_frames::wire::*;
use vcc_frames::{Packet, payload};
use vcc_policy::Policy;
use vcc_port::{AttachOptions, Datapath, Program, SharedPolicy};

use crate::conversation::{Connection as Ends, MSS_BYTES, Shape};
use crate::direction::Direction::{self, FromGuest, ToGuest};

/// The port's index among those of the policy.
const INDEX: u32 = 3;

struct Ruled {
    shared: SharedPolicy,
    datapath: Datapath,
    policy: Policy,
    tenant: Option<&'static str>,
}

impl Ruled {
    fn new(text: &str, tenant: Option<&'static str>) -> Self {
        let shared = SharedPolicy::unpinned().expect("maps");
        let options = AttachOptions::default();
        let datapath = Datapath::load_under(&shared, INDEX, &options).expect("loaded");
        let mut ruled = Self { shared, datapath, policy: parse(""), tenant };
        ruled.apply(text);
        ruled
    }

    fn apply(&mut self, text: &str) {
        self.policy = parse(text);
        self.shared.apply(&self.policy, &[(INDEX, self.tenant.into())]).expect("applied");
    }

    fn send(&self, program: Program, packet: &Packet) -> Vec<u8> {
        let out = self.datapath.run(program, &packet.frame(), 0).expect("run");
        assert_eq!(out.return_value, -1, "passed on");
        out.frame
    }

    /// The rule of the only flow.
    fn rule(&self) -> Option<&str> {
        let flows = self.datapath.flows().expect("flows");
        assert!(flows.len() <= 1);
        flows.first().map(|flow| self.policy.rules()[usize::from(flow.state.rule)].name())
    }
}

fn parse(text: &str) -> Policy {
    Policy::parse(text, "policy.toml").unwrap_or_else(|wrong| panic!("{wrong}\n{text}")).policy
}

/// A connection through a datapath under a policy.
struct Ruling<'run> {
    ruled: &'run Ruled,
    ends: Ends,
}

impl<'run> Ruling<'run> {
    fn open(ruled: &'run Ruled, guest_port: u16) -> Self {
        let ends = Ends::new(Shape::plain(FromGuest), guest_port);
        let mut ruling = Self { ruled, ends };
        let syn = ruling.ends.syn();
        ruling.send(FromGuest, &syn);
        let mut syn_ack = ruling.ends.syn_ack();
        syn_ack.flags |= ECE;
        ruling.send(ToGuest, &syn_ack);
        let ack = ruling.ends.packet(FromGuest);
        ruling.send(FromGuest, &ack);
        ruling
    }

    fn send(&mut self, from: Direction, packet: &Packet) -> Vec<u8> {
        self.ends.sent(from, packet);
        let program = match from {
            FromGuest => Program::FromGuest,
            ToGuest => Program::ToGuest,
        };
        self.ruled.send(program, packet)
    }

    fn data(&mut self, from: Direction) -> Vec<u8> {
        let mut packet = self.ends.packet(from);
        packet.payload = payload(MSS_BYTES);
        self.send(from, &packet)
    }

    fn state(&self) -> Option<FlowState> {
        let (guest, ..) = self.ends.key();
        let flows = self.ruled.datapath.flows().expect("flows");
        flows.into_iter().find(|flow| flow.guest == guest).map(|flow| flow.state)
    }
}
