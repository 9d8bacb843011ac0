//! A treatment's keys, and what they mean to each other.

use vcc_engine::{Mode, OnFull, PoolShare, Treatment};

use super::pools::Pools;
use crate::file::{Located, Table, TreatmentKeys};
use crate::listing::listing;
use crate::problem::{Findings, Span};
use crate::units::{Beta, size};

/// Of a table in which something could not be read, what seems to be missing may not be.
pub(super) fn check(
    keys: &TreatmentKeys,
    is_sound: bool,
    pools: &Pools<'_>,
    findings: &mut Findings<'_>,
) -> Treatment {
    let mut treatment = treatment(keys);
    if is_sound {
        check_what_is_needed(keys, &treatment, findings);
    }
    treatment.pool = share(keys, &treatment, is_sound, pools, findings);
    if is_sound {
        check_floor(keys, &treatment, pools, findings);
    }
    if treatment.mode == Mode::Ignore {
        check_left_alone(keys, findings);
        (treatment.police, treatment.emit, treatment.pool) = (false, false, None);
        treatment.on_full = OnFull::Pass;
    }
    // A rule on trial says what it will do when it is enforced, and until then does not do it.
    if treatment.mode == Mode::Shadow {
        let mut without_effect = |span: &Span, what: &str| {
            let mode = treatment.mode;
            findings
                .warning(span, format!("{what}, but not before mode is \"enforce\": it is {mode}"));
        };
        if let Some(police) = keys.police.as_ref().filter(|police| police.value) {
            without_effect(&police.span, "data beyond the window is dropped");
            treatment.police = false;
        }
        if let Some(emit) = keys.emit.as_ref().filter(|emit| emit.value) {
            without_effect(&emit.span, "segments of our own are sent");
            treatment.emit = false;
        }
        if let Some(on_full) = keys.on_full.as_ref().filter(|key| key.value.0 == OnFull::Drop) {
            without_effect(&on_full.span, "connections without room are refused");
            treatment.on_full = OnFull::Pass;
        }
        if let (Some(pool), Some(_)) = (&keys.pool, treatment.pool.take()) {
            without_effect(&pool.span, "these connections have a share in the pool");
        }
    }
    treatment
}

fn treatment(keys: &TreatmentKeys) -> Treatment {
    fn or<T: Clone, V>(key: &Option<Located<T>>, default: V, value: impl Fn(T) -> V) -> V {
        key.as_ref().map_or(default, |located| value(located.value.clone()))
    }
    let flag = |key: &Option<Located<bool>>, default| or(key, default, |flag| flag);
    let default = Treatment::default();
    Treatment {
        mode: or(&keys.mode, default.mode, |mode| mode.0),
        underlay: or(&keys.underlay, default.underlay, |underlay| underlay.0),
        guest_ecn: or(&keys.guest_ecn, default.guest_ecn, |guest_ecn| guest_ecn.0),
        prr: flag(&keys.prr, default.prr),
        undo: flag(&keys.undo, default.undo),
        pace_push: flag(&keys.pace_push, default.pace_push),
        feedback: flag(&keys.feedback, default.feedback),
        police: flag(&keys.police, default.police),
        emit: flag(&keys.emit, default.emit),
        emit_after_us: or(&keys.emit_after, default.emit_after_us, |time| time.in_us()),
        beta_1024: or(&keys.priority, default.beta_1024, Beta::in_1024ths),
        cap_bytes: or(&keys.window_cap, None, |cap| Some(cap.0)),
        cap_bytes_per_ms: or(&keys.rate_cap, None, |rate| Some(rate.0)),
        window_max_bytes: or(&keys.window_max, default.window_max_bytes, |size| size.0),
        initial_window_segs: or(
            &keys.initial_window_segments,
            default.initial_window_segs,
            |count| count.0,
        ),
        window_floor_segs: or(&keys.window_floor_segments, default.window_floor_segs, |n| n.0),
        rto_min_us: or(&keys.rto_min, default.rto_min_us, |time| time.in_us()),
        established_idle_ms: or(&keys.idle_established, default.established_idle_ms, |time| {
            time.in_ms()
        }),
        handshake_idle_ms: or(&keys.idle_handshake, default.handshake_idle_ms, |t| t.in_ms()),
        closed_idle_ms: or(&keys.idle_closed, default.closed_idle_ms, |time| time.in_ms()),
        on_full: or(&keys.on_full, default.on_full, |on_full| on_full.0),
        pool: None,
    }
}

