//! What CNI plugins did, as libcni caches it: a file for each interface of each pod.

use std::fs::{self, File};
use std::io::Read;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use inotify::{Inotify, WatchMask};
use serde::Deserialize;

use crate::resource::Pod;

/// Where libcni's users keep the cache (libcni's CacheDir).
pub const CACHE: &str = "/var/lib/cni";
/// The cache's own directory for results.
const RESULTS: &str = "results";
/// Files are a few kilobytes; others are not of libcni.
const LONGEST_BYTES: u64 = 1 << 20;

/// The result for one interface of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CniResult {
    pod_uid: Option<String>,
    pod_namespace: Option<String>,
    pod_name: Option<String>,
    /// Its name in the pod.
    interface: String,
    addresses: Vec<IpAddr>,
    /// A bridge may be among them.
    pub host_devices: Vec<String>,
}

impl CniResult {
    fn is_of(&self, pod: &Pod) -> bool {
        match &self.pod_uid {
            Some(uid) => *uid == pod.uid,
            // Old runtimes do not store the UID.
            None => {
                self.pod_name.as_ref() == Some(&pod.name)
                    && self.pod_namespace.as_ref() == Some(&pod.namespace)
            }
        }
    }
}

/// The name that container runtimes give the interface of the cluster's own network.
const FIRST_INTERFACE: &str = "eth0";

/// The host's ends of the interface that has a pod's address, or will have it; others are of further
/// networks (Multus'). The likeliest first: runtimes may leave a result of a sandbox that is gone.
pub fn host_devices<'a>(results: &'a [CniResult], pod: &Pod) -> impl Iterator<Item = &'a str> {
    let mut of_pod: Vec<&CniResult> = results.iter().filter(|result| result.is_of(pod)).collect();
    let has_address = |it: &CniResult| it.addresses.iter().any(|ip| pod.addresses.contains(ip));
    // Never in the order of a directory, which changes.
    of_pod.sort_by_key(|it| {
        (!has_address(it), it.interface != FIRST_INTERFACE, &it.interface, &it.host_devices)
    });
    let wanted = of_pod.first().map(|it| it.interface.as_str());
    let of_wanted = of_pod.into_iter().filter(move |it| Some(it.interface.as_str()) == wanted);
    of_wanted.flat_map(|it| it.host_devices.iter().map(String::as_str))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Cached {
    #[serde(default)]
    if_name: String,
    #[serde(default)]
    cni_args: Vec<(String, String)>,
    result: Option<ResultOfPlugin>,
}

#[derive(Deserialize)]
struct ResultOfPlugin {
    #[serde(default)]
    interfaces: Vec<Interface>,
    #[serde(default)]
    ips: Vec<Ip>,
}

#[derive(Deserialize)]
struct Ip {
    /// With the length of its network's prefix.
    #[serde(default)]
    address: String,
}

impl Ip {
    fn address(&self) -> Option<IpAddr> {
        self.address.split('/').next()?.parse().ok()
    }
}

#[derive(Deserialize)]
struct Interface {
    name: String,
    /// The network namespace; none for the host's.
    #[serde(default)]
    sandbox: String,
}

/// All results of a cache. What cannot be read, or is of another version, is of no use and no harm:
/// there are other ways to find a device.
pub fn results(cache: &Path) -> Vec<CniResult> {
    let Ok(files) = fs::read_dir(cache.join(RESULTS)) else { return Vec::new() };
    files.filter_map(|file| read(&file.ok()?.path())).collect()
}

fn read(path: &Path) -> Option<CniResult> {
    let file = File::open(path).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    file.take(LONGEST_BYTES).read_to_string(&mut text).ok()?;
    let cached: Cached = serde_json::from_str(&text).ok()?;
    let arg = |wanted: &str| {
        let pair = cached.cni_args.iter().find(|(key, _)| key == wanted);
        pair.map(|(_, value)| value.clone()).filter(|value| !value.is_empty())
    };
    let (pod_uid, pod_namespace, pod_name) =
        (arg("K8S_POD_UID"), arg("K8S_POD_NAMESPACE"), arg("K8S_POD_NAME"));
    let ResultOfPlugin { interfaces, ips } = cached.result?;
    let addresses = ips.iter().filter_map(Ip::address).collect();
    let of_host = interfaces.into_iter().filter(|interface| interface.sandbox.is_empty());
    let host_devices = of_host.map(|interface| interface.name).collect();
    let interface = cached.if_name;
    Some(CniResult { pod_uid, pod_namespace, pod_name, interface, addresses, host_devices })
}

/// Calls `wake` after each new result, on a thread of its own, until it returns false.
pub fn watch(cache: PathBuf, wake: impl Fn() -> bool + Send + 'static) -> std::io::Result<()> {
    /// The directory appears with the first pod.
    const LOOK_AGAIN: Duration = Duration::from_secs(10);
    let follow = move || {
        loop {
            if !follow(&cache.join(RESULTS), &wake) {
                return;
            }
            thread::sleep(LOOK_AGAIN);
        }
    };
    thread::Builder::new().name("cni".into()).spawn(follow).map(drop)
}

