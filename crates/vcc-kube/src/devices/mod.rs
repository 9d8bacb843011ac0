//! The host's device of each pod, whatever the CNI plugin: as the plugin's result says, which the
//! container runtime keeps; else the device whose other end has the pod's address; else the device that
//! the route to that address leads to.

mod addresses;
pub mod cni;
mod links;
mod route;

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::path::PathBuf;

use crate::resource::Pod;
use links::Link;

pub struct Finder {
    /// Where libcni keeps results; they are there before a pod's containers start.
    results: PathBuf,
    /// Why the last look failed, if it did.
    trouble: Option<String>,
}

impl Finder {
    pub fn new(results: PathBuf) -> Self {
        Self { results, trouble: None }
    }

    /// Why devices may be missing.
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// The devices of those pods that have one, by UID.
    pub fn find(&mut self, pods: &[&Pod]) -> BTreeMap<String, String> {
        if pods.is_empty() {
            self.trouble = None;
            return BTreeMap::new();
        }
        let links = match links::ends_of_veths() {
            Ok(links) => links,
            Err(error) => {
                self.trouble = Some(format!("cannot list the network devices: {error}"));
                return BTreeMap::new();
            }
        };
        self.trouble = None;
        let results = cni::results(&self.results);
        let mut found = BTreeMap::new();
        let mut rest = Vec::new();
        for pod in pods {
            let devices = results.iter().filter(|result| result.is_of(pod));
            let mut devices = devices.flat_map(|result| &result.host_devices);
            match devices.find_map(|device| links.iter().find(|link| link.name == *device)) {
                Some(link) => {
                    found.insert(pod.uid.clone(), link.name.clone());
                }
                None => rest.push(*pod),
            }
        }
        let rest: Vec<&Pod> = rest.into_iter().filter(|pod| !pod.addresses.is_empty()).collect();
        if !rest.is_empty() {
            let taken: Vec<&str> = found.values().map(String::as_str).collect();
            let free: Vec<&Link> =
                links.iter().filter(|link| !taken.contains(&link.name.as_str())).collect();
            let by_address = addresses::of_other_ends(&free);
            for pod in rest {
                let device = of_addresses(pod, &by_address).or_else(|| by_route(pod, &free));
                found.extend(device.map(|device| (pod.uid.clone(), device)));
            }
        }
        found
    }
}

fn of_addresses(pod: &Pod, by_address: &HashMap<IpAddr, String>) -> Option<String> {
    pod.addresses.iter().find_map(|address| by_address.get(address)).cloned()
}

/// Of CNIs that route to each pod: a device that leads to many is that of none.
fn by_route(pod: &Pod, links: &[&Link]) -> Option<String> {
    let indices = pod.addresses.iter().filter_map(|address| route::device_towards(*address));
    let mut of_veths =
        indices.filter_map(|index| links.iter().find(|link| link.index == index).copied());
    of_veths.next().map(|link| link.name.clone())
}
