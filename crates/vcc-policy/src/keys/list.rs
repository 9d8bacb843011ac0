//! The list of keys, in the order of documentation and help.

use vcc_engine::{Act, GuestEcn, Mode, OnFull, OnUnknown, Receive, Underlay};

use super::{Field, Key, Kind, Need, Scope};
use crate::problem::Severity;

const MS_US: u64 = 1_000;
const SECOND_US: u64 = 1_000 * MS_US;
const MINUTE_US: u64 = 60 * SECOND_US;
const DAY_US: u64 = 24 * 60 * MINUTE_US;
/// The engine takes a silence of 2^31 ms, which is 24.8 days, for a segment from the future: such a
/// connection would never be forgotten.
const LONGEST_IDLE_US: u64 = 24 * DAY_US;

/// A field of the engine's parameters.
macro_rules! engine {
    ($field:ident) => {
        Some(Field {
            get: |treatment| treatment.params.0.$field.into(),
            set: |treatment, number| {
                treatment.params.0.$field = number.try_into().expect("within the key's bounds");
            },
        })
    };
}

const WEIGHT: Option<Field> = Some(Field {
    get: |treatment| treatment.weight.into(),
    set: |treatment, number| {
        treatment.weight = number.try_into().expect("within the key's bounds");
    },
});

const fn key(name: &'static str, kind: Kind, field: Option<Field>, help: &'static str) -> Key {
    Key {
        name,
        kind,
        help,
        field,
        needs: &[],
        effect: None,
        is_limit: false,
        has_column: false,
        scope: Scope::Everywhere,
        formerly: &[],
    }
}

/// The underlay's window is enforced.
const fn window(severity: Severity) -> Need {
    Need::Underlay { has: Underlay::controls, what: "controls the window", severity }
}

/// On trial in shadow mode, a rule may have it all the same.
const ENFORCED: Need = Need::Enforce(Severity::Warning);

const PRIORITY: Need = Need::Underlay {
    has: Underlay::heeds_priority,
    what: "knows priorities",
    severity: Severity::Error,
};

const UNDERLAYS: Kind = Kind::Name {
    noun: "an underlay",
    values: || Underlay::all().map(|it| (it.name(), it.number().into())).collect(),
};

/// Without `drain`: rules do not drain, ports do.
const MODES: Kind = Kind::Name {
    noun: "a mode",
    values: || {
        let modes = [Mode::Enforce, Mode::Shadow, Mode::Ignore];
        modes.iter().map(|it| (it.name(), it.number().into())).collect()
    },
};

const GUEST_ECN: Kind = Kind::Name {
    noun: "a treatment of a guest's ECN",
    values: || GuestEcn::ALL.iter().map(|it| (it.name(), it.number().into())).collect(),
};

const ON_FULL: Kind = Kind::Name {
    noun: "a treatment of connections beyond a full table",
    values: || OnFull::ALL.iter().map(|it| (it.name(), it.number().into())).collect(),
};

const ON_UNKNOWN: Kind = Kind::Name {
    noun: "a treatment of data whose connection is unknown",
    values: || OnUnknown::ALL.iter().map(|it| (it.name(), it.number().into())).collect(),
};

const ACTS: Kind = Kind::Name {
    noun: "a way to act on the guest",
    values: || Act::ALL.iter().map(|it| (it.name(), it.number().into())).collect(),
};

const RECEIVES: Kind = Kind::Name {
    noun: "a way to receive",
    values: || Receive::ALL.iter().map(|it| (it.name(), it.number().into())).collect(),
};

const CAP: Kind = Kind::Size { min: 1, max: u32::MAX };
const ALPHA: Kind = Kind::Count { min: 1, max: 64 };
const SEGMENTS: Kind = Kind::Count { min: 1, max: 1000 };

/// A time that the engine counts in microseconds.
const fn us(min_us: u64, max_us: u64) -> Kind {
    Kind::Time { unit_us: 1, min_us, max_us }
}

/// A time that the engine counts in milliseconds.
const fn ms(min_us: u64, max_us: u64) -> Kind {
    Kind::Time { unit_us: MS_US, min_us, max_us }
}

