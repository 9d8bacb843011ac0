//! Chaos at live ports: connections of every congestion control that this kernel has, between two
//! guests whose ports are both under vcc, over a path that loses, repeats, reorders, changes and holds
//! up segments, while the daemon is killed and upgraded, policies change, ports drain and are attached
//! again, offloads are toggled and MTUs shrink for a moment. All bytes arrive as they were sent, no
//! connection is lost, and each keeps its translation until it ends.

mod events;
mod path;
mod random;
mod talk;

use std::sync::atomic::AtomicBool;
use std::thread::{self, sleep};
use std::time::Duration;

use vcc_port::Netns;
use vcc_testing::{EndOnDrop, on_a_host};

use super::Place;
use events::{Operator, whole_policy};
use path::{carry, guest};
use random::Random;
use talk::{addresses, known, talks, transfer};

/// How many things happen. `make verify` sets more.
const EVENTS: &str = "VCC_CHAOS_EVENTS";
const FEW_EVENTS: u32 = 12;
/// Another seed makes other things happen.
const SEED: &str = "VCC_CHAOS_SEED";
/// Connections live through so many, and others follow, at ports that are attached anew.
const LIFE_EVENTS: u32 = 30;

fn number(name: &str) -> Option<u32> {
    std::env::var(name).ok().map(|it| it.parse().unwrap_or_else(|e| panic!("{name}: {e}")))
}

/// So many things happen during the life of some connections. Returns how often each transferred.
fn live<'a>(
    mut operator: Operator<'a>,
    guests: [&Netns; 2],
    random: &mut Random,
    events: u32,
) -> (Operator<'a>, Vec<u32>) {
    let is_done = &AtomicBool::new(false);
    thread::scope(|scope| {
        let end = EndOnDrop(is_done);
        let talks = talks(guests);
        let all: Vec<_> = talks.iter().map(addresses).collect();
        let transfers: Vec<_> =
            talks.into_iter().map(|ends| scope.spawn(move || transfer(ends, is_done))).collect();
        for _ in 0..events {
            operator = operator.act(random);
            sleep(Duration::from_millis(random.below(300).into()));
            operator.check();
            for one in &all {
                assert_eq!(known(one), [true; 2], "both ports know {one:?}");
            }
        }
        drop(end);
        let times = transfers.into_iter().map(|it| it.join().expect("a connection was lost"));
        let times = times.collect();
        (operator, times)
    })
}

#[test]
fn chaos_takes_no_byte_and_no_connection() {
    on_a_host(|| {
        let seed = u64::from(number(SEED).unwrap_or(1));
        let place = Place::new("chaos", &whole_policy());
        let [(one, to_one), (other, to_other)] = [1, 2].map(guest);
        let (guests, ends) = ([&one, &other], [&to_one, &to_other]);
        let random = &mut Random::new(!seed);
        let is_over = &AtomicBool::new(false);
        thread::scope(|scope| {
            let end = EndOnDrop(is_over);
            let path = scope.spawn(move || carry(ends, seed, is_over));
            let mut operator = Operator::begin(&place, guests);
            let all = number(EVENTS).unwrap_or(FEW_EVENTS);
            let (mut left, mut exchanges) = (all, 0);
            while left > 0 {
                let events = left.min(LIFE_EVENTS);
                left -= events;
                let times;
                (operator, times) = live(operator, guests, random, events);
                assert!(times.iter().all(|times| *times > 0), "seed {seed}: {times:?}");
                println!("seed {seed}: {events} events, exchanges of 2 MiB: {times:?}");
                exchanges += times.iter().map(|it| u64::from(*it)).sum::<u64>();
                operator.attach_again();
            }
            println!(
                "figure: {all} events, {exchanges} exchanges of 2 MiB: each whole, no connection lost"
            );
            drop(end);
            path.join().expect("the path");
        });
    });
}
