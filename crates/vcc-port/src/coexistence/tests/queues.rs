//! Filters and qdiscs.

use std::net::TcpStream;

use vcc_engine::Params;
use vcc_policy::Affiliation;

use super::*;
use crate::{Host, SharedPolicy};

#[test]
fn a_filter_that_redirects_is_a_warning() {
    on_a_host(|| {
        let _guest = guest();
        ip("link add sink type bridge");
        tc("qdisc add dev port clsact");
        assert!(of_kind(&look(PORT), "tc-filter").is_empty(), "the qdisc alone does nothing");
        // The two hooks of a qdisc share u32's table of a preference.
        let rule = |preference| {
            format!("protocol ip pref {preference} u32 match u32 0 0 action mirred egress")
        };
        tc(&format!("filter add dev port ingress {} redirect dev sink", rule(7)));
        tc(&format!("filter add dev port egress {} mirror dev sink", rule(8)));
        let findings = look(PORT);
        let [from_guest, to_guest] = of_kind(&findings, "tc-filter")[..] else {
            panic!("one for each hook: {findings:#?}");
        };
        assert_eq!(from_guest.0, Severity::Warning);
        assert!(
            from_guest.1.contains("u32 with preference 7, action mirred that redirects to sink"),
            "{findings:#?}"
        );
        assert_eq!(to_guest.0, Severity::Note, "a copy takes nothing: {findings:#?}");
    });
}

/// Filters run behind vcc, so it takes what they redirect for sent.
#[test]
fn what_a_filter_redirects_passes_vcc() {
    on_a_host(|| {
        let guest = guest();
        ip("link add sink type bridge");
        tc("qdisc add dev port clsact");
        let rule = "protocol ip u32 match u32 0 0 action mirred egress redirect dev sink";
        tc(&format!("filter add dev port ingress {rule}"));
        let port = attach();
        let to = "192.0.2.2:9".parse().expect("an address");
        let connect = || TcpStream::connect_timeout(&to, Duration::from_millis(50));
        guest.inside(connect).expect("inside").expect_err("the SYN goes to the sink");
        assert_eq!(port.flows().expect("flows").len(), 1);
    });
}

#[test]
fn a_filter_of_an_ingress_qdisc_is_found() {
    on_a_host(|| {
        let _guest = guest();
        ip("link add sink type bridge");
        tc("qdisc add dev port ingress");
        let rule = "protocol ip u32 match u32 0 0 action mirred egress redirect dev sink";
        tc(&format!("filter add dev port parent ffff: {rule}"));
        assert_eq!(only(&look(PORT), "tc-filter").0, Severity::Warning);
    });
}

/// Of a port under a policy as well, where nobody reads what `vcc attach` prints.
#[test]
fn windows_below_one_segment_need_fq() {
    on_a_host(|| {
        let _guest = guest();
        let is_lacking = || {
            let findings = look(PORT);
            let found = of_kind(&findings, "qdisc");
            found.contains(&(Severity::Warning, "no queueing discipline `fq`"))
        };
        let options = AttachOptions {
            params: Params::with(|params| params.window_floor_segs = 0),
            ..AttachOptions::default()
        };
        let port = Port::attach_pinned(&[PORT], &options).expect("attached").remove(0);
        assert!(is_lacking());
        tc("qdisc replace dev port root pfifo");
        assert!(is_lacking());
        port.detach().expect("detached");
        assert!(!is_lacking(), "nobody paces");

        let shared = SharedPolicy::open().expect("a policy");
        let policy = |floor: u32| {
            let text =
                format!("[default]\nunderlay = \"dctcp\"\nwindow_floor_segments = {floor}\n");
            vcc_policy::Policy::parse(&text, "policy.toml").expect("a policy").policy
        };
        let host = Host::open().expect("a host");
        shared.apply(&policy(0), &[(0, Affiliation::default())]).expect("applied");
        let admit = |_| Ok(());
        Port::attach_pinned_under(&host, PORT, &AttachOptions::default(), admit).expect("attached");
        assert!(is_lacking());
        shared.apply(&policy(1), &[(0, Affiliation::default())]).expect("applied");
        assert!(!is_lacking());
    });
}

#[test]
fn a_shaper_is_a_queue_before_the_guest() {
    on_a_host(|| {
        let _guest = guest();
        assert!(of_kind(&look(PORT), "qdisc").is_empty(), "a veth has none by default");
        tc("qdisc add dev port root handle 1: htb default 1");
        assert_eq!(only(&look(PORT), "qdisc"), (Severity::Warning, "root qdisc htb (set)"));
        tc("class add dev port parent 1: classid 1:1 htb rate 10mbit");
        tc("qdisc add dev port parent 1:1 handle 2: tbf rate 9mbit burst 10kb latency 20ms");
        let findings = look(PORT);
        assert_eq!(only(&findings, "qdisc"), (Severity::Warning, "root qdisc htb (set, with tbf)"));
        tc("qdisc delete dev port root");
        tc("qdisc add dev port root handle 1: pfifo");
        assert_eq!(only(&look(PORT), "qdisc"), (Severity::Note, "root qdisc pfifo (set)"));
    });
}
