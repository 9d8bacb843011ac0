//! One end of a connection, as given on the command line: parts of it may be left out.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

/// An address or a network, a port, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    network: Option<Network>,
    port: Option<u16>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Network {
    address: IpAddr,
    prefix_bits: u8,
}

impl End {
    pub fn matches(&self, end: SocketAddr) -> bool {
        self.network.is_none_or(|network| network.has(end.ip().to_canonical()))
            && self.port.is_none_or(|port| port == end.port())
    }
}

impl Network {
    fn has(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(ours), IpAddr::V4(theirs)) => {
                let differ = u32::from(ours) ^ u32::from(theirs);
                differ.leading_zeros() >= u32::from(self.prefix_bits)
            }
            (IpAddr::V6(ours), IpAddr::V6(theirs)) => {
                let differ = u128::from(ours) ^ u128::from(theirs);
                differ.leading_zeros() >= u32::from(self.prefix_bits)
            }
            _ => false,
        }
    }

    fn is_whole(&self) -> bool {
        self.prefix_bits == bits(self.address)
    }
}

fn bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// ADDRESS or ADDRESS/BITS, an IPv6 one in brackets or not.
fn network(text: &str) -> Option<Network> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let (address, prefix) = match bare.split_once('/') {
        Some((address, prefix)) => (address, Some(prefix.parse().ok()?)),
        None => (bare, None),
    };
    let address: IpAddr = address.parse().ok()?;
    // A network of IPv4-mapped addresses stays IPv6: it may hold others too.
    let address = if prefix.is_none() { address.to_canonical() } else { address };
    let prefix_bits = prefix.unwrap_or(bits(address));
    (prefix_bits <= bits(address)).then_some(Network { address, prefix_bits })
}

impl FromStr for End {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(network) = network(text) {
            return Ok(Self { network: Some(network), port: None });
        }
        let with_port = || {
            let (place, port) = text.rsplit_once(':')?;
            let port = Some(port.parse().ok()?);
            if place.is_empty() {
                return Some(Self { network: None, port });
            }
            // An IPv6 address needs brackets before a port.
            let is_clear = place.starts_with('[') || !place.contains(':');
            let network = is_clear.then(|| network(place)).flatten()?;
            Some(Self { network: Some(network), port })
        };
        with_port().ok_or_else(|| {
            format!(
                "'{text}' is not an end of a connection: expected ADDRESS:PORT, ADDRESS or :PORT, where \
                 ADDRESS may be a network ADDRESS/BITS"
            )
        })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)?;
        if self.is_whole() { Ok(()) } else { write!(f, "/{}", self.prefix_bits) }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.network, self.port) {
            (Some(network), Some(port)) if network.address.is_ipv6() => {
                write!(f, "[{network}]:{port}")
            }
            (Some(network), Some(port)) => write!(f, "{network}:{port}"),
            (Some(network), None) => network.fmt(f),
            (None, port) => write!(f, ":{}", port.unwrap_or_default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_have_the_addresses_of_their_prefix() {
        for (text, address, is) in [
            ("10.0.0.0/8", "10.9.8.7:80", true),
            ("10.0.0.0/8", "11.0.0.1:80", false),
            // Bits behind the prefix do not count.
            ("10.1.2.3/8", "10.9.8.7:80", true),
            ("10.0.0.0/8:80", "10.9.8.7:80", true),
            ("10.0.0.0/8:80", "10.9.8.7:81", false),
            ("0.0.0.0/0", "192.0.2.1:80", true),
            ("0.0.0.0/0", "[2001:db8::1]:80", false),
            ("::/0", "[2001:db8::1]:80", true),
            ("2001:db8::/32", "[2001:db8:5::1]:80", true),
            ("2001:db8::/32", "[2001:db9::1]:80", false),
            ("[2001:db8::/32]:443", "[2001:db8::1]:443", true),
            ("[2001:db8::/32]:443", "[2001:db8::1]:80", false),
            ("192.0.2.1/32", "192.0.2.1:5", true),
            ("192.0.2.1", "[::ffff:192.0.2.1]:5", true),
        ] {
            let end: End = text.parse().expect(text);
            assert_eq!(end.matches(address.parse().expect("an address")), is, "{text}, {address}");
            assert_eq!(end.to_string().parse(), Ok(end), "{text}");
        }
        for bad in ["10.0.0.0/33", "::/129", "10.0.0.0/", "/8", "10.0.0.0/8:", "2001:db8::/32:80"] {
            assert!(bad.parse::<End>().is_err(), "{bad}");
        }
    }
}
