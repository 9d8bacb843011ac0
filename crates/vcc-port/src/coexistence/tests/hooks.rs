//! TCX programs, and what passes them.

use std::net::{TcpListener, TcpStream};

use vcc_engine::sys;
use vcc_policy::Order;

use super::*;
use crate::counters;

/// Connects from the guest; whether vcc saw the connection.
fn is_seen(guest: &Netns, port: &Port) -> bool {
    let listener = TcpListener::bind("192.0.2.2:0").expect("a listener");
    let to = listener.local_addr().expect("an address");
    let opened = guest.inside(|| TcpStream::connect(to)).expect("inside").expect("connected");
    let (_accepted, _) = listener.accept().expect("accepted");
    drop(opened);
    !port.flows().expect("flows").is_empty()
}

#[test]
fn a_program_before_vcc_that_ends_the_chain_hides_all() {
    on_a_host(|| {
        let guest = guest();
        let _other = tcx(Hook::FromGuest, c"ends_chain", TCX_PASS);
        let before = look(PORT);
        let (severity, found) = of_kind(&before, "tcx")[0];
        assert_eq!(severity, Severity::Warning, "unless it ends the chain, it does no harm");
        assert!(
            found.contains("ends_chain (ID ") && found.contains("would be number 2 of 2"),
            "{found}"
        );

        let port = attach();
        assert!(!is_seen(&guest, &port));
        let findings = watched(&guest);
        let traffic = of_kind(&findings, "traffic");
        assert_eq!(
            (traffic[0].0, traffic[1].0),
            (Severity::Problem, Severity::Note),
            "{findings:#?}"
        );
        let chains = of_kind(&findings, "tcx");
        assert_eq!(
            (chains[0].0, chains[1].0),
            (Severity::Problem, Severity::Note),
            "{findings:#?}"
        );
        assert!(chains[0].1.ends_with("vcc is number 2 of 2"), "{findings:#?}");
        let blind = findings.iter().find(|f| f.kind == "tcx").expect("a finding");
        assert!(blind.remedy.as_ref().is_some_and(|r| r.contains("ends_chain")), "{blind:?}");
    });
}

#[test]
fn a_program_after_vcc_that_ends_the_chain_hides_nothing() {
    on_a_host(|| {
        let guest = guest();
        let port = attach();
        let _other = tcx(Hook::FromGuest, c"ends_chain", TCX_PASS);
        assert!(is_seen(&guest, &port));
        let findings = watched(&guest);
        assert!(findings.iter().all(|f| f.severity == Severity::Note), "{findings:#?}");
        let (_, found) = of_kind(&findings, "tcx")[0];
        assert!(found.contains("ends_chain") && found.ends_with("vcc is number 1 of 2"), "{found}");
    });
}

/// In either direction; who attaches later goes behind vcc all the same.
#[test]
fn vcc_goes_before_a_program_that_ends_the_chain() {
    const BOTH: u32 = sys::FLOW_SYN_SEEN_GUEST | sys::FLOW_SYN_SEEN_PEER;
    for hook in Hook::BOTH {
        on_a_host(|| {
            let guest = guest();
            let _first = tcx(hook, c"ends_chain", TCX_PASS);
            let behind = attach();
            let was_seen = is_seen(&guest, &behind);
            let flows = behind.flows().expect("flows");
            let saw_both = flows.iter().any(|it| it.state.0.flags & BOTH == BOTH);
            drop(behind);
            let options = AttachOptions { order: Order::First, ..AttachOptions::default() };
            let port = Port::attach(PORT, &options).expect("attached");
            let _last = tcx(hook, c"ends_chain", TCX_PASS);
            assert!(is_seen(&guest, &port));
            // A SYN that passes alone makes a flow, too: both directions are seen.
            let flows = port.flows().expect("flows");
            assert!(flows.iter().all(|it| it.state.0.flags & BOTH == BOTH));
            assert!(!saw_both, "it was hidden behind, at least one way: {was_seen}");
            let findings = look(PORT);
            let chains = of_kind(&findings, "tcx");
            let matching =
                chains.iter().filter(|(_, found)| found.ends_with("vcc is number 1 of 3"));
            assert_eq!(matching.count(), 1, "{findings:#?}");
            assert!(findings.iter().all(|it| it.severity == Severity::Note), "{findings:#?}");
        });
    }
}

#[test]
fn a_program_before_vcc_that_lets_all_pass_is_no_problem() {
    on_a_host(|| {
        let guest = guest();
        let _other = tcx(Hook::ToGuest, c"counts", TCX_NEXT);
        let port = attach();
        assert!(is_seen(&guest, &port));
        assert_eq!(of_kind(&look(PORT), "tcx")[1].0, Severity::Warning, "nobody has watched");
        let findings = watched(&guest);
        assert_eq!(of_kind(&findings, "tcx")[1].0, Severity::Note, "{findings:#?}");
        assert!(
            of_kind(&findings, "traffic").iter().all(|(s, _)| *s == Severity::Note),
            "{findings:#?}"
        );
    });
}

#[test]
fn programs_of_cilium_are_known_by_name() {
    on_a_host(|| {
        let _guest = guest();
        let _cilium = tcx(Hook::FromGuest, c"cil_from_contai", TCX_NEXT);
        let findings = look(PORT);
        let finding = findings.iter().find(|f| f.kind == "tcx").expect("a finding");
        assert!(finding.meaning.starts_with("Cilium"), "{finding:?}");
    });
}

#[test]
fn silence_is_no_blindness() {
    on_a_host(|| {
        let _guest = guest();
        let port = attach();
        let findings = findings(PORT, Some(WATCH)).expect("findings");
        assert!(findings.iter().all(|f| f.severity == Severity::Note), "{findings:#?}");
        assert_eq!(of_kind(&findings, "traffic").len(), 2, "{findings:#?}");
        drop(port);
        let unattached = super::findings(PORT, Some(WATCH)).expect("findings");
        assert!(of_kind(&unattached, "traffic").is_empty(), "{unattached:#?}");
    });
}

#[test]
fn a_pinned_port_is_known_by_its_links() {
    on_a_host(|| {
        let _guest = guest();
        let ports = Port::attach_pinned(&[PORT], &AttachOptions::default()).expect("attached");
        let findings = look(PORT);
        assert!(findings[0].found.contains("vcc is number 1 of 1"), "{findings:#?}");
        assert_eq!(ports[0].counters().expect("counters").get(counters::NOT_TCP), 0);
        for port in ports {
            port.detach().expect("detached");
        }
    });
}
