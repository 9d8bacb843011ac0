//! Where the kernel has no timers, which `timers::without` pretends.

use vcc_testing::on_a_host;

use super::*;
use crate::{Governor, timers};

#[test]
fn attaching_by_hand_needs_the_daemon() {
    if timers::are_there() {
        return;
    }
    on_a_host(|| {
        veth();
        let attach = || attach_pinned(PORT, &AttachOptions::default());
        let message = refused(attach());
        assert!(message.contains(" gives BPF programs no timers, so "), "{message}");
        assert!(message.ends_with("start `vcc run`, then attach"), "{message}");
        assert_eq!(program_ids(PORT), Vec::<u32>::new());
        assert_eq!(pinned_files(), Vec::<std::path::PathBuf>::new());

        let daemon = Governor::become_it().expect("asked").expect("no other daemon");
        let port = attach().expect("attached");
        assert!(!timers::are_wheels_still().expect("asked"));
        drop(daemon);
        assert!(timers::are_wheels_still().expect("asked"));
        port.detach().expect("detached");
    });
}
