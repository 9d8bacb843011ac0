//! A guest, as `--guest` names it.

use std::net::SocketAddr;
use std::str::FromStr;

use vcc_capture::Mac;
use vcc_view::End;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guest {
    End(End),
    Mac(Mac),
}

impl Guest {
    pub fn is(&self, end: SocketAddr, mac: Mac) -> bool {
        match self {
            Self::End(named) => named.matches(end),
            Self::Mac(named) => *named == mac,
        }
    }

    /// May this be an end of the guest? The addresses behind a MAC are not known.
    pub fn may_be(&self, end: SocketAddr) -> bool {
        match self {
            Self::End(named) => named.matches(end),
            Self::Mac(_) => true,
        }
    }
}

impl FromStr for Guest {
    type Err = String;

    /// No IPv6 address has six groups and no `::`.
    fn from_str(text: &str) -> Result<Self, String> {
        mac(text).map_or_else(|| text.parse().map(Self::End), |mac| Ok(Self::Mac(mac)))
    }
}

/// Six octets in hexadecimal, each of two digits.
fn mac(text: &str) -> Option<Mac> {
    let octet = |text: &str| {
        let is_whole = text.len() == 2 && text.bytes().all(|digit| digit.is_ascii_hexdigit());
        is_whole.then(|| u8::from_str_radix(text, 16).ok()).flatten()
    };
    let octets: Vec<u8> = text.split(':').map(octet).collect::<Option<_>>()?;
    octets.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_macs_are_told_apart() {
        let mac = [0x52, 0x54, 0, 0xab, 0xcd, 0xef];
        assert_eq!("52:54:00:ab:CD:ef".parse(), Ok(Guest::Mac(mac)));
        for end in
            ["10.0.0.2", "10.0.0.0/8:80", ":80", "fd00::1", "52:54::ab:cd:ef", "[fd00::1]:80"]
        {
            assert_eq!(end.parse::<Guest>(), Ok(Guest::End(end.parse().expect("an end"))), "{end}");
        }
        for wrong in
            ["52:54:00:ab:cd", "52:54:00:ab:cd:eg", "52:54:00:ab:cd:ef:", "", "1:2:3:4:5:6"]
        {
            assert!(wrong.parse::<Guest>().is_err(), "{wrong}");
        }
        let end = SocketAddr::from(([10, 0, 0, 2], 1));
        assert!(Guest::Mac(mac).is(end, mac) && !Guest::Mac(mac).is(end, [0; 6]));
    }
}
