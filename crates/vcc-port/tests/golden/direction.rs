//! Directions and verdicts.

use std::net::SocketAddr;

use vcc_port::Program;

/// The return values of the programs: TCX_NEXT and TCX_DROP (linux/bpf.h).
pub const NEXT: i32 = -1;
pub const DROP: i32 = 2;

/// Guest, peer and VLAN id.
pub type Key = (SocketAddr, SocketAddr, Option<u16>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    FromGuest,
    ToGuest,
}

impl Direction {
    pub const BOTH: [Direction; 2] = [Direction::FromGuest, Direction::ToGuest];

    pub fn other(self) -> Direction {
        match self {
            Direction::FromGuest => Direction::ToGuest,
            Direction::ToGuest => Direction::FromGuest,
        }
    }

    pub fn program(self) -> Program {
        match self {
            Direction::FromGuest => Program::FromGuest,
            Direction::ToGuest => Program::ToGuest,
        }
    }
}
