//! Why a connection falls under a rule.

use std::fmt;

use vcc_engine::{Mode, Treatment};

use crate::connection::Connection;
use crate::policy::Policy;
use crate::settings::settings;
use crate::units::{BytesPerMs, duration, size};

/// A rule that came before the one that matched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Miss {
    pub name: String,
    /// The conditions that did not hold: what the connection is, and what was wanted.
    pub reasons: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    pub misses: Vec<Miss>,
    /// The index of the rule that matches.
    pub rule: usize,
    pub name: String,
    pub conditions: String,
    /// What it does to the connection, in words.
    pub effects: Vec<String>,
}

impl Policy {
    pub fn explain(&self, c: &Connection) -> Explanation {
        let matched = self.judge(c);
        let misses = self.rules[..matched]
            .iter()
            .map(|rule| Miss { name: rule.name.clone(), reasons: rule.conditions.failures(c) })
            .collect();
        let rule = &self.rules[matched];
        Explanation {
            misses,
            rule: matched,
            name: rule.name.clone(),
            conditions: rule.to_string(),
            effects: self.effects(&rule.treatment),
        }
    }

    fn effects(&self, treatment: &Treatment) -> Vec<String> {
        let mut effects = Vec::new();
        let underlay = treatment.underlay;
        effects.push(match treatment.mode {
            Mode::Ignore | Mode::Drain => {
                return vec!["it passes untouched, and is not tracked".to_owned()];
            }
            Mode::Shadow => format!("{underlay} is computed for it, and nothing is changed"),
            Mode::Enforce if underlay.controls() => {
                format!("the fabric sees {underlay}, whatever the guest's own congestion control")
            }
            Mode::Enforce => format!("{underlay}: no window is imposed on it"),
        });
        if let Some(share) = treatment.pool {
            let pool = &self.pools[share.pool];
            effects.push(format!(
                "its window is a share, of weight {}, of the {} of pool `{}`",
                share.weight,
                size::display(pool.window_bytes),
                pool.name
            ));
        }
        if let Some(bytes) = treatment.cap_bytes {
            effects.push(format!("its window is at most {}", size::display(bytes.get())));
        }
        if let Some(rate) = treatment.cap_bytes_per_ms {
            let rate = BytesPerMs::from(rate);
            effects.push(format!("its window is at most what {rate}bit/s fill in a round trip"));
        }
        if treatment.police {
            effects.push("what the guest sends beyond its window is dropped".to_owned());
        }
        if treatment.emit {
            let after = duration::display(treatment.emit_after_us.into());
            effects.push(format!("after {after} without an ACK it gets duplicate ACKs"));
        }
        const SAID: [&str; 5] = ["window_cap", "rate_cap", "police", "emit", "emit_after"];
        let unsaid = settings(treatment).into_iter().filter(|(key, _)| !SAID.contains(key));
        let settings: Vec<String> = unsaid.map(|(key, value)| format!("{key} = {value}")).collect();
        if !settings.is_empty() {
            effects.push(format!("other than by default: {}", settings.join(", ")));
        }
        effects
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, miss) in self.misses.iter().enumerate() {
            writeln!(f, "rule {} `{}` does not match:", place + 1, miss.name)?;
            for reason in &miss.reasons {
                writeln!(f, "    {reason}")?;
            }
        }
        writeln!(f, "rule {} `{}` matches ({}):", self.rule + 1, self.name, self.conditions)?;
        for effect in &self.effects {
            writeln!(f, "    {effect}")?;
        }
        Ok(())
    }
}