pub static KEYS: &[Key] = &[
    Key {
        has_column: true,
        formerly: &[("shadow", "\"shadow\"")],
        ..key(
            "mode",
            MODES,
            engine!(mode),
            "Enforce the underlay (enforce); compute it and change nothing (shadow); leave \
             connections alone (ignore).",
        )
    },
    Key {
        has_column: true,
        ..key(
            "underlay",
            UNDERLAYS,
            engine!(underlay),
            "The [congestion control](congestion-control.md) that the fabric sees.",
        )
    },
    Key {
        needs: &[window(Severity::Error), Need::Enforce(Severity::Error)],
        effect: Some("how the window acts on it: {}"),
        has_column: true,
        scope: Scope::Buffers,
        ..key(
            "act",
            ACTS,
            engine!(act),
            "At a port with a [buffer](driver-domain.md): show the guest the underlay's window \
             (window); hold what the guest sends and release it by the window (hold); or \
             acknowledge what the guest sends, and deliver it by the window (split).",
        )
    },
    Key {
        needs: &[Need::Value { key: "act", value: "hold" }, Need::Enforce(Severity::Error)],
        effect: Some("losses of held data are repaired from the buffer"),
        scope: Scope::Buffers,
        ..key(
            "retransmit",
            Kind::Flag,
            engine!(retransmit),
            "With `act = \"hold\"`: [repair losses](driver-domain.md#retransmission) of what was \
             held from the buffer, so that they need no turn of the guest.",
        )
    },
    Key {
        needs: &[Need::Key("act"), Need::Enforce(Severity::Error)],
        scope: Scope::Buffers,
        ..key(
            "buffer_alpha",
            ALPHA,
            engine!(buffer_alpha),
            "With `act`, at a port with `buffer_policy = \"fair\"` or `\"prioritized\"`: a connection \
             may use this many times the free part of the [buffer](driver-domain.md#the-buffer).",
        )
    },
    Key {
        needs: &[Need::Key("act"), Need::Enforce(Severity::Error)],
        scope: Scope::Buffers,
        ..key(
            "buffer_alpha_short",
            ALPHA,
            engine!(buffer_alpha_short),
            "The same for connections with a short round-trip time, at a port with \
             `buffer_policy = \"prioritized\"`.",
        )
    },
    Key {
        needs: &[Need::Key("act"), Need::Enforce(Severity::Error)],
        scope: Scope::Buffers,
        ..key(
            "buffer_short_rtt",
            us(1, MINUTE_US),
            engine!(buffer_short_rtt_us),
            "The smoothed round-trip time below which a connection has `buffer_alpha_short`.",
        )
    },
    Key {
        needs: &[Need::Enforce(Severity::Error)],
        effect: Some("arriving data is acknowledged for a guest that is not running: by its {}"),
        scope: Scope::Buffers,
        formerly: &[("snoop", "\"ring\"")],
        ..key(
            "receive",
            RECEIVES,
            engine!(receive),
            "At a port with a buffer, what the port acknowledges for the guest. guest: nothing. ring: \
             data in the guest's [receive ring](driver-domain.md#snoop), so that the sender need not \
             wait until the guest runs. buffer: also data in the port's own buffer, beyond the guest's \
             window. accept: also [SYNs](driver-domain.md#accept) like those that the guest has \
             answered before.",
        )
    },
    Key {
        needs: &[window(Severity::Error), ENFORCED],
        is_limit: true,
        has_column: true,
        scope: Scope::Policies,
        ..key("pool", Kind::Pool, None, "The [pool](#pools-pools) whose window connections share.")
    },
    Key {
        needs: &[Need::Key("pool")],
        scope: Scope::Policies,
        ..key(
            "weight",
            SEGMENTS,
            WEIGHT,
            "With `pool`: the weight of each connection among those of the pool.",
        )
    },
    Key {
        needs: &[window(Severity::Warning)],
        effect: Some("its window is at most {}"),
        is_limit: true,
        has_column: true,
        formerly: &[("cap", ""), ("cap_bytes", "")],
        ..key(
            "window_cap",
            CAP,
            engine!(window_cap_bytes),
            "The largest [window](enforcement.md) of a connection.",
        )
    },
    Key {
        needs: &[window(Severity::Warning)],
        effect: Some("its window is at most {}bit/s times its RTT"),
        is_limit: true,
        has_column: true,
        formerly: &[("cap_rate", ""), ("cap_mbps", "")],
        ..key(
            "rate_cap",
            Kind::Rate,
            engine!(rate_cap_bytes_per_ms),
            "The largest window of a connection, as a rate in bit/s: what it fills in a round \
             trip.",
        )
    },
    Key {
        needs: &[window(Severity::Error), ENFORCED],
        effect: Some("data that the guest sends beyond its window is dropped"),
        is_limit: true,
        has_column: true,
        ..key(
            "police",
            Kind::Flag,
            engine!(police),
            "[Drop](enforcement.md) data that a guest sends beyond the window that it \
             was shown.",
        )
    },
    Key {
        needs: &[Need::Key("police")],
        ..key(
            "on_unknown",
            ON_UNKNOWN,
            engine!(on_unknown),
            "With `police`: data that a guest sends on a connection which the port \
             [does not know](enforcement.md#unknown-connections) is dropped once the grace is over \
             (drop), or passes (pass).",
        )
    },
    Key {
        needs: &[Need::Key("police")],
        ..key(
            "unknown_grace",
            Kind::Time { unit_us: SECOND_US, min_us: 0, max_us: LONGEST_IDLE_US },
            engine!(unknown_grace_s),
            "With `police` and `on_unknown = \"drop\"`: the time after vcc is attached to the port, or \
             after the rule began to police, in which such data still passes.",
        )
    },
    Key {
        needs: &[Need::Key("police"), ENFORCED],
        effect: Some("all connections of its guest together send at most {}bit/s"),
        is_limit: true,
        ..key(
            "guest_rate_cap",
            Kind::Rate,
            engine!(guest_rate_cap_bytes_per_ms),
            "With `police`: the [rate](enforcement.md#a-cap-of-all-connections---guest-rate-cap) in \
             bit/s of the data that all connections of a guest send together. What exceeds it is \
             dropped; under `hold` and `split` it waits.",
        )
    },
    Key {
        needs: &[PRIORITY],
        formerly: &[("beta", "")],
        ..key(
            "priority",
            Kind::Fraction,
            engine!(beta_1024),
            "With an underlay that knows [priorities](enforcement.md): the smaller, \
             the more a connection yields to others; at 1 it behaves as DCTCP.",
        )
    },
    Key {
        has_column: true,
        formerly: &[("override_guest_ecn", "\"override\"")],
        ..key(
            "guest_ecn",
            GUEST_ECN,
            engine!(guest_ecn),
            "A guest that negotiates ECN itself: leave its connections alone (leave), or answer \
             marks for it (override).",
        )
    },
    Key {
        formerly: &[("no_feedback", "false")],
        ..key(
            "feedback",
            Kind::Flag,
            engine!(feedback),
            "Offer and accept [feedback](feedback.md) of marked bytes with a peer that is under \
             vcc too.",
        )
    },
    key(
        "accecn",
        Kind::Flag,
        engine!(accecn),
        "Where vcc negotiates ECN, ask for [Accurate ECN](accecn.md) (RFC 9768) and accept it, so \
         that a peer without vcc counts marks.",
    ),
    Key {
        effect: Some("a guest may run without vcc after a migration"),
        ..key(
            "migratable",
            Kind::Flag,
            engine!(migratable),
            "Promise [nothing that needs vcc](migration.md#to-hosts-without-vcc) after the handshake, \
             for guests that migrate to hosts without it: no ECN in the name of a guest, and no \
             window scale but the peer's.",
        )
    },
    Key {
        needs: &[ENFORCED],
        effect: Some("a guest without SACK gets duplicate ACKs and window updates"),
        has_column: true,
        ..key(
            "emit",
            Kind::Flag,
            engine!(emit),
            "Send [duplicate ACKs and window updates](enforcement.md) to \
             guests without SACK that would wait for their retransmission timeout.",
        )
    },
    Key {
        needs: &[Need::Key("emit")],
        ..key(
            "emit_after",
            us(MS_US, MINUTE_US),
            engine!(emit_after_us),
            "With `emit`: the time without an ACK, beyond the round-trip time, after which \
             duplicate ACKs are due. Less than `rto_min`, or none are sent.",
        )
    },
    Key {
        formerly: &[("no_prr", "false")],
        ..key(
            "prr",
            Kind::Flag,
            engine!(prr),
            "Reduce windows by PRR (RFC 6937) instead of at once.",
        )
    },
    Key {
        formerly: &[("no_undo", "false")],
        ..key(
            "undo",
            Kind::Flag,
            engine!(undo),
            "Undo a reduction when DSACK (RFC 2883) shows that it was spurious.",
        )
    },
    Key {
        formerly: &[("no_pace_push", "false")],
        ..key(
            "pace_push",
            Kind::Flag,
            engine!(pace_push),
            "Set PSH where a native sender with the underlay's window would.",
        )
    },
    key(
        "delays",
        Kind::Flag,
        engine!(delays),
        "Measure whether connections [wait for the fabric or for the guest](seeing.md#the-network-or-the-guest).",
    ),
    Key {
        has_column: true,
        ..key(
            "window_max",
            Kind::Size { min: 1 << 16, max: 1 << 30 },
            engine!(window_max_bytes),
            "The largest window that can be shown in whole segments.",
        )
    },
    Key {
        formerly: &[("floor", ""), ("floor_segs", "")],
        ..key(
            "window_floor_segments",
            Kind::Count { min: 0, max: 1000 },
            engine!(window_floor_segs),
            "The smallest window that a guest is shown, in segments, where the receiver offers as \
             much. It takes precedence over caps and the pool. 0: the underlay's window may be \
             [below one segment](congestion-control.md#below-one-segment); a device then needs \
             the queueing discipline `fq`.",
        )
    },
    key(
        "initial_window_segments",
        SEGMENTS,
        engine!(initial_window_segs),
        "The initial window, in segments (RFC 6928).",
    ),
    key(
        "rto_min",
        us(MS_US, MINUTE_US),
        engine!(rto_min_us),
        "The minimum retransmission timeout that is assumed of guests.",
    ),
    Key {
        needs: &[Need::Underlay {
            has: Underlay::heeds_target,
            what: "has a target of the round-trip time",
            severity: Severity::Error,
        }],
        ..key(
            "rtt_target",
            Kind::Time { unit_us: 1, min_us: 0, max_us: MINUTE_US },
            engine!(rtt_target_us),
            "The target of the round-trip time, for an underlay that has one, such as \
             [Swift](congestion-control.md#led-by-delay). If a connection's minimum is more than four \
             times this, vcc uses 1.25 times the minimum instead.",
        )
    },
    key(
        "idle_established",
        ms(MINUTE_US, LONGEST_IDLE_US),
        engine!(idle_established_ms),
        "The time without a segment after which an established connection is forgotten.",
    ),
    key(
        "idle_half_closed",
        ms(MINUTE_US, LONGEST_IDLE_US),
        engine!(idle_half_closed_ms),
        "The time without a segment after which a half-closed connection is forgotten; \
         `idle_established` applies if it is shorter.",
    ),
    key(
        "idle_handshake",
        ms(SECOND_US, DAY_US),
        engine!(idle_handshake_ms),
        "The time without a segment after which a handshake is forgotten.",
    ),
    key(
        "idle_closed",
        ms(SECOND_US, DAY_US),
        engine!(idle_closed_ms),
        "The time without a segment after which a closed connection is forgotten.",
    ),
    Key {
        needs: &[ENFORCED],
        ..key(
            "on_full",
            ON_FULL,
            engine!(on_full),
            "A new connection for which the port's [table](enforcement.md) has no \
             room: it passes untranslated (pass), or its SYN is dropped (drop).",
        )
    },
];
