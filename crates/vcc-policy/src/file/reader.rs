//! From TOML's values to ours.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::tables;
use crate::nearest::suggestion;
use crate::problem::{Findings, Span};
use crate::text::shortened;

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Located<T> {
    pub value: T,
    pub span: Span,
    /// Nothing in it was wrong: what is not there was not said.
    pub is_sound: bool,
}

impl<T: Value> Located<T> {
    pub fn read(value: &Spanned<DeValue<'_>>, findings: &mut Findings<'_>) -> Option<Self> {
        let before = findings.errors();
        let read = T::read(value, findings)?;
        let is_sound = findings.errors() == before;
        Some(Located { value: read, span: value.span(), is_sound })
    }
}

/// Its place is nothing that an editor has to know of.
impl<T: JsonSchema> JsonSchema for Located<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

/// What can stand behind a key.
pub(crate) trait Value: Sized {
    /// None where it is wrong, which then has been said.
    fn read(value: &Spanned<DeValue<'_>>, findings: &mut Findings<'_>) -> Option<Self>;
}

/// Keys with values, made by `table!`.
pub(crate) trait Table: Sized {
    /// As it is written.
    const HEADING: &'static str;

    fn keys(into: &mut Vec<&'static str>);
    fn fields(table: &DeTable<'_>, findings: &mut Findings<'_>) -> Self;
    /// The keys that are there, with the places of their values.
    fn written(&self) -> Vec<(&'static str, &Span)>;
}

pub(super) fn read_table<T: Table>(table: &DeTable<'_>, findings: &mut Findings<'_>) -> T {
    let mut keys = Vec::new();
    T::keys(&mut keys);
    for key in table.keys().filter(|key| !keys.contains(&key.get_ref().as_ref())) {
        let name = key.get_ref();
        findings.error_with(&key.span(), || {
            let told = match tables::home_of(name) {
                Some(home) => format!("`{name}` belongs {home}"),
                None => suggestion(name, keys.iter().copied()),
            };
            format!("unknown key `{}`: {told}", shortened(name))
        });
    }
    T::fields(table, findings)
}

pub(super) fn read_field<T: Value>(
    table: &DeTable<'_>,
    key: &str,
    findings: &mut Findings<'_>,
) -> Option<Located<T>> {
    Located::read(table.get(key)?, findings)
}

impl<T: Table> Value for T {
    fn read(value: &Spanned<DeValue<'_>>, findings: &mut Findings<'_>) -> Option<Self> {
        match value.get_ref() {
            DeValue::Table(table) => Some(read_table(table, findings)),
            DeValue::Array(tables) if tables.iter().all(|it| it.get_ref().is_table()) => {
                findings.error(
                    &value.span(),
                    format!(
                        "there is one of these, so the heading has single brackets: {}",
                        T::HEADING
                    ),
                );
                None
            }
            other => {
                wrong_type(&value.span(), other, "a table", findings);
                None
            }
        }
    }
}

/// Tables under a heading in double brackets.
impl<T: Table> Value for Vec<Located<T>> {
    fn read(value: &Spanned<DeValue<'_>>, findings: &mut Findings<'_>) -> Option<Self> {
        match value.get_ref() {
            DeValue::Array(values) => {
                Some(values.iter().filter_map(|value| Located::read(value, findings)).collect())
            }
            DeValue::Table(_) => {
                findings.error(
                    &value.span(),
                    format!(
                        "there can be several of these, so the heading has double brackets: {}",
                        T::HEADING
                    ),
                );
                None
            }
            other => {
                wrong_type(&value.span(), other, &format!("tables under {}", T::HEADING), findings);
                None
            }
        }
    }
}

impl Value for bool {
    fn read(value: &Spanned<DeValue<'_>>, findings: &mut Findings<'_>) -> Option<Self> {
        match value.get_ref() {
            DeValue::Boolean(value) => Some(*value),
            other => {
                wrong_type(&value.span(), other, "true or false", findings);
                None
            }
        }
    }
}

/// The text of a string; any other type is wrong.
pub(super) fn text<'a>(
    value: &'a Spanned<DeValue<'_>>,
    wanted: &str,
    findings: &mut Findings<'_>,
) -> Option<&'a str> {
    match value.get_ref() {
        DeValue::String(text) => Some(text),
        other => {
            wrong_type(&value.span(), other, wanted, findings);
            None
        }
    }
}

pub(super) fn wrong_type(span: &Span, is: &DeValue<'_>, wanted: &str, findings: &mut Findings<'_>) {
    let is = match is {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a float",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    };
    findings.error(span, format!("this is {is}, but has to be {wanted}"));
}

/// Where the reason is all that there is to say.
pub(super) fn checked<T>(
    result: Result<T, String>,
    span: &Span,
    findings: &mut Findings<'_>,
) -> Option<T> {
    result.map_err(|wrong| findings.error(span, wrong)).ok()
}

/// An integer of TOML, of any radix, unless it is larger than any that is wanted here.
pub(super) fn integer(value: &DeValue<'_>) -> Option<i64> {
    value.as_integer().and_then(|value| i64::from_str_radix(value.as_str(), value.radix()).ok())
}

/// A table with its keys: what is read, and what the schema says of it. All values may be
/// missing; `..name: Type` takes over the keys of another table.
macro_rules! table {
    (
        $(#[$doc:meta])*
        $name:ident under $heading:literal {
            $($(#[$field_doc:meta])* $key:ident: $type:ty,)*
            $(..$more:ident: $more_type:ty,)?
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, schemars::JsonSchema)]
        #[schemars(deny_unknown_fields)]
        pub(crate) struct $name {
            $($(#[$field_doc])* pub $key: Option<Located<$type>>,)*
            $(#[schemars(flatten)] pub $more: $more_type,)?
        }

        impl Table for $name {
            const HEADING: &'static str = $heading;

            fn keys(into: &mut Vec<&'static str>) {
                $(into.push(stringify!($key));)*
                $(<$more_type>::keys(into);)?
            }

            fn fields(table: &DeTable<'_>, findings: &mut Findings<'_>) -> Self {
                Self {
                    $($key: read_field(table, stringify!($key), findings),)*
                    $($more: <$more_type>::fields(table, findings),)?
                }
            }

            fn written(&self) -> Vec<(&'static str, &Span)> {
                let own: &[(&'static str, Option<&Span>)] =
                    &[$((stringify!($key), self.$key.as_ref().map(|it| &it.span)),)*];
                let own = own.iter().filter_map(|(key, span)| Some((*key, (*span)?)));
                own$(.chain(self.$more.written()))?.collect()
            }
        }
    };
}
pub(super) use table;
