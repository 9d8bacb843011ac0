//! A core: a scheduler, and the work of its virtual CPUs.

use super::{Load, Scheduler, SchedulerSpec};

#[derive(Debug, Clone)]
pub struct CoreSpec {
    pub scheduler: SchedulerSpec,
    /// Virtual CPUs without a guest, which only compute.
    pub background: Vec<Load>,
    /// CPU time of a guest for each wakeup from sleep.
    pub wakeup_ns: u64,
    /// CPU time of the driver domain on this core each time that frames pass between it and a guest
    /// here. None: the driver domain has a core of its own.
    pub driver_ns: Option<u64>,
}

/// Virtual CPUs are numbered: guests first, then the background, then the driver domain.
pub(crate) struct Core {
    scheduler: Box<dyn Scheduler>,
    vcpus: Vec<Vcpu>,
    now_ns: u64,
    wakeup_ns: u64,
    driver: Option<Driver>,
}

struct Driver {
    vcpu: usize,
    each_ns: u64,
}

/// Runnable while its guest has an event due or its load computes.
#[derive(Debug, Clone)]
struct Vcpu {
    load: Option<Load>,
    /// When its load resumes computing; None while it computes.
    load_sleeps_until_ns: Option<u64>,
    /// Remaining work; u64::MAX is endless.
    work_ns: u64,
    /// Its guest has an event due.
    is_due: bool,
}

impl Vcpu {
    fn new(load: Option<Load>) -> Self {
        let load_sleeps_until_ns = load.map(|load| load.begins_at_ns);
        Self { load, load_sleeps_until_ns, work_ns: 0, is_due: false }
    }

    fn is_runnable(&self) -> bool {
        self.is_due || self.work_ns > 0
    }
}

impl Core {
    /// `guests` are the loads of the guests' virtual CPUs.
    pub fn new(spec: &CoreSpec, guests: impl IntoIterator<Item = Option<Load>>) -> Self {
        let background = spec.background.iter().copied().map(Some);
        let mut vcpus: Vec<Vcpu> = guests.into_iter().chain(background).map(Vcpu::new).collect();
        let driver = spec.driver_ns.map(|each_ns| Driver { vcpu: vcpus.len(), each_ns });
        vcpus.extend(driver.as_ref().map(|_| Vcpu::new(None)));
        Self {
            scheduler: spec.scheduler.build(vcpus.len()),
            vcpus,
            now_ns: 0,
            wakeup_ns: spec.wakeup_ns,
            driver,
        }
    }

    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    pub fn running(&self) -> Option<usize> {
        self.scheduler.running()
    }

    /// Has its guest an event due, without having the core?
    pub fn is_waiting(&self, vcpu: usize) -> bool {
        self.vcpus[vcpu].is_due && self.running() != Some(vcpu)
    }

    /// When another virtual CPU may get the core, if no guest wakes or rests before.
    pub fn next_ns(&self) -> u64 {
        let loads = self.vcpus.iter().filter_map(|vcpu| vcpu.load_sleeps_until_ns);
        let work = self.running().map(|vcpu| self.vcpus[vcpu].work_ns);
        let work_ends_ns = work.filter(|&ns| ns > 0).map(|ns| self.now_ns.saturating_add(ns));
        loads.chain(work_ends_ns).chain([self.scheduler.next_ns()]).min().unwrap_or(u64::MAX)
    }

    /// Advances time to `to_ns`, with all events until then.
    pub fn advance(&mut self, to_ns: u64) {
        loop {
            let at_ns = self.next_ns();
            if at_ns > to_ns {
                return self.pass(to_ns);
            }
            self.pass(at_ns);
            self.wake_loads();
            if self.scheduler.next_ns() <= at_ns {
                self.scheduler.expire(at_ns);
            }
        }
    }

