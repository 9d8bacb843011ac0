//! Why a rule is that of a connection.

use std::fmt;

use vcc_engine::Mode;

use crate::connection::Connection;
use crate::keys::Surface;
use crate::policy::Policy;
use crate::pool::Pool;
use crate::treatment::Treatment;
use crate::units::size;

/// A rule that came before the one that matched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Miss {
    pub name: String,
    /// The conditions that the connection does not meet.
    pub reasons: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    pub misses: Vec<Miss>,
    /// The index of the rule that matches.
    pub rule: usize,
    pub name: String,
    /// None where only the treatment is known.
    pub conditions: Option<String>,
    /// The rule's treatment, in words.
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
            conditions: Some(rule.to_string()),
            effects: effects(&rule.treatment, rule.treatment.pool.map(|pool| &self.pools[pool])),
        }
    }
}

impl Explanation {
    /// Of a rule with this place and name, of which only the treatment is known.
    pub fn of_treatment(
        (rule, name): (usize, String),
        treatment: &Treatment,
        pool: Option<&Pool>,
        misses: Vec<Miss>,
    ) -> Self {
        Self { misses, rule, name, conditions: None, effects: effects(treatment, pool) }
    }
}

/// `pool`: that of the treatment.
fn effects(treatment: &Treatment, pool: Option<&Pool>) -> Vec<String> {
    let underlay = treatment.underlay();
    let mut effects = vec![match treatment.mode() {
        Mode::Ignore | Mode::Drain => {
            return vec!["it passes untouched, and is not tracked".to_owned()];
        }
        Mode::Shadow => format!("{underlay} is computed for it, and nothing is changed"),
        Mode::Enforce if underlay.controls() => {
            format!("the fabric sees {underlay}, under any congestion control of the guest")
        }
        Mode::Enforce => format!("{underlay}: its window is not changed"),
    }];
    if let Some(Pool { name, window_bytes }) = pool {
        effects.push(format!(
            "its window is a share of the {} of pool `{name}`, with weight {}",
            size::display(*window_bytes),
            treatment.weight
        ));
    }
    let named = ["mode", "underlay", "weight"];
    let changes = treatment.changes().filter(|(key, _)| !named.contains(&key.name));
    let (with_effect, others): (Vec<_>, Vec<_>) =
        changes.partition(|(key, number)| key.effect(*number).is_some());
    effects.extend(with_effect.into_iter().filter_map(|(key, number)| key.effect(number)));
    let settings: Vec<String> = others
        .into_iter()
        .map(|(key, number)| Surface::File.setting(key.name, &key.kind.toml(number)))
        .collect();
    if !settings.is_empty() {
        effects.push(format!("settings that are not the default: {}", settings.join(", ")));
    }
    effects
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, miss) in self.misses.iter().enumerate() {
            writeln!(f, "rule {} `{}` does not match:", place + 1, miss.name)?;
            for reason in &miss.reasons {
                writeln!(f, "    {reason}")?;
            }
        }
        let conditions = self.conditions.as_ref().map(|it| format!(" ({it})")).unwrap_or_default();
        writeln!(f, "rule {} `{}` matches{conditions}:", self.rule + 1, self.name)?;
        for effect in &self.effects {
            writeln!(f, "    {effect}")?;
        }
        Ok(())
    }
}
