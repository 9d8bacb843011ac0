//! Checks of what this kernel and this process provide.

mod attach;
mod lab;
pub(crate) mod probe;

use std::borrow::Cow;
use std::io;

use serde::Serialize;

use crate::capabilities;

/// The part of vcc that does not work if a check fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Need {
    Attach,
    Lab,
}

#[derive(Clone, Debug, Serialize)]
pub struct Check {
    pub need: Need,
    pub name: &'static str,
    pub ok: bool,
    /// The result, for people.
    pub found: String,
    /// The next step if the check failed.
    pub remedy: Option<Cow<'static, str>>,
}

/// A failed check.
struct Missing {
    found: String,
    remedy: Cow<'static, str>,
}

impl Missing {
    fn new(found: impl Into<String>, remedy: impl Into<Cow<'static, str>>) -> Self {
        Self { found: found.into(), remedy: remedy.into() }
    }
}

const AS_ROOT: &str = "run vcc as root, on the host";

impl Check {
    fn new(need: Need, name: &'static str, result: Result<String, Missing>) -> Self {
        match result {
            Ok(found) => Self { need, name, ok: true, found, remedy: None },
            Err(Missing { found, remedy }) => {
                Self { need, name, ok: false, found, remedy: Some(remedy) }
            }
        }
    }
}

/// The remedy is [`AS_ROOT`] if permission is lacking, and `remedy` otherwise.
fn missing(what: &str, error: &io::Error, remedy: impl Into<Cow<'static, str>>) -> Missing {
    let not_permitted = error.kind() == io::ErrorKind::PermissionDenied;
    let remedy = if not_permitted { AS_ROOT.into() } else { remedy.into() };
    Missing::new(format!("{what}: {error}"), remedy)
}

pub fn checks() -> Vec<Check> {
    [attach::checks(), lab::checks()].concat()
}

/// An error with the first reason why the datapath cannot be loaded here, in one line.
pub fn require_attach() -> Result<(), String> {
    let lacking = capabilities::missing();
    if !lacking.is_empty() {
        return Err(format!("needs {}", lacking.join(", ")));
    }
    match attach::of_the_kernel().into_iter().find(|check| !check.ok) {
        Some(check) => Err(format!("{}: {}", check.name, check.found)),
        None => Ok(()),
    }
}