/// Returns true when there is nothing to follow any more.
fn follow(results: &Path, wake: &impl Fn() -> bool) -> bool {
    let Ok(mut inotify) = Inotify::init() else { return true };
    let changes = WatchMask::CLOSE_WRITE | WatchMask::MOVED_TO | WatchMask::DELETE_SELF;
    if inotify.watches().add(results, changes | WatchMask::ONLYDIR).is_err() {
        return true;
    }
    // What came before the watch.
    if !wake() {
        return false;
    }
    let mut buffer = [0; 4096];
    loop {
        match inotify.read_events_blocking(&mut buffer) {
            Ok(mut events) => {
                let is_gone = events.any(|event| event.mask.contains(inotify::EventMask::IGNORED));
                if !wake() {
                    return false;
                }
                if is_gone {
                    return true;
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return true,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(uid: &str, name: &str) -> Pod {
        Pod {
            uid: uid.into(),
            namespace: "shop".into(),
            name: name.into(),
            labels: Default::default(),
            choice: Default::default(),
            addresses: Vec::new(),
            host_network: false,
            has_ended: false,
        }
    }

    #[test]
    fn the_result_of_a_pod_is_found_among_others() {
        let cache = tempfile::tempdir().expect("a directory");
        let results_in = cache.path().join("results");
        fs::create_dir(&results_in).expect("a directory");
        let write = |name: &str, text: &str| {
            fs::write(results_in.join(name), text).expect("a file");
        };
        let result = |args: serde_json::Value| {
            json!({
                "kind": "cniCacheV1", "containerId": "c", "ifName": "eth0", "cniArgs": args,
                "result": { "cniVersion": "1.0.0", "interfaces": [
                    { "name": "cni0", "mac": "00:00:00:00:00:01" },
                    { "name": "veth1", "mac": "00:00:00:00:00:02" },
                    { "name": "eth0", "sandbox": "/var/run/netns/cni-1" },
                ], "ips": [{ "address": "10.88.0.5/16", "interface": 2 }] },
            })
            .to_string()
        };
        let names = |uid: &str| {
            json!([
                ["IgnoreUnknown", "1"],
                ["K8S_POD_NAMESPACE", "shop"],
                ["K8S_POD_NAME", "web-0"],
                ["K8S_POD_UID", uid]
            ])
        };
        write("a", &result(names("u1")));
        write("b", &result(names("")));
        write("c", "not json");
        write("d", &json!({ "cniArgs": [], "result": null }).to_string());
        let results = results(cache.path());
        assert_eq!(results.len(), 2);
        let of = |pod: Pod| host_devices(&results, &pod).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(of(pod("u1", "web-0")), ["cni0", "veth1", "cni0", "veth1"]);
        assert_eq!(of(pod("u2", "web-0")), ["cni0", "veth1"], "by its name");
        assert_eq!(of(pod("u2", "web-1")), [""; 0]);
        assert_eq!(super::results(Path::new("/nowhere")), []);
    }

    #[test]
    fn the_interface_with_the_pod_s_address_counts_or_the_first() {
        let cache = tempfile::tempdir().expect("a directory");
        let results_in = cache.path().join("results");
        fs::create_dir(&results_in).expect("a directory");
        let write = |container: &str, interface: &str, device: &str, address: &str| {
            let result = json!({
                "kind": "cniCacheV1", "containerId": container, "ifName": interface,
                "cniArgs": [["K8S_POD_UID", "u1"]],
                "result": { "cniVersion": "1.0.0", "interfaces": [
                    { "name": device }, { "name": interface, "sandbox": "/var/run/netns/cni-1" },
                ], "ips": [{ "address": address, "interface": 1 }] },
            });
            let file = results_in.join(format!("network-{container}-{interface}"));
            fs::write(file, result.to_string()).expect("a file");
        };
        write("c", "net1", "veth-net1", "10.1.0.5/16");
        write("c", "eth0", "veth-eth0", "10.88.0.5/16");
        write("c", "data0", "veth-data0", "fd00::5/64");
        let of = |addresses: &[&str]| {
            let address = |text: &&str| text.parse().expect("an address");
            let pod =
                Pod { addresses: addresses.iter().map(address).collect(), ..pod("u1", "web") };
            let mut forward = results(cache.path());
            let mut backward = forward.clone();
            backward.sort_by_key(|it| std::cmp::Reverse(it.interface.clone()));
            forward.sort_by_key(|it| it.interface.clone());
            let devices = |results: &[CniResult]| {
                host_devices(results, &pod).map(str::to_owned).collect::<Vec<_>>()
            };
            assert_eq!(devices(&forward), devices(&backward));
            devices(&forward)
        };
        assert_eq!(of(&[]), ["veth-eth0"]);
        assert_eq!(of(&["10.88.0.5"]), ["veth-eth0"]);
        assert_eq!(of(&["10.1.0.5"]), ["veth-net1"]);
        assert_eq!(of(&["10.9.9.9", "fd00::5"]), ["veth-data0"]);
        assert_eq!(of(&["10.9.9.9"]), ["veth-eth0"], "of a plugin that reports no addresses");
        // The sandbox is a new one, and the pod's status has the address of the old one.
        write("d", "eth0", "veth-new", "10.88.0.6/16");
        assert_eq!(of(&["10.88.0.5"]), ["veth-eth0", "veth-new"]);
    }
}
