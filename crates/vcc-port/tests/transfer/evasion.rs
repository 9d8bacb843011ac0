//! A guest sends far more than its window, disguised in every way, to a Linux without vcc. The
//! receiver accepts the excess without policing, and must not get it with policing.

use std::io::{ErrorKind, Read};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use vcc_engine::Params;
use vcc_frames::wire::{ACK, FIN, PSH, SYN};
use vcc_policy::Order;
use vcc_port::{AttachOptions, Netns, Port, counters};
use vcc_testing::{accept_detours, ip, on_a_host};

use crate::common::{STALLED, address, configure, eventually};
use crate::forger::{Forger, Segment, mac_text};

/// The address of no kernel: the test forges its packets behind the guest's device.
const FORGED_HOST: u8 = 77;
const PEER_HOST: u8 = 2;
const WINDOW_BYTES: u32 = 6000;
/// More data than the window of a SYN-ACK, which no rule limits.
const HONEST_ROUNDS: usize = 30;
const MSS: [u8; 4] = [2, 4, 5, 0x78];
const SEG_BYTES: usize = 1400;

/// Turns a segment of the flood into frames.
type Disguise = fn(&Forger, &Segment) -> Vec<Vec<u8>>;

struct Attack {
    what: &'static str,
    v6: bool,
    /// Options behind the MSS in the guest's SYN.
    syn_options: &'static [u8],
    /// More flags of the guest's SYN-ACK, if the peer opens.
    answer_flags: Option<u16>,
    disguise: Disguise,
    seg_bytes: usize,
}

const PLAIN: Attack = Attack {
    what: "none",
    v6: false,
    syn_options: &[],
    answer_flags: None,
    disguise: |forger, segment| vec![forger.frame(segment)],
    seg_bytes: SEG_BYTES,
};

fn with_options(forger: &Forger, segment: &Segment, options: &[u8]) -> Vec<Vec<u8>> {
    vec![forger.frame(&Segment { options: options.to_vec(), ..segment.clone() })]
}

const ATTACKS: &[Attack] = &[
    PLAIN,
    Attack { what: "none, over IPv6", v6: true, ..PLAIN },
    Attack { what: "half an option on the SYN", syn_options: &[3, 3, 7, 254], ..PLAIN },
    Attack { what: "a signature on the SYN", syn_options: &[29, 4, 0, 0], ..PLAIN },
    Attack { what: "a FIN on the SYN-ACK", answer_flags: Some(FIN), ..PLAIN },
    Attack {
        what: "options that end early",
        disguise: |forger, segment| with_options(forger, segment, &[1, 1, 254, 0]),
        ..PLAIN
    },
    Attack {
        what: "a signature",
        disguise: |forger, segment| with_options(forger, segment, &[29, 4, 0, 0]),
        ..PLAIN
    },
    Attack {
        what: "IPv4's fragments",
        disguise: |forger, segment| forger.ipv4_fragments(segment),
        ..PLAIN
    },
    Attack {
        what: "IPv6's fragments",
        v6: true,
        disguise: |forger, segment| forger.ipv6_fragments(segment),
        ..PLAIN
    },
    Attack {
        what: "an IPv6 fragment that is all of its packet",
        v6: true,
        disguise: |forger, segment| vec![forger.behind(segment, &[(44, vec![0; 7])])],
        ..PLAIN
    },
    Attack {
        what: "more extension headers than are followed",
        v6: true,
        disguise: |forger, segment| {
            let padding = (60, vec![0, 1, 4, 0, 0, 0, 0]);
            vec![forger.behind(segment, &vec![padding; 6])]
        },
        ..PLAIN
    },
    Attack {
        what: "a long extension header",
        v6: true,
        disguise: |forger, segment| {
            // An unknown option of a type to be skipped (RFC 8200, 4.2).
            let unknown = [&[24, 0x1e, 196][..], &[0; 196]].concat();
            vec![forger.behind(segment, &[(60, unknown)])]
        },
        seg_bytes: 1200,
        ..PLAIN
    },
    Attack {
        what: "two priority tags",
        disguise: |forger, segment| vec![forger.tagged(segment, &[0x8100, 0x8100])],
        ..PLAIN
    },
    Attack {
        what: "a service tag",
        disguise: |forger, segment| vec![forger.tagged(segment, &[0x88a8])],
        ..PLAIN
    },
    Attack {
        what: "headers that are not linear, behind IP options",
        disguise: |forger, segment| vec![forger.behind_ip_options(segment)],
        seg_bytes: 5000,
        ..PLAIN
    },
];

