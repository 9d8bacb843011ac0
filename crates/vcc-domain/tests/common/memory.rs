//! A ledger in memory that outlives a port.

use std::collections::BTreeMap;
use std::sync::Mutex;

use vcc_domain::{Ledger, Promise};

#[derive(Default)]
pub struct Memory(Mutex<BTreeMap<usize, Promise>>);

impl Memory {
    pub fn promises(&self) -> Vec<Promise> {
        self.0.lock().expect("one thread").values().copied().collect()
    }
}

impl Ledger for Memory {
    fn write(&self, slot: usize, promise: Option<&Promise>) {
        let mut slots = self.0.lock().expect("one thread");
        match promise {
            Some(promise) => slots.insert(slot, *promise),
            None => slots.remove(&slot),
        };
    }
}
