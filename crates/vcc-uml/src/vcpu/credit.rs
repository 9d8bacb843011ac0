//! The credit scheduler of Xen 4.1 (`xen/common/sched_credit.c`) on one core, with equal weights
//! and no caps.
//!
//! Credit is CPU time. Running burns it, and each accounting period distributes that period's time
//! among the active virtual CPUs. A virtual CPU with credit left is UNDER and has priority over
//! those that are OVER; within a priority they run round robin, for a slice each. One that wakes
//! while UNDER is raised to BOOST and preempts the running one, until a tick finds it running.
//! Burnt time is accounted exactly, as since Xen 4.0; before that, each tick charged the running
//! one for the whole tick.
//!
//! The time distributed is that of all cores of the machine (`csched_acct`). If one of them is
//! mostly idle, such as the driver domain's, those that compute on another never lack credit: all
//! stay UNDER and run round robin. Without such a core, they alternate between UNDER and OVER, and
//! one is sometimes overtaken: one that runs with credit left when a period ends is queued before
//! those that were OVER and have waited longer.
//!
//! In Xen, accounting and ticks have separate timers, which drift. Here they coincide and the tick
//! comes first, so the queue is sorted a tick later.

use super::Scheduler;

/// A slice and an accounting period are three ticks: 30 and 10 ms by default.
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
    /// Takes part in the distribution.
    is_active: bool,
}

pub(super) struct Credit {
    slice_ns: u64,
    /// Credit distributed per period, over all cores of the machine.
    earned_ns: u64,
    accounts: Vec<Account>,
    /// Without the running one; by priority, then by waiting time.
    queue: Vec<usize>,
    running: Option<usize>,
    /// Time up to which the running one has been charged.
    burnt_ns: u64,
    slice_ends_ns: u64,
    next_tick_ns: u64,
    ticks: u64,
    /// Sum of all credit at the last distribution.
    balance_ns: i64,
    /// Priorities have changed since the queue was sorted.
    is_unsorted: bool,
}

impl Credit {
    /// `spare_cores` are the machine's other cores, whose time is distributed but not used.
    pub fn new(slice_ns: u64, spare_cores: u32, vcpus: usize) -> Self {
        let account = Account { credit_ns: 0, priority: Priority::Under, is_active: false };
        Self {
            slice_ns,
            earned_ns: slice_ns * (1 + u64::from(spare_cores)),
            accounts: vec![account; vcpus],
            queue: Vec::new(),
            running: None,
            burnt_ns: 0,
            slice_ends_ns: u64::MAX,
            next_tick_ns: slice_ns / TICKS,
            ticks: 0,
            balance_ns: 0,
            is_unsorted: false,
        }
    }

    fn priority(&self, vcpu: usize) -> Priority {
        self.accounts[vcpu].priority
    }

    /// Queues it behind all of the same or a higher priority.
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

