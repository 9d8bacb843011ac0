//! The credit scheduler of Xen (`xen/common/sched_credit.c`) on one core, all weights equal and none
//! capped.
//!
//! Credit is time of the core: it is burnt by running, and each accounting period's is shared out
//! among those that were found running. Whoever has some left is UNDER and goes before those that
//! are OVER; within a priority each has its turn, for a slice. One that wakes while it is UNDER is
//! raised to BOOST, and with that takes the core from whoever runs, until a tick finds it running.
//! Time that is burnt is counted exactly, as it is since Xen 4.1; before that, each tick charged
//! whoever it found for all of itself.

use super::Scheduler;

/// A slice and an accounting period are as long as three ticks: 30 and 10 ms by default.
const TICKS: u64 = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Priority {
    Over,
    Under,
    Boost,
}

#[derive(Debug, Clone)]
struct Account {
    credit_ns: i64,
    priority: Priority,
    /// Takes part in the sharing out.
    is_active: bool,
}

pub(super) struct Credit {
    slice_ns: u64,
    accounts: Vec<Account>,
    /// Without the one that runs; by priority, then by how long it has waited.
    queue: Vec<usize>,
    running: Option<usize>,
    /// Up to here its time is burnt.
    burnt_ns: u64,
    slice_ends_ns: u64,
    next_tick_ns: u64,
    ticks: u64,
    /// What all had together when it was last shared out.
    balance_ns: i64,
}

impl Credit {
    pub fn new(slice_ns: u64, vcpus: usize) -> Self {
        let account = Account { credit_ns: 0, priority: Priority::Under, is_active: false };
        Self {
            slice_ns,
            accounts: vec![account; vcpus],
            queue: Vec::new(),
            running: None,
            burnt_ns: 0,
            slice_ends_ns: u64::MAX,
            next_tick_ns: slice_ns / TICKS,
            ticks: 0,
            balance_ns: 0,
        }
    }

    fn priority(&self, vcpu: usize) -> Priority {
        self.accounts[vcpu].priority
    }

    /// Behind all that are no lower.
    fn insert(&mut self, vcpu: usize) {
        let is_lower = |&other: &usize| self.priority(other) < self.priority(vcpu);
        let at = self.queue.iter().position(is_lower).unwrap_or(self.queue.len());
        self.queue.insert(at, vcpu);
    }

    fn burn(&mut self, now_ns: u64) {
        if let Some(vcpu) = self.running {
            self.accounts[vcpu].credit_ns -= (now_ns - self.burnt_ns) as i64;
        }
        self.burnt_ns = now_ns;
    }

    /// Who runs goes back into the queue, and whoever is then first runs.
    fn reschedule(&mut self, now_ns: u64) {
        self.burn(now_ns);
        if let Some(vcpu) = self.running.take() {
            self.insert(vcpu);
        }
        self.running = (!self.queue.is_empty()).then(|| self.queue.remove(0));
        self.slice_ends_ns = self.running.map_or(u64::MAX, |_| now_ns + self.slice_ns);
    }

    fn tick(&mut self, now_ns: u64) {
        self.burn(now_ns);
        if let Some(vcpu) = self.running {
            let account = &mut self.accounts[vcpu];
            // What runs that much does not wait for events alone.
            account.priority = account.priority.min(Priority::Under);
            account.is_active = true;
        }
        self.ticks += 1;
        if self.ticks % TICKS == 0 {
            self.share_out();
        }
        // Stable: of one priority who waits longer stays before.
        let accounts = &self.accounts;
        self.queue.sort_by_key(|&vcpu| std::cmp::Reverse(accounts[vcpu].priority));
        self.next_tick_ns = now_ns + self.slice_ns / TICKS;
    }

    fn share_out(&mut self) {
        let slice_ns = self.slice_ns as i64;
        let active = self.accounts.iter_mut().filter(|account| account.is_active);
        let active: Vec<&mut Account> = active.collect();
        // What more has been burnt than there was comes back, so that not all stay OVER for ever.
        let total_ns = self.slice_ns + (-self.balance_ns).max(0) as u64;
        let fair_ns = total_ns.div_ceil(active.len().max(1) as u64) as i64;
        self.balance_ns = 0;
        for account in active {
            account.credit_ns = (account.credit_ns + fair_ns).max(-slice_ns);
            account.priority = if account.credit_ns < 0 { Priority::Over } else { Priority::Under };
            if account.credit_ns > slice_ns {
                // It does not use what it gets: it stops earning until a tick finds it running.
                account.is_active = false;
                account.credit_ns = 0;
            }
            self.balance_ns += account.credit_ns;
        }
    }
}

impl Scheduler for Credit {
    fn wake(&mut self, vcpu: usize, now_ns: u64) {
        let account = &mut self.accounts[vcpu];
        if account.priority == Priority::Under {
            account.priority = Priority::Boost;
        }
        self.insert(vcpu);
        if self.running.is_none_or(|running| self.priority(running) < self.priority(vcpu)) {
            self.reschedule(now_ns);
        }
    }

