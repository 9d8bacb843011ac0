//! Guests, by their connections.

mod ecn;
mod need;
mod observation;
mod visible;

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::Serialize;
use vcc_engine::DelayedBy;
use vcc_overlay::{Class, Guess};
use vcc_port::FlowId;

use crate::cpu::{CpuShares, GuestCpu};
use crate::delay;

pub use ecn::GuestEcn;
pub use need::{Need, need};
pub use observation::observation;
pub use visible::visible;

/// A watched connection.
#[derive(Clone)]
pub struct Connection {
    pub port: String,
    pub id: FlowId,
    /// None before the handshake is complete.
    pub ecn: Option<GuestEcn>,
    pub guess: Guess,
    /// Its delays at the guest and in the fabric; None without a measurement.
    pub guest_delay_us: Option<u32>,
    pub fabric_delay_us: Option<u32>,
    /// The guest's; None where the host does not see it.
    pub cpu: Option<GuestCpu>,
}

#[derive(Clone, Serialize)]
pub struct GuestView {
    pub port: String,
    pub guest: IpAddr,
    /// The number of watched connections.
    pub connections: usize,
    /// The kinds of ECN support seen on any connection.
    pub ecn: Vec<GuestEcn>,
    pub overlay: &'static str,
    pub confidence: f64,
    /// The number of connections of this class.
    pub agreeing: usize,
    pub reasons: Vec<String>,
    pub translate: Need,
    pub translate_why: &'static str,
    pub delayed_by: Option<&'static str>,
    pub delayed_by_text: Option<String>,
    /// Medians of its connections.
    pub guest_delay_us: Option<u32>,
    pub fabric_delay_us: Option<u32>,
    #[serde(flatten)]
    pub cpu: CpuShares,
    pub flows: Vec<ConnectionView>,
}

#[derive(Clone, Serialize)]
pub struct ConnectionView {
    pub guest: String,
    pub peer: String,
    pub vlan: Option<u16>,
    pub ecn: Option<GuestEcn>,
    pub overlay: &'static str,
    pub confidence: f64,
    pub reasons: Vec<String>,
    pub delayed_by: Option<&'static str>,
    pub guest_delay_us: Option<u32>,
    pub fabric_delay_us: Option<u32>,
}

/// Ordered by port and address.
pub fn guests(connections: &[Connection]) -> Vec<GuestView> {
    let mut guests: BTreeMap<(&str, IpAddr), Vec<&Connection>> = BTreeMap::new();
    for connection in connections {
        let whose = (connection.port.as_str(), connection.id.guest.ip());
        guests.entry(whose).or_default().push(connection);
    }
    guests.into_iter().map(|((port, address), own)| view(port, address, own)).collect()
}

fn view(port: &str, guest: IpAddr, mut connections: Vec<&Connection>) -> GuestView {
    connections.sort_by_key(|connection| connection.id);
    let mut ecn: Vec<GuestEcn> = connections.iter().filter_map(|it| it.ecn).collect();
    ecn.sort();
    ecn.dedup();
    let overlay = overlay(&connections);
    let (translate, translate_why) = need(&ecn, overlay.guess.class);
    let guest_us = median(connections.iter().filter_map(|it| it.guest_delay_us));
    let fabric_us = median(connections.iter().filter_map(|it| it.fabric_delay_us));
    // All of them have the port's.
    let cpu = connections.first().and_then(|it| it.cpu.as_ref());
    GuestView {
        port: port.to_owned(),
        guest,
        connections: connections.len(),
        ecn,
        overlay: overlay.guess.class.name(),
        confidence: overlay.guess.confidence,
        agreeing: overlay.agreeing,
        reasons: overlay.guess.reasons,
        translate,
        translate_why,
        delayed_by: delayed_by(guest_us, fabric_us),
        delayed_by_text: delay::text_of_medians(guest_us, fabric_us, cpu),
        guest_delay_us: guest_us,
        fabric_delay_us: fabric_us,
        cpu: cpu.into(),
        flows: connections.into_iter().map(ConnectionView::new).collect(),
    }
}

impl ConnectionView {
    fn new(connection: &Connection) -> Self {
        let Connection { id, ecn, guess, guest_delay_us, fabric_delay_us, .. } = connection;
        let (guest_delay_us, fabric_delay_us) = (*guest_delay_us, *fabric_delay_us);
        Self {
            guest: id.guest.to_string(),
            peer: id.peer.to_string(),
            vlan: id.vlan,
            ecn: *ecn,
            overlay: guess.class.name(),
            confidence: guess.confidence,
            reasons: guess.reasons.clone(),
            delayed_by: delayed_by(guest_delay_us, fabric_delay_us),
            guest_delay_us,
            fabric_delay_us,
        }
    }
}

fn delayed_by(guest_us: Option<u32>, fabric_us: Option<u32>) -> Option<&'static str> {
    DelayedBy::from_delays(guest_us, fabric_us).map(DelayedBy::name)
}

/// Of an even number, the upper one.
fn median(values: impl Iterator<Item = u32>) -> Option<u32> {
    let mut values: Vec<u32> = values.collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}

struct Overlay {
    guess: Guess,
    agreeing: usize,
}

