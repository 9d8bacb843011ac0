//! The way back: from a treatment to lines of a file.

use vcc_engine::Treatment;

use crate::units::{BytesPerMs, duration, size};

/// Keys and values of what differs from the defaults, as the file would say it; mode, underlay
/// and pool left out.
pub fn settings(treatment: &Treatment) -> Vec<(&'static str, String)> {
    let default = Treatment::default();
    let mut settings = Vec::new();
    let mut say = |differs: bool, key: &'static str, value: String| {
        if differs {
            settings.push((key, value));
        }
    };
    say(
        treatment.guest_ecn != default.guest_ecn,
        "guest_ecn",
        format!("\"{}\"", treatment.guest_ecn),
    );
    say(treatment.on_full != default.on_full, "on_full", format!("\"{}\"", treatment.on_full));
    for (key, value, default) in [
        ("prr", treatment.prr, default.prr),
        ("undo", treatment.undo, default.undo),
        ("pace_push", treatment.pace_push, default.pace_push),
        ("feedback", treatment.feedback, default.feedback),
        ("police", treatment.police, default.police),
        ("emit", treatment.emit, default.emit),
    ] {
        say(value != default, key, value.to_string());
    }
    let priority = treatment.priority().unwrap_or(1.0);
    say(treatment.beta_1024 != default.beta_1024, "priority", format!("{priority}"));
    if let Some(bytes) = treatment.cap_bytes {
        say(true, "window_cap", format!("\"{}\"", size::display(bytes.get())));
    }
    if let Some(rate) = treatment.cap_bytes_per_ms {
        say(true, "rate_cap", format!("\"{}\"", BytesPerMs::from(rate)));
    }
    for (key, value, default) in [
        ("window_floor_segments", treatment.window_floor_segs, default.window_floor_segs),
        ("initial_window_segments", treatment.initial_window_segs, default.initial_window_segs),
    ] {
        say(value != default, key, value.to_string());
    }
    let window_max = size::display(treatment.window_max_bytes);
    let differs = treatment.window_max_bytes != default.window_max_bytes;
    say(differs, "window_max", format!("\"{window_max}\""));
    for (key, value, default, unit_us) in [
        ("emit_after", treatment.emit_after_us, default.emit_after_us, 1),
        ("rto_min", treatment.rto_min_us, default.rto_min_us, 1),
        ("idle_established", treatment.established_idle_ms, default.established_idle_ms, 1000),
        ("idle_handshake", treatment.handshake_idle_ms, default.handshake_idle_ms, 1000),
        ("idle_closed", treatment.closed_idle_ms, default.closed_idle_ms, 1000),
    ] {
        let time = duration::display(u64::from(value) * unit_us);
        say(value != default, key, format!("\"{time}\""));
    }
    settings
}
