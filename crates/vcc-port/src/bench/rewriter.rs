//! The yardstick `rewriter`, a window rewriter without congestion control; see rewriter.bpf.c.

use std::net::{IpAddr, SocketAddr};

use libbpf_rs::{MapCore, MapFlags, MapHandle, Object, ProgramMut};

use super::connection::{AGREED, GUEST, PEER, WINDOW};
use crate::{Datapath, Error, Result, maps, object};

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/rewriter.bpf.o"));
const WHAT: &str = "the benchmark's window rewriter";
const WSCALE: u32 = 7;

pub(super) struct Rewriter {
    object: Object,
    limits: MapHandle,
}

impl Rewriter {
    /// It knows as many connections as the datapath of the cases, in a table of the same size. It
    /// halves their windows.
    pub(super) fn load(datapath: &Datapath) -> Result<Self> {
        let mut open = object::open(OBJECT, WHAT)?;
        object::map(&mut open, "limits")?
            .set_max_entries(datapath.maps().flows.max_entries())
            .map_err(|e| Error::system("limit the window rewriter's connections", e))?;
        let object = object::load(open, WHAT)?;
        let limits = maps::find(&object, "limits")?;
        for peer in [PEER, AGREED] {
            limits
                .update(&key(GUEST, peer), &limit(u32::from(WINDOW / 2) << WSCALE), MapFlags::ANY)
                .map_err(|e| Error::system("tell the window rewriter a connection", e))?;
        }
        Ok(Self { object, limits })
    }

    pub(super) fn program(&self) -> Result<ProgramMut<'_>> {
        object::program(&self.object, "rewriter")
    }

    /// The number of windows that it has replaced.
    pub(super) fn replaced(&self) -> Result<u64> {
        let value = self.limits.lookup(&key(GUEST, PEER), MapFlags::ANY);
        let value = value.map_err(|e| Error::system("read the window rewriter's counter", e))?;
        let segments = value.and_then(|value| Some(u64::from_ne_bytes(*value.first_chunk()?)));
        Ok(segments.unwrap_or(0))
    }
}

/// `struct connection` of rewriter.bpf.c.
fn key(guest: SocketAddr, peer: SocketAddr) -> Vec<u8> {
    let addr = |end: SocketAddr| match end.ip() {
        IpAddr::V4(addr) => addr.octets(),
        IpAddr::V6(_) => unreachable!("the benchmark's connections are IPv4's"),
    };
    let port = |end: SocketAddr| end.port().to_be_bytes();
    [&addr(guest)[..], &addr(peer), &port(guest), &port(peer)].concat()
}

/// `struct limit` of rewriter.bpf.c.
fn limit(window_bytes: u32) -> Vec<u8> {
    let segments = 0u64.to_ne_bytes();
    [&segments[..], &window_bytes.to_ne_bytes(), &WSCALE.to_ne_bytes()].concat()
}
