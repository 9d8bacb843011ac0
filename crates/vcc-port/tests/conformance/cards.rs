//! What a guest has besides its card behind the port: a second card, which leads to the fabric past
//! the port, and a queue, in which segments wait for a guest that is paused. Each is a TAP device in
//! the guest, and is there once a script has needed it.

use std::time::Instant;

use vcc_frames::Packet;
use vcc_testing::{accept_detours, ip, tc};

use crate::bed::{
    CHILDREN, GATEWAY_MAC, GUEST, GUEST_MAC, Lane, RTO_MIN, SECOND_CARDS_ROUTES, mac_text,
};
use crate::wire::{Fabric, Seen};

/// One of the guest's cards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Card {
    /// Behind the port.
    #[default]
    First,
    /// Its segments do not pass the port.
    Second,
}

impl Card {
    pub const BOTH: [Card; 2] = [Card::First, Card::Second];

    /// The device in the guest.
    pub fn device(self) -> &'static str {
        match self {
            Card::First => "guest",
            Card::Second => "guest2",
        }
    }

    pub fn other(self) -> Self {
        match self {
            Card::First => Card::Second,
            Card::Second => Card::First,
        }
    }
}

/// Both directions of the first card lead into the queue instead.
const HOOKS: [&str; 2] = ["ingress", "egress"];
const INTO_QUEUE: &str = "protocol ip u32 match u32 0 0 action mirred egress redirect dev queue";

/// The queue of a guest, as a virtual machine has one in its TAP device.
pub struct Queue {
    tap: Fabric,
    waiting: Vec<Seen>,
    is_paused: bool,
}

impl Queue {
    /// In the calling thread's guest.
    fn create() -> Self {
        let tap = card("queue");
        tc("qdisc add dev guest clsact");
        Queue { tap, waiting: Vec::new(), is_paused: false }
    }

    fn pause(&mut self) {
        for hook in HOOKS {
            tc(&format!("filter add dev guest {hook} {INTO_QUEUE}"));
        }
        self.is_paused = true;
    }

    /// Takes the next frame to the guest. A paused guest has no timers: what the stack repeats
    /// meanwhile has come here as well, and does not leave.
    fn take(&mut self, deadline: Instant) -> Option<()> {
        loop {
            let seen = self.tap.next(deadline)?;
            if seen.packet.to.ip() == GUEST {
                self.waiting.push(seen);
                return Some(());
            }
        }
    }

    fn resume(&mut self) {
        for hook in HOOKS {
            tc(&format!("filter del dev guest {hook}"));
        }
        self.is_paused = false;
        while self.tap.poll().is_some() {}
        for seen in self.waiting.drain(..) {
            self.tap.send(&seen.frame);
        }
    }
}

/// A device in the calling thread's guest, with the addresses of the first card.
fn card(device: &str) -> Fabric {
    let fabric = Fabric::create(device);
    ip(&format!("link set {device} address {} addrgenmode none up", mac_text(GUEST_MAC)));
    accept_detours();
    fabric
}

fn second_card() -> Fabric {
    let _alone = CHILDREN.lock().expect("not panicked");
    let (device, gateway) = (Card::Second.device(), mac_text(GATEWAY_MAC));
    let fabric = card(device);
    ip(&format!("neigh add 10.0.0.254 lladdr {gateway} dev {device} nud permanent"));
    ip(&format!(
        "route add default via 10.0.0.254 dev {device} onlink rto_min {RTO_MIN} quickack 1 \
         table {SECOND_CARDS_ROUTES}"
    ));
    fabric
}

/// For the thread that plays a script inside of the lane's guest.
impl Lane {
    /// Where a card leads to.
    pub fn fabric_of(&mut self, card: Card) -> &mut Fabric {
        match card {
            Card::First => &mut self.fabric,
            Card::Second => self.second.get_or_insert_with(second_card),
        }
    }

    /// Whether no script has needed this card.
    pub fn lacks(&self, card: Card) -> bool {
        card == Card::Second && self.second.is_none()
    }

    /// Waits until the guest, which answers by this card, has processed what came by any.
    pub fn fence(&mut self, like: &Packet, answers_by: Card) {
        for card in Card::BOTH {
            if !self.lacks(card) {
                let ping = self.fabric_of(card).ping(like);
                self.fabric_of(answers_by).await_reply(ping);
            }
        }
    }

    pub fn is_paused(&self) -> bool {
        self.queue.as_ref().is_some_and(|queue| queue.is_paused)
    }

    /// What comes to the guest waits, and it sends nothing.
    pub fn pause(&mut self) {
        let _alone = CHILDREN.lock().expect("not panicked");
        self.queue.get_or_insert_with(Queue::create).pause();
    }

    /// A segment that has passed the port waits; None if it is not in the queue by then.
    pub fn await_queued(&mut self, deadline: Instant) -> Option<()> {
        self.queue.as_mut()?.take(deadline)
    }

    /// The guest runs again, and takes what waits.
    pub fn resume(&mut self) {
        let Some(queue) = self.queue.as_mut().filter(|queue| queue.is_paused) else { return };
        let _alone = CHILDREN.lock().expect("not panicked");
        queue.resume();
    }
}
