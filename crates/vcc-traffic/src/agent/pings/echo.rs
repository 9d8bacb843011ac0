//! Echo messages (RFC 792). Their data holds the number of the request, because the sequence number
//! wraps.

use std::net::Ipv4Addr;
use vcc_net::checksum;

/// The size of the ICMP data, which is the default of ping(8).
const DATA_BYTES: usize = 56;
const HEADER_BYTES: usize = 8;
const MESSAGE_BYTES: usize = HEADER_BYTES + DATA_BYTES;
const MOST_IP_HEADER_BYTES: usize = 60;
/// The longest reply with its IP header.
pub const MOST_BYTES: usize = MOST_IP_HEADER_BYTES + MESSAGE_BYTES;

const REQUEST: u8 = 8;
const REPLY: u8 = 0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Echo {
    pub target: u16,
    pub number: u64,
}

impl Echo {
    /// The request. Raw sockets do not fill in the checksum.
    pub fn to_bytes(self) -> [u8; MESSAGE_BYTES] {
        let mut message = [0; MESSAGE_BYTES];
        message[0] = REQUEST;
        message[4..6].copy_from_slice(&self.target.to_be_bytes());
        message[6..8].copy_from_slice(&(self.number as u16).to_be_bytes());
        message[8..16].copy_from_slice(&self.number.to_be_bytes());
        let checksum = checksum::compute(&[&message]);
        message[2..4].copy_from_slice(&checksum.to_be_bytes());
        message
    }

    /// Parses an IPv4 packet: the sender and the echo reply. None if it is not a reply to this
    /// program.
    pub fn of_reply(packet: &[u8]) -> Option<(Ipv4Addr, Self)> {
        let header_bytes = usize::from(packet.first()? & 0xf) * 4;
        let from: [u8; 4] = packet.get(12..16)?.try_into().ok()?;
        let message = packet.get(header_bytes..)?;
        if message.len() != MESSAGE_BYTES || message[0] != REPLY {
            return None;
        }
        let target = u16::from_be_bytes(message[4..6].try_into().ok()?);
        let number = u64::from_be_bytes(message[8..16].try_into().ok()?);
        Some((from.into(), Self { target, number }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(message: &[u8]) -> Vec<u8> {
        let mut packet = vec![0; 20];
        packet[0] = 0x45;
        packet[12..16].copy_from_slice(&[10, 77, 0, 2]);
        packet.extend_from_slice(message);
        packet
    }

    #[test]
    fn the_checksum_makes_the_sum_zero() {
        let request = Echo { target: 3, number: 0x1_2345_6789 }.to_bytes();
        assert_eq!(checksum::compute(&[&request]), 0);
    }

    #[test]
    fn an_answer_says_what_was_asked() {
        let asked = Echo { target: 3, number: 70_000 };
        let mut message = asked.to_bytes();
        assert_eq!(Echo::of_reply(&packet(&message)), None, "a request is no answer");
        message[0] = REPLY;
        assert_eq!(Echo::of_reply(&packet(&message)), Some(([10, 77, 0, 2].into(), asked)));
        assert_eq!(Echo::of_reply(&packet(&message[..40])), None, "cut off");
        assert_eq!(Echo::of_reply(&[]), None);
    }
}
