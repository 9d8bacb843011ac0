//! A TCP segment in an IPv4 packet.

const IP_BYTES: usize = 20;
const IP_PROTOCOL_TCP: u8 = 6;
const ECN_MASK: u8 = 3;

pub const ECN_ECT0: u8 = 2;
pub const ECN_CE: u8 = 3;

pub const SYN: u8 = 0x02;
pub const ACK: u8 = 0x10;
pub const ECE: u8 = 0x40;
pub const CWR: u8 = 0x80;

#[derive(Clone, Debug)]
pub struct Segment {
    packet: Vec<u8>,
}

impl Segment {
    /// None unless it is TCP over IPv4 without IP options.
    pub fn parse(packet: &[u8]) -> Option<Self> {
        let is_tcp =
            packet.len() >= 2 * IP_BYTES && packet[0] == 0x45 && packet[9] == IP_PROTOCOL_TCP;
        is_tcp.then(|| Self { packet: packet.to_vec() })
    }

    pub fn packet(&self) -> &[u8] {
        &self.packet
    }

    pub fn ecn(&self) -> u8 {
        self.packet[1] & ECN_MASK
    }

    /// Marks the packet as a congested router does.
    pub fn mark(&mut self) {
        assert_ne!(self.ecn(), 0, "only ECN-capable packets may be marked (RFC 3168, 5)");
        vcc_frames::mark_ce(&mut self.packet);
    }

    fn word(&self, offset: usize) -> u32 {
        u32::from_be_bytes(self.packet[offset..][..4].try_into().expect("four bytes"))
    }

    pub fn seq(&self) -> u32 {
        self.word(IP_BYTES + 4)
    }

    pub fn ack(&self) -> u32 {
        self.word(IP_BYTES + 8)
    }

    fn header_bytes(&self) -> usize {
        usize::from(self.packet[IP_BYTES + 12] >> 4) * 4
    }

    pub fn payload_bytes(&self) -> u32 {
        (self.packet.len() - IP_BYTES - self.header_bytes()) as u32
    }

    pub fn flags(&self) -> u8 {
        self.packet[IP_BYTES + 13]
    }

    pub fn window(&self) -> u16 {
        u16::from_be_bytes([self.packet[IP_BYTES + 14], self.packet[IP_BYTES + 15]])
    }

    /// The TCP options.
    pub fn options(&self) -> &[u8] {
        &self.packet[IP_BYTES + 20..IP_BYTES + self.header_bytes()]
    }

    pub fn is(&self, flags: u8) -> bool {
        self.packet[IP_BYTES + 13] & flags == flags
    }
}
