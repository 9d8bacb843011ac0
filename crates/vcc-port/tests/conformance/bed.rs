//! Guests, each a Linux stack in a namespace of its own behind a device of the host:
//!
//!    guest - port - bridge - fabric, which is the test
//!
//! Some scripts need a guest with a second card, or one that can be paused (cards.rs).

use std::fs;
use std::net::Ipv4Addr;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use vcc_engine::{Params, Underlay, sys};
use vcc_port::{AttachOptions, Netns, Port};
use vcc_testing::ip;

use crate::cards::{Card, Queue};
use crate::wire::{Fabric, Listener, PATIENCE};

pub const GUEST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
/// Of the guest and of the gateway to all peers, which the test is.
pub const GUEST_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
pub const GATEWAY_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// What is between a guest and the fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// A device without a port of vcc.
    Plain,
    Transparent,
    RenoEcn,
    Dctcp,
}

impl Mode {
    pub const ALL: [Mode; 4] = [Mode::Plain, Mode::Transparent, Mode::RenoEcn, Mode::Dctcp];

    pub fn name(self) -> &'static str {
        self.underlay_name().unwrap_or("plain")
    }

    fn underlay_name(self) -> Option<&'static str> {
        match self {
            Mode::Plain => None,
            Mode::Transparent => Some("transparent"),
            Mode::RenoEcn => Some("reno-ecn"),
            Mode::Dctcp => Some("dctcp"),
        }
    }

    /// Whether segments are changed.
    pub fn translates(self) -> bool {
        matches!(self, Mode::RenoEcn | Mode::Dctcp)
    }

    fn params(self) -> Option<Params> {
        let underlay: Underlay = self.underlay_name()?.parse().expect("an underlay");
        Some(Params::with(|p| p.underlay = underlay.number()))
    }
}

/// A child process has all our descriptors until it executes its program. What is closed meanwhile
/// would stay open for so long, so this is locked while one begins or a socket is closed.
pub static CHILDREN: Mutex<()> = Mutex::new(());

/// A guest with a device of its own. One script is played at it at a time.
pub struct Lane {
    pub mode: Mode,
    pub guest: Arc<Netns>,
    pub fabric: Fabric,
    pub listener: Listener,
    /// How long to wait for what a script expects.
    pub patience: Duration,
    /// None under [`Mode::Plain`].
    pub port: Option<Port>,
    pub second: Option<Fabric>,
    pub queue: Option<Queue>,
    idle: Option<Duration>,
}

impl Lane {
    /// So many lanes of each mode, in the calling thread's namespaces, which nothing else uses.
    pub fn create(of_each: &[(Mode, usize)]) -> Vec<Self> {
        let modes = of_each.iter().flat_map(|(mode, count)| vec![*mode; *count]);
        let mut lanes: Vec<Self> = modes.enumerate().map(|(i, mode)| Self::one(i, mode)).collect();
        for mode in Mode::ALL {
            let Some(params) = mode.params() else { continue };
            let options = AttachOptions::from_params(params);
            let of_mode: Vec<usize> =
                (0..lanes.len()).filter(|lane| lanes[*lane].mode == mode).collect();
            let devices: Vec<String> = of_mode.iter().map(|lane| format!("port{lane}")).collect();
            let devices: Vec<&str> = devices.iter().map(String::as_str).collect();
            let ports = Port::attach_pinned(&devices, &options).expect("attached");
            for (lane, port) in of_mode.into_iter().zip(ports) {
                lanes[lane].port = Some(port);
            }
        }
        lanes
    }

    /// The port forgets any connection that has been idle for so long; None: as it usually does.
    pub fn set_idle(&mut self, time: Option<Duration>) {
        if self.idle == time {
            return;
        }
        self.idle = time;
        let Some((port, params)) = self.port.as_ref().zip(self.mode.params()) else { return };
        let params = match time.map(|time| time.as_millis() as u32) {
            None => params,
            Some(ms) => Params(sys::vcc_params {
                idle_handshake_ms: ms,
                idle_established_ms: ms,
                idle_half_closed_ms: ms,
                idle_closed_ms: ms,
                ..params.0
            }),
        };
        port.set_params(params).expect("the port has other parameters");
    }

    /// Whether the port has a flow of a connection with this peer.
    pub fn knows(&self, peer: Ipv4Addr) -> bool {
        let flows = self.port.as_ref().map(|port| port.flows().expect("flows"));
        flows.is_some_and(|flows| flows.iter().any(|flow| flow.peer.ip() == peer))
    }

