//! Other programs at the devices of ports that interfere.

use std::cmp::Reverse;
use std::time::{Duration, Instant};

use vcc_port::Error;
use vcc_port::coexistence::{self, Around, Finding};

use super::Ports;
use crate::journal;

/// How often ports are chosen to be looked at. All devices of the namespace are listed for it.
const CHOOSE: Duration = Duration::from_secs(5);
/// The daemon does nothing else while it inspects ports, so the number of ports and the time are
/// limited.
const MOST_PORTS: usize = 16;
const LONGEST: Duration = Duration::from_millis(50);
/// Ports asked for the revisions of their hooks at a time: each question takes the kernel's lock of
/// all devices.
const MOST_ASKED: usize = 256;
/// A port is inspected again after this time: filters and queues change without events.
const AGAIN: Duration = Duration::from_secs(60);
/// A port whose device changes all the time is not inspected more often than this.
const PAUSE: Duration = Duration::from_secs(10);

/// What is known of a port's neighbours.
#[derive(Default)]
pub(super) struct Neighbours {
    looked: Option<Instant>,
    revisions: Option<[u64; 2]>,
    /// The device has changed since it was inspected.
    has_changed: bool,
    harmful: Vec<Finding>,
}

impl Neighbours {
    pub(super) fn have_changed(&mut self) {
        self.has_changed = true;
    }

    /// Warnings and problems.
    pub(super) fn harmful(&self) -> &[Finding] {
        &self.harmful
    }

    fn compare(&mut self, revisions: [u64; 2]) {
        let before = self.revisions.replace(revisions);
        self.has_changed |= before.is_some_and(|before| before != revisions);
    }

    /// The greatest is the most urgent; None: not due.
    fn urgency(&self, now: Instant) -> Option<(bool, Duration)> {
        let since = self.looked.map_or(Duration::MAX, |looked| now.duration_since(looked));
        let is_new = self.looked.is_none();
        let is_due = since >= if self.has_changed { PAUSE } else { AGAIN };
        is_due.then_some((self.has_changed || is_new, since))
    }

    fn found(&mut self, device: &str, harmful: Vec<Finding>) {
        for new in harmful.iter().filter(|finding| !self.harmful.contains(finding)) {
            journal::warning!(port = device, "{}", new.describe(device));
        }
        for old in self.harmful.iter().filter(|finding| !harmful.contains(finding)) {
            journal::notice!(port = device, "{device}: no longer in the way: {}", old.found);
        }
        self.harmful = harmful;
    }
}

impl Ports {
    /// Looks at some of the ports, the most urgent first.
    pub(super) fn look_at_neighbours(&mut self) {
        if self.chosen.is_some_and(|at| at.elapsed() < CHOOSE) {
            return;
        }
        let now = Instant::now();
        self.chosen = Some(now);
        self.ask_for_revisions();
        let all = self.held.values();
        let mut due: Vec<_> = all
            .filter_map(|held| Some((held.neighbours.urgency(now)?, held.port.ifindex())))
            .collect();
        due.sort_unstable_by_key(|(urgency, _)| Reverse(*urgency));
        due.truncate(MOST_PORTS);
        if due.is_empty() {
            return;
        }
        let looked = self.look_at(due.into_iter().map(|(_, ifindex)| ifindex), now);
        journal::failure(&mut self.cannot_look, "cannot list other programs at the ports", looked);
    }

    /// All are looked at, and the last error is returned.
    fn look_at(
        &mut self,
        ports: impl Iterator<Item = u32>,
        began: Instant,
    ) -> vcc_port::Result<()> {
        let around = Around::read()?;
        journal::if_slow("listing all devices and programs", began);
        let mut result = Ok(());
        for ifindex in ports {
            let Some(held) = self.held.get_mut(&ifindex) else { continue };
            let device = held.port.device();
            held.neighbours.looked = Some(Instant::now());
            held.neighbours.has_changed = false;
            match around.findings(device) {
                Ok(mut findings) => {
                    findings.retain(Finding::is_harmful);
                    held.neighbours.found(device, findings);
                }
                // It is gone or renamed: that event follows.
                Err(Error::NoSuchDevice { .. }) => {}
                Err(error) => result = Err(error),
            }
            if began.elapsed() >= LONGEST {
                break;
            }
        }
        result
    }

    /// No event announces that a program was attached to a TCX hook.
    fn ask_for_revisions(&mut self) {
        let from = std::mem::take(&mut self.asked_up_to);
        for (ifindex, held) in self.held.range_mut(from..).take(MOST_ASKED) {
            // A device that cannot be asked is inspected all the same, which reports why that fails.
            if let Ok(revisions) = coexistence::revisions(*ifindex) {
                held.neighbours.compare(revisions);
            }
            self.asked_up_to = ifindex + 1;
        }
        if self.held.range(self.asked_up_to..).next().is_none() {
            self.asked_up_to = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_come_first_and_each_port_has_its_turn() {
        let now = Instant::now() + 2 * AGAIN;
        let looked = |ago: Duration, has_changed| {
            let looked = Some(now - ago);
            Neighbours { looked, has_changed, ..Neighbours::default() }.urgency(now)
        };
        let (new, old) = (Neighbours::default().urgency(now), looked(2 * AGAIN, false));
        assert_eq!(looked(AGAIN / 2, false), None, "nothing is new");
        assert_eq!(looked(PAUSE / 2, true), None, "it changes all the time");
        assert!(old.is_some() && looked(PAUSE, true) > old, "a change is urgent");
        assert!(new > looked(PAUSE, true), "a new port is more urgent");
        assert!(old > looked(AGAIN, false), "the oldest has its turn first");
    }

    #[test]
    fn a_change_at_a_hook_is_one_since_the_last_question() {
        let mut neighbours = Neighbours::default();
        neighbours.compare([1, 1]);
        assert!(!neighbours.has_changed, "nobody knows what was before");
        neighbours.compare([1, 1]);
        assert!(!neighbours.has_changed);
        neighbours.compare([1, 2]);
        assert!(neighbours.has_changed);
    }
}
