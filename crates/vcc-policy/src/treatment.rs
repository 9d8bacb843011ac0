//! How connections are treated.

use vcc_engine::{Mode, Params, Underlay};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Treatment {
    pub params: Params,
    /// An index into the policy's pools. Only where enforced.
    pub pool: Option<usize>,
    /// The weight of each connection relative to the others in the pool.
    pub weight: u16,
}

impl Default for Treatment {
    fn default() -> Self {
        Self { params: Params::default(), pool: None, weight: 1 }
    }
}

impl Treatment {
    pub fn mode(&self) -> Mode {
        self.params.mode().expect("set by its name")
    }

    pub fn underlay(&self) -> Underlay {
        self.params.underlay().expect("set by its name")
    }
}
