//! The tables of the file and their keys, but those of [`TreatmentKeys`]. Editors show the comments
//! of keys as help.

use toml::de::DeTable;

use super::bounded_values::{BufferSharing, BufferSize, MaxFlows, PoolWindow, PortOrder};
use super::condition_values::{Name, Network, OneOrMany, VlanId};
use super::port_patterns::{DeviceGlob, SocketGlob};
use super::reader::{Located, Table, read_field, table};
use super::treatment_keys::TreatmentKeys;
use crate::affiliation::Affiliation;
use crate::conditions::PortRange;
use crate::connection::Role;
use crate::problem::Findings;
use crate::tunnels::Tunnels;

table!(
    /// Which connections get which congestion control on the fabric.
    PolicyFile under "" {
        /// The host's ports, and their tenants. The first match applies.
        ports: Vec<Located<PortTable>>,
        /// Windows that connections share.
        pools: Vec<Located<PoolTable>>,
        /// Connections and their treatment. The first match applies.
        rules: Vec<Located<RuleTable>>,
        /// The treatment of connections that no rule matches. Without this table they are ignored.
        default: DefaultTable,
    }
);

table!(
    /// Devices that are ports in the kernel, or devices or sockets of `vcc domain`, which are ports
    /// with a buffer.
    #[schemars(extend("oneOf" = [{ "required": ["device"] }, { "required": ["socket"] }]))]
    PortTable under "[[ports]]" {
        /// The host side of guests' devices, as a pattern with `*`, `?` and `[...]`.
        device: DeviceGlob,
        /// The sockets of `vcc domain`, as a pattern of paths.
        socket: SocketGlob,
        /// The tenant of these ports; rules can ask for it.
        tenant: Name,
        /// What distinguishes these ports from others of their tenant; rules can ask for it.
        class: Name,
        /// With `device`: the name of the guest whose devices these are. All devices of a guest are one
        /// port, for what it sends by one and gets by another. By default each device is a guest's.
        guest: Name,
        /// Connections that each of these ports tracks at a time; `on_full` says how others are
        /// treated. By default 65536.
        max_flows: MaxFlows,
        /// With `device`: the tunnels of the guests whose inner connections are translated, too:
        /// VXLAN, Geneve, GRE. By default none.
        inside: Tunnels,
        /// With `device`: whether vcc is attached before other programs at the device, or behind
        /// them, when it is attached. By default `"last"`.
        order: PortOrder,
        /// The buffer for the guest's segments. With `device`, the port is not in the kernel: `vcc
        /// domain --device` serves it. With `socket`, by default 4M.
        buffer: BufferSize,
        /// How the guest's connections share the buffer. By default `"fair"`.
        buffer_policy: BufferSharing,
    }
);

table!(
    /// A window that connections share.
    PoolTable under "[[pools]]" {
        /// Unique; rules refer to it.
        #[schemars(required)]
        name: Name,
        /// The sum of the windows of all its connections. 1G at most.
        #[schemars(required)]
        window: PoolWindow,
    }
);

table!(
    /// Conditions on connections, and how those that meet them are treated. A condition that is
    /// left out holds for any connection.
    RuleTable under "[[rules]]" {
        /// Unique; metrics have it as a label.
        #[schemars(required)]
        name: Name,
        /// The tenant of the port.
        tenant: OneOrMany<Name>,
        /// The class of the port.
        class: OneOrMany<Name>,
        /// Networks that the peer is in, IPv4 or IPv6, or addresses.
        peer: OneOrMany<Network>,
        /// TCP ports at the guest's end.
        guest_port: OneOrMany<PortRange>,
        /// TCP ports at the peer's end.
        peer_port: OneOrMany<PortRange>,
        /// Whether the guest opens the connection (client) or the peer does (server).
        role: Role,
        /// VLANs; 0 is untagged.
        vlan: OneOrMany<VlanId>,
        ..treatment: TreatmentKeys,
    }
);

table!(
    /// The treatment of connections that no rule matches.
    DefaultTable under "[default]" {
        ..treatment: TreatmentKeys,
    }
);

impl PortTable {
    pub fn affiliation(&self) -> Affiliation<'_> {
        fn name(name: &Option<Located<Name>>) -> Option<&str> {
            name.as_ref().map(|name| name.value.0.as_str())
        }
        Affiliation { tenant: name(&self.tenant), class: name(&self.class) }
    }
}

/// The headings under which a key is valid, if there are any.
fn home_of(key: &str) -> Option<String> {
    fn heading<T: Table>(key: &str) -> Option<&'static str> {
        let mut keys = Vec::new();
        T::keys(&mut keys);
        keys.contains(&key).then_some(T::HEADING)
    }
    if heading::<PolicyFile>(key).is_some() {
        return Some("at the top of the file".to_owned());
    }
    let headings = [
        heading::<PortTable>(key),
        heading::<PoolTable>(key),
        heading::<RuleTable>(key),
        heading::<DefaultTable>(key),
    ];
    let headings: Vec<&str> = headings.into_iter().flatten().collect();
    (!headings.is_empty()).then(|| format!("in {}", headings.join(" or ")))
}
