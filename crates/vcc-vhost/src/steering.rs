//! Which pair of rings a frame to the guest takes: the one on which the guest last sent of the same
//! connection (virtio 1.2, 5.1.6.5.6).

const ETHERTYPE_AT: usize = 12;
const VLAN_BYTES: usize = 4;
const IPV4_BYTES: usize = 20;
const IPV6_BYTES: usize = 40;
const PLACES: usize = 256;

pub(crate) struct Steering {
    pairs: [u8; PLACES],
}

impl Steering {
    pub(crate) fn new() -> Self {
        Steering { pairs: [0; PLACES] }
    }

    /// The guest has sent this frame on a pair of rings.
    pub(crate) fn note(&mut self, frame: &[u8], pair: usize) {
        self.pairs[place(frame)] = pair as u8;
    }

    pub(crate) fn pair(&self, frame: &[u8]) -> usize {
        self.pairs[place(frame)].into()
    }
}

/// The same in both directions.
fn place(frame: &[u8]) -> usize {
    ends(frame).map_or(0, |ends| {
        let (one, other) = ends.split_at(ends.len() / 2);
        let sum = |end: &[u8]| {
            end.iter().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add((*byte).into()))
        };
        let mixed = sum(one) ^ sum(other);
        (mixed ^ mixed >> 8 ^ mixed >> 16) as usize % PLACES
    })
}

/// Address and port of one end, then of the other.
fn ends(frame: &[u8]) -> Option<Vec<u8>> {
    let has_tag = frame.get(ETHERTYPE_AT..ETHERTYPE_AT + 2)? == [0x81, 0x00];
    let ip = ETHERTYPE_AT + 2 + if has_tag { VLAN_BYTES } else { 0 };
    let (addresses, ports) = match frame.get(ip - 2..ip)? {
        [0x08, 0x00] => {
            (frame.get(ip + 12..ip + IPV4_BYTES)?, ip + usize::from(frame[ip] & 15) * 4)
        }
        [0x86, 0xdd] => (frame.get(ip + 8..ip + IPV6_BYTES)?, ip + IPV6_BYTES),
        _ => return None,
    };
    let ports = frame.get(ports..ports + 4)?;
    let (source, destination) = addresses.split_at(addresses.len() / 2);
    Some([source, &ports[..2], destination, &ports[2..]].concat())
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use vcc_frames::Packet;

    use super::*;

    #[test]
    fn an_answer_takes_the_rings_of_its_connection() {
        for hosts in [["10.0.0.1", "10.0.0.2"], ["[fd00::1]", "[fd00::2]"]] {
            let frame = |port: u16, reversed: bool| {
                let [one, other] = [(hosts[0], port), (hosts[1], 80)]
                    .map(|(host, port)| format!("{host}:{port}").parse().expect("an end"));
                let (from, to): (SocketAddr, SocketAddr) =
                    if reversed { (other, one) } else { (one, other) };
                Packet::new(from, to).frame()
            };
            let mut steering = Steering::new();
            let taken: Vec<usize> = (0..64).map(|port| place(&frame(port, false))).collect();
            let mut different = taken.clone();
            different.sort_unstable();
            different.dedup();
            assert!(different.len() > 32, "{taken:?}");
            for port in 0..64 {
                steering.note(&frame(port, false), 3);
                assert_eq!(steering.pair(&frame(port, true)), 3);
            }
        }
    }

    #[test]
    fn short_and_strange_frames_take_the_first() {
        let whole = Packet::new(
            "10.0.0.1:1".parse().expect("an end"),
            "10.0.0.2:2".parse().expect("an end"),
        )
        .frame();
        let mut steering = Steering::new();
        steering.note(&whole, 1);
        for bytes in 0..38 {
            assert_eq!(steering.pair(&whole[..bytes]), 0);
        }
    }
}
