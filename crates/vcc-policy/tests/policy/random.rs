//! Policies and connections by chance, from few enough values that they meet.

use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use vcc_net::random::SplitMix64;
use vcc_policy::{Connection, Role};

pub struct Chance(SplitMix64);

const TENANTS: [&str; 4] = ["a", "b", "c", "d"];
const PORTS: [u16; 9] = [1, 2, 79, 80, 81, 8000, 8100, 65_534, 65_535];
const VLANS: [u16; 5] = [0, 1, 2, 4093, 4094];
/// Around these the networks nest, and the families of addresses meet.
const IPV4: [u32; 5] = [0, 0x0a00_0000, 0x0a01_0200, 0x7fff_ffff, u32::MAX];
const IPV6: [u128; 6] = [0, 1, 0xffff_0000_0000 - 1, 0x1_0000_0000_0000, 0xfd00 << 112, u128::MAX];

impl Chance {
    pub fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    pub fn below(&mut self, end: usize) -> usize {
        (self.0.next_u64() % end as u64) as usize
    }

    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub fn pick<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())]
    }

    fn list(&mut self, mut value: impl FnMut(&mut Self) -> String) -> String {
        let count = 1 + self.below(4);
        let values: Vec<String> = (0..count).map(|_| value(self)).collect();
        format!("[{}]", values.join(", "))
    }

    fn network(&mut self) -> String {
        if self.one_in(2) {
            let length = self.pick(&[0, 1, 8, 9, 24, 31, 32]);
            let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
            format!("\"{}/{length}\"", Ipv4Addr::from_bits(self.pick(&IPV4) & mask))
        } else {
            // Around all of IPv4, beside it, and the ends.
            let length = self.pick(&[0, 1, 8, 79, 80, 81, 95, 127, 128]);
            let mask = u128::MAX.checked_shl(128 - length).unwrap_or(0);
            format!("\"{}/{length}\"", Ipv6Addr::from_bits(self.pick(&IPV6) & mask))
        }
    }

    fn port_range(&mut self) -> String {
        let (a, b) = (self.pick(&PORTS), self.pick(&PORTS));
        if self.one_in(2) { a.to_string() } else { format!("\"{}-{}\"", a.min(b), a.max(b)) }
    }

    /// A rule asks for each thing with a chance of one in `rarity`.
    pub fn policy(&mut self, rules: usize, rarity: usize) -> String {
        let mut text = String::new();
        for rule in 0..rules {
            writeln!(text, "[[rules]]\nname = \"rule {rule}\"").unwrap();
            if self.one_in(rarity) {
                let list = self.list(|chance| format!("\"{}\"", chance.pick(&TENANTS)));
                writeln!(text, "tenant = {list}").unwrap();
            }
            if self.one_in(4 * rarity) {
                let list = self.list(|chance| format!("\"{}\"", chance.pick(&TENANTS)));
                writeln!(text, "class = {list}").unwrap();
            }
            if self.one_in(rarity) {
                writeln!(text, "peer = {}", self.list(Self::network)).unwrap();
            }
            for key in ["guest_port", "peer_port"] {
                if self.one_in(rarity) {
                    writeln!(text, "{key} = {}", self.list(Self::port_range)).unwrap();
                }
            }
            if self.one_in(rarity) {
                writeln!(text, "role = \"{}\"", self.pick(&["client", "server"])).unwrap();
            }
            if self.one_in(rarity) {
                let list = self.list(|chance| chance.pick(&VLANS).to_string());
                writeln!(text, "vlan = {list}").unwrap();
            }
        }
        text
    }

    fn port(&mut self) -> u16 {
        self.pick(&PORTS).wrapping_add(self.pick(&[u16::MAX, 0, 0, 1]))
    }

    fn address(&mut self) -> IpAddr {
        if self.one_in(2) {
            let near = self.pick(&IPV4).wrapping_add(self.pick(&[u32::MAX, 0, 1, 1 << 8, 1 << 24]));
            Ipv4Addr::from_bits(near).into()
        } else {
            let near =
                self.pick(&IPV6).wrapping_add(self.pick(&[u128::MAX, 0, 1, 1 << 48, 1 << 120]));
            Ipv6Addr::from_bits(near).into()
        }
    }

    pub fn connection(&mut self) -> Connection {
        let tenant = self.pick(&[None, Some("a"), Some("b"), Some("c"), Some("d"), Some("e")]);
        let vlan = self.pick(&VLANS).wrapping_add(self.pick(&[0, 0, 1]));
        Connection {
            tenant: tenant.map(str::to_owned),
            class: self.pick(&[None, Some("a"), Some("b")]).map(str::to_owned),
            guest: SocketAddr::new(Ipv4Addr::new(192, 0, 2, 1).into(), self.port()),
            peer: SocketAddr::new(self.address(), self.port()),
            vlan: if self.one_in(4) { None } else { Some(vlan) },
            role: self.pick(&[Role::Client, Role::Server]),
        }
    }
}
