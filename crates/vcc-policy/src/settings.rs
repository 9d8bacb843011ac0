//! Keys with their values as written, and the treatment that they set.

use vcc_engine::{Act, GuestEcn, Mode, Params, Receive, Underlay};

use crate::keys::{KEYS, Key, Kind, Need, Surface, Value};
use crate::listing::listing;
use crate::problem::Severity;
use crate::treatment::Treatment;
use crate::units::{duration, size};

/// Each key at most once, in the order of the list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings(Vec<(&'static Key, Value)>);

/// Something that is wrong with the value of a key, or may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    pub key: &'static Key,
    pub severity: Severity,
    pub message: String,
}

impl Treatment {
    /// The way back: the keys whose values are not the defaults, with these values.
    pub fn changes(&self) -> impl Iterator<Item = (&'static Key, u32)> {
        KEYS.iter().filter_map(|key| {
            let number = key.get(self)?;
            (key.default() != Some(number)).then_some((key, number))
        })
    }
}

const MIGRATABLE: &str = "migratable";
const FLOOR: &str = "window_floor_segments";

impl Settings {
    /// The keys that give these parameters, of which those with their defaults are left out.
    pub fn from_params(params: Params) -> Self {
        let treatment = Treatment { params, ..Treatment::default() };
        let settings = treatment.changes().map(|(key, number)| (key, Value::Number(number)));
        Self(settings.collect())
    }

