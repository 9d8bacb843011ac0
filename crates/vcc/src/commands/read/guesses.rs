//! Guesses about the guests' own congestion control, as `vcc guests` makes them at live ports.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use vcc_capture::{Connection, Passed};
use vcc_engine::{FlowKey, FlowState};
use vcc_overlay::{Guess, Watch};
use vcc_view::guests::observation;

/// Each takes about 20 KiB. The first of a file are watched.
const CONNECTIONS_MAX: usize = 1000;

#[derive(Default)]
pub struct Guesses {
    /// By place, ends and beginning.
    watched: HashMap<(usize, FlowKey, u64), Watched>,
}

struct Watched {
    watch: Watch,
    last: FlowState,
}

impl Guesses {
    /// Takes a segment. The peer's acknowledge: after each, the guest's window shows.
    pub fn note(&mut self, passed: &Passed) {
        if passed.from_guest {
            return;
        }
        let has_room = self.watched.len() < CONNECTIONS_MAX;
        match self.watched.entry((passed.place, passed.key, passed.began_ns)) {
            Entry::Occupied(mut known) => {
                let Watched { watch, last } = known.get_mut();
                watch.note(&observation(passed.now_us, Some(last), passed.state));
                *last = *passed.state;
            }
            Entry::Vacant(new) if has_room => {
                let mut watch = Watch::default();
                watch.note(&observation(passed.now_us, None, passed.state));
                new.insert(Watched { watch, last: *passed.state });
            }
            Entry::Vacant(_) => {}
        }
    }

    /// None if the connection was not watched.
    pub fn guess(&self, connection: &Connection) -> Option<Guess> {
        let key = (connection.place, connection.key, connection.life.began_ns);
        self.watched.get(&key).map(|watched| watched.watch.guess())
    }
}
