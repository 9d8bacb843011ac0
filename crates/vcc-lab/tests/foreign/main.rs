//! Other stacks than Linux as guests, live, with a Linux peer.
//!
//! The yardstick is a Linux sender with ECN (NewReno, RFC 3168) to the same peer, over the same
//! path, at the same time, with the same marking probability. No link is full, so the two do not
//! compete. Throughput is counted in segments of each sender's own size. If the guest receives, the
//! peer sends to both.
//!
//! A short form with smoltcp runs with the other tests. `make verify` runs the whole matrix, also
//! with gVisor's netstack and lwIP if Go and Debian's liblwip-dev are installed, and with PyTCP, iPXE
//! and GRUB, which fetch a file, if pip, QEMU and Debian's ipxe, ovmf and grub-efi-amd64-bin are.
//!
//! Those, a Linux behind libslirp and U-Boot also fetch a file through a bottleneck, alone, behind a port in the
//! kernel and behind the driver domain. The yardstick is the same guest without vcc.

mod bed;
mod download;
mod fetch;
mod path;
mod stack;

use std::ops::Range;
use std::process::Command;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use bed::{Outcome, Trial, run};
use download::{grub, ipxe, pytcp, uboot};
use fetch::{Behind, Guest, fetch};
use path::{Bottleneck, Sent};
use stack::{Role, Stack, build, lwip, netstack};
use vcc_lab::congestion_controls::CongestionControls;
use vcc_testing::{can_attach, skip};

const WARM_UP: Duration = Duration::from_secs(1);
const MEASURED: Duration = Duration::from_secs(4);
/// A trial has few marks at random places, so its bounds are wide, and those of the mean are
/// narrower. They also allow for differences between stacks: delays of ACKs and of sending, and
/// bytes reserved for options. A guest that sends to smoltcp gets 1.09 to 1.16.
const ONE: Range<f64> = 0.6..1.5;
const MEAN: Range<f64> = 0.85..1.2;
const AT_A_TIME: usize = 4;
const ROUNDS: usize = 3;

const BOTH: [bool; 2] = [true, false];

/// The share of each trial.
fn shares(trials: &[Trial]) -> Vec<f64> {
    outcomes(trials).iter().map(Outcome::share).collect()
}

fn outcomes(trials: &[Trial]) -> Vec<Outcome> {
    let next = Mutex::new(0..trials.len());
    let outcomes = Mutex::new(vec![None; trials.len()]);
    thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                loop {
                    let Some(which) = next.lock().expect("not panicked").next() else { break };
                    let outcome = run(&trials[which], WARM_UP, MEASURED);
                    assert!(outcome.native.marks > 0, "{outcome:?}");
                    outcomes.lock().expect("not panicked")[which] = Some(outcome);
                }
            });
        }
    });
    outcomes.into_inner().expect("not panicked").into_iter().flatten().collect()
}

fn check(name: &str, trials: &[Trial]) {
    for sends in BOTH {
        let trials: Vec<Trial> = trials.iter().filter(|t| t.role.sends == sends).cloned().collect();
        let shares = shares(&trials);
        let mean = shares.iter().sum::<f64>() / shares.len() as f64;
        let least = shares.iter().copied().fold(f64::INFINITY, f64::min);
        let most = shares.iter().copied().fold(0.0, f64::max);
        let what = if sends { "sends" } else { "receives" };
        let line = format!("{name} {what}: {mean:.3} of its share, {least:.3} to {most:.3}");
        eprintln!("figure: {line}, in {} trials", shares.len());
        for (share, trial) in shares.iter().zip(&trials) {
            assert!(ONE.contains(share), "{share:.3}: {trial:?}");
        }
        assert!(MEAN.contains(&mean), "{line}");
    }
}

#[test]
fn smoltcp_has_its_share() {
    if !can_attach() {
        return;
    }
    let trials: Vec<Trial> = [1450, 1500]
        .into_iter()
        .flat_map(|mtu| {
            BOTH.into_iter().flat_map(move |opens| {
                BOTH.map(|sends| Trial {
                    stack: Stack::Smoltcp,
                    role: Role { mtu, opens, sends },
                    timestamps: true,
                    sack: true,
                    mark_every: 20,
                    underlay: "reno-ecn",
                    native: "reno".into(),
                })
            })
        })
        .collect();
    check("smoltcp", &trials);
}

#[test]
#[ignore = "a quarter of an hour: make verify runs it"]
fn every_stack_has_its_share() {
    if !can_attach() {
        return;
    }
    for (name, stack) in
        [("smoltcp", Ok(Stack::Smoltcp)), ("netstack", netstack()), ("lwIP", lwip())]
    {
        match stack {
            Ok(stack) => check(name, &matrix(&stack)),
            Err(why) => skip(&format!("{name} cannot be built: {why}")),
        }
    }
}

