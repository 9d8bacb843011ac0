//! Guests whose virtual CPUs share a core.
//!
//! A guest runs while it has the core, and then processes everything that is due at once. While it
//! waits for the core, its timers and interrupts wait too. Its card does not: it belongs to the
//! driver domain, and arriving frames are in the guest's ring when it runs again.

use crate::error::Result;
use crate::guest::{Guest, Watch};
use crate::vcpu::Core;

pub(crate) struct SharedCore {
    core: Core,
    /// Guests, indexed by the number of their virtual CPU.
    guests: Vec<usize>,
}

impl SharedCore {
    pub fn new(core: Core, guests: Vec<usize>) -> Self {
        Self { core, guests }
    }

    /// Time of the next event of a guest here; the background's own events do not count.
    pub fn next_ns(&self, guests: &[Guest]) -> u64 {
        let members = self.guests.iter().enumerate();
        let times = members.map(|(vcpu, &guest)| self.next_of(vcpu, &guests[guest]));
        times.min().unwrap_or(u64::MAX).max(self.core.now_ns())
    }

    fn next_of(&self, vcpu: usize, guest: &Guest) -> u64 {
        match self.core.is_waiting(vcpu) {
            true => guest.card_next_ns().min(self.core.next_ns()),
            false => guest.next_ns(),
        }
    }

    /// Runs the guests by the core's schedule until no event is left before `end_ns`.
    pub fn run_until(&mut self, guests: &mut [Guest], end_ns: u64, watch: &Watch) -> Result<()> {
        loop {
            let now_ns = self.next_ns(guests);
            if now_ns >= end_ns {
                return Ok(());
            }
            self.core.advance(now_ns);
            self.wake(guests, now_ns)?;
            if let Some(vcpu) = self.core.running().filter(|&vcpu| vcpu < self.guests.len()) {
                self.run(vcpu, guests, end_ns, watch)?;
            }
        }
    }

    /// Their cards do the work that is due, and guests with events due become runnable.
    fn wake(&mut self, guests: &mut [Guest], now_ns: u64) -> Result<()> {
        for (vcpu, &guest) in self.guests.iter().enumerate() {
            let guest = &mut guests[guest];
            if guest.has_ended() {
                continue;
            }
            guest.come_to(now_ns)?;
            if guest.take_passed_frames() {
                self.core.pass_frames();
            }
            if guest.is_due() {
                self.core.wake(vcpu);
            }
        }
        Ok(())
    }

    /// Runs the guest that has the core until the next event of anyone else.
    fn run(&mut self, vcpu: usize, guests: &mut [Guest], end_ns: u64, watch: &Watch) -> Result<()> {
        let others = self.guests.iter().enumerate().filter(|&(other, _)| other != vcpu);
        let others_ns = others.map(|(other, &guest)| self.next_of(other, &guests[guest])).min();
        let free_until_ns = self.core.free_until_ns(vcpu).min(end_ns);
        let free_until_ns = free_until_ns.min(others_ns.unwrap_or(u64::MAX));
        let guest = &mut guests[self.guests[vcpu]];
        guest.run_until(free_until_ns.max(self.core.now_ns() + 1), watch)?;
        if guest.has_ended() {
            self.core.end(vcpu);
        } else if !guest.is_due() {
            self.core.rest(vcpu);
        }
        if guest.take_passed_frames() {
            self.core.pass_frames();
        }
        Ok(())
    }
}
