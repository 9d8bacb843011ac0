//! Kubernetes' API server as tests use it, and what packaging/kubernetes gives it.

mod chart;
mod cluster;
mod privilege;
