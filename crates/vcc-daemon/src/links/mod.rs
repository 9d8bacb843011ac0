//! The devices of this network namespace: those there are, and news of them.

use std::io;
use std::sync::mpsc::Sender;
use std::thread;

use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::link::{LinkAttribute, LinkMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

use crate::event::Event;
use crate::{Error, Result};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    pub index: u32,
    pub name: String,
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
    /// The kernel marks a listing during which devices came or went.
    const NLM_F_DUMP_INTR: u16 = 0x10;
    const TRIES: usize = 10;
    'again: for _ in 0..TRIES {
        let socket = open()?;
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_DUMP | NLM_F_REQUEST;
        let request = RouteNetlinkMessage::GetLink(LinkMessage::default());
        let mut message = NetlinkMessage::new(header, NetlinkPayload::from(request));
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        socket.send_to(&bytes, &SocketAddr::new(0, 0), 0)?;
        let mut links = Vec::new();
        let mut torn = false;
        loop {
            let (datagram, _) = socket.recv_from_full()?;
            for message in messages(&datagram) {
                torn |= message.header.flags & NLM_F_DUMP_INTR != 0;
                match message.payload {
                    NetlinkPayload::Done(_) if torn => continue 'again,
                    NetlinkPayload::Done(_) => return Ok(links),
                    NetlinkPayload::Error(error) => return Err(error.to_io()),
                    payload => links.extend(match news_of(payload) {
                        Some(LinkNews::Is(link)) => Some(link),
                        _ => None,
                    }),
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
    messages(datagram).filter_map(|message| news_of(message.payload)).collect()
}

/// A message that the library cannot read ends the datagram's.
fn messages(datagram: &[u8]) -> impl Iterator<Item = NetlinkMessage<RouteNetlinkMessage>> {
    /// NLMSG_ALIGNTO (linux/netlink.h).
    const ALIGNMENT: usize = 4;
    let mut rest = datagram;
    std::iter::from_fn(move || {
        loop {
            let length = u32::from_ne_bytes(rest.get(..4)?.try_into().ok()?) as usize;
            let message = rest.get(..length).filter(|message| !message.is_empty())?;
            rest = rest.get(length.next_multiple_of(ALIGNMENT)..).unwrap_or_default();
            // An attribute of a newer kernel that it takes for nonsense is one device unread.
            if let Ok(message) = NetlinkMessage::deserialize(message) {
                return Some(message);
            }
        }
    })
}

fn news_of(payload: NetlinkPayload<RouteNetlinkMessage>) -> Option<LinkNews> {
    let NetlinkPayload::InnerMessage(message) = payload else { return None };
    // A bridge tells in the same words, but for the family, that a device left it.
    let of_all = |link: &LinkMessage| link.header.interface_family == AddressFamily::Unspec;
    match message {
        RouteNetlinkMessage::NewLink(link) if of_all(&link) => {
            let index = link.header.index;
            let name = link.attributes.into_iter().find_map(|attribute| match attribute {
                LinkAttribute::IfName(name) => Some(name),
                _ => None,
            })?;
            Some(LinkNews::Is(Link { index, name }))
        }
        RouteNetlinkMessage::DelLink(link) if of_all(&link) => {
            Some(LinkNews::Gone { index: link.header.index })
        }
        _ => None,
    }
}
