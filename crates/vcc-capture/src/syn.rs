//! What an end offers in its SYN or SYN-ACK.

use vcc_domain::{Frame, TcpHeader};
use vcc_engine::sys;

use crate::options::Options;
use crate::segment::Segment;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Syn {
    pub mss_bytes: Option<u16>,
    /// RFC 7323, 2.
    pub scale: Option<u8>,
    pub permits_sack: bool,
    pub has_timestamps: bool,
    /// Of AE, CWR and ECE: what it wants of ECN (RFC 3168, 6.1.1; RFC 9768, 3.1.1).
    pub ecn_flags: u32,
}

/// With their names.
pub const ECN_FLAGS: [(&str, u32); 3] =
    [("AE", sys::TCP_AE), ("CWR", sys::TCP_CWR), ("ECE", sys::TCP_ECE)];

impl Syn {
    pub(crate) fn read(frame: &Frame, header: &TcpHeader, segment: &Segment) -> Self {
        let options = Options::read(frame, header);
        let ecn_mask = ECN_FLAGS.iter().fold(0, |all, (_, flag)| all | flag);
        Self {
            mss_bytes: options.mss_bytes(),
            scale: options.scale(),
            permits_sack: options.permits_sack(),
            has_timestamps: options.timestamps().is_some(),
            ecn_flags: segment.flags & ecn_mask,
        }
    }
}

#[cfg(test)]
mod tests {
    use vcc_frames::{Packet, options};

    use super::*;

    #[test]
    fn options_and_flags_are_read() {
        let ends = ["10.0.0.2:40000", "192.0.2.9:80"].map(|end| end.parse().expect("an end"));
        let read = |packet: Packet| {
            let frame = Frame::full(packet.frame());
            let header = frame.tcp_header().expect("TCP");
            Syn::read(&frame, &header, &Segment::read(&frame, &header))
        };
        let packet = Packet::syn(ends[0], ends[1]);
        let parts = [
            options::mss(1400),
            options::wscale(9),
            options::sack_permitted(),
            options::timestamps(1, 0),
        ];
        let all = Packet {
            options: options::join(&parts),
            flags: (sys::TCP_SYN | sys::TCP_AE | sys::TCP_CWR | sys::TCP_ECE) as u16,
            ..packet.clone()
        };
        let ecn_flags = sys::TCP_AE | sys::TCP_CWR | sys::TCP_ECE;
        let (mss_bytes, scale) = (Some(1400), Some(9));
        let (permits_sack, has_timestamps) = (true, true);
        let expected = Syn { mss_bytes, scale, permits_sack, has_timestamps, ecn_flags };
        assert_eq!(read(all), expected);
        assert_eq!(read(Packet { options: vec![], ..packet }), Syn::default());
    }
}
