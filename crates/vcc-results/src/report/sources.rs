//! The sources that a measurement depended on, and which of them have changed since.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A short digest of each part of the sources, by the part's name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Sources(BTreeMap<String, String>);

impl<N: Into<String>, D: Into<String>> FromIterator<(N, D)> for Sources {
    fn from_iter<I: IntoIterator<Item = (N, D)>>(parts: I) -> Self {
        Self(parts.into_iter().map(|(name, digest)| (name.into(), digest.into())).collect())
    }
}

impl Sources {
    /// Those of a result that was written before results named their sources.
    pub fn are_unknown(&self) -> bool {
        self.0.is_empty()
    }

    pub fn add(&mut self, part: &str, digest: String) {
        self.0.insert(part.into(), digest);
    }

    pub fn parts(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

/// A result against the sources as they are now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Age {
    Current,
    /// These parts differ.
    Stale(BTreeSet<String>),
    /// The result does not name its sources.
    Unknown,
}

impl Age {
    /// A part that only one of them has differs: what depends on it has changed.
    pub fn between(then: &Sources, now: &Sources) -> Self {
        if then.are_unknown() {
            return Self::Unknown;
        }
        let names = then.0.keys().chain(now.0.keys());
        let differs = |name: &&String| then.0.get(*name) != now.0.get(*name);
        let parts: BTreeSet<String> = names.filter(differs).cloned().collect();
        if parts.is_empty() { Self::Current } else { Self::Stale(parts) }
    }
}

impl fmt::Display for Age {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Current => out.write_str("current"),
            Self::Stale(parts) => {
                let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
                write!(out, "stale ({})", parts.join(", "))
            }
            Self::Unknown => out.write_str("stale (of an older version, without sources)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(parts: &[(&str, &str)]) -> Sources {
        parts.iter().copied().collect()
    }

    #[test]
    fn a_result_is_as_old_as_the_parts_that_differ() {
        let now = sources(&[("engine", "1a"), ("vcc-domain", "2b")]);
        assert_eq!(Age::between(&now, &now).to_string(), "current");
        let older = sources(&[("engine", "1a"), ("vcc-domain", "2a")]);
        assert_eq!(Age::between(&older, &now).to_string(), "stale (vcc-domain)");
        let other = sources(&[("engine", "10"), ("vcc-uml", "3c")]);
        assert_eq!(Age::between(&other, &now).to_string(), "stale (engine, vcc-domain, vcc-uml)");
        let unknown = Age::between(&Sources::default(), &now).to_string();
        assert_eq!(unknown, "stale (of an older version, without sources)");
    }
}
