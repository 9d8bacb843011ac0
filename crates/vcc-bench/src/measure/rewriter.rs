//! The yardstick `rewriter`, a window rewriter without congestion control; see rewriter.bpf.c.

use std::net::{IpAddr, SocketAddr};

use vcc_port::harness::{Harness, Unloaded};
use vcc_port::{Datapath, Result};

use super::connection::{AGREED, GUEST, PEER, WINDOW};

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/rewriter.bpf.o"));
const WHAT: &str = "the benchmark's window rewriter";
const WSCALE: u32 = 7;

pub(super) struct Rewriter(Harness);

impl Rewriter {
    /// It knows as many connections as the datapath of the cases, in a table of the same size. It
    /// halves their windows.
    pub(super) fn load(datapath: &Datapath) -> Result<Self> {
        let mut unloaded = Unloaded::open(OBJECT, WHAT)?;
        unloaded.set_room("limits", datapath.flow_capacity())?;
        let rewriter = unloaded.load()?;
        for peer in [PEER, AGREED] {
            let limit = limit(u32::from(WINDOW / 2) << WSCALE);
            rewriter.write("limits", &key(GUEST, peer), &limit)?;
        }
        Ok(Self(rewriter))
    }

    /// Makes a tail call of the harness lead to it.
    pub(super) fn follow(&self, harness: &Harness, array: &str, at: u32) -> Result<()> {
        harness.lead_to_other(array, at, &self.0, "rewriter")
    }

    /// The number of windows that it has replaced.
    pub(super) fn replaced(&self) -> Result<u64> {
        let value = self.0.read("limits", &key(GUEST, PEER))?;
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
