//! The matrix of an entry of `[[cases]]`: one case for each combination of its axes' values.

mod read;
#[cfg(test)]
mod tests;
mod text;

use super::overlay::{lay_over, take};
use super::problem::{Problem, Step};
use read::{axes, changes, check_placeholders, exclusions, template};
use std::borrow::Cow;
use text::{Piece, matches, pieces};
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

/// More than any experiment has time for.
const MOST_CASES: usize = 1000;

/// A case that a matrix makes.
pub(super) struct Generated<'a> {
    pub name: String,
    pub case: Spanned<DeValue<'a>>,
}

/// The cases of the entry at this path, or None if the entry has no matrix.
pub(super) fn cases<'a>(
    entry: &Spanned<DeValue<'a>>,
    at: Vec<Step>,
) -> Result<Option<Vec<Generated<'a>>>, Problem> {
    let mut base = entry.clone();
    let DeValue::Table(table) = base.get_mut() else { return Ok(None) };
    let matrix = take(table, "matrix").map(|(_, matrix)| matrix);
    let exclude = take(table, "exclude").map(|(_, exclude)| exclude);
    let overrides = take(table, "overrides").map(|(_, overrides)| overrides);
    let Some(matrix) = matrix else {
        let stray = [("exclude", exclude), ("overrides", overrides)];
        return match stray.into_iter().find(|(_, value)| value.is_some()) {
            Some((name, _)) => {
                let text = "only valid beside a matrix: add one, or change the case itself";
                Err(Problem::new(under(&at, [name.into()]), text))
            }
            None => Ok(None),
        };
    };
    let axes = axes(matrix, &under(&at, ["matrix".into()]))?;
    let template = template(&base, &axes, &at)?;
    check_placeholders(entry, &axes, &mut at.clone())?;
    let exclude = exclusions(exclude, &under(&at, ["exclude".into()]))?;
    let overrides = changes(overrides, &under(&at, ["overrides".into()]))?;
    let matrix = Matrix { axes, template, base, exclude, overrides };
    matrix.expand(&at).map(Some)
}

struct Matrix<'a> {
    axes: Vec<Axis<'a>>,
    /// The name of a case.
    template: String,
    /// What all cases have.
    base: Spanned<DeValue<'a>>,
    /// Patterns of names.
    exclude: Vec<String>,
    overrides: Vec<Override<'a>>,
}

/// A change of some of the cases.
struct Override<'a> {
    /// The key: patterns of names with commas between them.
    key: String,
    change: Spanned<DeValue<'a>>,
}

struct Axis<'a> {
    name: String,
    values: Vec<AxisValue<'a>>,
}

struct AxisValue<'a> {
    name: String,
    kind: Kind<'a>,
}

enum Kind<'a> {
    /// It stands where the case has the axis in braces.
    Plain(Spanned<DeValue<'a>>),
    /// It is laid over the case.
    Changes(Spanned<DeValue<'a>>),
}

impl<'a> Matrix<'a> {
    fn expand(&self, at: &[Step]) -> Result<Vec<Generated<'a>>, Problem> {
        let mut all: Vec<Generated> = Vec::new();
        let mut names: Vec<String> = Vec::new();
        for values in self.combinations(at)? {
            let combination = Combination { axes: &self.axes, values };
            let name = combination.text(&self.template);
            if names.contains(&name) {
                let text = format!("two cases of the matrix are called '{name}': rename a value");
                return Err(Problem::new(under(at, ["name".into()]), text));
            }
            names.push(name.clone());
            if self.exclude.iter().any(|pattern| matches(pattern, &name)) {
                continue;
            }
            let mut case = self.base.clone();
            for value in combination.chosen() {
                if let Kind::Changes(change) = &value.kind {
                    lay_over(&mut case, change.clone());
                }
            }
            for it in self.overrides.iter().filter(|it| it.is_of(&name)) {
                lay_over(&mut case, it.change.clone());
            }
            let case = combination.fill(case).map_err(|key| {
                Problem::new(at.to_vec(), format!("sets '{key}' twice in '{name}': rename one"))
            })?;
            all.push(Generated { name, case });
        }
        self.check_patterns(&names, &all, at)?;
        Ok(all)
    }

    /// Every pattern matches a case.
    fn check_patterns(
        &self,
        names: &[String],
        left: &[Generated],
        at: &[Step],
    ) -> Result<(), Problem> {
        let unused = |pattern: &str, known: &[&str], steps: [Step; 2]| {
            let known = known.join(", ");
            let text = format!("no case of the matrix is called '{pattern}': there are {known}");
            Err(Problem::new(under(at, steps), text))
        };
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        for (index, pattern) in self.exclude.iter().enumerate() {
            if !names.iter().any(|name| matches(pattern, name)) {
                return unused(pattern, &names, ["exclude".into(), index.into()]);
            }
        }
        if left.is_empty() {
            let text = "excludes every case of the matrix: leave one";
            return Err(Problem::new(under(at, ["exclude".into()]), text));
        }
        let names: Vec<&str> = left.iter().map(|case| case.name.as_str()).collect();
        for it in &self.overrides {
            let mut patterns = it.patterns();
            let idle = patterns.find(|pattern| !names.iter().any(|name| matches(pattern, name)));
            if let Some(pattern) = idle {
                return unused(pattern, &names, ["overrides".into(), (&it.key).into()]);
            }
        }
        Ok(())
    }

    /// Indices of the axes' values. The last axis varies fastest.
    fn combinations(&self, at: &[Step]) -> Result<Vec<Vec<usize>>, Problem> {
        let sizes = self.axes.iter().map(|axis| axis.values.len());
        let count = sizes.fold(1, usize::saturating_mul);
        if count > MOST_CASES {
            let text = format!("makes {count} cases: {MOST_CASES} are the most, split it");
            return Err(Problem::new(under(at, ["matrix".into()]), text));
        }
        let mut all = vec![Vec::new()];
        for axis in &self.axes {
            let longer = |values: &Vec<usize>| {
                let values = values.clone();
                (0..axis.values.len()).map(move |value| [&values[..], &[value]].concat())
            };
            all = all.iter().flat_map(longer).collect();
        }
        Ok(all)
    }
}

