//! Reads a TCP segment over IPv4 from a frame, apart from the parser under test.

use std::net::SocketAddr;

use vcc_frames::wire::*;
use vcc_frames::{Headers, checksum};

pub struct Segment<'frame> {
    pub from: SocketAddr,
    pub to: SocketAddr,
    pub seq: u32,
    pub ack: u32,
    pub flags: u16,
    pub window: u16,
    pub urgent: u16,
    /// Of a SYN.
    pub wscale: Option<u8>,
    pub payload: &'frame [u8],
    options: &'frame [u8],
    at: Headers,
}

impl<'frame> Segment<'frame> {
    /// None if the frame is no TCP over IPv4 without IP options.
    pub fn read(frame: &'frame [u8]) -> Option<Self> {
        let tcp_at = ETHERNET_BYTES + IPV4_BYTES;
        let is_tcp = frame.get(12..14)? == ETHERTYPE_IPV4.to_be_bytes()
            && *frame.get(ETHERNET_BYTES)? == 0x45
            && *frame.get(ETHERNET_BYTES + 9)? == PROTOCOL_TCP;
        if !is_tcp || frame.len() < tcp_at + TCP_BYTES {
            return None;
        }
        let end = ETHERNET_BYTES + usize::from(read_u16(frame, ETHERNET_BYTES + 2));
        let payload_at = tcp_at + usize::from(frame[tcp_at + 12] >> 4) * 4;
        let address = |at: usize| <[u8; 4]>::try_from(&frame[at..at + 4]).expect("four bytes");
        let flags = read_u16(frame, tcp_at + 12) & ALL_FLAGS;
        let options = &frame[tcp_at + TCP_BYTES..payload_at];
        Some(Segment {
            from: (address(26), read_u16(frame, tcp_at)).into(),
            to: (address(30), read_u16(frame, tcp_at + 2)).into(),
            seq: read_u32(frame, tcp_at + 4),
            ack: read_u32(frame, tcp_at + 8),
            flags,
            window: read_u16(frame, tcp_at + 14),
            urgent: read_u16(frame, tcp_at + 18),
            wscale: (flags & SYN != 0).then(|| wscale(options)).flatten(),
            payload: frame.get(payload_at..end)?,
            options,
            at: Headers { ipv6: false, l3: ETHERNET_BYTES, l4: tcp_at, end },
        })
    }

    /// The kinds of its options.
    pub fn options(&self) -> Vec<u8> {
        let (mut kinds, mut rest) = (Vec::new(), self.options);
        loop {
            match *rest {
                [OPTION_NOP, ref after @ ..] => rest = after,
                [kind, length, ..] if kind != OPTION_END && length >= 2 => {
                    kinds.push(kind);
                    rest = rest.get(usize::from(length)..).unwrap_or_default();
                }
                _ => return kinds,
            }
        }
    }

    pub fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    /// One past the last sequence number that it occupies.
    pub fn end(&self) -> u32 {
        self.payload_end().wrapping_add(u32::from(self.has(SYN)) + u32::from(self.has(FIN)))
    }

    pub fn payload_end(&self) -> u32 {
        self.seq.wrapping_add(self.payload.len() as u32)
    }

    /// Whether the receiver accepts the checksums, which the next device may have to complete.
    pub fn is_right(&self, frame: &[u8], partial: bool) -> bool {
        let mut frame = frame.to_vec();
        if partial {
            checksum::complete(&mut frame, &self.at);
        }
        checksum::verify(&frame, &self.at)
    }
}

fn wscale(mut options: &[u8]) -> Option<u8> {
    loop {
        match *options {
            [OPTION_NOP, ref rest @ ..] => options = rest,
            [OPTION_WSCALE, 3, scale, ..] => return Some(scale.min(14)),
            [kind, length, ..] if kind != OPTION_END && length >= 2 => {
                options = options.get(length.into()..)?;
            }
            _ => return None,
        }
    }
}
