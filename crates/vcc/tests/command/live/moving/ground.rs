//! Where a guest moves, with either kind of port there.

use std::time::Instant;

use super::super::{Image, Vm};

pub trait Ground {
    /// The guest goes to the other host, and its connections with it. Returns when it has gone on.
    fn migrate(&mut self, vm: &mut Vm, image: &Image) -> Instant;

    /// Every segment of the guest's connections was translated since it came.
    fn assert_moved(&self);
}