    /// Requeues the running one and runs the first in the queue.
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
            // One that runs at a tick does not only wait for events.
            account.priority = account.priority.min(Priority::Under);
            account.is_active = true;
        }
        if std::mem::take(&mut self.is_unsorted) {
            self.sort();
        }
        self.ticks += 1;
        if self.ticks % TICKS == 0 {
            self.share_out();
        }
        self.next_tick_ns = now_ns + self.slice_ns / TICKS;
    }

    /// `csched_runq_sort`: a stable sort that moves those that are OVER to the end.
    fn sort(&mut self) {
        let accounts = &self.accounts;
        self.queue.sort_by_key(|&vcpu| accounts[vcpu].priority == Priority::Over);
    }

    /// `csched_acct`.
    fn share_out(&mut self) {
        let slice_ns = self.slice_ns as i64;
        let active = self.accounts.iter_mut().filter(|account| account.is_active);
        let active: Vec<&mut Account> = active.collect();
        let count = active.len().max(1) as u64;
        // An overdraft is added to the distribution, so that not all stay OVER forever.
        let owed_ns = (-self.balance_ns).max(0) as u64;
        // None can use more than one core, and its part of the overdraft.
        let most_ns = self.slice_ns + owed_ns.div_ceil(count);
        let fair_ns = (self.earned_ns + owed_ns).div_ceil(count).min(most_ns) as i64;
        self.balance_ns = 0;
        for account in active {
            account.credit_ns = (account.credit_ns + fair_ns).max(-slice_ns);
            account.priority = if account.credit_ns < 0 { Priority::Over } else { Priority::Under };
            if account.credit_ns > slice_ns {
                // It does not use its credit: it stops earning until a tick finds it running, and
                // keeps half, so that it has priority then.
                account.is_active = false;
                account.credit_ns /= 2;
            }
            self.balance_ns += account.credit_ns;
        }
        self.is_unsorted = true;
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
    use vcc_net::random::SplitMix64;

    const MS: u64 = 1_000_000;

    /// The running virtual CPU, and until when.
    type Turn = (Option<usize>, u64);

    fn run_until(scheduler: &mut Credit, end_ns: u64) -> Vec<Turn> {
        let mut turns = Vec::new();
        note_until(&mut turns, scheduler, end_ns);
        turns
    }

    /// Advances time.
    fn note_until(turns: &mut Vec<Turn>, scheduler: &mut Credit, end_ns: u64) {
        while scheduler.next_ns() < end_ns {
            let (running, until_ns) = (scheduler.running(), scheduler.next_ns());
            match turns.last_mut().filter(|(before, _)| *before == running) {
                Some((_, end_ns)) => *end_ns = until_ns,
                None => turns.push((running, until_ns)),
            }
            scheduler.expire(until_ns);
        }
    }

    /// Waiting times for a turn, from 1 s on, of virtual CPUs that compute from these times on.
    fn waits_ns(spare_cores: u32, begin_ns: &[u64]) -> Vec<u64> {
        let mut scheduler = Credit::new(30 * MS, spare_cores, begin_ns.len());
        let mut begins: Vec<(u64, usize)> = begin_ns.iter().copied().zip(0..).collect();
        begins.sort();
        let mut turns = Vec::new();
        for (begins_ns, vcpu) in begins {
            note_until(&mut turns, &mut scheduler, begins_ns);
            scheduler.wake(vcpu, begins_ns);
        }
        note_until(&mut turns, &mut scheduler, 20_000 * MS);
        let mut last_ns = vec![None; begin_ns.len()];
        let mut waits_ns = Vec::new();
        for pair in turns.windows(2) {
            let [(_, start_ns), (Some(vcpu), end_ns)] = *pair else { continue };
            let waited_ns = last_ns[vcpu].replace(end_ns).map(|last_ns| start_ns - last_ns);
            waits_ns.extend(waited_ns.filter(|_| start_ns > 1000 * MS));
        }
        waits_ns
    }

    /// Start times within 100 ms.
    fn begin_ns(count: usize, seed: u64) -> Vec<u64> {
        let mut random = SplitMix64::new(seed);
        (0..count).map(|_| random.next_u64() % (100 * MS)).collect()
    }

    /// PVTCP, equation 5 and figure 4, on machines whose driver domain had its own cores.
    #[test]
    fn with_a_spare_core_busy_ones_run_round_robin() {
        for (count, seed) in (2..=4).flat_map(|count| (0..50).map(move |seed| (count, seed))) {
            let begin_ns = begin_ns(count, seed);
            for spare_cores in [1, 7] {
                let waits_ns = waits_ns(spare_cores, &begin_ns);
                let bound_ns = (count as u64 - 1) * 30 * MS;
                assert!(waits_ns.len() > 600, "{}", waits_ns.len());
                assert!(waits_ns.iter().all(|&ns| ns == bound_ns), "{count} {seed}: {waits_ns:?}");
            }
        }
    }

    /// If all credit comes from the shared core, those that are UNDER overtake those that are OVER.
    /// Xen's source promises no order either.
    #[test]
    fn without_a_spare_core_busy_ones_overtake_each_other() {
        let longest_ns = |seed| waits_ns(0, &begin_ns(3, seed)).into_iter().max();
        let late = (0..50).filter(|&seed| longest_ns(seed) > Some(60 * MS)).count();
        assert!((1..50).contains(&late), "{late} of 50");
        assert!((0..50).all(|seed| longest_ns(seed) <= Some(120 * MS)));
    }

    #[test]
    fn busy_ones_have_equal_shares() {
        for spare_cores in [0, 1] {
            let mut scheduler = Credit::new(30 * MS, spare_cores, 3);
            (0..3).for_each(|vcpu| scheduler.wake(vcpu, 0));
            let mut ran_ns = [0; 3];
            let mut start_ns = 0;
            for (vcpu, end_ns) in run_until(&mut scheduler, 3000 * MS + 1) {
                ran_ns[vcpu.expect("one always runs")] += end_ns - start_ns;
                start_ns = end_ns;
            }
            assert!(ran_ns.iter().all(|ns| ns.abs_diff(1000 * MS) <= 60 * MS), "{ran_ns:?}");
        }
    }

    /// Since Xen 4.1. Before, it kept none, and so came after those that use all of theirs.
    #[test]
    fn an_inactive_one_keeps_half_of_its_credit() {
        let mut scheduler = Credit::new(30 * MS, 1, 1);
        scheduler.wake(0, 0);
        run_until(&mut scheduler, 11 * MS);
        scheduler.block(11 * MS);
        run_until(&mut scheduler, 31 * MS);
        assert_eq!(scheduler.accounts[0].credit_ns, 19 * MS as i64);
        run_until(&mut scheduler, 61 * MS);
        assert_eq!(scheduler.accounts[0].credit_ns, 49 * MS as i64 / 2);
        assert!(!scheduler.accounts[0].is_active);
        run_until(&mut scheduler, 91 * MS);
        assert_eq!(scheduler.accounts[0].credit_ns, 49 * MS as i64 / 2, "it earns no more");
    }

    #[test]
    fn one_that_wakes_under_is_boosted_until_a_tick_finds_it() {
        let mut scheduler = Credit::new(30 * MS, 0, 2);
        scheduler.wake(0, 0);
        run_until(&mut scheduler, 35 * MS);
        scheduler.wake(1, 35 * MS);
        assert_eq!(scheduler.running(), Some(1), "boosted");
        assert_eq!(scheduler.priority(1), Priority::Boost);
        scheduler.block(36 * MS);
        assert_eq!(scheduler.running(), Some(0));
        scheduler.wake(1, 37 * MS);
        assert_eq!(scheduler.running(), Some(1), "a short run does not end the boost");
        scheduler.expire(40 * MS);
        assert_eq!(scheduler.priority(1), Priority::Under);
    }

    #[test]
    fn one_that_wakes_over_is_not_boosted() {
        let mut scheduler = Credit::new(30 * MS, 0, 2);
        // 0 sleeps 1 ms of every 30, so that 1 is active; both burn more than their half.
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
        assert_ne!(scheduler.running(), Some(over), "no boost while OVER");
    }

    #[test]
    fn an_idle_core_is_given_at_once() {
        let mut scheduler = Credit::new(30 * MS, 0, 2);
        assert_eq!(scheduler.running(), None);
        run_until(&mut scheduler, 100 * MS);
        scheduler.wake(1, 100 * MS);
        assert_eq!(scheduler.running(), Some(1));
        let turns = run_until(&mut scheduler, 500 * MS);
        assert_eq!(turns.len(), 1, "work-conserving: {turns:?}");
    }
}