impl Override<'_> {
    fn patterns(&self) -> impl Iterator<Item = &str> {
        self.key.split(',').map(str::trim)
    }

    fn is_of(&self, name: &str) -> bool {
        self.patterns().any(|pattern| matches(pattern, name))
    }
}

/// One value of each axis.
struct Combination<'m, 'a> {
    axes: &'m [Axis<'a>],
    values: Vec<usize>,
}

impl<'a> Combination<'_, 'a> {
    fn chosen(&self) -> impl Iterator<Item = &AxisValue<'a>> {
        self.axes.iter().zip(&self.values).map(|(axis, &value)| &axis.values[value])
    }

    fn value(&self, axis: &str) -> Option<&AxisValue<'a>> {
        let index = self.axes.iter().position(|it| it.name == axis)?;
        self.chosen().nth(index)
    }

    /// The text with names of values for the axes in it. [`check_placeholders`] has seen it.
    fn text(&self, text: &str) -> String {
        let pieces = pieces(text).unwrap_or_default();
        let filled = pieces.into_iter().map(|piece| match piece {
            Piece::Text(text) => text,
            Piece::Axis(axis) => self.value(axis).map_or("", |value| &value.name),
        });
        filled.collect()
    }

    /// The value with the axes in it filled in, or the key that a table would then have twice.
    fn fill(&self, value: Spanned<DeValue<'a>>) -> Result<Spanned<DeValue<'a>>, String> {
        let span = value.span();
        let filled = match value.into_inner() {
            DeValue::String(text) => match &pieces(&text).unwrap_or_default()[..] {
                // An axis alone keeps its type.
                [Piece::Axis(axis)] => match self.value(axis) {
                    Some(AxisValue { kind: Kind::Plain(plain), .. }) => return Ok(plain.clone()),
                    _ => DeValue::String(Cow::Owned(self.text(&text))),
                },
                [] | [Piece::Text(_)] => DeValue::String(text),
                _ => DeValue::String(Cow::Owned(self.text(&text))),
            },
            DeValue::Array(mut items) => {
                for item in items.iter_mut() {
                    *item = self.fill(item.clone())?;
                }
                DeValue::Array(items)
            }
            DeValue::Table(table) => {
                let mut filled = DeTable::new();
                for (key, value) in table {
                    let name = self.text(key.get_ref());
                    let key: Spanned<DeString> = Spanned::new(key.span(), Cow::Owned(name.clone()));
                    if filled.insert(key, self.fill(value)?).is_some() {
                        return Err(name);
                    }
                }
                DeValue::Table(filled)
            }
            other => other,
        };
        Ok(Spanned::new(span, filled))
    }
}

fn under<const N: usize>(base: &[Step], steps: [Step; N]) -> Vec<Step> {
    [base, &steps].concat()
}
