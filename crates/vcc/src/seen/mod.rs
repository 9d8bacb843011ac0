//! What is to be seen of ports and their flows: read, compared with what was read before,
//! chosen, ordered and named; the commands only show it.

pub mod columns;
pub mod filter;
pub mod flow;
pub mod guest_ecn;
pub mod guests;
pub mod limit;
pub mod look;
pub mod need;
pub mod port;
pub mod rates;
pub mod rule;
pub mod sampler;
pub mod sort;
#[cfg(test)]
pub mod testing;

pub use flow::FlowView;
pub use limit::Limit;
pub use port::PortView;
pub use rule::RuleView;
pub use sampler::{Sampler, Snapshot};
