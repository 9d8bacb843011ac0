//! A soak: for as long as the test may take, connections, ports and front ends come and go, policies
//! change, and clients of every kind ask, leave midway, record and are killed. What a process holds may
//! not grow.

mod card;
mod load;
mod resources;

use std::env;
use std::sync::atomic::AtomicBool;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use vcc_port::Port;
use vcc_testing::{EndOnDrop, eventually, guest, ip, on_a_host};

use super::Place;
use resources::{Resources, memory_kib};

/// For how many seconds there is load. `make verify` sets an hour.
const SECONDS: &str = "VCC_SOAK_SECONDS";
const SHORT: Duration = Duration::from_secs(6);
/// So much of it comes before anything is compared: caches, pools of threads and the ten minutes of the
/// page's history fill up.
const WARM_UP_PART: u32 = 4;
/// How often memory is looked at after that.
const LOOKS: u32 = 240;
const LOOK_LEAST: Duration = Duration::from_millis(20);
/// What an allocator may take more under load, and keep.
const GROWN_MOST_KIB: u64 = 4096;
/// Memory that grows in each part of the time is a trend, if it is more than the last pages of a heap.
const TREND_PARTS: usize = 6;
const TREND_LEAST_KIB: u64 = 512;
/// In less time than this a process still fills what it keeps.
const TREND_TIME_LEAST: Duration = Duration::from_secs(60);

fn length() -> Duration {
    let seconds = env::var(SECONDS).ok();
    seconds.map_or(SHORT, |it| Duration::from_secs(it.parse().expect(SECONDS)))
}

/// Memory under load, look by look.
struct Memory(Vec<u64>);

impl Memory {
    /// Looks at a process for so long.
    fn watched(pid: u32, time: Duration, meanwhile: impl Fn()) -> Self {
        let begin = Instant::now();
        let mut looks = Vec::new();
        while begin.elapsed() < time {
            looks.push(memory_kib(pid));
            meanwhile();
            sleep((time / LOOKS).max(LOOK_LEAST));
        }
        Self(looks)
    }

    /// The medians of equal parts of the time.
    fn medians(&self, parts: usize) -> Vec<u64> {
        let part = |part: usize| {
            let [from, to] = [part, part + 1].map(|it| it * self.0.len() / parts);
            let mut looks = self.0[from..to].to_vec();
            looks.sort_unstable();
            looks[looks.len() / 2]
        };
        (0..parts).map(part).collect()
    }

    /// Why it was not flat in so long a time.
    fn fault(&self, time: Duration) -> Option<String> {
        let medians = self.medians(TREND_PARTS);
        let grown_kib = medians[TREND_PARTS - 1].saturating_sub(medians[0]);
        if grown_kib > GROWN_MOST_KIB {
            return Some(format!("memory has grown by {grown_kib} KiB: {medians:?}"));
        }
        let is_trend = time >= TREND_TIME_LEAST && medians.is_sorted_by(|one, next| one < next);
        (is_trend && grown_kib >= TREND_LEAST_KIB)
            .then(|| format!("memory grows all the time, by {grown_kib} KiB: {medians:?}"))
    }
}

/// A part of the load: it runs until the soak is over, and returns how often it did its work.
type Part<'a> = (&'static str, Box<dyn Fn(&AtomicBool) -> u64 + Send + Sync + 'a>);

/// All parts at once for so long. Returns what they have done, and the process's memory meanwhile.
fn work(pid: u32, time: Duration, parts: &[Part], meanwhile: impl Fn()) -> (String, Memory) {
    let is_over = &AtomicBool::new(false);
    thread::scope(|scope| {
        let end = EndOnDrop(is_over);
        let begun = parts.iter().map(|(what, part)| (what, scope.spawn(move || part(is_over))));
        let begun: Vec<_> = begun.collect();
        let memory = Memory::watched(pid, time, || {
            meanwhile();
            for (what, part) in &begun {
                assert!(!part.is_finished(), "{what}: that has failed");
            }
        });
        drop(end);
        let counts = begun.into_iter().map(|(what, part)| {
            let times = part.join().expect("a part of the load");
            assert!(times > 0, "{what}: none");
            format!("{times} {what}")
        });
        (counts.collect::<Vec<_>>().join(", "), memory)
    })
}

/// What the process holds at rest after `work` is what it has held before, and memory is flat. Prints
/// the figures in a line that `scripts/verify.sh` finds.
fn assert_flat(what: &str, pid: u32, work: impl Fn(Duration) -> (String, Memory), rest: impl Fn()) {
    let length = length();
    let warm_up = length / WARM_UP_PART;
    work(warm_up);
    rest();
    let before = Resources::settled(pid);
    let before_kib = memory_kib(pid);
    let (load, memory) = work(length - warm_up);
    rest();
    let after = before.is_all(pid);
    let after_kib = memory_kib(pid);
    if let Some(fault) = memory.fault(length - warm_up) {
        panic!("{load}: {fault}");
    }
    assert!(after_kib <= before_kib + GROWN_MOST_KIB, "{load}: {before_kib} KiB, {after_kib} KiB");
    println!(
        "figure: {what}, {} s: {load}; at rest before that and after: {before_kib} and {after_kib} KiB of \
         memory, {} and {}",
        (length - warm_up).as_secs(),
        before.in_words(),
        after.in_words()
    );
}

#[test]
fn a_daemon_holds_no_more_after_a_long_time() {
    on_a_host(|| {
        ip("link set lo up");
        let place = &Place::new("soak", load::AT_REST);
        let daemon = place.run_at("127.0.0.1:0");
        let log_line = daemon.wait_for_log("web page at http://");
        let (_, address) = log_line.split_once("http://").expect("an address");
        let address = address.trim_end_matches('/');
        let pid = daemon.child.id();
        let work = |time| {
            let guest = &guest();
            daemon.wait_for_log("port: attached");
            let parts: [Part; 7] = [
                ("connections", Box::new(|is_over| load::connections(guest, is_over))),
                ("devices", Box::new(|is_over| load::devices(place, is_over))),
                ("policies", Box::new(|is_over| load::policies(place, pid, is_over))),
                ("HTTP requests", Box::new(|is_over| load::browsers(address, is_over))),
                ("control requests", Box::new(|is_over| load::askers(place, is_over))),
                ("readings", Box::new(|is_over| load::readers(place, is_over))),
                ("recordings", Box::new(|is_over| load::traces(place, "port", is_over))),
            ];
            work(pid, time, &parts, || {
                let panicked = daemon.lines.try_iter().find(|line| line.contains("panicked"));
                assert_eq!(panicked, None);
            })
        };
        let rest = || {
            place.write(load::AT_REST);
            // Twice, for the kernel keeps the edition before.
            for _ in 0..2 {
                eventually("a policy in force", || place.vcc("policy apply").code == 0);
            }
            eventually("no port", || Port::list().is_ok_and(|ports| ports.is_empty()));
        };
        assert_flat("vcc run", pid, work, rest);
    });
}
