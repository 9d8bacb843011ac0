//! The keys that say how connections are treated.
//!
//! Each is one entry of [`KEYS`]. From there follow the reading of policy files, their schema,
//! `vcc policy show` and `explain`, the options of `vcc attach`, the `vcc` table of the lab's
//! files and the table of keys in docs/policy.md.

mod kind;
mod list;

use vcc_engine::Underlay;

use crate::problem::Severity;
use crate::treatment::Treatment;

pub use kind::{Kind, Scalar, Value};
pub use list::KEYS;

pub struct Key {
    pub name: &'static str,
    pub kind: Kind,
    /// The help of the key, as one or more sentences. Links are for documentation.
    help: &'static str,
    /// None for the pool, which the policy knows and not the engine.
    field: Option<Field>,
    needs: &'static [Need],
    /// The effect on a connection, with `{}` for the value.
    effect: Option<&'static str>,
    /// Limits the guest, which has reason to escape it.
    is_limit: bool,
    /// Has a column of its own in `vcc policy show`.
    has_column: bool,
    scope: Scope,
    /// Former names, each with the value that it implied.
    formerly: &'static [(&'static str, &'static str)],
}

/// Access to the key's field in a treatment.
struct Field {
    get: fn(&Treatment) -> u32,
    set: fn(&mut Treatment, u32),
}

/// A precondition for a key to have an effect.
pub(crate) enum Need {
    /// An underlay with a trait.
    Underlay { has: fn(Underlay) -> bool, what: &'static str, severity: Severity },
    /// Another key.
    Key(&'static str),
    /// Another key with this value.
    Value { key: &'static str, value: &'static str },
    /// `mode = "enforce"`: in another mode the key has its default.
    Enforce(Severity),
}

/// Where a key means something.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    Everywhere,
    /// Only in a policy.
    Policies,
    /// At ports with a buffer, which those in the kernel do not have.
    Buffers,
}

/// The place where keys are written; it decides how messages spell them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Surface {
    File,
    CommandLine,
}

impl Surface {
    pub fn key(self, key: &str) -> String {
        match self {
            Surface::File => format!("`{key}`"),
            Surface::CommandLine => format!("--{}", dashed(key)),
        }
    }

    /// A key with a value, as `toml` writes it.
    pub fn setting(self, key: &str, toml: &str) -> String {
        let plain = toml.trim_matches('"');
        match (self, plain) {
            (Surface::File, _) => format!("`{key} = {toml}`"),
            (Surface::CommandLine, "true") => self.key(key),
            (Surface::CommandLine, "false") => format!("{}={plain}", self.key(key)),
            (Surface::CommandLine, _) => format!("{} {plain}", self.key(key)),
        }
    }

    /// A message that replaces a former name of a key by its present one, or `None` if no key had
    /// the name. The name is spelled as in a file.
    pub fn renamed(self, name: &str) -> Option<String> {
        let key = |key: &&'static Key| {
            Some((*key, *key.formerly.iter().find(|(former, _)| *former == name)?))
        };
        let (key, (_, value)) = KEYS.iter().find_map(|it| key(&it))?;
        let now = match value {
            "" => self.key(key.name),
            value => self.setting(key.name, value),
        };
        Some(format!("{} is now {now}", self.key(name)))
    }
}

/// Spells a name for the command line.
pub fn dashed(name: &str) -> String {
    name.replace('_', "-")
}

