//! Connections that come to a port with their guest, from another host.

use std::io;
use std::os::fd::BorrowedFd;

use vcc_engine::sys;

use crate::plain::to_bytes;
use crate::test_run::{self, Context};
use crate::{Error, Flow, Result};

/// Where the Ethernet header of a frame would be, up to where the kernel aligns the arrival.
const NO_HEADER: [u8; 16] = [0; 16];

/// Where a connection comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Another host, with its guest.
    OtherHost,
    /// Other maps of this host: also a port that drains continues it.
    OtherMaps,
    /// Likewise, and their entry replaces the one that these have.
    NewerMaps,
}

impl Origin {
    fn mark(self) -> u32 {
        match self {
            Self::OtherHost => sys::ARRIVE_MARK,
            Self::OtherMaps => sys::STAY_MARK,
            Self::NewerMaps => sys::INSTEAD_MARK,
        }
    }
}

/// What became of a connection that was to come to a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Arrived {
    Translated,
    /// The port knew more of the connection, and continues with what it knew.
    Known,
    /// The port or the host tracks as many connections as it may.
    NoRoom,
    /// The policy leaves it alone, and it does not depend on translation.
    LeftAlone,
    /// The port is draining.
    Draining,
    /// No connection is as this one was described.
    Impossible,
}

/// Runs the program `sweep` of the datapath, which takes over one connection.
pub(crate) fn run(
    program: BorrowedFd<'_>,
    port: u32,
    flow: &Flow,
    from: Origin,
) -> Result<Arrived> {
    const DOING: &str = "take over a connection";
    let arrival = sys::vcc_arrival { key: flow.id().key(port), flow: flow.state.described().0 };
    let frame = [&NO_HEADER, to_bytes(&arrival)].concat();
    let mut context = Context { mark: from.mark(), ..Context::default() };
    context.cb[sys::CB_PORT as usize] = port;
    let output = test_run::run(program, &frame, context).map_err(|e| Error::system(DOING, e))?;
    match -output.return_value {
        0 => Ok(Arrived::Translated),
        libc::EEXIST => Ok(Arrived::Known),
        libc::ENOSPC => Ok(Arrived::NoRoom),
        libc::ENOENT => Ok(Arrived::LeftAlone),
        libc::ESHUTDOWN => Ok(Arrived::Draining),
        libc::EINVAL => Ok(Arrived::Impossible),
        errno => Err(Error::system(DOING, io::Error::from_raw_os_error(errno))),
    }
}