    /// The running one computes until `to_ns`, and blocks if its work is done.
    fn pass(&mut self, to_ns: u64) {
        let passed_ns = to_ns - self.now_ns;
        self.now_ns = to_ns;
        let Some(vcpu) = self.running().map(|vcpu| &mut self.vcpus[vcpu]) else { return };
        if vcpu.work_ns == 0 || vcpu.work_ns == u64::MAX {
            return;
        }
        vcpu.work_ns -= passed_ns;
        if vcpu.work_ns > 0 {
            return;
        }
        if vcpu.load_sleeps_until_ns.is_none() {
            vcpu.load_sleeps_until_ns = vcpu.load.map(|load| to_ns + load.idle_ns);
        }
        if !vcpu.is_runnable() {
            self.scheduler.block(to_ns);
        }
    }

    fn wake_loads(&mut self) {
        for vcpu in 0..self.vcpus.len() {
            let it = &mut self.vcpus[vcpu];
            if it.load_sleeps_until_ns.is_some_and(|at_ns| at_ns <= self.now_ns) {
                it.load_sleeps_until_ns = None;
                let busy_ns = it.load.map_or(0, |load| load.busy_ns);
                self.compute(vcpu, busy_ns);
            }
        }
    }

    /// Adds work.
    fn compute(&mut self, vcpu: usize, work_ns: u64) {
        let it = &mut self.vcpus[vcpu];
        let slept = !it.is_runnable();
        it.work_ns = it.work_ns.saturating_add(work_ns);
        if slept && it.is_runnable() {
            self.scheduler.wake(vcpu, self.now_ns);
        }
    }

    /// A guest has an event due.
    pub fn wake(&mut self, vcpu: usize) {
        let it = &mut self.vcpus[vcpu];
        let slept = !it.is_runnable();
        it.is_due = true;
        if slept {
            it.work_ns = self.wakeup_ns;
            self.scheduler.wake(vcpu, self.now_ns);
        }
    }

    /// The running guest is idle.
    pub fn rest(&mut self, vcpu: usize) {
        debug_assert_eq!(self.running(), Some(vcpu), "only the running guest can rest");
        self.vcpus[vcpu].is_due = false;
        if !self.vcpus[vcpu].is_runnable() {
            self.scheduler.block(self.now_ns);
        }
    }

    /// The running guest has powered off.
    pub fn end(&mut self, vcpu: usize) {
        self.vcpus[vcpu] = Vcpu::new(None);
        self.rest(vcpu);
    }

    /// Frames have passed between a guest here and the driver domain.
    pub fn pass_frames(&mut self) {
        if let Some(Driver { vcpu, each_ns }) = self.driver {
            self.compute(vcpu, each_ns);
        }
    }

