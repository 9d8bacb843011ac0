//! TCP that the datapath cannot parse and a receiver may accept. It is dropped in both directions
//! if the port polices, and passes otherwise. Other protocols always pass.

use vcc_engine::{Mode, Params};
use vcc_frames::wire::*;
use vcc_frames::{Packet, payload};
use vcc_policy::Policy;
use vcc_port::{AttachOptions, Counter, Datapath, SharedPolicy, counters};

use crate::conversation::{Connection, Shape};
use crate::direction::Direction::{self, FromGuest};
use crate::direction::{DROP, NEXT};
use crate::domain::Domain;
use crate::loaded::Loaded;
use crate::setup::{now_us, usually};

/// A frame, and whether a receiver might find TCP in it.
struct Case {
    what: &'static str,
    holds_tcp: bool,
    counter: Counter,
    frame: Vec<u8>,
}

fn segment(ipv6: bool, edit: impl FnOnce(&mut Packet)) -> Vec<u8> {
    let shape = Shape { ipv6, ..Shape::plain(FromGuest) };
    let mut packet = Connection::new(shape, 20_000).packet(FromGuest);
    packet.payload = payload(64);
    edit(&mut packet);
    packet.frame()
}

fn tagged(ipv6: bool, tags: &[(u16, u16)]) -> Vec<u8> {
    segment(ipv6, |p| p.tags = tags.to_vec())
}

fn v4(edit: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let mut frame = segment(false, |_| {});
    edit(&mut frame[ETHERNET_BYTES..]);
    frame
}

/// Each header by its type and all bytes but the first.
fn v6(headers: &[(u8, &[u8])], last: u8) -> Vec<u8> {
    let mut frame = segment(true, |p| {
        p.extensions = headers.iter().map(|(kind, rest)| (*kind, rest.to_vec())).collect();
    });
    let mut at = ETHERNET_BYTES + 6;
    if !headers.is_empty() {
        at = ETHERNET_BYTES + IPV6_BYTES;
        at += headers[..headers.len() - 1].iter().map(|(_, rest)| 1 + rest.len()).sum::<usize>();
    }
    frame[at] = last;
    frame
}

const PADDING: (u8, &[u8]) = (PROTOCOL_DESTINATION, &[0, 1, 4, 0, 0, 0, 0]);
const FIRST: (u8, &[u8]) = (PROTOCOL_FRAGMENT, &[0, 0, 1, 0, 0, 0, 9]);
const LATER: (u8, &[u8]) = (PROTOCOL_FRAGMENT, &[0, 5, 0xa8, 0, 0, 0, 9]);
const WHOLE: (u8, &[u8]) = (PROTOCOL_FRAGMENT, &[0; 7]);
const ESP: u8 = 50;

fn case(what: &'static str, holds_tcp: bool, counter: Counter, frame: Vec<u8>) -> Case {
    Case { what, holds_tcp, counter, frame }
}

fn tags() -> Vec<Case> {
    let not_ip = |what, holds_tcp, frame| case(what, holds_tcp, counters::NOT_IP, frame);
    let mut cases = Vec::new();
    for ipv6 in [false, true] {
        let tags = |tags: &[(u16, u16)]| tagged(ipv6, tags);
        let udp = |mut frame: Vec<u8>, ip: usize| {
            frame[ip + if ipv6 { 6 } else { 9 }] = PROTOCOL_UDP;
            frame
        };
        let (vlan, qinq) = (ETHERTYPE_VLAN, ETHERTYPE_QINQ);
        cases.extend([
            not_ip("a service tag", true, tags(&[(qinq, 0)])),
            not_ip("a service tag and a VLAN's", true, tags(&[(qinq, 5), (vlan, 6)])),
            not_ip("two priorities, which Linux takes", true, tags(&[(vlan, 0), (vlan, 0)])),
            not_ip("four tags", true, tags(&[(vlan, 1); 4])),
            not_ip("more tags than anybody looks behind", true, tags(&[(vlan, 1); 5])),
            not_ip("a service tag before UDP", false, udp(tags(&[(qinq, 0)]), 18)),
            not_ip("two tags before UDP", false, udp(tags(&[(vlan, 1), (vlan, 2)]), 22)),
        ]);
    }
    let mut arp = tagged(false, &[(ETHERTYPE_QINQ, 7)]);
    write_u16(&mut arp, 16, ETHERTYPE_ARP);
    let mut short = tagged(false, &[(ETHERTYPE_QINQ, 7), (ETHERTYPE_VLAN, 7)]);
    short.truncate(19);
    cases.extend([
        not_ip("a service tag before ARP", false, arp),
        not_ip("cut short within its tags", false, short),
        not_ip("ARP", false, {
            let mut frame = segment(false, |_| {});
            write_u16(&mut frame, 12, ETHERTYPE_ARP);
            frame
        }),
    ]);
    cases
}