    /// Forgets what has been seen.
    pub fn forget(&mut self) {
        for card in Card::BOTH {
            while !self.lacks(card) && self.fabric_of(card).poll().is_some() {}
        }
        for from_guest in [false, true] {
            while self.listener.poll(from_guest).is_some() {}
        }
    }

    fn one(number: usize, mode: Mode) -> Self {
        let guest = Arc::new(Netns::create().expect("a namespace"));
        let fabric = Fabric::create(&format!("fabric{number}"));
        ip(&format!("link add port{number} type veth peer name guest netns {}", guest.path()));
        ip(&format!("link add bridge{number} type bridge"));
        for device in ["port", "fabric"] {
            ip(&format!("link set {device}{number} master bridge{number} addrgenmode none up"));
        }
        ip(&format!("link set bridge{number} addrgenmode none up"));
        let listener = guest.inside(|| {
            ip(&format!("link set guest address {} addrgenmode none up", mac_text(GUEST_MAC)));
            ip("link set lo up");
            ip(&format!("address add {GUEST}/24 dev guest"));
            ip(&format!(
                "neigh add 10.0.0.254 lladdr {} dev guest nud permanent",
                mac_text(GATEWAY_MAC)
            ));
            without_offloads("guest");
            Listener::open("guest").expect("a packet socket")
        });
        Lane {
            mode,
            guest,
            fabric,
            listener: listener.expect("inside"),
            patience: PATIENCE,
            port: None,
            second: None,
            queue: None,
            idle: None,
        }
    }
}

/// Segments are seen as they would be on a wire.
fn without_offloads(device: &str) {
    let arguments = ["-K", device, "tso", "off", "gso", "off", "gro", "off"];
    let output = Command::new("ethtool").args(arguments).output().expect("ethtool");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

pub fn mac_text(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

/// The settings of the calling thread's guest, unless a script sets others, so that all that
/// it sends follows from what it receives and not from the clock.
const SETTINGS: [(&str, &str); 9] = [
    ("tcp_sack", "1"),
    ("tcp_timestamps", "1"),
    ("tcp_window_scaling", "1"),
    ("tcp_ecn", "0"),
    // No tail loss probes, no ACKs that wait for more, no limit of answers to what is not accepted.
    ("tcp_early_retrans", "0"),
    ("tcp_comp_sack_nr", "0"),
    ("tcp_invalid_ratelimit", "0"),
    ("tcp_no_metrics_save", "1"),
    ("tcp_fastopen", "0"),
];

/// No retransmission comes because a test waits for its CPU.
pub const RTO_MIN: &str = "10s";

/// A table of routes.
pub const SECOND_CARDS_ROUTES: u32 = 2;

/// The settings of the calling thread's guest; what a script changes is as before when they end.
pub struct Settings {
    changed: Vec<(String, String)>,
    /// By which card the guest sends.
    pub card: Card,
}

impl Settings {
    pub fn begin() -> Self {
        let mut settings = Settings { changed: Vec::new(), card: Card::First };
        for (name, value) in SETTINGS {
            settings.set(name, value).expect("a setting of TCP");
        }
        settings.changed.clear();
        settings.set_rto_min(RTO_MIN);
        settings
    }

    /// Sets `net.ipv4.NAME`.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let path = format!("/proc/sys/net/ipv4/{name}");
        let before = fs::read_to_string(&path).map_err(|e| format!("{path}: {e}"))?;
        fs::write(&path, value).map_err(|e| format!("{path}: {value}: {e}"))?;
        self.changed.push((path, before.trim().into()));
        Ok(())
    }

    /// RFC 6298, 2.4. Data are acknowledged at once.
    pub fn set_rto_min(&self, time: &str) {
        let _alone = CHILDREN.lock().expect("not panicked");
        ip(&format!("route replace default via 10.0.0.254 dev guest rto_min {time} quickack 1"));
    }

    /// The guest sends by this card, which is there. Both routes stay: a socket whose route is
    /// deleted would reckon with the MTU of no device until it finds another.
    pub fn route_by(&mut self, card: Card) {
        if card != self.card {
            let _alone = CHILDREN.lock().expect("not panicked");
            let change = if card == Card::Second { "add" } else { "del" };
            ip(&format!("rule {change} pref 1 lookup {SECOND_CARDS_ROUTES}"));
            self.card = card;
        }
    }
}

impl Drop for Settings {
    fn drop(&mut self) {
        self.route_by(Card::First);
        for (path, before) in self.changed.iter().rev() {
            let _ = fs::write(path, before);
        }
    }
}