/// The class with the largest sum of confidences. Other classes reduce the confidence, since a guest
/// may choose a congestion control per connection.
fn overlay(connections: &[&Connection]) -> Overlay {
    let weight = |class: Class| -> f64 {
        let own = connections.iter().filter(|it| it.guess.class == class);
        own.map(|it| it.guess.confidence).sum()
    };
    let dared = Class::ALL.into_iter().filter(|class| *class != Class::Unknown);
    let best = dared.clone().max_by(|one, other| weight(*one).total_cmp(&weight(*other)));
    let class = best.filter(|class| weight(*class) > 0.0).unwrap_or(Class::Unknown);
    let own = || connections.iter().filter(|it| it.guess.class == class);
    let best_guess =
        own().max_by(|one, other| one.guess.confidence.total_cmp(&other.guess.confidence));
    let mut guess = best_guess.map_or_else(
        || Guess { class: Class::Unknown, confidence: 0.0, reasons: Vec::new() },
        |connection| connection.guess.clone(),
    );
    let all: f64 = dared.map(weight).sum();
    if all > 0.0 {
        guess.confidence *= weight(class) / all;
    }
    Overlay { guess, agreeing: own().count() }
}

#[cfg(test)]
mod tests {
    use vcc_vcpu::Shares;

    use super::*;

    fn connection(guest: &str, ecn: GuestEcn, class: Class, confidence: f64) -> Connection {
        let [guest, peer] = [guest, "192.0.2.9:80"].map(|end| end.parse().expect("an end"));
        Connection {
            port: "veth3".into(),
            id: FlowId { guest, peer, vlan: None, inside: false },
            ecn: Some(ecn),
            guess: Guess { class, confidence, reasons: vec![format!("{class} {confidence}")] },
            guest_delay_us: None,
            fabric_delay_us: None,
            cpu: None,
        }
    }

    #[test]
    fn a_guest_is_what_its_connections_are() {
        let seen = [
            connection("10.0.0.2:1", GuestEcn::Classic, Class::CubicLike, 0.8),
            connection("10.0.0.1:3", GuestEcn::None, Class::RenoLike, 0.6),
            connection("10.0.0.1:1", GuestEcn::None, Class::CubicLike, 0.9),
            connection("10.0.0.1:2", GuestEcn::None, Class::CubicLike, 0.7),
            connection("10.0.0.1:4", GuestEcn::Refused, Class::Unknown, 0.0),
            connection("10.0.0.3:4", GuestEcn::None, Class::Unknown, 0.0),
        ];
        let guests = guests(&seen);
        let guessed: Vec<_> =
            guests.iter().map(|it| (it.guest.to_string(), it.overlay, it.agreeing)).collect();
        let expected = [
            ("10.0.0.1", "cubic-like", 2),
            ("10.0.0.2", "cubic-like", 1),
            ("10.0.0.3", "unknown", 1),
        ];
        assert_eq!(guessed, expected.map(|(guest, class, count)| (guest.to_owned(), class, count)));
        let [one, two, three] = &guests[..] else { panic!("{}", guests.len()) };
        assert_eq!((one.connections, &one.ecn[..]), (4, &[GuestEcn::None, GuestEcn::Refused][..]));
        // The largest confidence is 0.9; of the sum of 2.2, 1.6 agree.
        assert!((one.confidence - 0.9 * 1.6 / 2.2).abs() < 1e-9, "{}", one.confidence);
        assert_eq!(one.reasons, ["cubic-like 0.9"]);
        assert_eq!(one.flows[1].overlay, "cubic-like");
        assert_eq!((one.translate, two.translate), (Need::Yes, Need::No));
        assert_eq!((two.confidence, three.confidence), (0.8, 0.0));
    }

    #[test]
    fn a_guest_is_slow_by_the_medians_of_its_connections() {
        let delayed = |end: &str, guest_delay_us, fabric_delay_us| Connection {
            guest_delay_us,
            fabric_delay_us,
            cpu: Some(GuestCpu {
                machine: Some("web-1".into()),
                shares: Shares { waiting: 0.61, running: 0.32, idle: 0.07 },
            }),
            ..connection(end, GuestEcn::None, Class::Unknown, 0.0)
        };
        let seen = [
            delayed("10.0.0.1:1", Some(31_000), Some(200)),
            delayed("10.0.0.1:2", Some(90), Some(300)),
            delayed("10.0.0.1:3", Some(35_000), None),
            delayed("10.0.0.1:4", None, None),
        ];
        let guests = guests(&seen);
        let document = serde_json::to_value(&guests[0]).expect("JSON");
        let text = "slow because the guest is not running: it answers after 31.0 ms at the median, the \
                    fabric after 300 us, the CPU of web-1 waits for 61 % of the time and runs for 32 %";
        for (key, guessed) in [
            ("delayed_by", serde_json::json!("guest")),
            ("delayed_by_text", text.into()),
            ("guest_delay_us", 31_000.into()),
            ("fabric_delay_us", 300.into()),
            ("machine", "web-1".into()),
            ("cpu_waiting", 0.61.into()),
        ] {
            assert_eq!(document[key], guessed, "{key}");
        }
        let by: Vec<_> = guests[0].flows.iter().map(|flow| flow.delayed_by).collect();
        assert_eq!(by, [Some("guest"), Some("neither"), Some("guest"), None]);
        let unseen = [connection("10.0.0.1:4", GuestEcn::None, Class::Unknown, 0.0)];
        let document = serde_json::to_value(&self::guests(&unseen)[0]).expect("JSON");
        assert!(
            document["cpu_idle"].is_null() && document["delayed_by_text"].is_null(),
            "{document}"
        );
    }
}
