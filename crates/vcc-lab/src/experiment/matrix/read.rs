//! The parts of a matrix, as they are written, each checked at its place.

use super::super::problem::{Problem, Step};
use super::text::{Piece, pieces};
use super::{Axis, AxisValue, Kind, Override, under};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// In the order of the text, in which a table does not keep its keys.
fn in_order<'a, 't>(table: &'t DeTable<'a>) -> Vec<(&'t str, &'t Spanned<DeValue<'a>>)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries.into_iter().map(|(key, value)| (key.get_ref().as_ref(), value)).collect()
}

pub(super) fn axes<'a>(
    matrix: Spanned<DeValue<'a>>,
    at: &[Step],
) -> Result<Vec<Axis<'a>>, Problem> {
    let example = "name each axis with its values, as in size = [100, 200]";
    let DeValue::Table(matrix) = matrix.into_inner() else {
        return Err(Problem::new(at.to_vec(), format!("must be a table: {example}")));
    };
    if matrix.is_empty() {
        return Err(Problem::new(at.to_vec(), format!("has no axes: {example}")));
    }
    let axis = |(name, values): (&str, &Spanned<DeValue<'a>>)| {
        let values = values_of(values, &under(at, [name.into()]))?;
        Ok(Axis { name: name.into(), values })
    };
    in_order(&matrix).into_iter().map(axis).collect()
}

fn values_of<'a>(axis: &Spanned<DeValue<'a>>, at: &[Step]) -> Result<Vec<AxisValue<'a>>, Problem> {
    let values: Vec<AxisValue> = match axis.get_ref() {
        DeValue::Array(values) => {
            let plain = |(index, value): (usize, &Spanned<DeValue<'a>>)| {
                let name = plain_name(value.get_ref()).ok_or_else(|| {
                    let text = "must be a text, a number or a boolean: let a table name what a \
                                value sets";
                    Problem::new(under(at, [index.into()]), text)
                })?;
                Ok(AxisValue { name, kind: Kind::Plain(value.clone()) })
            };
            values.iter().enumerate().map(plain).collect::<Result<_, Problem>>()?
        }
        DeValue::Table(values) => {
            let named = |(name, value): (&str, &Spanned<DeValue<'a>>)| {
                check_change(value, &under(at, [name.into()]))?;
                Ok(AxisValue { name: name.into(), kind: Kind::Changes(value.clone()) })
            };
            in_order(values).into_iter().map(named).collect::<Result<_, Problem>>()?
        }
        _ => {
            let text = "must be a list of values, or a table of what each value sets";
            return Err(Problem::new(at.to_vec(), text));
        }
    };
    match values.is_empty() {
        true => Err(Problem::new(at.to_vec(), "has no values: add one, or remove the axis")),
        false => Ok(values),
    }
}

/// What a value is called in the name of a case.
fn plain_name(value: &DeValue) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => Some(number.to_string()),
        DeValue::Float(number) => Some(number.to_string()),
        DeValue::Boolean(flag) => Some(flag.to_string()),
        _ => None,
    }
}

fn check_change(change: &Spanned<DeValue>, at: &[Step]) -> Result<(), Problem> {
    let DeValue::Table(table) = change.get_ref() else {
        let text = "must be a table of what it sets: {} if that is nothing";
        return Err(Problem::new(at.to_vec(), text));
    };
    let own = ["name", "matrix", "exclude", "overrides"];
    match table.keys().find(|key| own.contains(&key.get_ref().as_ref())) {
        Some(key) => {
            let text = "is of the whole matrix: set it beside it";
            Err(Problem::new(under(at, [key.get_ref().as_ref().into()]), text))
        }
        None => Ok(()),
    }
}

/// The entry's name, with every axis in it.
pub(super) fn template(
    base: &Spanned<DeValue>,
    axes: &[Axis],
    at: &[Step],
) -> Result<String, Problem> {
    let all: Vec<String> = axes.iter().map(|axis| format!("{{{}}}", axis.name)).collect();
    let DeValue::Table(table) = base.get_ref() else { return Ok(String::new()) };
    let Some(name) = table.get("name").and_then(|name| name.get_ref().as_str()) else {
        let text = format!("needs a name with its axes, such as \"{}\"", all.join("-"));
        return Err(Problem::new(at.to_vec(), text));
    };
    match all.iter().find(|axis| !name.contains(*axis)) {
        Some(missing) => {
            let text =
                format!("'{name}' does not contain {missing}: name every axis of the matrix");
            Err(Problem::new(under(at, ["name".into()]), text))
        }
        None => Ok(name.into()),
    }
}

pub(super) fn exclusions(
    exclude: Option<Spanned<DeValue>>,
    at: &[Step],
) -> Result<Vec<String>, Problem> {
    let Some(exclude) = exclude else { return Ok(Vec::new()) };
    let names = match exclude.get_ref() {
        DeValue::Array(names) => {
            names.iter().map(|name| name.get_ref().as_str().map(str::to_owned)).collect()
        }
        _ => None,
    };
    let text = "must be a list of names of cases, in which * stands for any text";
    names.ok_or_else(|| Problem::new(at.to_vec(), text))
}

pub(super) fn changes<'a>(
    overrides: Option<Spanned<DeValue<'a>>>,
    at: &[Step],
) -> Result<Vec<Override<'a>>, Problem> {
    let Some(overrides) = overrides else { return Ok(Vec::new()) };
    let DeValue::Table(overrides) = overrides.get_ref() else {
        let text = "must be a table of names of cases, in which * stands for any text";
        return Err(Problem::new(at.to_vec(), text));
    };
    let change = |(key, change): (&str, &Spanned<DeValue<'a>>)| {
        check_change(change, &under(at, [key.into()]))?;
        Ok(Override { key: key.to_owned(), change: change.clone() })
    };
    in_order(overrides).into_iter().map(change).collect()
}

/// Every axis in braces, in a value or in a key, is one of these.
pub(super) fn check_placeholders(
    value: &Spanned<DeValue>,
    axes: &[Axis],
    at: &mut Vec<Step>,
) -> Result<(), Problem> {
    let check = |text: &str, at: &[Step]| {
        let Some(pieces) = pieces(text) else {
            let text = format!("'{text}' has no }} for its {{: close it");
            return Err(Problem::new(at.to_vec(), text));
        };
        let known = |name: &str| axes.iter().any(|axis| axis.name == name);
        let unknown = pieces.iter().find_map(|piece| match piece {
            Piece::Axis(name) if !known(name) => Some(*name),
            _ => None,
        });
        let Some(unknown) = unknown else { return Ok(()) };
        let known: Vec<&str> = axes.iter().map(|axis| axis.name.as_str()).collect();
        let text = format!("there is no axis '{unknown}': there are {}", known.join(", "));
        Err(Problem::new(at.to_vec(), text))
    };
    match value.get_ref() {
        DeValue::String(text) => check(text, at)?,
        DeValue::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                at.push(index.into());
                check_placeholders(item, axes, at)?;
                at.pop();
            }
        }
        DeValue::Table(table) => {
            for (key, value) in in_order(table) {
                at.push(key.into());
                check(key, at)?;
                check_placeholders(value, axes, at)?;
                at.pop();
            }
        }
        _ => {}
    }
    Ok(())
}
