use std::os::fd::OwnedFd;
use std::path::PathBuf;

use super::*;
use crate::doctor::probe;
use crate::object::spoilt;
use crate::port::attach::refusal_of;

#[test]
fn no_such_device() {
    isolated_if_root(|| {
        let message = refused(Port::attach("nowhere0", &AttachOptions::default()));
        assert!(message.starts_with("no network device `nowhere0`"), "{message}");
    });
}

#[test]
fn not_ethernet() {
    isolated_if_root(|| {
        let message = refused(Port::attach("lo", &AttachOptions::default()));
        assert!(
            message.starts_with("`lo` is not an Ethernet device but the loopback"),
            "{message}"
        );
    });
}

#[test]
fn already_attached_by_a_process() {
    isolated_if_root(|| {
        veth();
        let port = attach();
        let message = refused(Port::attach(PORT, &AttachOptions::default()));
        assert!(message.contains("running process"), "{message}");
        assert_eq!(program_ids(PORT).len(), 2);
        drop(port);
    });
}

#[test]
fn already_attached_and_pinned() {
    isolated_if_root(|| {
        veth();
        drop(pinned());
        let message = refused(Port::attach(PORT, &AttachOptions::default()));
        assert!(message.contains("`vcc detach port` ends it"), "{message}");
    });
}

/// Any program that the kernel refuses, of the host or of the port.
#[test]
fn what_the_verifier_refuses_leaves_nothing() {
    for program in ["all_to_guest", "sweep", "to_guest"] {
        on_a_host(|| {
            veth();
            let refuse = || attach_pinned(PORT, &AttachOptions::default());
            let message = refused(spoilt::during(program, refuse));
            let words = format!(" refused the program {program} of the datapath: ");
            assert!(message.contains(&words), "{message}");
            assert_eq!(program_ids(PORT), Vec::<u32>::new(), "{program}");
            assert_eq!(pinned_files(), Vec::<PathBuf>::new(), "{program}");
            // Nor is anything in the way of the next one.
            let port = pinned();
            port.detach().expect("detached");
            Host::remove_unused().expect("removed");
            assert_eq!(pinned_files(), Vec::<PathBuf>::new(), "{program}");
        });
    }
}

/// What the daemon keeps for its ports is there whether it has any. The port itself leaves nothing.
#[test]
fn what_the_verifier_refuses_under_a_policy_leaves_no_port() {
    on_a_host(|| {
        veth();
        let host = Host::open().expect("a host");
        let before = pinned_files();
        let options = AttachOptions::default();
        let attach = || Port::attach_pinned_under(&host, PORT, &options, |_| Ok(()));
        let message = refused(spoilt::during("from_guest", attach).map(|(port, _)| port));
        assert!(message.contains(" refused the program from_guest of the datapath: "), "{message}");
        assert_eq!(program_ids(PORT), Vec::<u32>::new());
        assert_eq!(pinned_files(), before);
    });
}

#[test]
fn without_privilege() {
    isolated_if_root(|| {
        veth();
        drop_capabilities();
        let message = refused(Port::attach(PORT, &AttachOptions::default()));
        assert!(message.starts_with("not permitted to attach to `port`: "), "{message}");
        assert!(message.contains("CAP_BPF and CAP_NET_ADMIN"), "{message}");
    });
}

#[test]
fn half_an_attachment_is_none() {
    isolated_if_root(|| {
        veth();
        let links = fill(Hook::ToGuest);
        let message = refused(Port::attach(PORT, &AttachOptions::default()));
        assert!(message.contains("no room for another program"), "{message}");
        assert_eq!(program_ids(PORT).len(), links.len());
        drop(links);
        // A child process that another test is forking holds copies of the descriptors until it
        // executes.
        eventually("the device is free", || program_ids(PORT).is_empty());
    });
}

#[test]
fn kernels_without_the_hook() {
    let device = Device { name: PORT.into(), ifindex: 1, netns_inode: 1 };
    let message = |release: &str, errno| {
        refusal_of(release, &device, std::io::Error::from_raw_os_error(errno)).to_string()
    };
    let old = message("6.1.0-18-amd64", libc::EINVAL);
    assert!(old.starts_with("Linux 6.1.0-18-amd64 has no TCX"), "{old}");
    assert!(old.contains("boot Linux 6.12, "), "{old}");
    assert!(old.ends_with(", on which vcc is known to work"), "{old}");
    let new = message("6.12.1", libc::EINVAL);
    assert!(new.starts_with("cannot attach to `port`: Invalid argument"), "{new}");
    let raced = message("6.12.1", libc::ESTALE);
    assert!(raced.ends_with("try again"), "{raced}");
}

#[track_caller]
fn isolated_if_root(work: impl FnOnce() + Send) {
    if can_attach() {
        isolated(work);
    }
}

/// Attaches programs that do nothing until the hook is full.
fn fill(hook: Hook) -> Vec<OwnedFd> {
    let ifindex = Device::named(PORT).expect("a device").ifindex;
    let attach = || {
        let program = probe::load_empty_program().expect("a program");
        probe::attach(&program, ifindex, hook)
    };
    std::iter::from_fn(|| attach().ok()).collect()
}

/// Drops all capabilities of the calling thread.
fn drop_capabilities() {
    #[repr(C)]
    struct Header {
        version: u32,
        thread: i32,
    }
    const VERSION_3: u32 = 0x2008_0522;
    let header = Header { version: VERSION_3, thread: 0 };
    let nothing = [0u32; 6];
    // SAFETY: the header and the two empty sets of three words outlive the call.
    let status = unsafe { libc::syscall(libc::SYS_capset, &header, nothing.as_ptr()) };
    assert_eq!(status, 0, "{}", std::io::Error::last_os_error());
}