fn packets() -> Vec<Case> {
    let fragment = |what, holds_tcp, frame| case(what, holds_tcp, counters::FRAGMENT, frame);
    let not_tcp = |what, frame| case(what, false, counters::NOT_TCP, frame);
    let deep = |what, holds_tcp, frame| case(what, holds_tcp, counters::DEEP, frame);
    let part = |word: u16| v4(|ip| write_u16(ip, 6, word));
    vec![
        fragment("IPv4's first", true, part(0x2000)),
        fragment("IPv4's second", true, part(0x2001)),
        fragment("IPv4's last", true, part(0x1fff)),
        not_tcp("IPv4's, of UDP", v4(|ip| (ip[6], ip[9]) = (0x20, PROTOCOL_UDP))),
        fragment("IPv6's first", true, v6(&[FIRST], PROTOCOL_TCP)),
        fragment("IPv6's later", true, v6(&[LATER], PROTOCOL_TCP)),
        fragment("IPv6's only (RFC 6946)", true, v6(&[WHOLE], PROTOCOL_TCP)),
        fragment("one behind another header", true, v6(&[PADDING, FIRST], PROTOCOL_TCP)),
        fragment("one before another header", true, v6(&[FIRST, PADDING], PROTOCOL_TCP)),
        fragment("one of a fragment", true, v6(&[WHOLE, WHOLE, PADDING], PROTOCOL_TCP)),
        fragment("IPv6's first, of UDP", false, v6(&[FIRST], PROTOCOL_UDP)),
        fragment("IPv6's later, of UDP", false, v6(&[LATER], PROTOCOL_UDP)),
        fragment("a later one before another header", false, v6(&[LATER, PADDING], PROTOCOL_TCP)),
        deep("five headers", true, v6(&[PADDING; 5], PROTOCOL_TCP)),
        deep("a fragment behind five", true, v6(&[[PADDING; 5].as_slice(), &[FIRST]].concat(), 6)),
        deep("more headers than anybody looks behind", true, v6(&[PADDING; 16], PROTOCOL_UDP)),
        deep("five headers before UDP", false, v6(&[PADDING; 5], PROTOCOL_UDP)),
        deep("five headers before what is encrypted", false, v6(&[PADDING; 5], ESP)),
        not_tcp("UDP over IPv4", v4(|ip| ip[9] = PROTOCOL_UDP)),
        not_tcp("UDP over IPv6", v6(&[], PROTOCOL_UDP)),
        not_tcp("UDP behind a header", v6(&[PADDING], PROTOCOL_UDP)),
        case("no length", true, counters::MALFORMED, v4(|ip| write_u16(ip, 2, 0))),
    ]
}

fn count(datapath: &Datapath, counter: Counter) -> u64 {
    datapath.counters().expect("counters").get(counter)
}

/// Checks the verdict of each frame in both directions, and that it is counted once.
fn assert_cases(datapath: &Datapath, mut domain: Option<Domain>, polices: bool) {
    for Case { what, holds_tcp, counter, frame } in tags().into_iter().chain(packets()) {
        for from in Direction::BOTH {
            let dropped = polices && holds_tcp;
            let counter = if dropped { counters::UNJUDGED } else { counter };
            let before: u64 = datapath.counters().expect("counters").iter().map(|(_, n)| n).sum();
            let counted = count(datapath, counter);
            let output = datapath.run(from.program(), &frame, 0).expect("it runs");
            assert_eq!(output.return_value, if dropped { DROP } else { NEXT }, "{what}, {from:?}");
            assert_eq!(output.frame, frame, "{what}, {from:?}");
            assert_eq!(count(datapath, counter), counted + 1, "{what}: {}", counter.name);
            let after: u64 = datapath.counters().expect("counters").iter().map(|(_, n)| n).sum();
            assert_eq!(after, before + 1, "{what}");
            if let Some(domain) = &mut domain {
                domain.send(what, from, now_us(), &frame, 0).assert_equals(what, &output, None);
            }
        }
    }
    if let Some(domain) = domain {
        domain.assert_counted(&datapath.counters().expect("counters"));
    }
}

#[test]
fn what_cannot_be_judged_does_not_pass_where_something_polices() {
    if !vcc_testing::can_attach() {
        return;
    }
    let (enforce, shadow, drain) = (Mode::Enforce, Mode::Shadow, Mode::Drain);
    for (mode, police, polices) in
        [(enforce, true, true), (drain, true, true), (enforce, false, false), (shadow, true, false)]
    {
        let options = usually(Params::with(|p| {
            p.mode = mode.number();
            p.police = police.into();
        }));
        let datapath = Loaded::with_timer(&options);
        assert_cases(&datapath, Some(Domain::new(&options)), polices);
    }
}

/// The connection of such a frame is unknown, so it is dropped if any rule for the port's tenant
/// polices.
#[test]
fn a_rule_that_polices_counts_for_its_tenants_ports() {
    if !vcc_testing::can_attach() {
        return;
    }
    let shared = SharedPolicy::unpinned().expect("maps");
    let load = |index| {
        Datapath::load_under(&shared, index, &AttachOptions::default()).expect("the datapath loads")
    };
    let (acme, bolt) = (load(3), load(4));
    let apply = |rules: &str| {
        let tenants = "[[ports]]\ndevice = \"a*\"\ntenant = \"acme\"\n\
                       [[ports]]\ndevice = \"b*\"\ntenant = \"bolt\"\n";
        let text = format!("{tenants}{rules}[default]\nunderlay = \"dctcp\"\n");
        let policy = Policy::parse(&text, "policy.toml").unwrap_or_else(|wrong| panic!("{wrong}"));
        shared
            .apply(&policy.policy, &[(3, Some("acme").into()), (4, Some("bolt").into())])
            .expect("applied");
    };
    let of_acme = "[[rules]]\nname = \"web\"\ntenant = \"acme\"\npeer_port = 80\npolice = true\n";
    apply(of_acme);
    assert_cases(&acme, None, true);
    assert_cases(&bolt, None, false);
    apply("[[rules]]\nname = \"web\"\npeer_port = 80\npolice = true\n");
    assert_cases(&bolt, None, true);
    apply("[[rules]]\nname = \"trial\"\nmode = \"shadow\"\npolice = true\n");
    assert_cases(&acme, None, false);
}
