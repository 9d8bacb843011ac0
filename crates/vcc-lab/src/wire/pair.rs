//! Runs equal traffic without a treatment and with it, in turns. The connections of both sides stay
//! open throughout, each side over devices of its own, and the sides send alternately, because the
//! machine's speed drifts by more than the cost of a treatment.

use super::devices::Wire;
use super::half::Half;
use super::metrics::Pair;
use super::parameters::Parameters;
use super::side::{Running, Side, StopOnDrop};
use crate::base::error::{Error, Result};
use crate::base::interrupt;
use crate::base::system::now_ns;
use std::thread;
use std::time::Duration;
use vcc_results::result::Schedule;

const TICK: Duration = Duration::from_millis(100);
/// Approximate length of a turn.
const TURN: Duration = Duration::from_secs(2);
/// Pause before a turn is measured: the other side's segments have arrived, and this side has
/// started to send.
const SETTLE: Duration = Duration::from_millis(200);

#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// After the first turn of every flow.
    pub warm_up: Duration,
    /// Measured time of each side, in all of its turns.
    pub measured: Duration,
}

impl From<&Schedule> for Times {
    fn from(schedule: &Schedule) -> Self {
        Self {
            warm_up: Duration::from_secs_f64(schedule.warm_up_s),
            measured: Duration::from_secs_f64(schedule.measured_s),
        }
    }
}

impl Times {
    fn turns(&self) -> u32 {
        (self.measured.as_secs_f64() / TURN.as_secs_f64()).round().max(1.0) as u32
    }

    /// Further turns in which the run time of programs is counted.
    fn counted_turns(&self) -> u32 {
        self.turns().div_ceil(5)
    }

    fn turn(&self) -> Duration {
        self.measured / self.turns()
    }

    /// Time of one side of a case before its measurement.
    fn before(&self, case: &Parameters) -> Duration {
        case.demand.first_turns() + self.warm_up
    }

    /// Time of both sides of a case, once they are connected.
    pub fn of_pair(&self, case: &Parameters) -> Duration {
        2 * (self.before(case) + self.turns() * SETTLE + self.measured)
            + self.counted_turns() * (SETTLE + self.turn())
    }
}

/// `number` is that of the pair: every other one begins with the other side. `tick` receives the
/// seconds that are left.
pub fn run(
    wires: &[Wire; 2],
    case: &Parameters,
    times: Times,
    number: u32,
    tick: &mut dyn FnMut(f64),
) -> Result<Pair> {
    let [first, second] = wires;
    let sides = [Side::treat(first, case, &case.without)?, Side::treat(second, case, &case.with)?];
    thread::scope(|scope| {
        let stop = StopOnDrop(&sides);
        // One side after the other: connecting uses all CPUs.
        let running = [sides[0].start(scope)?, sides[1].start(scope)?];
        let mut clock = Clock { left: times.of_pair(case), running: &running, tick };
        let pair = take_turns(&running, case, times, number, &mut clock);
        drop(stop);
        let [without, with] = running.map(Running::join);
        without?;
        with?;
        // A thread that ends without an error was interrupted.
        pair?.ok_or(Error::Interrupted)
    })
}

/// None if a thread has ended.
fn take_turns(
    running: &[Running<'_>; 2],
    case: &Parameters,
    times: Times,
    number: u32,
    clock: &mut Clock<'_>,
) -> Result<Option<Pair>> {
    for side in running {
        side.set_turn(true);
        if !clock.wait(times.before(case))? {
            return Ok(None);
        }
        side.set_turn(false);
    }
    let mut halves = [Half::default(), Half::default()];
    for turn in 0..times.turns() {
        // The order alternates, so that a machine that slows down affects both sides alike.
        let first = ((turn + number) % 2) as usize;
        for index in [first, 1 - first] {
            if !take_turn(&running[index], times, &mut halves[index], clock)? {
                return Ok(None);
            }
        }
    }
    for (side, half) in running.iter().zip(&mut halves) {
        half.doubts = side.doubts(half)?;
    }
    let [without, with] = halves;
    let mut counted = Half::default();
    if let Some(_counting) = running[1].count_run_times()? {
        for _ in 0..times.counted_turns() {
            if !take_turn(&running[1], times, &mut counted, clock)? {
                return Ok(None);
            }
        }
    }
    Ok(Some(Pair { without, with, counted }))
}

/// False if a thread has ended.
fn take_turn(
    side: &Running<'_>,
    times: Times,
    half: &mut Half,
    clock: &mut Clock<'_>,
) -> Result<bool> {
    side.set_turn(true);
    if !clock.wait(SETTLE)? {
        return Ok(false);
    }
    let start = side.mark()?;
    if !clock.wait(times.turn())? {
        return Ok(false);
    }
    half.add(&start, &side.mark()?);
    side.set_turn(false);
    Ok(true)
}

/// Waits, and reports the remaining time.
struct Clock<'a> {
    left: Duration,
    running: &'a [Running<'a>; 2],
    tick: &'a mut dyn FnMut(f64),
}

impl Clock<'_> {
    /// Returns false at once if a thread has ended; joining the thread returns its error.
    fn wait(&mut self, time: Duration) -> Result<bool> {
        self.left = self.left.saturating_sub(time);
        let end_ns = now_ns() + time.as_nanos() as u64;
        loop {
            let left = Duration::from_nanos(end_ns.saturating_sub(now_ns()));
            if interrupt::is_pending() {
                return Err(Error::Interrupted);
            }
            if self.running.iter().any(Running::has_ended) {
                return Ok(false);
            }
            if left.is_zero() {
                return Ok(true);
            }
            (self.tick)((left + self.left).as_secs_f64());
            thread::sleep(left.min(TICK));
        }
    }
}
