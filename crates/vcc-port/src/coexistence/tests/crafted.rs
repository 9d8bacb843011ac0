//! Neighbours that not every kernel can make.

use super::link::Link;
use super::neighbours::{Chain, Neighbours};
use super::sockets::{PacketSocket, Process};
use super::*;

/// `port`, with a master of this kind.
fn member_of(kind: &str) -> Neighbours {
    let device = Device { name: PORT.into(), ifindex: 2, netns_inode: 1 };
    let link = Link { index: 2, name: PORT.into(), master: Some(3), ..Default::default() };
    let master = Link {
        index: 3,
        name: "master".into(),
        kind: Some(kind.into()),
        hardware: Some("0000:03:00.0".into()),
        ..Default::default()
    };
    let chains = Hook::BOTH.map(|hook| Chain { hook, programs: Vec::new(), ours: None });
    let links = vec![link.clone(), master];
    Neighbours { device, link, links, chains, sockets: Vec::new(), traffic: None }
}

fn told(kind: fn(&Neighbours) -> Result<Vec<Found>>, at: &Neighbours) -> Vec<(Severity, String)> {
    let found = kind(at).expect("findings");
    found.into_iter().map(|found| (found.severity, found.found)).collect()
}

/// The same devices, seen from the master.
fn from_master(mut at: Neighbours) -> Neighbours {
    at.link = at.links[1].clone();
    at.device = Device { name: at.link.name.clone(), ifindex: at.link.index, netns_inode: 1 };
    at
}

#[test]
fn members_of_bonds_and_teams() {
    for kind in ["bond", "team"] {
        let at = member_of(kind);
        let found = format!("port is a member of master ({kind})");
        assert_eq!(told(bond::look, &at), [(Severity::Warning, found)]);
        let found = format!("master is a {kind} of port");
        assert_eq!(told(bond::look, &from_master(at)), [(Severity::Warning, found)]);
    }
    assert!(told(bond::look, &member_of("bridge")).is_empty());
}

#[test]
fn cards_face_the_fabric() {
    let found = "master is a card (0000:03:00.0)".to_owned();
    let at = from_master(member_of("bridge"));
    assert_eq!(told(direction::look, &at), [(Severity::Warning, found)]);
}

#[test]
fn open_vswitch_in_the_kernel_works_together() {
    let at = member_of("openvswitch");
    let found = "port is a port of Open vSwitch's kernel datapath (master)".to_owned();
    assert_eq!(told(openvswitch::look, &at), [(Severity::Note, found)]);
}

#[test]
fn open_vswitch_in_user_space_gets_segments_before_vcc() {
    let process = Process { pid: 7, name: "ovs-vswitchd".into() };
    let sockets = vec![PacketSocket { owner: Some(process) }];
    let at = Neighbours { sockets, ..member_of("bridge") };
    let told_of_it = told(openvswitch::look, &at);
    assert_eq!(told_of_it[0].0, Severity::Problem, "{told_of_it:?}");
    assert!(told(packet_socket::look, &at).is_empty(), "it is reported once");
    let unknown = Neighbours { sockets: vec![PacketSocket { owner: None }], ..member_of("bridge") };
    assert_eq!(told(packet_socket::look, &unknown)[0].0, Severity::Note);
}

#[test]
fn a_kind_that_cannot_be_looked_at_is_a_warning() {
    let error = crate::Error::System { doing: "list".into(), why: "no".into() };
    assert_eq!(unknown(&error).severity, Severity::Warning);
}
