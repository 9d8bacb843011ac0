//! Every table and key of the file. What stands here as a comment, editors show as help.

use toml::de::DeTable;
use vcc_engine::{GuestEcn, Mode, OnFull, Underlay};

use super::condition_values::{DeviceGlob, Name, Network, OneOrMany, VlanId};
use super::number_values::{Cap, Count, PoolWindow, Rate, Size, Time};
use super::reader::{Located, Table, read_field, table};
use super::treatment_values::Named;
use crate::conditions::PortRange;
use crate::connection::Role;
use crate::problem::{Findings, Span};
use crate::units::Beta;

const MS: u64 = 1_000;
const SECOND: u64 = 1_000 * MS;
const MINUTE: u64 = 60 * SECOND;
const DAY: u64 = 24 * 60 * MINUTE;
/// The engine takes a silence of 2^31 ms, which is 24.8 days, for a segment from the future: what is
/// to be forgotten after that never is.
const LONGEST_IDLE: u64 = 24 * DAY;

table!(
    /// Which connections get which congestion control on the fabric.
    PolicyFile under "" {
        /// Which of the host's devices are ports, and whose. The first that matches counts.
        ports: Vec<Located<PortTable>>,
        /// Windows that connections share.
        pools: Vec<Located<PoolTable>>,
        /// Which connections are treated how. The first that matches counts.
        rules: Vec<Located<RuleTable>>,
        /// How connections are treated that no rule matches. Without this table they are ignored.
        default: DefaultTable,
    }
);

table!(
    /// Devices that are ports.
    PortTable under "[[ports]]" {
        /// The host side of guests' devices, as a pattern with `*`, `?` and `[...]`.
        #[schemars(required)]
        device: DeviceGlob,
        /// Whose these ports are; rules can ask for it.
        tenant: Name,
        /// Connections that each of these ports tracks at a time; those beyond pass untouched. By
        /// default 65536.
        max_flows: Count<1, 16_777_216>,
    }
);

table!(
    /// A window that connections share.
    PoolTable under "[[pools]]" {
        /// Unique; rules refer to it.
        #[schemars(required)]
        name: Name,
        /// What the windows of all its connections add up to, however many there are. 1G at most.
        #[schemars(required)]
        window: PoolWindow,
    }
);

table!(
    /// What connections it is for, and how they are treated. Conditions that are left out hold for
    /// any.
    RuleTable under "[[rules]]" {
        /// Unique; metrics carry it.
        #[schemars(required)]
        name: Name,
        /// Whose port it is.
        tenant: OneOrMany<Name>,
        /// Networks that the peer is in, IPv4 or IPv6, or addresses.
        peer: OneOrMany<Network>,
        /// TCP ports at the guest's end.
        guest_port: OneOrMany<PortRange>,
        /// TCP ports at the peer's end.
        peer_port: OneOrMany<PortRange>,
        /// Whether the guest opens the connection (client) or the peer does (server).
        role: Named<Role>,
        /// VLANs; 0 is untagged.
        vlan: OneOrMany<VlanId>,
        ..treatment: TreatmentKeys,
    }
);

table!(
    /// How connections are treated that no rule matches.
    DefaultTable under "[default]" {
        ..treatment: TreatmentKeys,
    }
);

table!(
    /// How connections are treated.
    TreatmentKeys under "" {
        /// Enforce the underlay, or compute it and change nothing (shadow), or leave the connections
        /// alone (ignore). By default `enforce`.
        mode: Named<Mode>,
        /// The congestion control that the fabric sees. By default `reno-ecn`.
        underlay: Named<Underlay>,
        /// What becomes of a guest that negotiates ECN itself: its connections are left alone
        /// (leave), or its marks are answered in its stead (override). By default `leave`.
        guest_ecn: Named<GuestEcn>,
        /// Reduce windows by RFC 6937 instead of at once. By default true.
        prr: bool,
        /// Take a reduction back where the peer says that nothing was lost (RFC 2883). By default
        /// true.
        undo: bool,
        /// Set PSH as a native sender of the underlay's bursts would. By default true.
        pace_push: bool,
        /// Offer and accept feedback of marked bytes between two ends under vcc. By default true.
        feedback: bool,
        /// Drop what the guest sends beyond the window that it was shown. By default false.
        police: bool,
        /// Let duplicate ACKs and window updates be sent to guests without SACK whose own timeout
        /// is far off. By default false.
        emit: bool,
        /// With `emit`: without an acknowledgement for so long, duplicate ACKs are due. By default
        /// 10ms.
        emit_after: Time<MS, MINUTE>,
        /// For `dctcp-priority`: how much the connection counts beside others, from 0 to 1, where 1
        /// is as for DCTCP. By default 1.
        priority: Beta,
        /// No window is larger.
        window_cap: Cap,
        /// No window is larger than what this rate, in bits a second, fills in a round trip.
        rate_cap: Rate,
        /// No window is smaller, where the receiver admits it. By default 1.
        window_floor_segments: Count<1, 1000>,
        /// Windows up to this size are shown exactly. By default 2M.
        window_max: Size<65_536, 1_073_741_824>,
        /// What a connection begins with (RFC 6928). By default 10.
        initial_window_segments: Count<1, 1000>,
        /// The shortest retransmission timeout that is assumed of the guest. By default 200ms.
        rto_min: Time<MS, MINUTE>,
        /// A connection that is silent for so long, 24d at most, is forgotten. By default 5d.
        idle_established: Time<MINUTE, LONGEST_IDLE>,
        /// The same, in its handshake. By default 130s.
        idle_handshake: Time<SECOND, DAY>,
        /// The same, after its end. By default 10s.
        idle_closed: Time<SECOND, DAY>,
        /// What becomes of a new connection for which the port's table has no room: it goes on
        /// untranslated (pass), or is refused (drop). By default `pass`.
        on_full: Named<OnFull>,
        /// The pool that the windows are shares of.
        pool: Name,
        /// With `pool`: how much a connection gets beside others, from 1 to 1000. By default 1.
        weight: Count<1, 1000>,
    }
);

/// Where a key can stand, if anywhere.
pub(super) fn home_of(key: &str) -> Option<String> {
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