/// A connection between a forged end and a real one.
struct Talk<'a> {
    forger: &'a Forger,
    /// By which the forged end sends its data.
    by: &'a Forger,
    /// The next segment of the forged end, without payload.
    next: Segment,
    peer: TcpStream,
    delivered_bytes: usize,
}

impl<'a> Talk<'a> {
    fn open(forger: &'a Forger, attack: &Attack, forged_port: u16) -> Self {
        match attack.answer_flags {
            None => Self::dial(forger, attack, forged_port),
            Some(flags) => Self::answer(forger, attack, forged_port, flags),
        }
    }

    fn dial(forger: &'a Forger, attack: &Attack, forged_port: u16) -> Self {
        let listener = TcpListener::bind((address(attack.v6, PEER_HOST), 0)).expect("a listener");
        let peer_port = listener.local_addr().expect("an address").port();
        let mut next = Segment::new(attack.v6, forged_port, peer_port);
        next.flags = SYN;
        next.options = [&MSS, attack.syn_options].concat();
        forger.send(&forger.frame(&next));
        let syn_ack = forger.receive(&next);
        assert_eq!(syn_ack.flags & (SYN | ACK), SYN | ACK, "{}", attack.what);
        next.follow(&syn_ack);
        forger.send(&forger.frame(&next));
        Self::begun(forger, next, listener.accept().expect("accepted").0)
    }

    fn answer(forger: &'a Forger, attack: &Attack, forged_port: u16, flags: u16) -> Self {
        let to = (address(attack.v6, FORGED_HOST), forged_port).into();
        let dial = thread::spawn(move || TcpStream::connect_timeout(&to, STALLED));
        let mut next = Segment::new(attack.v6, forged_port, 0);
        let syn = forger.receive(&next);
        next.peer_port = syn.peer_port;
        next.ack = syn.seq.wrapping_add(1);
        next.flags = SYN | ACK | flags;
        next.options = MSS.to_vec();
        forger.send(&forger.frame(&next));
        let last = forger.receive(&next);
        next.ack = last.seq;
        next.follow(&last);
        Self::begun(forger, next, dial.join().expect("joined").expect("connected"))
    }

    fn begun(forger: &'a Forger, mut next: Segment, peer: TcpStream) -> Self {
        peer.set_nonblocking(true).expect("nonblocking");
        next.flags = ACK | PSH;
        next.options.clear();
        Talk { forger, by: forger, next, peer, delivered_bytes: 0 }
    }

    fn segment(&mut self, bytes: usize) -> Segment {
        let segment = Segment { payload: vec![0x5a; bytes], ..self.next.clone() };
        self.next.seq = self.next.seq.wrapping_add(bytes as u32);
        segment
    }

    /// Sends within any window, and no faster than the peer acknowledges.
    fn send_honestly(&mut self) {
        for _ in 0..HONEST_ROUNDS {
            for _ in 0..2 {
                let segment = self.segment(SEG_BYTES);
                self.by.send(&self.by.frame(&segment));
            }
            while self.forger.receive(&self.next).ack != self.next.seq {}
            self.drain();
        }
        assert_eq!(self.delivered_bytes, 2 * HONEST_ROUNDS * SEG_BYTES);
    }

    fn drain(&mut self) {
        let mut buffer = [0; 1 << 16];
        loop {
            match self.peer.read(&mut buffer) {
                Ok(bytes) => self.delivered_bytes += bytes,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                Err(e) => panic!("the peer: {e}"),
            }
        }
    }

