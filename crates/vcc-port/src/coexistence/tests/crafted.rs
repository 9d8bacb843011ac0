//! Neighbours that not every kernel can make.

use super::neighbours::{
    Chain, Link, Neighbours, PacketSocket, Packets, Process, Surroundings, Traffic,
};
use super::*;

/// `port`, with a master of this kind.
fn around(kind: &str) -> Surroundings {
    let port = Link { index: 2, name: PORT.into(), master: Some(3), ..Default::default() };
    let master = Link {
        index: 3,
        name: "master".into(),
        kind: Some(kind.into()),
        hardware: Some("0000:03:00.0".into()),
        ..Default::default()
    };
    Surroundings { links: vec![port, master], qdiscs: Vec::new() }
}

/// Seen from the port, or from its master.
fn seen_from(place: usize, around: &Surroundings) -> Neighbours<'_> {
    let link = around.links[place].clone();
    let device = Device { name: link.name.clone(), ifindex: link.index, netns_inode: 1 };
    let chains = Hook::BOTH.map(|hook| Chain { hook, programs: Vec::new(), ours: None });
    Neighbours { device, link, around, chains, sockets: Vec::new(), traffic: None }
}

const FROM_PORT: usize = 0;
const FROM_MASTER: usize = 1;

fn findings_of(
    kind: fn(&Neighbours<'_>) -> Result<Vec<Found>>,
    at: &Neighbours<'_>,
) -> Vec<(Severity, String)> {
    let found = kind(at).expect("findings");
    found.into_iter().map(|found| (found.severity, found.found)).collect()
}

#[test]
fn members_of_bonds_and_teams() {
    for kind in ["bond", "team"] {
        let around = around(kind);
        let found = format!("port is a member of master ({kind})");
        assert_eq!(
            findings_of(bond::check, &seen_from(FROM_PORT, &around)),
            [(Severity::Warning, found)]
        );
        let found = format!("master is a {kind} of port");
        assert_eq!(
            findings_of(bond::check, &seen_from(FROM_MASTER, &around)),
            [(Severity::Warning, found)]
        );
    }
    assert!(findings_of(bond::check, &seen_from(FROM_PORT, &around("bridge"))).is_empty());
}

#[test]
fn a_port_of_a_bridge_reports_vlans_that_the_bridge_filters() {
    let mut around = around("bridge");
    for (filters, filtering) in [(false, ""), (true, ", which filters VLANs")] {
        around.links[FROM_MASTER].vlan_filtering = filters;
        let found = bridge::check(&seen_from(FROM_PORT, &around)).expect("findings");
        let [found] = &found[..] else { panic!("{found:?}") };
        assert_eq!(found.found, format!("port is a port of the bridge master{filtering}"));
        let names_the_port = |remedy: &str| remedy.contains("`bridge vlan show dev port`");
        assert_eq!(found.remedy.as_deref().is_some_and(names_the_port), filters, "{found:?}");
    }
}

#[test]
fn members_of_vrfs() {
    let found = "port belongs to the VRF master".to_owned();
    let around = around("vrf");
    assert_eq!(findings_of(vrf::check, &seen_from(FROM_PORT, &around)), [(Severity::Note, found)]);
    assert!(findings_of(vrf::check, &seen_from(FROM_MASTER, &around)).is_empty());
}

#[test]
fn cards_face_the_fabric() {
    let found = "master is a card (0000:03:00.0)".to_owned();
    let around = around("bridge");
    assert_eq!(
        findings_of(direction::check, &seen_from(FROM_MASTER, &around)),
        [(Severity::Warning, found)]
    );
}

#[test]
fn open_vswitch_in_the_kernel_works_together() {
    let around = around("openvswitch");
    let at = seen_from(FROM_PORT, &around);
    let found = "port is a port of Open vSwitch's kernel datapath (master)".to_owned();
    assert_eq!(findings_of(openvswitch::check, &at), [(Severity::Note, found)]);
}

#[test]
fn open_vswitch_in_user_space_gets_segments_before_vcc() {
    let process = Process { pid: 7, name: "ovs-vswitchd".into() };
    let sockets = vec![PacketSocket { owner: Some(process) }];
    let around = around("bridge");
    let at = Neighbours { sockets, ..seen_from(FROM_PORT, &around) };
    let findings = findings_of(openvswitch::check, &at);
    assert_eq!(findings[0].0, Severity::Problem, "{findings:?}");
    assert!(findings_of(packet_socket::check, &at).is_empty(), "it is reported once");
    let sockets = vec![PacketSocket { owner: None }];
    let unknown = Neighbours { sockets, ..seen_from(FROM_PORT, &around) };
    assert_eq!(findings_of(packet_socket::check, &unknown)[0].0, Severity::Note);
}

#[test]
fn traffic_is_judged_by_direction() {
    let around = around("bridge");
    let judged = |received, sent, runs| {
        let time = Duration::from_secs(1);
        let traffic = Traffic { time, packets: Packets { received, sent }, runs };
        let at = Neighbours { traffic: Some(Ok(traffic)), ..seen_from(FROM_PORT, &around) };
        let found = findings_of(traffic::check, &at);
        [found[0].0, found[1].0]
    };
    use Severity::{Note, Problem, Warning};
    assert_eq!(judged(0, 0, [0, 0]), [Note, Note], "silence");
    assert_eq!(judged(100, 90, [100, 90]), [Note, Note]);
    assert_eq!(judged(100, 90, [3, 2]), [Note, Note], "merged by GRO");
    assert_eq!(judged(100, 90, [0, 90]), [Problem, Note]);
    assert_eq!(judged(100, 90, [100, 0]), [Note, Problem]);
    assert_eq!(judged(100, 0, [100, 0]), [Note, Warning], "what the guest gets comes elsewhere");
    assert_eq!(judged(5, 0, [5, 0]), [Note, Note], "router solicitations and the like");
    assert_eq!(judged(0, 90, [0, 90]), [Note, Note], "the guest is silent");
}

#[test]
fn a_kind_that_cannot_be_looked_at_is_a_warning() {
    let error = crate::Error::System { doing: "list".into(), why: "no".into() };
    assert_eq!(unknown(&error).severity, Severity::Warning);
}