impl Key {
    pub fn named(name: &str) -> Option<&'static Key> {
        KEYS.iter().find(|key| key.name == name)
    }

    /// The help of the key, without markup.
    pub fn help(&self) -> String {
        without_links(self.help)
    }

    pub(crate) fn markdown(&self) -> &'static str {
        self.help
    }

    pub fn default(&self) -> Option<u32> {
        self.get(&Treatment::default())
    }

    /// None for the pool, which is not a number.
    pub fn get(&self, treatment: &Treatment) -> Option<u32> {
        self.field.as_ref().map(|field| (field.get)(treatment))
    }

    pub(crate) fn set(&self, treatment: &mut Treatment, number: u32) {
        if let Some(field) = &self.field {
            (field.set)(treatment, number);
        }
    }

    pub(crate) fn needs(&self) -> &'static [Need] {
        self.needs
    }

    pub(crate) fn is_limit(&self) -> bool {
        self.is_limit
    }

    pub(crate) fn needs_enforcement(&self) -> bool {
        self.needs.iter().any(|need| matches!(need, Need::Enforce(_)))
    }

    /// Whether the key is an error in a rule that is not enforced.
    pub fn is_error_in_shadow(&self) -> bool {
        self.needs.iter().any(|need| matches!(need, Need::Enforce(Severity::Error)))
    }

    /// The effect of a value on a connection.
    pub(crate) fn effect(&self, number: u32) -> Option<String> {
        self.effect.map(|effect| effect.replace("{}", &self.kind.show(number)))
    }

    pub fn has_column(&self) -> bool {
        self.has_column
    }

    pub fn scope(&self) -> Scope {
        self.scope
    }

    /// Names that it had, each with the value that the name alone stood for, if any.
    pub fn formerly(&self) -> &'static [(&'static str, &'static str)] {
        self.formerly
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Key {}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// `[text](target)` becomes `text`.
fn without_links(markdown: &str) -> String {
    let mut plain = String::new();
    let mut rest = markdown;
    while let Some((before, link)) = rest.split_once('[') {
        let (text, after) = link.split_once("](").expect("a link");
        plain += before;
        plain += text;
        rest = after.split_once(')').expect("a link's end").1;
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_are_unique_and_former_names_are_not_in_use() {
        let names: HashSet<&str> = KEYS.iter().map(|key| key.name).collect();
        assert_eq!(names.len(), KEYS.len());
        let former = KEYS.iter().flat_map(Key::formerly).map(|(name, _)| *name);
        let former: Vec<&str> = former.collect();
        assert!(former.iter().all(|name| !names.contains(name)));
        let unique: HashSet<_> = former.iter().collect();
        assert_eq!(unique.len(), former.len());
    }

    #[test]
    fn each_lands_in_a_field_of_its_own() {
        let default = Treatment::default();
        for key in KEYS.iter().filter(|key| key.field.is_some()) {
            let mut treatment = default.clone();
            let other = key.default().unwrap() ^ 1;
            key.set(&mut treatment, other);
            assert_eq!(key.get(&treatment), Some(other), "{}", key.name);
            for same in KEYS.iter().filter(|same| *same != key) {
                assert_eq!(same.get(&treatment), same.get(&default), "{} {}", key.name, same.name);
            }
        }
    }

    #[test]
    fn defaults_are_within_bounds() {
        for key in KEYS {
            let Some(default) = key.default() else { continue };
            if !key.kind.is_none(default) {
                assert_eq!(key.kind.parse(&key.kind.show(default)), Ok(default), "{}", key.name);
            }
        }
    }

    #[test]
    fn what_a_key_needs_is_a_key() {
        for key in KEYS {
            for need in key.needs {
                match need {
                    Need::Key(needed) => assert!(Key::named(needed).is_some(), "{needed}"),
                    Need::Value { key, value } => {
                        let needed = Key::named(key).unwrap_or_else(|| panic!("{key}"));
                        assert!(needed.kind.parse(value).is_ok(), "{value}");
                    }
                    _ => {}
                }
            }
        }
    }

    #[test]
    fn former_names_lead_to_the_new_ones() {
        let file = |name| Surface::File.renamed(name).unwrap();
        let command_line = |name| Surface::CommandLine.renamed(name).unwrap();
        assert_eq!(file("cap_bytes"), "`cap_bytes` is now `window_cap`");
        assert_eq!(command_line("cap"), "--cap is now --window-cap");
        assert_eq!(file("no_prr"), "`no_prr` is now `prr = false`");
        assert_eq!(command_line("no_prr"), "--no-prr is now --prr=false");
        assert_eq!(command_line("shadow"), "--shadow is now --mode shadow");
        assert_eq!(Surface::File.renamed("window_cap"), None);
    }

    #[test]
    fn help_is_sentences_without_markup() {
        assert_eq!(without_links("a [b](c.md#d) e [f](g)."), "a b e f.");
        for key in KEYS {
            let help = key.help();
            assert!(help.ends_with('.') && !help.contains("]("), "{}: {help}", key.name);
        }
    }
}
