//! The host's device of each pod, under any CNI plugin: as the plugin's result says, which the
//! container runtime keeps; else the device whose other end has the pod's address; else the device that
//! a route for that address alone leads to.

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
        let by_result = pods.iter().filter_map(|pod| {
            let mut devices = cni::host_devices(&results, pod);
            let device = devices.find(|name| links.iter().any(|link| link.name == *name))?;
            Some((pod.uid.as_str(), device.to_owned()))
        });
        let mut found: BTreeMap<String, String> = of_one_pod(by_result).collect();
        let has_none = |pod: &&&Pod| !found.contains_key(&pod.uid) && !pod.addresses.is_empty();
        let rest: Vec<&Pod> = pods.iter().filter(has_none).copied().collect();
        if !rest.is_empty() {
            let taken: Vec<&str> = found.values().map(String::as_str).collect();
            let free: Vec<&Link> =
                links.iter().filter(|link| !taken.contains(&link.name.as_str())).collect();
            let by_address = addresses::of_other_ends(&free);
            found.extend(of_one_pod(rest.into_iter().filter_map(|pod| {
                let device = of_addresses(pod, &by_address);
                let device = device.or_else(|| by_route(pod, &free))?;
                Some((pod.uid.as_str(), device))
            })));
        }
        found
    }
}

/// A device that leads to several pods is that of none.
fn of_one_pod<'a>(
    found: impl Iterator<Item = (&'a str, String)>,
) -> impl Iterator<Item = (String, String)> {
    let mut pods: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    found.for_each(|(pod, device)| pods.entry(device).or_default().push(pod));
    pods.into_iter().filter_map(|(device, pods)| match pods.as_slice() {
        [pod] => Some(((*pod).to_owned(), device)),
        _ => None,
    })
}

fn of_addresses(pod: &Pod, by_address: &HashMap<IpAddr, String>) -> Option<String> {
    pod.addresses.iter().find_map(|address| by_address.get(address)).cloned()
}

/// Of CNIs that have a route to each pod.
fn by_route(pod: &Pod, links: &[&Link]) -> Option<String> {
    let indices = pod.addresses.iter().filter_map(|address| route::device_towards(*address));
    let mut of_veths =
        indices.filter_map(|index| links.iter().find(|link| link.index == index).copied());
    of_veths.next().map(|link| link.name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_leads_to_several_pods_is_that_of_none() {
        let found = [("a", "eth0"), ("b", "veth1"), ("c", "eth0"), ("d", "veth2")];
        let found = found.map(|(pod, device)| (pod, device.to_owned()));
        let of_one: Vec<(String, String)> = of_one_pod(found.into_iter()).collect();
        let expected = [("b", "veth1"), ("d", "veth2")];
        assert_eq!(of_one, expected.map(|(pod, device)| (pod.to_owned(), device.to_owned())));
    }
}
