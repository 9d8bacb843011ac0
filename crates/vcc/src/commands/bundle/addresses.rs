//! Made-up addresses in place of those in texts.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Replaces each address in all of the texts by the same other one, which is in none of them. Addresses that
/// identify nobody stay.
pub fn replace_in(texts: Vec<&mut String>) {
    let mut originals = Vec::new();
    texts.iter().for_each(|text| each(text, |_, address| originals.push(address)));
    let made_up = make_up(&originals);
    for text in texts {
        let mut replaced = String::with_capacity(text.len());
        let mut end = 0;
        each(text, |place, address| {
            replaced += &text[end..place.start];
            replaced += &made_up[&address].to_string();
            end = place.end;
        });
        replaced += &text[end..];
        *text = replaced;
    }
}

/// By their first appearance, from the ranges for documentation (RFC 5737, RFC 3849). Those of IPv4 are soon
/// used up, and the reserved 240.0.0.0/4 (RFC 1112) follows.
fn make_up(originals: &[IpAddr]) -> BTreeMap<IpAddr, IpAddr> {
    let taken: BTreeSet<IpAddr> = originals.iter().copied().collect();
    let in_networks = [[192, 0, 2], [198, 51, 100], [203, 0, 113]]
        .into_iter()
        .flat_map(|[a, b, c]| (1..255).map(move |d| Ipv4Addr::new(a, b, c, d)));
    let reserved = (0xf000_0001..0xffff_ffff_u32).map(Ipv4Addr::from);
    let prefix = 0x2001_0db8_u128 << 96;
    let (v4, v6) =
        (in_networks.chain(reserved), (1..).map(|host: u128| Ipv6Addr::from(prefix | host)));
    let mut v4 = v4.map(IpAddr::V4).filter(|address| !taken.contains(address));
    let mut v6 = v6.map(IpAddr::V6).filter(|address| !taken.contains(address));
    let mut made_up = BTreeMap::new();
    for original in originals {
        made_up.entry(*original).or_insert_with(|| {
            let next = if original.is_ipv4() { v4.next() } else { v6.next() };
            next.expect("a text has fewer addresses than these ranges")
        });
    }
    made_up
}

type Place = std::ops::Range<usize>;

/// Visits the addresses of a text, in their order.
fn each(text: &str, mut visit: impl FnMut(Place, IpAddr)) {
    let bytes = text.as_bytes();
    let is_part = |byte: &u8| byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.');
    let mut at = 0;
    while let Some(begin) = bytes[at..].iter().position(is_part).map(|next| at + next) {
        let length = bytes[begin..].iter().position(|byte| !is_part(byte));
        let end = length.map_or(bytes.len(), |length| begin + length);
        visit_run(text, begin..end, &mut visit);
        at = end;
    }
}

/// A run of digits, colons and dots: one address of IPv6, or those of IPv4 in it.
fn visit_run(text: &str, run: Place, visit: &mut impl FnMut(Place, IpAddr)) {
    let word = &text[run.clone()];
    // A colon may precede an address, and a colon or a full stop may follow it.
    let is_behind_colon = word.starts_with(':') && !word.starts_with("::");
    let begin = run.start + usize::from(is_behind_colon);
    let whole = text[begin..run.end].trim_end_matches('.');
    let shorter = whole.strip_suffix(':').unwrap_or(whole);
    let parsed = |word: &str| Some((begin..begin + word.len(), word.parse::<Ipv6Addr>().ok()?));
    if let Some((place, address)) = parsed(whole).or_else(|| parsed(shorter))
        && (is_behind_colon || !is_behind_name(text, begin))
        && !is_before_name(text, run.end)
    {
        if !address.is_loopback() && !address.is_unspecified() {
            visit(place, address.into());
        }
        return;
    }
    let mut at = run.start;
    for part in word.split(|c: char| !c.is_ascii_digit() && c != '.') {
        let begin = at + (part.len() - part.trim_start_matches('.').len());
        at += part.len() + 1;
        let part = part.trim_matches('.');
        // Behind an address there may be a port, after another dot.
        let four = part.match_indices('.').nth(3).map_or(part, |(end, _)| &part[..end]);
        let Ok(address) = four.parse::<Ipv4Addr>() else { continue };
        if !address.is_loopback() && !address.is_unspecified() {
            visit(begin..begin + four.len(), address.into());
        }
    }
}

