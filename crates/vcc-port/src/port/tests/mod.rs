//! On veth pairs in network namespaces of their own: `port` is the host's end, `guest` the other.

mod arriving;
mod attached;
mod cycles;
mod emitting;
mod expiry;
mod foreign;
mod interrupted;
mod joined;
mod pinned;
mod recorded;
mod refusals;
mod ruled;
mod run_time;
mod still;
mod talk;
mod traced;
mod unknown;

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use libbpf_rs::MapHandle;
use vcc_engine::{Params, sys};
use vcc_testing::{can_attach, eventually, ip, isolated, on_a_host, up_without_link_local};

use super::*;
use crate::{AttachOptions, Datapath, SharedPolicy, Trace, bpffs, counters};

const PORT: &str = "port";

fn veth() {
    ip("link add port type veth peer name guest");
    for end in ["port", "guest"] {
        up_without_link_local(end);
    }
}

fn attach() -> Port {
    Port::attach(PORT, &AttachOptions::default()).expect("an attachment")
}

fn attach_pinned(device: &str, options: &AttachOptions) -> Result<Port> {
    let mut ports = Port::attach_pinned(&[device], options)?;
    Ok(ports.remove(0))
}

fn pinned() -> Port {
    attach_pinned(PORT, &AttachOptions::default()).expect("an attachment")
}

fn datapath() -> Datapath {
    Datapath::load(&AttachOptions::default()).expect("a datapath")
}

fn refused(result: Result<Port>) -> String {
    match result {
        Ok(port) => panic!("attached to {}", port.device()),
        Err(error) => error.to_string(),
    }
}

fn program_ids(device: &str) -> Vec<u32> {
    let ifindex = Device::named(device).expect("a device").ifindex;
    let ids = |hook| tcx::attached(ifindex, hook).expect("a query").program_ids;
    [ids(Hook::FromGuest), ids(Hook::ToGuest)].concat()
}

/// The kernel objects of an attachment.
struct Objects {
    program_ids: Vec<u32>,
    map_ids: Vec<u32>,
}

impl Objects {
    fn from_port(port: &Port) -> Self {
        let maps = port.maps().expect("maps").all();
        use libbpf_rs::MapCore;
        let map_ids = maps.map(|(_, map)| map.info().expect("a map").info.id).collect();
        Self { program_ids: program_ids(port.device()), map_ids }
    }

    fn all_gone(&self) -> bool {
        let program_gone = |id: &u32| libbpf_rs::Program::fd_from_id(*id).is_err();
        let map_gone = |id: &u32| MapHandle::from_map_id(*id).is_err();
        self.program_ids.iter().all(program_gone) && self.map_ids.iter().all(map_gone)
    }
}

/// All that is pinned on this host.
fn pinned_files() -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut directories = vec![PathBuf::from(bpffs::HOME)];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten() {
            let path = entry.expect("a pin").path();
            if path.is_dir() { directories.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    files
}