fn matrix(stack: &Stack) -> Vec<Trial> {
    let mut trials = Vec::new();
    for mtu in [1400, 1413, 1450, 1477, 1500] {
        for opens in BOTH {
            for sends in BOTH {
                for (timestamps, sack) in [(true, true), (true, false), (false, true)] {
                    for mark_every in [6, 25] {
                        let (stack, role) = (stack.clone(), Role { mtu, opens, sends });
                        trials.push(Trial {
                            stack,
                            role,
                            timestamps,
                            sack,
                            mark_every,
                            underlay: "reno-ecn",
                            native: "reno".into(),
                        });
                    }
                }
            }
        }
    }
    trials
}

/// Linux sends what its window leaves behind whole segments, a packet that may be marked like any
/// other. Neither side's segments are a multiple of the unit.
#[test]
#[ignore = "two minutes: make verify runs it"]
fn linux_has_its_share_of_heavy_marking() {
    if !can_attach() {
        return;
    }
    let controls = CongestionControls::load(&["dctcp"]).expect("DCTCP");
    for (timestamps, opens, nodelay) in
        [(false, false, false), (true, false, false), (false, true, false), (false, false, true)]
    {
        let trials: Vec<Trial> = [4, 9, 40]
            .into_iter()
            .flat_map(|mark_every| {
                let trial = Trial {
                    stack: Stack::Linux { timestamps, nodelay },
                    role: Role { mtu: 1452, opens, sends: true },
                    timestamps: true,
                    sack: true,
                    mark_every,
                    underlay: "dctcp",
                    native: controls.kernel_name("dctcp").into(),
                };
                vec![trial; 3]
            })
            .collect();
        let mut line = format!("Linux, timestamps {timestamps}, opens {opens}, nodelay {nodelay}:");
        for trials in trials.chunks(3) {
            let outcomes = outcomes(trials);
            for outcome in &outcomes {
                let runts = outcome.guest.runts as f64 / outcome.guest.segs as f64;
                assert!(runts < 0.05, "{runts:.3} of the packets are runts: {outcome:?}");
            }
            let mut shares: Vec<f64> = outcomes.iter().map(Outcome::share).collect();
            shares.sort_by(f64::total_cmp);
            line += &format!(" {:.2} every {},", shares[1], trials[0].mark_every);
            assert!(ONE.contains(&shares[1]), "{shares:.2?}: {:?}", trials[0]);
        }
        eprintln!("figure: {line} medians of three");
    }
}

/// Listening stacks that answer a batch of ACKs after the last of them has passed the port.
#[test]
#[ignore = "a minute: make verify runs it"]
fn other_stacks_have_their_share_of_heavy_marking() {
    if !can_attach() {
        return;
    }
    let controls = CongestionControls::load(&["dctcp"]).expect("DCTCP");
    for (name, stack, mtu, mark_every) in [
        ("netstack", netstack(), 1500, 4),
        ("smoltcp", Ok(Stack::Smoltcp), 1452, 4),
        ("smoltcp", Ok(Stack::Smoltcp), 1452, 40),
    ] {
        let stack = match stack {
            Ok(stack) => stack,
            Err(why) => {
                skip(&format!("{name} cannot be built: {why}"));
                continue;
            }
        };
        let trial = Trial {
            stack,
            role: Role { mtu, opens: false, sends: true },
            timestamps: true,
            sack: true,
            mark_every,
            underlay: "dctcp",
            native: controls.kernel_name("dctcp").into(),
        };
        let mut shares = shares(&vec![trial; 8]);
        shares.sort_by(f64::total_cmp);
        let median = shares[shares.len() / 2];
        eprintln!("figure: {name} listens, one mark in {mark_every}: {median:.2} of its share");
        assert!(MEAN.contains(&median), "{name}, {mark_every}: {shares:.2?}");
    }
}

/// Stacks that fetch a file. An interpreter and an emulated processor are slow at times, so their
/// shares are only shown. PyTCP negotiates ECN itself; the others have none.
#[test]
#[ignore = "a minute: make verify runs it"]
fn whole_files_reach_other_stacks() {
    if !can_attach() {
        return;
    }
    for (name, stack) in [("PyTCP", pytcp()), ("iPXE", ipxe()), ("GRUB", grub())] {
        let stack = match stack {
            Ok(download) => Stack::Download(download),
            Err(why) => {
                skip(&format!("{name} cannot be had: {why}"));
                continue;
            }
        };
        let trial = Trial {
            stack,
            role: Role { mtu: 1500, opens: true, sends: false },
            timestamps: true,
            sack: true,
            mark_every: 20,
            underlay: "reno-ecn",
            native: "reno".into(),
        };
        let outcome = run(&trial, WARM_UP, MEASURED);
        assert!(outcome.guest.marks > 0, "{name}: {outcome:?}");
        let (share, bytes) = (outcome.share(), outcome.guest.bytes);
        eprintln!("figure: {name} fetches {bytes} bytes, whole, at {share:.2} of its share");
    }
}

