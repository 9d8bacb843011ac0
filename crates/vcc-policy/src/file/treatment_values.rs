//! Values that are one of a few names.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use toml::Spanned;
use toml::de::DeValue;
use vcc_engine::{GuestEcn, Mode, OnFull, Underlay};

use super::number_values::inline_schema;
use super::reader::{Value, text};
use crate::connection::Role;
use crate::nearest::suggestion;
use crate::problem::Findings;
use crate::text::shortened;

/// Something that is known by its name.
pub(crate) trait Names: Sized {
    const WHAT: &'static str;

    fn all() -> Vec<(&'static str, Self)>;
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Named<T>(pub T);

impl<T: Names> Value for Named<T> {
    fn read(value: &Spanned<DeValue<'_>>, findings: &mut Findings<'_>) -> Option<Self> {
        let name = text(value, &format!("the name of {}", T::WHAT), findings)?;
        let known: Vec<&str> = T::all().iter().map(|(name, _)| *name).collect();
        let found = T::all().into_iter().find(|(known, _)| *known == name);
        if found.is_none() {
            findings.error_with(&value.span(), || {
                format!(
                    "`{}` is no {}: {}",
                    shortened(name),
                    short(T::WHAT),
                    suggestion(name, known)
                )
            });
        }
        found.map(|(_, value)| Self(value))
    }
}

/// Without its article.
fn short(what: &str) -> &str {
    what.split_once(' ').map_or(what, |(_, noun)| noun)
}

inline_schema!([T: Names] Named<T>, json_schema!({
    "enum": T::all().iter().map(|(name, _)| *name).collect::<Vec<_>>()
}));

/// Those that a rule can have: whole ports drain.
impl Names for Mode {
    const WHAT: &'static str = "a mode";

    fn all() -> Vec<(&'static str, Self)> {
        vec![("enforce", Mode::Enforce), ("shadow", Mode::Shadow), ("ignore", Mode::Ignore)]
    }
}

impl Names for Role {
    const WHAT: &'static str = "a role";

    fn all() -> Vec<(&'static str, Self)> {
        vec![("client", Role::Client), ("server", Role::Server)]
    }
}

impl Names for GuestEcn {
    const WHAT: &'static str = "a treatment of a guest's ECN";

    fn all() -> Vec<(&'static str, Self)> {
        vec![("leave", GuestEcn::Leave), ("override", GuestEcn::Override)]
    }
}

impl Names for OnFull {
    const WHAT: &'static str = "an answer to a full table";

    fn all() -> Vec<(&'static str, Self)> {
        vec![("pass", OnFull::Pass), ("drop", OnFull::Drop)]
    }
}

impl Names for Underlay {
    const WHAT: &'static str = "an underlay";

    fn all() -> Vec<(&'static str, Self)> {
        Underlay::all().map(|underlay| (underlay.name(), underlay)).collect()
    }
}