    fn block(&mut self, now_ns: u64) {
        self.burn(now_ns);
        self.running = None;
        self.reschedule(now_ns);
    }

    fn running(&self) -> Option<usize> {
        self.running
    }

    fn next_ns(&self) -> u64 {
        self.next_tick_ns.min(self.slice_ends_ns)
    }

    fn expire(&mut self, now_ns: u64) {
        if self.next_tick_ns <= now_ns {
            self.tick(now_ns);
        }
        if self.slice_ends_ns <= now_ns {
            self.reschedule(now_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Lets time pass, and notes who ran until when.
    fn run_until(scheduler: &mut Credit, end_ns: u64) -> Vec<(Option<usize>, u64)> {
        let mut turns: Vec<(Option<usize>, u64)> = Vec::new();
        while scheduler.next_ns() < end_ns {
            let (running, until_ns) = (scheduler.running(), scheduler.next_ns());
            match turns.last_mut().filter(|(before, _)| *before == running) {
                Some((_, end_ns)) => *end_ns = until_ns,
                None => turns.push((running, until_ns)),
            }
            scheduler.expire(until_ns);
        }
        turns
    }

    /// PVTCP, equation 5. When all of them are accounted for, that is: who comes first has the first
    /// period's credit for itself, and goes before the others once more for it.
    #[test]
    fn those_that_always_run_take_turns_of_a_slice() {
        let mut scheduler = Credit::new(30 * MS, 3);
        (0..3).for_each(|vcpu| scheduler.wake(vcpu, 0));
        run_until(&mut scheduler, 300 * MS);
        let turns = run_until(&mut scheduler, 1200 * MS + 1);
        let mut waited_from_ns = [300 * MS; 3];
        let mut ran_ns = [0; 3];
        let mut start_ns = 300 * MS;
        for &(vcpu, end_ns) in &turns {
            let vcpu = vcpu.expect("somebody always runs");
            let waited_ns = start_ns.saturating_sub(waited_from_ns[vcpu]);
            assert!(waited_ns <= 60 * MS, "{vcpu} waits {waited_ns} ns up to {start_ns}");
            ran_ns[vcpu] += end_ns - start_ns;
            waited_from_ns[vcpu] = end_ns;
            start_ns = end_ns;
        }
        assert!(ran_ns.iter().all(|ran_ns| ran_ns.abs_diff(300 * MS) <= 30 * MS), "{ran_ns:?}");
    }

    #[test]
    fn who_wakes_with_credit_left_runs_at_once_until_a_tick_finds_it() {
        let mut scheduler = Credit::new(30 * MS, 2);
        scheduler.wake(0, 0);
        run_until(&mut scheduler, 35 * MS);
        scheduler.wake(1, 35 * MS);
        assert_eq!(scheduler.running(), Some(1), "boosted");
        assert_eq!(scheduler.priority(1), Priority::Boost);
        scheduler.block(36 * MS);
        assert_eq!(scheduler.running(), Some(0));
        scheduler.wake(1, 37 * MS);
        assert_eq!(scheduler.running(), Some(1), "a short while costs it nothing");
        scheduler.expire(40 * MS);
        assert_eq!(scheduler.priority(1), Priority::Under);
    }

    #[test]
    fn who_has_burnt_its_credit_waits_for_its_turn() {
        let mut scheduler = Credit::new(30 * MS, 2);
        // 0 sleeps 1 ms in each 30, so that 1 is there; both burn more than their half.
        scheduler.wake(0, 0);
        run_until(&mut scheduler, 29 * MS);
        scheduler.wake(1, 29 * MS);
        assert_eq!(scheduler.running(), Some(1));
        run_until(&mut scheduler, 61 * MS);
        let spent: Vec<i64> = scheduler.accounts.iter().map(|it| it.credit_ns).collect();
        assert!(spent[1] < 0 || spent[0] < 0, "{spent:?}");
        let over = usize::from(spent[1] < 0);
        assert_eq!(scheduler.priority(over), Priority::Over);
        if scheduler.running() == Some(over) {
            scheduler.block(62 * MS);
            scheduler.wake(over, 63 * MS);
        }
        assert_ne!(scheduler.running(), Some(over), "no boost for what is OVER");
    }

    #[test]
    fn an_idle_core_gives_to_whoever_comes() {
        let mut scheduler = Credit::new(30 * MS, 2);
        assert_eq!(scheduler.running(), None);
        run_until(&mut scheduler, 100 * MS);
        scheduler.wake(1, 100 * MS);
        assert_eq!(scheduler.running(), Some(1));
        let turns = run_until(&mut scheduler, 500 * MS);
        assert_eq!(turns.len(), 1, "work-conserving: {turns:?}");
    }
}
