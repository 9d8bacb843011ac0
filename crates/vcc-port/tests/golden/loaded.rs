//! Datapaths that tests take in turns, because the verifier needs most of a second for one.

use std::ops::Deref;
use std::sync::Mutex;
use std::thread;

use vcc_port::{AttachOptions, Datapath};

/// Those that no test uses, with the number of flows that their table is for.
static IDLE: Mutex<Vec<(u32, Datapath)>> = Mutex::new(Vec::new());

/// A datapath without a policy, as if it was loaded for a test alone.
pub struct Loaded {
    max_flows: u32,
    /// Until it is dropped.
    datapath: Option<Datapath>,
}

impl Loaded {
    pub fn with_timer(options: &AttachOptions) -> Self {
        let loaded = Self::without_timer(options);
        loaded.start_timer().expect("the timer starts");
        loaded
    }

    /// No timer ever changes a flow.
    pub fn without_timer(options: &AttachOptions) -> Self {
        let max_flows = options.max_flows;
        let mut idle = IDLE.lock().expect("no test fails with it");
        let place = idle.iter().position(|(flows, _)| *flows == max_flows);
        let found = place.map(|place| idle.swap_remove(place).1);
        drop(idle);
        let datapath = match found {
            Some(datapath) => {
                datapath.begin_anew(options).expect("another port takes its place");
                datapath
            }
            None => Datapath::load_without_timer(options).expect("the datapath loads"),
        };
        Self { max_flows, datapath: Some(datapath) }
    }
}

impl Deref for Loaded {
    type Target = Datapath;

    fn deref(&self) -> &Datapath {
        self.datapath.as_ref().expect("it is not dropped")
    }
}

impl Drop for Loaded {
    /// One whose test has failed ends with it.
    fn drop(&mut self) {
        if let Some(datapath) = self.datapath.take()
            && !thread::panicking()
            && datapath.end().is_ok()
        {
            IDLE.lock().expect("no test fails with it").push((self.max_flows, datapath));
        }
    }
}
