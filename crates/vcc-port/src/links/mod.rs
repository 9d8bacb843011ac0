//! The network devices of this network namespace: a list of them, and events of changes.

mod message;

use std::io;
use std::thread;

use netlink_sys::Socket;
use vcc_net::netlink;

use crate::{Error, Result};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    pub index: u32,
    /// Bytes that are not UTF-8 are replaced; the kernel allows any.
    pub name: String,
    /// Whether nothing was replaced, so that the name identifies the device.
    pub is_exact: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkNews {
    /// A device is new, or an attribute of it has changed.
    Is(Link),
    Gone {
        index: u32,
    },
    /// The receive buffer overran (ENOBUFS): the devices must be listed again.
    Overrun,
    /// No more events will come, for this reason.
    Lost(String),
}

/// RTNLGRP_LINK (linux/rtnetlink.h).
const LINKS_GROUP: u32 = 1;
/// Room for the news of many containers that start at once.
const RECEIVE_BUFFER_BYTES: u32 = 4 << 20;

/// Calls `send` for every event from now on, on a thread of its own, until it returns false.
pub fn watch(send: impl Fn(LinkNews) -> bool + Send + 'static) -> Result<()> {
    let failed = |e| Error::system("watch the network devices", e);
    let socket = netlink::open().map_err(failed)?;
    // A smaller buffer does no harm: an overrun is reported.
    let _ = socket.set_rx_buf_sz(RECEIVE_BUFFER_BYTES);
    socket.add_membership(LINKS_GROUP).map_err(failed)?;
    let forward = move || {
        if let Err(error) = forward_all(&socket, &send) {
            send(LinkNews::Lost(format!("cannot watch the network devices: {error}")));
        }
    };
    thread::Builder::new().name("links".into()).spawn(forward).map_err(failed)?;
    Ok(())
}

/// Returns when `send` has returned false.
fn forward_all(socket: &Socket, send: &impl Fn(LinkNews) -> bool) -> io::Result<()> {
    loop {
        let news = match socket.recv_from_full() {
            // Only the kernel, whose port is 0, sends news.
            Ok((_, from)) if from.port_number() != 0 => Vec::new(),
            Ok((datagram, _)) => news_in(&datagram),
            Err(e) if e.raw_os_error() == Some(libc::ENOBUFS) => vec![LinkNews::Overrun],
            Err(e) if e.kind() == io::ErrorKind::Interrupted => Vec::new(),
            Err(e) => return Err(e),
        };
        for link in news {
            if !send(link) {
                return Ok(());
            }
        }
    }
}

/// All network devices.
pub fn list() -> Result<Vec<Link>> {
    let devices = netlink::dump(libc::RTM_GETLINK, &message::ALL_DEVICES);
    let devices = devices.map_err(|e| Error::system("list the network devices", e))?;
    Ok(devices.iter().filter_map(|device| message::link(device)).collect())
}

fn news_in(datagram: &[u8]) -> Vec<LinkNews> {
    netlink::messages(datagram).filter_map(|message| message::news(&message)).collect()
}
