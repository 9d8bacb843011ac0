//! Guests, each a Linux stack in a namespace of its own behind a device of the host:
//!
//!    guest - port - bridge - fabric, which is the test

use std::fs;
use std::net::Ipv4Addr;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use vcc_engine::{Params, Underlay};
use vcc_port::{AttachOptions, Netns, Port};
use vcc_testing::ip;

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

    fn options(self) -> Option<AttachOptions> {
        let underlay: Underlay = self.underlay_name()?.parse().expect("an underlay");
        Some(AttachOptions::from_params(Params::with(|p| p.underlay = underlay.number())))
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
}

impl Lane {
    /// So many lanes of each mode, in the calling thread's namespaces, which nothing else uses.
    pub fn create(of_each: &[(Mode, usize)]) -> Vec<Self> {
        let modes = of_each.iter().flat_map(|(mode, count)| vec![*mode; *count]);
        let mut lanes: Vec<Self> = modes.enumerate().map(|(i, mode)| Self::one(i, mode)).collect();
        for mode in Mode::ALL {
            let Some(options) = mode.options() else { continue };
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

    /// Forgets what has been seen.
    pub fn forget(&mut self) {
        while self.fabric.poll().is_some() {}
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
        }
    }
}

/// Segments are seen as they would be on a wire.
fn without_offloads(device: &str) {
    let arguments = ["-K", device, "tso", "off", "gso", "off", "gro", "off"];
    let output = Command::new("ethtool").args(arguments).output().expect("ethtool");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn mac_text(mac: [u8; 6]) -> String {
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
const RTO_MIN: &str = "10s";

/// The settings of the calling thread's guest; what a script changes is as before when they end.
pub struct Settings {
    changed: Vec<(String, String)>,
}

impl Settings {
    pub fn begin() -> Self {
        let mut settings = Settings { changed: Vec::new() };
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
}

impl Drop for Settings {
    fn drop(&mut self) {
        for (path, before) in self.changed.iter().rev() {
            let _ = fs::write(path, before);
        }
    }
}