/// Whether hexadecimal digits from here on belong to a name, as in `std::fs`. In JSON, `\n` may precede them.
fn is_behind_name(text: &str, at: usize) -> bool {
    match text.as_bytes()[..at] {
        [.., b'\\', _] => false,
        [.., byte] => is_of_name(byte),
        [] => false,
    }
}

fn is_before_name(text: &str, at: usize) -> bool {
    text.as_bytes().get(at).copied().is_some_and(is_of_name)
}

fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaced(text: &str) -> String {
        let mut text = text.to_owned();
        replace_in(vec![&mut text]);
        text
    }

    #[test]
    fn addresses_are_found_wherever_they_stand() {
        for (text, expected) in [
            ("10.0.0.1:40000 -> 10.0.0.2:80", "192.0.2.1:40000 -> 192.0.2.2:80"),
            ("\"guest\": \"[fd00::1:2]:80\"", "\"guest\": \"[2001:db8::1]:80\""),
            ("from 10.0.0.1.", "from 192.0.2.1."),
            ("10.0.0.1: no answer", "192.0.2.1: no answer"),
            ("fd00::1: no answer of fd00::1.", "2001:db8::1: no answer of 2001:db8::1."),
            ("fd00::/16, 10.0.0.0/8", "2001:db8::1/16, 192.0.2.1/8"),
            ("peer:fd00::1, fd00::1:", "peer:2001:db8::1, 2001:db8::1:"),
            ("fd00:1:2:3:4:5:6:7", "2001:db8::1"),
            ("::ffff:10.0.0.1", "2001:db8::1"),
            ("fe80::1%eth0 src=10.0.0.1", "2001:db8::1%eth0 src=192.0.2.1"),
            ("tap10.0.0.1a 10.0.0.1.443", "tap192.0.2.1a 192.0.2.1.443"),
            ("\"one\\nfd00::1\"", "\"one\\n2001:db8::1\""),
            ("10.0.0.1,10.0.0.1,10.0.0.2", "192.0.2.1,192.0.2.1,192.0.2.2"),
        ] {
            assert_eq!(replaced(text), expected, "{text}");
        }
    }

    #[test]
    fn all_else_stays() {
        for text in [
            "127.0.0.1:9644 [::1]:9644 0.0.0.0 ::",
            "12:34:56.789, 6.12.0, 02:00:00:00:00:01, 1.5e3",
            "std::fs and vcc::daemon",
            "999.1.1.1 1.2.3 ... ::: é",
            "",
        ] {
            assert_eq!(replaced(text), text);
        }
    }

    #[test]
    fn one_address_is_replaced_alike_in_all_texts_and_by_none_that_is_there() {
        let mut texts = ["10.0.0.9 192.0.2.1", "2001:db8::1 10.0.0.9"].map(str::to_owned);
        replace_in(texts.iter_mut().collect());
        assert_eq!(texts, ["192.0.2.2 192.0.2.3", "2001:db8::2 192.0.2.2"]);
    }

    #[test]
    fn there_are_enough_for_a_large_host() {
        let originals: Vec<IpAddr> =
            (0..100_000_u32).map(|host| Ipv4Addr::from(0x0a00_0000 + host).into()).collect();
        let made_up = make_up(&originals);
        let different: BTreeSet<_> = made_up.values().collect();
        assert_eq!((made_up.len(), different.len()), (100_000, 100_000));
        assert_eq!(made_up[&originals[762]].to_string(), "240.0.0.1");
    }
}
