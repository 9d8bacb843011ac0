//! The connection that an argument names.

use std::fmt;
use std::str::FromStr;

use vcc_port::FlowId;
use vcc_view::End;

/// Either end, or the guest's and the peer's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    End(End),
    Both(End, End),
}

impl Wanted {
    pub fn matches(&self, flow: &FlowId) -> bool {
        match self {
            Self::End(end) => end.matches(flow.guest) || end.matches(flow.peer),
            Self::Both(guest, peer) => guest.matches(flow.guest) && peer.matches(flow.peer),
        }
    }
}

impl FromStr for Wanted {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('-') {
            Some((guest, peer)) => Ok(Self::Both(guest.parse()?, peer.parse()?)),
            None => text.parse().map(Self::End),
        }
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::End(end) => end.fmt(f),
            Self::Both(guest, peer) => write!(f, "{guest}-{peer}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(guest: &str, peer: &str) -> FlowId {
        let [guest, peer] = [guest, peer].map(|end| end.parse().expect("an end"));
        FlowId { guest, peer, vlan: None, inside: false }
    }

    #[test]
    fn any_part_names_a_connection() {
        let v4 = flow("192.0.2.1:40000", "198.51.100.9:80");
        let v6 = flow("[2001:db8::1]:40000", "[2001:db8::2]:443");
        for (text, is_v4, is_v6) in [
            ("192.0.2.1:40000-198.51.100.9:80", true, false),
            ("198.51.100.9:80-192.0.2.1:40000", false, false),
            ("[2001:db8::1]:40000-[2001:db8::2]:443", false, true),
            ("192.0.2.1-198.51.100.9", true, false),
            ("192.0.2.1-:80", true, false),
            (":40000", true, true),
            (":443", false, true),
            ("198.51.100.9", true, false),
            ("198.51.100.9:81", false, false),
            ("::ffff:198.51.100.9", true, false),
            ("2001:db8::2", false, true),
            ("[2001:db8::2]", false, true),
        ] {
            let wanted: Wanted = text.parse().expect(text);
            assert_eq!((wanted.matches(&v4), wanted.matches(&v6)), (is_v4, is_v6), "{text}");
            assert_eq!(wanted.to_string().parse(), Ok(wanted), "{text}");
        }
        for bad in ["", "80", "guest", ":", ":65536", "192.0.2.1:", "192.0.2.1-", "-", "a-b"] {
            assert!(bad.parse::<Wanted>().is_err(), "{bad}");
        }
    }
}
