//! One policy for a cluster. Kubernetes' API server has the policies (VccPolicy) and what each node
//! makes of them (VccNode); here is what stands between it and a node's daemon.
//!
//! Data flows one way: watches ([`watch`], [`store`]) report policies, pods and namespaces; [`check`]
//! reads each policy, [`choose`] says which generations are in force, [`render`] writes the policy file
//! that this node needs; the [`host`] puts it in force; [`writer`] reports it, and the holder of the
//! [`lease`] sums up what all nodes say ([`summary`]). All but the watches and the writers is pure.

pub mod activity;
mod agent;
mod budget;
mod canary;
mod check;
mod choice;
mod choose;
mod chosen;
mod cluster_state;
pub mod devices;
mod document;
mod edition;
mod events;
mod fit;
mod host;
mod last_reports;
mod lease;
mod memory;
mod on_node;
mod pace;
mod pause;
mod render;
mod resource;
pub mod schema;
mod search;
mod selector;
mod spec;
pub mod status;
mod status_size;
mod store;
mod summarist;
mod summary;
mod trouble;
mod watch;
mod writer;

pub use agent::{Agent, Error, Options, start};
pub use host::{Host, RuleActivity, Usage};
pub use resource::Pod;