    /// The running guest may run up to this time without rescheduling. A guest without a load may
    /// rest at any moment, and one that passes frames to a driver domain on its core may lose the
    /// core at any moment.
    pub fn free_until_ns(&self, vcpu: usize) -> u64 {
        match self.vcpus[vcpu].work_ns > 0 && self.driver.is_none() {
            true => self.next_ns(),
            false => self.now_ns + 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const ROUND_ROBIN: SchedulerSpec = SchedulerSpec::RoundRobin { slice_ns: 30 * MS };
    const CREDIT: SchedulerSpec = SchedulerSpec::Credit { slice_ns: 30 * MS, spare_cores: 0 };

    fn spec(scheduler: SchedulerSpec, background: &[Load]) -> CoreSpec {
        CoreSpec { scheduler, background: background.to_vec(), wakeup_ns: 0, driver_ns: None }
    }

    /// Waiting times of guest 0, which needs no CPU time and becomes due every `every_ns`.
    fn waits_ms(core: &mut Core, every_ns: u64, times: u64) -> Vec<u64> {
        let mut waits = Vec::new();
        for time in 1..=times {
            core.advance((time * every_ns).max(core.now_ns()));
            core.wake(0);
            while core.is_waiting(0) {
                core.advance(core.next_ns());
            }
            waits.push((core.now_ns() - time * every_ns) / MS);
            core.rest(0);
        }
        waits
    }

    #[test]
    fn a_guest_alone_never_waits() {
        for scheduler in [ROUND_ROBIN, CREDIT] {
            let mut core = Core::new(&spec(scheduler, &[]), [None]);
            assert_eq!(waits_ms(&mut core, 7 * MS, 50), [0; 50]);
            let mut core = Core::new(&spec(scheduler, &[]), [Some(Load::full(0))]);
            assert_eq!(waits_ms(&mut core, 7 * MS, 50), [0; 50]);
        }
    }

    /// PVTCP, equation 5: up to (N - 1) slices.
    #[test]
    fn a_guest_that_computes_beside_others_waits_for_all_of_them() {
        for scheduler in [ROUND_ROBIN, CREDIT] {
            for others in 1..=3 {
                let background = vec![Load::full(0); others];
                let mut core = Core::new(&spec(scheduler, &background), [Some(Load::full(0))]);
                let waits = waits_ms(&mut core, 101 * MS, 400);
                let most = waits.iter().copied().max().expect("waits");
                let bound = others as u64 * 30;
                assert!((bound - 10..=bound).contains(&most), "{scheduler:?} {others}: {most}");
                assert!(waits.contains(&0), "sometimes it runs at once");
            }
        }
    }

    /// The credit scheduler boosts a guest that sleeps; under round robin it waits for its turn.
    #[test]
    fn a_guest_that_sleeps_is_boosted() {
        let background = [Load::full(0), Load::full(0)];
        let mut core = Core::new(&spec(CREDIT, &background), [None]);
        assert_eq!(waits_ms(&mut core, 101 * MS, 100), [0; 100]);
        let mut core = Core::new(&spec(ROUND_ROBIN, &background), [None]);
        let waits = waits_ms(&mut core, 101 * MS, 100);
        assert!(waits.iter().all(|wait| (30..=60).contains(wait)), "{waits:?}");
    }

    #[test]
    fn a_load_keeps_its_duty_cycle_on_an_idle_core() {
        let load = Load::percent(60, 30 * MS, 0);
        let mut core = Core::new(&spec(CREDIT, &[load]), []);
        let (mut busy_ns, mut last_ns) = (0, 0);
        while core.now_ns() < 3000 * MS {
            let is_busy = core.running().is_some();
            core.advance(core.next_ns());
            busy_ns += if is_busy { core.now_ns() - last_ns } else { 0 };
            last_ns = core.now_ns();
        }
        assert_eq!(busy_ns * 100 / last_ns, 60);
    }

    #[test]
    fn a_wakeup_costs_cpu_time() {
        let spec = CoreSpec { wakeup_ns: 50_000, ..spec(CREDIT, &[Load::full(0)]) };
        let mut core = Core::new(&spec, [None]);
        // Until the first tick, the load itself is boosted.
        core.advance(15 * MS);
        core.wake(0);
        assert_eq!(core.running(), Some(0));
        core.rest(0);
        assert_eq!(core.running(), Some(0), "it still computes");
        assert_eq!(core.free_until_ns(0), 15 * MS + 50_000);
        core.advance(15 * MS + 50_000);
        assert_eq!(core.running(), Some(1));
    }

    #[test]
    fn a_driver_domain_on_the_core_takes_it_from_a_guest_that_computes() {
        let spec = CoreSpec { driver_ns: Some(20_000), ..spec(CREDIT, &[Load::full(0)]) };
        let mut core = Core::new(&spec, [Some(Load::full(0))]);
        core.advance(75 * MS);
        assert_eq!(core.running(), Some(0));
        core.pass_frames();
        assert_eq!(core.running(), Some(2), "the driver domain");
        core.advance(75 * MS + 19_999);
        assert_eq!(core.running(), Some(2));
        core.advance(75 * MS + 20_000);
        assert_ne!(core.running(), Some(2));
    }

    #[test]
    fn an_ended_guest_is_never_runnable() {
        let mut core = Core::new(&spec(ROUND_ROBIN, &[Load::full(0)]), [Some(Load::full(0))]);
        core.advance(1);
        core.end(0);
        assert_eq!(core.running(), Some(1));
        core.advance(300 * MS);
        assert_eq!(core.running(), Some(1));
    }
}