    /// Sends all at once, into the peer's window and far beyond the guest's. Returns how many bytes
    /// the peer receives.
    fn flood(&mut self, attack: &Attack, flood_bytes: usize, wait_for_all: bool) -> usize {
        self.delivered_bytes = 0;
        for _ in 0..flood_bytes / attack.seg_bytes {
            let segment = self.segment(attack.seg_bytes);
            for frame in (attack.disguise)(self.by, &segment) {
                self.by.send(&frame);
            }
        }
        if wait_for_all {
            let all = flood_bytes / attack.seg_bytes * attack.seg_bytes;
            eventually(attack.what, || {
                self.drain();
                let short = || format!("took {} of {all}", self.delivered_bytes);
                (self.delivered_bytes == all).then_some(()).ok_or_else(short)
            });
        } else {
            // Frames are processed when they are sent, or soon after.
            thread::sleep(Duration::from_millis(100));
            self.drain();
        }
        self.delivered_bytes
    }
}

const FLOOD_BYTES: usize = 40_000;

/// A guest in a namespace of its own behind `port`, and a forger of its frames.
fn wire() -> (Netns, Forger) {
    let guest = Netns::create().expect("a namespace");
    ip(&format!(
        "link add port mtu 9000 type veth peer name guest mtu 9000 netns {}",
        guest.path()
    ));
    ip(&format!("link set port address {}", mac_text(PEER_HOST)));
    configure("port", PEER_HOST);
    let forger = guest.inside(|| {
        ip(&format!("link set guest address {}", mac_text(FORGED_HOST)));
        configure("guest", 1);
        Forger::new("guest", FORGED_HOST, PEER_HOST)
    });
    let forger = forger.expect("inside");
    for v6 in [false, true] {
        let host = address(v6, FORGED_HOST);
        ip(&format!("neigh add {host} lladdr {} dev port nud permanent", mac_text(FORGED_HOST)));
    }
    (guest, forger)
}

fn attach(police: bool) -> Port {
    let params = Params::with(|p| {
        p.police = police.into();
        p.window_cap_bytes = WINDOW_BYTES;
    });
    Port::attach("port", &AttachOptions { params, ..AttachOptions::default() }).expect("attached")
}

#[test]
fn a_flood_in_any_disguise_stays_within_the_window() {
    on_a_host(|| {
        let (_guest, forger) = wire();
        let mut forged_port = 20_000;
        let mut escaped = Vec::new();
        for police in [false, true] {
            let port = attach(police);
            for attack in ATTACKS {
                forged_port += 1;
                let mut talk = Talk::open(&forger, attack, forged_port);
                talk.send_honestly();
                let taken_bytes = talk.flood(attack, FLOOD_BYTES, !police);
                // The excess may be a segment of the largest size that the peer allows, and a part
                // of another.
                let most_bytes = WINDOW_BYTES as usize + 2 * 8960;
                if police && taken_bytes > most_bytes {
                    escaped.push((attack.what, taken_bytes));
                }
            }
            assert_eq!(escaped, [], "of {WINDOW_BYTES} bytes");
            let counted = port.counters().expect("counters");
            assert_eq!(counted.get(counters::POLICED) > 0, police);
            assert_eq!(counted.get(counters::UNJUDGED) > 0, police);
            assert_eq!(counted.get(counters::REWRITE_FAILED), 0);
        }
    });
}

/// The guest opens by one card, and sends by another.
#[test]
fn a_flood_by_another_card_stays_within_the_window() {
    on_a_host(|| {
        let (guest, forger) = wire();
        ip(&format!(
            "link add second mtu 9000 type veth peer name guest2 mtu 9000 netns {}",
            guest.path()
        ));
        ip(&format!("link set second address {} up", mac_text(PEER_HOST)));
        accept_detours();
        let by = guest.inside(|| {
            ip("link set guest2 up");
            Forger::new("guest2", FORGED_HOST, PEER_HOST)
        });
        let by = by.expect("inside");
        let port = attach(true);
        let joined = port.join(&["second"], Order::default()).expect("joined");
        for (forged_port, answer_flags) in [(20_001, None), (20_002, Some(0))] {
            let attack = Attack { answer_flags, ..PLAIN };
            let mut talk = Talk::open(&forger, &attack, forged_port);
            talk.by = &by;
            talk.send_honestly();
            let taken_bytes = talk.flood(&attack, FLOOD_BYTES, false);
            assert!(taken_bytes <= WINDOW_BYTES as usize + 2 * 8960, "{taken_bytes}");
        }
        let counted = joined[0].counters().expect("counters");
        assert!(counted.get(counters::POLICED) > 0);
        assert_eq!(counted.get(counters::UNKNOWN), 0);
    });
}
