//! What devices do to segments before vcc sees them, and after.

use std::process::Command;

use super::*;
use crate::coexistence::neighbours::features;

fn ethtool(words: &str) {
    let status = Command::new("ethtool").arg("-K").args(words.split(' ')).status();
    assert!(status.expect("ethtool").success(), "ethtool -K {words}");
}

#[test]
fn features_by_their_names() {
    on_a_host(|| {
        let _guest = guest();
        let has = |name: &str| {
            features::active(PORT).expect("features").iter().any(|feature| feature == name)
        };
        for (word, is_on) in [("on", true), ("off", false)] {
            ethtool(&format!("port rx-gro-list {word}"));
            assert_eq!(has("rx-gro-list"), is_on);
        }
        assert!(has("tx-tcp-segmentation"));
        assert!(features::active("nowhere").expect("no device").is_empty());
    });
}

#[test]
fn lists_of_packets_cost_a_copy_and_hide_tunnels() {
    on_a_host(|| {
        let _guest = guest();
        ip("link add br0 type bridge");
        ip("link add uplink type veth peer name fabric");
        ip("link add other type veth peer name fabric-too");
        for device in [PORT, "uplink"] {
            ip(&format!("link set {device} master br0"));
        }
        assert!(of_kind(&look(PORT), "offload").is_empty());
        for device in [PORT, "uplink", "other"] {
            ethtool(&format!("{device} rx-gro-list on"));
        }
        let note = |device| (Severity::Note, format!("rx-gro-list of {device} is on"));
        let notes = |severity_and_text: Vec<(Severity, &str)>| {
            severity_and_text
                .into_iter()
                .map(|(severity, text)| (severity, text.to_owned()))
                .collect::<Vec<_>>()
        };
        // Nothing comes to the port by a device that is neither a card nor of its bridge.
        assert_eq!(notes(of_kind(&look(PORT), "offload")), [note(PORT), note("uplink")]);
        ethtool("uplink rx-gro-list off rx-udp-gro-forwarding on");
        assert_eq!(notes(of_kind(&look(PORT), "offload")), [note(PORT)]);
        let inside = vcc_policy::TunnelKind::ALL.into_iter().collect();
        let options = AttachOptions { inside, ..AttachOptions::default() };
        let mut ports = Port::attach_pinned(&[PORT], &options).expect("attached");
        let findings = look(PORT);
        let [at_port, at_uplink] = of_kind(&findings, "offload")[..] else {
            panic!("both devices: {findings:#?}");
        };
        assert_eq!(at_port.0, Severity::Warning);
        assert_eq!(at_uplink, (Severity::Warning, "rx-udp-gro-forwarding of uplink is on"));
        let remedies: Vec<_> =
            findings.iter().filter_map(|finding| finding.remedy.as_deref()).collect();
        assert!(
            remedies.contains(&"`ethtool -K uplink rx-udp-gro-forwarding off`"),
            "{remedies:?}"
        );
        ports.remove(0).detach().expect("detached");
    });
}

#[test]
fn a_device_may_repeat_cwr() {
    on_a_host(|| {
        let _guest = guest();
        ip("link add br0 type bridge");
        ip("link add uplink type veth peer name fabric");
        for device in [PORT, "uplink"] {
            ip(&format!("link set {device} master br0"));
            ethtool(&format!("{device} tx-tcp-ecn-segmentation off"));
        }
        let found = "uplink segments TCP, but tx-tcp-ecn-segmentation is off";
        assert_eq!(only(&look(PORT), "offload"), (Severity::Note, found));
        ethtool("uplink tso off");
        assert!(of_kind(&look(PORT), "offload").is_empty());
    });
}
