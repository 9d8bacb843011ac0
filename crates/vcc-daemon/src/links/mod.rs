//! The devices of this network namespace: those there are, and news of them.

mod message;

use std::io;
use std::sync::mpsc::Sender;
use std::thread;

use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

use crate::event::Event;
use crate::{Error, Result};
use message::{Content, messages};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    pub index: u32,
    /// What is no UTF-8 in it is replaced: the kernel takes any bytes.
    pub name: String,
    /// Whether it is the device's, by which the device can be asked for.
    pub is_exact: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LinkNews {
    /// It is new, or something of it changed.
    Is(Link),
    Gone {
        index: u32,
    },
    /// The kernel had more to tell than we listened to: list them all again.
    Overrun,
}

/// RTNLGRP_LINK (linux/rtnetlink.h).
const LINKS_GROUP: u32 = 1;
/// A storm of containers beginning at once shall fit.
const RECEIVE_BUFFER_BYTES: u32 = 4 << 20;

/// From now on news arrives as events.
pub(crate) fn watch(events: Sender<Event>) -> Result<()> {
    let failed = |e| Error::system("watch the network devices", e);
    let socket = open().map_err(failed)?;
    // Less is no harm: what does not fit is noticed.
    let _ = socket.set_rx_buf_sz(RECEIVE_BUFFER_BYTES);
    socket.add_membership(LINKS_GROUP).map_err(failed)?;
    let forward = move || {
        let lost = forward_all(&socket, &events);
        // Nobody to tell: the daemon is at its end.
        let _ = events.send(Event::Lost(format!("cannot watch the network devices: {lost}")));
    };
    thread::Builder::new().name("links".into()).spawn(forward).map_err(failed)?;
    Ok(())
}

/// Until it cannot go on.
fn forward_all(socket: &Socket, events: &Sender<Event>) -> io::Error {
    loop {
        let news = match socket.recv_from_full() {
            // News is the kernel's alone, whose port is 0.
            Ok((_, from)) if from.port_number() != 0 => Vec::new(),
            Ok((datagram, _)) => news_in(&datagram),
            Err(e) if e.raw_os_error() == Some(libc::ENOBUFS) => vec![LinkNews::Overrun],
            Err(e) if e.kind() == io::ErrorKind::Interrupted => Vec::new(),
            Err(e) => return e,
        };
        for link in news {
            if events.send(Event::Link(link)).is_err() {
                return io::ErrorKind::BrokenPipe.into();
            }
        }
    }
}

/// All there are.
pub(crate) fn list() -> Result<Vec<Link>> {
    list_all().map_err(|e| Error::system("list the network devices", e))
}

fn list_all() -> io::Result<Vec<Link>> {
    const TRIES: usize = 10;
    'again: for _ in 0..TRIES {
        let socket = open()?;
        socket.send_to(&message::request_of_all(), &SocketAddr::new(0, 0), 0)?;
        let mut links = Vec::new();
        let mut torn = false;
        loop {
            let (datagram, _) = socket.recv_from_full()?;
            for message in messages(&datagram) {
                torn |= message.was_interrupted();
                match message.content() {
                    Content::Done if torn => continue 'again,
                    Content::Done => return Ok(links),
                    Content::Error(error) => return Err(error),
                    Content::Link(LinkNews::Is(link)) => links.push(link),
                    Content::Link(_) | Content::Else => {}
                }
            }
        }
    }
    Err(io::Error::other("they changed each time"))
}

fn open() -> io::Result<Socket> {
    let mut socket = Socket::new(NETLINK_ROUTE)?;
    socket.bind_auto()?;
    Ok(socket)
}

fn news_in(datagram: &[u8]) -> Vec<LinkNews> {
    let news = messages(datagram).filter_map(|message| match message.content() {
        Content::Link(news) => Some(news),
        _ => None,
    });
    news.collect()
}
