//! TOML tables laid over others: how a case, or a value of a matrix, changes what is below it.

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

pub type Entry<'a> = (Spanned<DeString<'a>>, Spanned<DeValue<'a>>);

pub fn take<'a>(table: &mut DeTable<'a>, name: &str) -> Option<Entry<'a>> {
    let key = table.keys().find(|key| key.get_ref() == name)?.clone();
    table.remove_entry(&key)
}

/// Tables are laid over tables; anything else takes the place of what was there.
pub fn lay_over<'a>(base: &mut Spanned<DeValue<'a>>, change: Spanned<DeValue<'a>>) {
    let is_table = matches!(change.get_ref(), DeValue::Table(_));
    match (base.get_mut(), is_table) {
        (DeValue::Table(base), true) => {
            let DeValue::Table(change) = change.into_inner() else { return };
            for (key, value) in change {
                match base.get_mut(&key) {
                    Some(old) => lay_over(old, value),
                    None => drop(base.insert(key, value)),
                }
            }
        }
        _ => *base = change,
    }
}