/// How fast a guest fetches a file, next to the same without vcc, in turns. An interpreter and an emulated
/// processor are slow at times, so the shares are only shown.
fn compare(name: &str, guest: Result<Guest, String>, bottleneck: Bottleneck) {
    if !can_attach() {
        return;
    }
    let guest = match guest {
        Ok(guest) => guest,
        Err(why) => return skip(&format!("{name} cannot be had: {why}")),
    };
    let places =
        ["a port in the kernel", "the driver domain"].map(|place| format!("{name} behind {place}"));
    let places = places.each_ref().map(String::as_str);
    show(places, || {
        [Behind::Nothing, Behind::Kernel, Behind::Domain]
            .map(|it| fetch(&guest, it, bottleneck))
            .into()
    });
}

/// The goodput of all but the first transfer of each round, as a share of the first's. Where the first filled
/// the queue, the others were marked.
fn show<const N: usize>(what: [&str; N], round: impl Fn() -> Vec<Sent>) {
    let rounds: Vec<Vec<Sent>> = (0..ROUNDS).map(|_| round()).collect();
    let sum = |at: usize, of: fn(&Sent) -> u64| rounds.iter().map(|all| of(&all[at])).sum::<u64>();
    let marks = |at| sum(at, |sent| sent.marks);
    let losses = |at| sum(at, |sent| sent.lost);
    let counts = |at| {
        let resent = sum(at, |sent| sent.resent);
        format!("{} marks, {} losses and {resent} segments again", marks(at), losses(at))
    };
    for (at, what) in (1..).zip(what) {
        let mut shares: Vec<f64> =
            rounds.iter().map(|all| all[at].bytes_per_s() / all[0].bytes_per_s()).collect();
        shares.sort_by(f64::total_cmp);
        eprintln!("figure: {what}: {shares:.2?}; {}, not {}", counts(at), counts(0));
        assert!(losses(0) == 0 || marks(at) > 0, "{what}: {rounds:?}");
    }
}

const fn bottleneck(mbits_per_s: u32, mark_above: usize) -> Bottleneck {
    Bottleneck { bits_per_s: mbits_per_s * 1_000_000, mark_above }
}

#[test]
#[ignore = "two minutes: make verify runs it"]
fn pytcp_fetches_a_file() {
    compare("PyTCP", pytcp().map(Guest::Download), bottleneck(5, 20));
}

#[test]
#[ignore = "three minutes: make verify runs it"]
fn ipxe_fetches_a_file() {
    compare("iPXE", ipxe().map(Guest::Download), bottleneck(8, 40));
}

#[test]
#[ignore = "three minutes: make verify runs it"]
fn grub_fetches_a_file() {
    compare("GRUB", grub().map(Guest::Download), bottleneck(2, 40));
}

#[test]
#[ignore = "three minutes, and a ROM: make verify runs it"]
fn uboot_fetches_a_file() {
    compare("U-Boot", uboot().map(Guest::Download), bottleneck(2, 40));
}

/// A shorter queue has its price: it is the same for Linux with ECN, and for one that vcc gives ECN.
#[test]
#[ignore = "two minutes: make verify runs it"]
fn linux_fetches_a_file() {
    if !can_attach() {
        return;
    }
    let linux = |has_ecn| Guest::Linux { has_ecn, bytes: 10 << 20 };
    for mark_above in [20, 40] {
        let fetch = |ecn, behind| fetch(&linux(ecn), behind, bottleneck(20, mark_above));
        let what = ["with ECN", "behind a port in the kernel", "behind the driver domain"]
            .map(|what| format!("Linux {what}, marks above {mark_above}"));
        show(what.each_ref().map(String::as_str), || {
            let natively = [false, true].map(|ecn| fetch(ecn, Behind::Nothing));
            let translated = [Behind::Kernel, Behind::Domain].map(|behind| fetch(false, behind));
            [natively, translated].concat()
        });
    }
}

/// Its connections are those of Linux, behind a device of its namespace.
#[test]
#[ignore = "two minutes: make verify runs it"]
fn a_guest_behind_slirp_fetches_a_file() {
    let slirp = build(Command::new("slirp4netns").arg("--version"));
    compare("libslirp", slirp.map(|()| Guest::Slirp { bytes: 10 << 20 }), bottleneck(20, 40));
}
