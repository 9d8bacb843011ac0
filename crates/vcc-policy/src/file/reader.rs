//! From TOML's values to those of a policy.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::keys::{Scalar, Surface};
use crate::nearest::suggestion;
use crate::problem::{Findings, Span};
use crate::text::shortened;

/// A value and its place.
#[derive(Clone, Debug)]
pub(crate) struct Located<T> {
    pub value: T,
    pub span: Span,
    /// It had no errors, so missing keys were not written.
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

/// The place does not belong to the schema.
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

/// A value of a key.
pub(crate) trait Value: Sized {
    /// None where it is wrong, and then the findings say why.
    fn read(value: &Spanned<DeValue<'_>>, findings: &mut Findings<'_>) -> Option<Self>;
}

/// Keys with values, made by `table!`.
pub(crate) trait Table: Sized {
    /// The heading of the table in a file.
    const HEADING: &'static str;

    fn keys(into: &mut Vec<&'static str>);
    fn fields(table: &DeTable<'_>, findings: &mut Findings<'_>) -> Self;

    /// The heading under which an unknown key belongs, if there is one.
    fn home_of(_key: &str) -> Option<String> {
        None
    }
}

pub(super) fn read_table<T: Table>(table: &DeTable<'_>, findings: &mut Findings<'_>) -> T {
    let mut keys = Vec::new();
    T::keys(&mut keys);
    for key in table.keys().filter(|key| !keys.contains(&key.get_ref().as_ref())) {
        let name = key.get_ref();
        findings.error_with(&key.span(), || {
            let hint = match (T::home_of(name), Surface::File.renamed(name)) {
                (Some(home), _) => format!("`{name}` belongs {home}"),
                (None, Some(renamed)) => renamed,
                (None, None) => suggestion(name, keys.iter().copied()),
            };
            format!("unknown key `{}`; {hint}", shortened(name))
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
                    format!("there is only one such table; write {} once", T::HEADING),
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
                    format!("the heading of a list needs double brackets: {}", T::HEADING),
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

/// The text of a string; any other type is an error.
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
    findings.error(span, format!("must be {wanted}, not {}", scalar(is).type_name()));
}

pub(super) fn scalar<'a>(value: &'a DeValue<'_>) -> Scalar<'a> {
    match value {
        DeValue::Boolean(flag) => Scalar::Flag(*flag),
        DeValue::Integer(_) => Scalar::Integer(integer(value)),
        DeValue::Float(number) => Scalar::Float(number.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::String(text) => Scalar::Text(text),
        DeValue::Datetime(_) => Scalar::Other("a date or time"),
        DeValue::Array(_) => Scalar::Other("a list"),
        DeValue::Table(_) => Scalar::Other("a table"),
    }
}

/// The value, or the error at its place.
pub(super) fn checked<T>(
    result: Result<T, String>,
    span: &Span,
    findings: &mut Findings<'_>,
) -> Option<T> {
    result.map_err(|wrong| findings.error(span, wrong)).ok()
}

/// An integer of TOML, of any radix. None where it does not fit.
pub(super) fn integer(value: &DeValue<'_>) -> Option<i64> {
    value.as_integer().and_then(|value| i64::from_str_radix(value.as_str(), value.radix()).ok())
}

/// A table with its keys: how it is read, and its schema. All values may be missing;
/// `..name: Type` takes over the keys of another table. `home_of` is that of the place where it is
/// used.
macro_rules! table {
    (
        $(#[$doc:meta])*
        $name:ident under $heading:literal {
            $($(#[$field_doc:meta])* $key:ident: $type:ty,)*
            $(..$more:ident: $more_type:ty,)?
        }
    ) => {
        #[derive(Clone, Debug, schemars::JsonSchema)]
        $(#[$doc])*
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

            fn home_of(key: &str) -> Option<String> {
                home_of(key)
            }
        }
    };
}
pub(super) use table;
