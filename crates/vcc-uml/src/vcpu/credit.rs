//! The credit scheduler of Xen 4.1 (`xen/common/sched_credit.c`) on one core, all weights equal and
//! none capped.
//!
//! Credit is time of a core: it is burnt by running, and each accounting period's is shared out
//! among those that were found running. Whoever has some left is UNDER and goes before those that
//! are OVER; within a priority each has its turn, for a slice. One that wakes while it is UNDER is
//! raised to BOOST, and with that takes the core from whoever runs, until a tick finds it running.
//! Time that is burnt is counted exactly, as it is since Xen 4.0; before that, each tick charged
//! whoever it found for all of itself.
//!
//! What is shared out is the time of all cores of the machine (`csched_acct`). Where one of them is
//! hardly used, such as the driver domain's, nobody who computes on another ever lacks credit: all
//! stay UNDER, and go round in their order. Where there is no such core, those that compute are
//! UNDER and OVER by turns, and now and then one is overtaken: who runs with credit left when a
//! period ends is put before those that were OVER until then, and have waited longer.
//!
//! Accounting and ticks have timers of their own, which drift against each other in Xen. Here they
//! meet, and the tick comes first: so the queue is put in order a tick later.

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
    /// Of a period, on all cores of the machine.
    earned_ns: u64,
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
    /// Priorities have changed since the queue was put in order.
    is_unsorted: bool,
}

impl Credit {
    /// The machine has so many more cores, on which nobody burns what they earn.
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
        if std::mem::take(&mut self.is_unsorted) {
            self.sort();
        }
        self.ticks += 1;
        if self.ticks % TICKS == 0 {
            self.share_out();
        }
        self.next_tick_ns = now_ns + self.slice_ns / TICKS;
    }

    /// `csched_runq_sort`: those that are OVER go behind all others, which keep their places among
    /// each other as they do.
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
        // What more has been burnt than there was comes back, so that not all stay OVER for ever.
        let owed_ns = (-self.balance_ns).max(0) as u64;
        // Nobody can use more than a core, but for its part of that.
        let most_ns = self.slice_ns + owed_ns.div_ceil(count);
        let fair_ns = (self.earned_ns + owed_ns).div_ceil(count).min(most_ns) as i64;
        self.balance_ns = 0;
        for account in active {
            account.credit_ns = (account.credit_ns + fair_ns).max(-slice_ns);
            account.priority = if account.credit_ns < 0 { Priority::Over } else { Priority::Under };
            if account.credit_ns > slice_ns {
                // It does not use what it gets: it stops earning until a tick finds it running, and
                // keeps half, so that it is ahead of the others then.
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
    use vcc_traffic::random::SplitMix64;

    const MS: u64 = 1_000_000;

    /// Who ran, and until when.
    type Turn = (Option<usize>, u64);

    fn run_until(scheduler: &mut Credit, end_ns: u64) -> Vec<Turn> {
        let mut turns = Vec::new();
        note_until(&mut turns, scheduler, end_ns);
        turns
    }

    /// Lets time pass.
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

    /// How long each waits for its turn from 1 s on, where all compute from these times on.
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

    /// So many times to begin at, within 100 ms.
    fn begin_ns(count: usize, seed: u64) -> Vec<u64> {
        let mut random = SplitMix64::new(seed);
        (0..count).map(|_| random.next_u64() % (100 * MS)).collect()
    }

    /// PVTCP, equation 5 and figure 4, on machines whose driver domain had cores of its own.
    #[test]
    fn those_that_always_run_go_round_in_their_order_where_a_core_is_spare() {
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

    /// Where all credit is of the core that they share, those that are UNDER overtake those that
    /// are not: so does Xen, whose source promises no order.
    #[test]
    fn those_that_always_run_overtake_each_other_where_no_core_is_spare() {
        let longest_ns = |seed| waits_ns(0, &begin_ns(3, seed)).into_iter().max();
        let late = (0..50).filter(|&seed| longest_ns(seed) > Some(60 * MS)).count();
        assert!((1..50).contains(&late), "{late} of 50");
        assert!((0..50).all(|seed| longest_ns(seed) <= Some(120 * MS)));
    }

    #[test]
    fn those_that_always_run_have_equal_shares() {
        for spare_cores in [0, 1] {
            let mut scheduler = Credit::new(30 * MS, spare_cores, 3);
            (0..3).for_each(|vcpu| scheduler.wake(vcpu, 0));
            let mut ran_ns = [0; 3];
            let mut start_ns = 0;
            for (vcpu, end_ns) in run_until(&mut scheduler, 3000 * MS + 1) {
                ran_ns[vcpu.expect("somebody always runs")] += end_ns - start_ns;
                start_ns = end_ns;
            }
            assert!(ran_ns.iter().all(|ns| ns.abs_diff(1000 * MS) <= 60 * MS), "{ran_ns:?}");
        }
    }

    /// Since Xen 4.1; before, it had none, and so came behind those that use all that they get.
    #[test]
    fn who_uses_little_keeps_half_of_its_credit() {
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
    fn who_wakes_with_credit_left_runs_at_once_until_a_tick_finds_it() {
        let mut scheduler = Credit::new(30 * MS, 0, 2);
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
        let mut scheduler = Credit::new(30 * MS, 0, 2);
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
        let mut scheduler = Credit::new(30 * MS, 0, 2);
        assert_eq!(scheduler.running(), None);
        run_until(&mut scheduler, 100 * MS);
        scheduler.wake(1, 100 * MS);
        assert_eq!(scheduler.running(), Some(1));
        let turns = run_until(&mut scheduler, 500 * MS);
        assert_eq!(turns.len(), 1, "work-conserving: {turns:?}");
    }
}
