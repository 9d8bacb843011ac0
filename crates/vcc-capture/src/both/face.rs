//! The two sides of a port, and the two directions through it.

use std::ops::{Index, IndexMut};

pub use crate::port_side::Face;

/// The way of a segment through the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    FromGuest,
    ToGuest,
}

impl Direction {
    pub const BOTH: [Self; 2] = [Self::FromGuest, Self::ToGuest];

    /// The side at which a segment arrives.
    pub(crate) fn entrance(self) -> Face {
        match self {
            Self::FromGuest => Face::Guest,
            Self::ToGuest => Face::Fabric,
        }
    }
}

/// A value for each side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByFace<T> {
    pub guest: T,
    pub fabric: T,
}

impl<T> Index<Face> for ByFace<T> {
    type Output = T;

    fn index(&self, face: Face) -> &T {
        match face {
            Face::Guest => &self.guest,
            Face::Fabric => &self.fabric,
        }
    }
}

impl<T> IndexMut<Face> for ByFace<T> {
    fn index_mut(&mut self, face: Face) -> &mut T {
        match face {
            Face::Guest => &mut self.guest,
            Face::Fabric => &mut self.fabric,
        }
    }
}

/// A value for each direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByDirection<T> {
    pub from_guest: T,
    pub to_guest: T,
}

impl<T> Index<Direction> for ByDirection<T> {
    type Output = T;

    fn index(&self, direction: Direction) -> &T {
        match direction {
            Direction::FromGuest => &self.from_guest,
            Direction::ToGuest => &self.to_guest,
        }
    }
}

impl<T> IndexMut<Direction> for ByDirection<T> {
    fn index_mut(&mut self, direction: Direction) -> &mut T {
        match direction {
            Direction::FromGuest => &mut self.from_guest,
            Direction::ToGuest => &mut self.to_guest,
        }
    }
}