    pub fn set(&mut self, key: &'static Key, value: Value) {
        self.0.retain(|(other, _)| *other != key);
        self.0.push((key, value));
        self.0.sort_by_key(|(key, _)| KEYS.iter().position(|it| it == *key));
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(key, _)| key.name == name).map(|(_, value)| value)
    }

    pub fn number(&self, name: &str) -> Option<u32> {
        self.get(name)?.number()
    }

    pub fn pool(&self) -> Option<&str> {
        self.0.iter().find_map(|(_, value)| match value {
            Value::Pool(name) => Some(name.as_str()),
            Value::Number(_) => None,
        })
    }

    /// The treatment that the keys set, without the pool. A key that needs `mode = "enforce"` has
    /// its default in other modes, so a rule in shadow mode can have it without effect.
    pub fn treatment(&self) -> Treatment {
        let mut treatment = Treatment::default();
        for (key, value) in &self.0 {
            if let Some(number) = value.number() {
                key.set(&mut treatment, number);
            }
        }
        if treatment.mode() != Mode::Enforce {
            for key in KEYS.iter().filter(|key| key.needs_enforcement()) {
                if let Some(default) = key.default() {
                    key.set(&mut treatment, default);
                }
            }
        }
        treatment
    }

    /// Conflicts between the keys; `pool_window_bytes` is the window of their pool.
    pub fn complaints(&self, surface: Surface, pool_window_bytes: Option<u32>) -> Vec<Complaint> {
        let treatment = self.treatment();
        if treatment.mode() == Mode::Ignore {
            return self.without_effect(surface).into_iter().collect();
        }
        let mut complaints = Vec::new();
        for (key, _) in self.asked_for() {
            let unmet =
                key.needs().iter().filter_map(|it| self.unmet(key, it, surface, &treatment));
            complaints.extend(unmet);
        }
        complaints.extend(self.promised(surface));
        complaints.extend(self.floor_below_segment(surface));
        complaints.extend(self.below_the_floor(surface, pool_window_bytes));
        complaints
    }

    /// The keys that ask for something: a flag or a name may as well be set to its default.
    fn asked_for(&self) -> impl Iterator<Item = (&'static Key, &Value)> {
        self.0.iter().filter_map(|(key, value)| {
            let is_default = value.number().is_some_and(|number| key.default() == Some(number));
            let is_idle = is_default && matches!(key.kind, Kind::Flag | Kind::Name { .. });
            (!is_idle).then_some((*key, value))
        })
    }

    fn unmet(
        &self,
        key: &'static Key,
        need: &Need,
        surface: Surface,
        treatment: &Treatment,
    ) -> Option<Complaint> {
        let spelt = surface.key(key.name);
        let (severity, message) = match need {
            Need::Underlay { has, .. } if has(treatment.underlay()) => return None,
            Need::Underlay { has, what, severity } => {
                let known: Vec<Underlay> = Underlay::all().filter(|it| has(*it)).collect();
                let underlay = treatment.underlay();
                let message = format!(
                    "{spelt} needs an underlay that {what} ({}), not {underlay}",
                    listing(&known, ", ")
                );
                (*severity, message)
            }
            Need::Key(needed) if self.asked_for().any(|(key, _)| key.name == *needed) => {
                return None;
            }
            Need::Key(needed) => {
                let is_flag = Key::named(needed).is_some_and(|it| matches!(it.kind, Kind::Flag));
                let needed =
                    if is_flag { surface.setting(needed, "true") } else { surface.key(needed) };
                (Severity::Error, format!("{spelt} has no effect without {needed}"))
            }
            Need::Value { key: needed, value } => {
                let needed = Key::named(needed).expect("a need names a key");
                if needed.kind.parse(value).ok() == self.number(needed.name) {
                    return None;
                }
                let setting = surface.setting(needed.name, &format!("\"{value}\""));
                (Severity::Error, format!("{spelt} has no effect without {setting}"))
            }
            Need::Enforce(_) if treatment.mode() == Mode::Enforce => return None,
            Need::Enforce(severity) => {
                let enforce = surface.setting("mode", "\"enforce\"");
                let mode = treatment.mode();
                let message =
                    format!("{spelt} takes effect only with {enforce}; the mode is {mode}");
                (*severity, message)
            }
        };
        Some(Complaint { key, severity, message })
    }

    /// Valid settings that may not be what was meant.
    pub fn warnings(&self, surface: Surface) -> impl Iterator<Item = Complaint> {
        let warnings =
            [Self::escape, Self::blurred, Self::unmarked, Self::too_late, Self::below_a_segment];
        warnings.into_iter().filter_map(move |warning| warning(self, surface))
    }

    /// Data acknowledged for another end needs the buffer that holds it, so a guest that may continue without
    /// vcc gets no such promise.
    fn promised(&self, surface: Surface) -> Option<Complaint> {
        let params = self.treatment().params.0;
        let promises = [
            (params.act == Act::Split.number(), surface.setting("act", "\"split\"")),
            (params.receive == Receive::Ring.number(), surface.setting("receive", "\"ring\"")),
            (params.receive == Receive::Buffer.number(), surface.setting("receive", "\"buffer\"")),
            (params.receive == Receive::Accept.number(), surface.setting("receive", "\"accept\"")),
        ];
        let (_, promise) = promises.into_iter().find(|(promises, _)| *promises)?;
        if params.migratable == 0 {
            return None;
        }
        let migratable = surface.setting(MIGRATABLE, "true");
        let message = format!(
            "{migratable} and {promise} exclude each other: data that vcc has acknowledged needs its buffer"
        );
        Some(Complaint { key: Key::named(MIGRATABLE)?, severity: Severity::Error, message })
    }

    /// Guests that may continue without vcc get no ECN, which some underlays need (`brings_ecn` in
    /// engine/treatment.h).
    fn unmarked(&self, surface: Surface) -> Option<Complaint> {
        let treatment = self.treatment();
        let underlay = treatment.underlay();
        if treatment.params.0.migratable == 0 || !underlay.wants_ecn() {
            return None;
        }
        let migratable = surface.setting(MIGRATABLE, "true");
        let message = format!(
            "with {migratable}, {underlay} responds to losses alone: marks would be unanswered for a guest that \
             continues without vcc"
        );
        Some(Complaint { key: Key::named(MIGRATABLE)?, severity: Severity::Warning, message })
    }

    /// An underlay that is led by delay, whose samples are blurred: without `delays` the engine cannot
    /// recognise the ACKs that their receiver has delayed (`is_path_sample` in engine/path.h).
    fn blurred(&self, surface: Surface) -> Option<Complaint> {
        let treatment = self.treatment();
        let underlay = treatment.underlay();
        let measures = treatment.params.0.delays != 0 || treatment.mode() == Mode::Ignore;
        if measures || !underlay.heeds_delay() {
            return None;
        }
        const DELAYS: &str = "delays";
        let delays = surface.setting(DELAYS, "false");
        let message = format!(
            "with {delays}, {underlay} counts the time for which a receiver delays its ACKs as delay of \
             the path, and sends too slowly: set {}",
            surface.setting(DELAYS, "true")
        );
        Some(Complaint { key: Key::named(DELAYS)?, severity: Severity::Warning, message })
    }

    /// Duplicate ACKs that are never due: by then the guest counts as timed out (`prods` in
    /// engine/emit.h).
    fn too_late(&self, surface: Surface) -> Option<Complaint> {
        const EMIT_AFTER: &str = "emit_after";
        const RTO_MIN: &str = "rto_min";
        let params = self.treatment().params.0;
        if params.emit == 0 || params.emit_after_us < params.rto_min_us {
            return None;
        }
        let time = |name, time_us: u32| {
            surface.setting(name, &format!("\"{}\"", duration::display(time_us.into())))
        };
        let emit_after = time(EMIT_AFTER, params.emit_after_us);
        let rto_min = time(RTO_MIN, params.rto_min_us);
        let message = format!(
            "{emit_after} is too late: guests are assumed to have timed out by then, with {rto_min}, and \
             no duplicate ACK is sent"
        );
        let name = if self.get(EMIT_AFTER).is_some() { EMIT_AFTER } else { RTO_MIN };
        Some(Complaint { key: Key::named(name)?, severity: Severity::Warning, message })
    }

    /// A cap that holds no full segment of Ethernet: the window is at least one (`cap_segs` in
    /// engine/window_cap.h).
    fn below_a_segment(&self, surface: Surface) -> Option<Complaint> {
        const WINDOW_CAP: &str = "window_cap";
        const SEGMENT_BYTES: u32 = 1460;
        let cap_bytes = self.number(WINDOW_CAP).filter(|bytes| *bytes < SEGMENT_BYTES)?;
        let cap = surface.setting(WINDOW_CAP, &cap_bytes.to_string());
        let message = format!(
            "{cap} is less than a segment of Ethernet, up to {SEGMENT_BYTES} bytes: windows are at least one \
             segment"
        );
        Some(Complaint { key: Key::named(WINDOW_CAP)?, severity: Severity::Warning, message })
    }

    /// A warning about limits from which a guest escapes by negotiating ECN itself: the engine leaves
    /// its connections alone (`leaves_alone` in engine/treatment.h).
    fn escape(&self, surface: Surface) -> Option<Complaint> {
        let treatment = self.treatment();
        let binds = treatment.mode() == Mode::Enforce && treatment.underlay().controls();
        if !binds || treatment.params.0.guest_ecn != GuestEcn::Leave.number() {
            return None;
        }
        let limits = self.asked_for().map(|(key, _)| key).filter(|key| key.is_limit());
        let limits: Vec<&'static Key> = limits.collect();
        let key = *limits.first()?;
        let names: Vec<String> = limits.iter().map(|key| surface.key(key.name)).collect();
        let verb = if names.len() == 1 { "does" } else { "do" };
        let names = listing(&names, ", ");
        let bound = surface.setting("guest_ecn", "\"override\"");
        let message = format!(
            "{names} {verb} not bind a guest that negotiates ECN itself: its connections are left \
             alone without {bound}"
        );
        Some(Complaint { key, severity: Severity::Warning, message })
    }

    /// Under `mode = "ignore"`.
    fn without_effect(&self, surface: Surface) -> Option<Complaint> {
        let keys = self.0.iter().map(|(key, _)| *key);
        let idle: Vec<&'static Key> = keys.filter(|key| key.name != "mode").collect();
        let key = *idle.first()?;
        let names: Vec<String> = idle.iter().map(|key| surface.key(key.name)).collect();
        let verb = if names.len() == 1 { "has" } else { "have" };
        let ignore = surface.setting("mode", "\"ignore\"");
        let names = listing(&names, ", ");
        let message = format!("{ignore} leaves connections alone: {names} {verb} no effect");
        Some(Complaint { key, severity: Severity::Warning, message })
    }

    /// A window below one segment is kept by sending less often, by an underlay that knows such windows.
    fn floor_below_segment(&self, surface: Surface) -> Option<Complaint> {
        let underlay = self.treatment().underlay();
        if self.number(FLOOR) != Some(0) || underlay.has_fractions() {
            return None;
        }
        let known: Vec<Underlay> = Underlay::all().filter(|it| it.has_fractions()).collect();
        let message = format!(
            "{} needs an underlay that has windows below one segment ({}), not {underlay}",
            surface.setting(FLOOR, "0"),
            listing(&known, ", ")
        );
        Some(Complaint { key: Key::named(FLOOR)?, severity: Severity::Error, message })
    }

    /// Limits that never hold because the floor takes precedence.
    fn below_the_floor(
        &self,
        surface: Surface,
        pool_window_bytes: Option<u32>,
    ) -> impl Iterator<Item = Complaint> {
        /// The default MSS for IPv4 (RFC 9293, 3.7.1), which every host can receive; segments are
        /// hardly ever smaller.
        const SMALLEST_SEGMENT_BYTES: u32 = 536;
        let floor_segs = self.number(FLOOR).unwrap_or(0);
        let floor_bytes = floor_segs.saturating_mul(SMALLEST_SEGMENT_BYTES);
        let cap = self.number("window_cap").map(|bytes| {
            (surface.setting("window_cap", &format!("\"{}\"", size::display(bytes))), bytes)
        });
        let pool = pool_window_bytes
            .map(|bytes| (format!("the pool's window of {}", size::display(bytes)), bytes));
        let limits = [cap, pool].into_iter().flatten();
        let never_hold = limits.filter(move |(_, bytes)| *bytes < floor_bytes);
        never_hold.filter_map(move |(limit, _)| {
            let floor = surface.setting(FLOOR, &floor_segs.to_string());
            let message = format!("{floor}, at least {floor_bytes} bytes, exceeds {limit}");
            Some(Complaint { key: Key::named(FLOOR)?, severity: Severity::Error, message })
        })
    }
}