fn check_left_alone(keys: &TreatmentKeys, findings: &mut Findings<'_>) {
    let idle: Vec<_> = keys.written().into_iter().filter(|(key, _)| *key != "mode").collect();
    let Some((_, first)) = idle.first() else { return };
    let names: Vec<String> = idle.iter().map(|(key, _)| format!("`{key}`")).collect();
    let verb = if names.len() == 1 { "means" } else { "mean" };
    let names = listing(&names, ", ");
    findings.warning(
        first,
        format!("connections are left alone by mode \"ignore\": {names} {verb} nothing here"),
    );
}

/// Keys that mean something only beside others.
fn check_what_is_needed(keys: &TreatmentKeys, treatment: &Treatment, findings: &mut Findings<'_>) {
    let underlay = treatment.underlay;
    if let Some(priority) = keys.priority.as_ref().filter(|_| treatment.priority().is_none()) {
        findings.error(
            &priority.span,
            format!(
                "`priority` is for underlay = \"{}\"; {underlay} knows none",
                Treatment::UNDERLAY_WITH_PRIORITY
            ),
        );
    }
    if let Some(emit_after) = keys.emit_after.as_ref().filter(|_| !treatment.emit) {
        findings.error(&emit_after.span, "`emit_after` means nothing without `emit = true`");
    }
    if let Some(weight) = keys.weight.as_ref().filter(|_| keys.pool.is_none()) {
        findings.error(&weight.span, "`weight` means nothing without `pool`: a weight in which?");
    }
    if !underlay.controls() {
        for (key, span) in [
            ("pool", keys.pool.as_ref().map(|pool| &pool.span)),
            ("police", keys.police.as_ref().filter(|police| police.value).map(|p| &p.span)),
        ] {
            if let Some(span) = span {
                let why = format!("`{key}` needs a window to act on, and {underlay} imposes none");
                findings.error(span, why);
            }
        }
        for (key, span) in [
            ("window_cap", keys.window_cap.as_ref().map(|cap| &cap.span)),
            ("rate_cap", keys.rate_cap.as_ref().map(|rate| &rate.span)),
        ] {
            if let Some(span) = span {
                let why = format!("`{key}` limits a window, and {underlay} imposes none");
                findings.warning(span, why);
            }
        }
    }
}

/// The floor wins over whatever else limits a window, so what is below it never holds.
fn check_floor(
    keys: &TreatmentKeys,
    treatment: &Treatment,
    pools: &Pools<'_>,
    findings: &mut Findings<'_>,
) {
    let Some(floor) = &keys.window_floor_segments else { return };
    let floor_bytes = treatment.least_floor_bytes();
    let cap = treatment.cap_bytes.map(|bytes| ("the `window_cap`", bytes.get()));
    let pool = treatment.pool.map(|share| ("all of the pool's window", pools.window_bytes(&share)));
    for (what, limit_bytes) in [cap, pool].into_iter().flatten() {
        if limit_bytes < floor_bytes {
            findings.error(
                &floor.span,
                format!(
                    "this floor wins over {what} of {}: no window is smaller than {} segments, \
                     which are {floor_bytes} bytes even of the smallest",
                    size::display(limit_bytes),
                    floor.value.0
                ),
            );
        }
    }
}

fn share(
    keys: &TreatmentKeys,
    treatment: &Treatment,
    is_sound: bool,
    pools: &Pools<'_>,
    findings: &mut Findings<'_>,
) -> Option<PoolShare> {
    let name = keys.pool.as_ref()?;
    let pool = pools.find(&name.value.0, &name.span, findings)?;
    let weight = keys.weight.as_ref().map_or(1, |weight| weight.value.0);
    let weight = u16::try_from(weight).unwrap_or(u16::MAX);
    (is_sound && treatment.underlay.controls()).then_some(PoolShare { pool, weight })
}
