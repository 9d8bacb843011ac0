//! Round robin.

use std::collections::VecDeque;

use super::Scheduler;

pub(super) struct RoundRobin {
    slice_ns: u64,
    running: Option<usize>,
    slice_ends_ns: u64,
    queue: VecDeque<usize>,
}

impl RoundRobin {
    pub fn new(slice_ns: u64) -> Self {
        Self { slice_ns, running: None, slice_ends_ns: 0, queue: VecDeque::new() }
    }

    fn dispatch(&mut self, now_ns: u64) {
        self.running = self.queue.pop_front();
        self.slice_ends_ns = now_ns + self.slice_ns;
    }
}

impl Scheduler for RoundRobin {
    fn wake(&mut self, vcpu: usize, now_ns: u64) {
        self.queue.push_back(vcpu);
        if self.running.is_none() {
            self.dispatch(now_ns);
        }
    }

    fn block(&mut self, now_ns: u64) {
        self.dispatch(now_ns);
    }

    fn running(&self) -> Option<usize> {
        self.running
    }

    fn next_ns(&self) -> u64 {
        if self.running.is_some() { self.slice_ends_ns } else { u64::MAX }
    }

    fn expire(&mut self, now_ns: u64) {
        self.queue.extend(self.running);
        self.dispatch(now_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_its_slice_and_then_waits_for_all_others() {
        let mut scheduler = RoundRobin::new(30);
        (0..3).for_each(|vcpu| scheduler.wake(vcpu, 0));
        let mut order = Vec::new();
        for _ in 0..5 {
            order.push((scheduler.running(), scheduler.next_ns()));
            scheduler.expire(scheduler.next_ns());
        }
        assert_eq!(
            order,
            [(Some(0), 30), (Some(1), 60), (Some(2), 90), (Some(0), 120), (Some(1), 150)]
        );
    }

    #[test]
    fn blocking_forfeits_the_slice_and_waking_queues_last() {
        let mut scheduler = RoundRobin::new(30);
        assert_eq!((scheduler.running(), scheduler.next_ns()), (None, u64::MAX));
        (0..2).for_each(|vcpu| scheduler.wake(vcpu, 0));
        scheduler.block(10);
        assert_eq!((scheduler.running(), scheduler.next_ns()), (Some(1), 40));
        scheduler.wake(0, 15);
        assert_eq!(scheduler.running(), Some(1), "no preemption");
        scheduler.expire(40);
        assert_eq!(scheduler.running(), Some(0));
        scheduler.block(41);
        scheduler.block(42);
        assert_eq!(scheduler.running(), None);
    }
}
