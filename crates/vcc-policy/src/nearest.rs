//! The known name that is most like an unknown one.

use crate::listing::listing;

/// None where nothing is near enough for a typing error.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Comparing takes the product of the lengths, and names are shorter than this.
    const LONGEST_BYTES: usize = 100;
    if name.len() > LONGEST_BYTES {
        return None;
    }
    let allowed = (name.chars().count() / 3).max(1);
    known
        .into_iter()
        .map(|known| (strsim::damerau_levenshtein(name, known), known))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

/// The end of a message about an unknown name: the nearest known name, else all known names.
pub(crate) fn suggestion<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    match nearest(name, known.iter().copied()) {
        Some(meant) => format!("the nearest is `{meant}`"),
        None if known.is_empty() => "there are none".to_owned(),
        None => format!("known: {}", listing(&known, ", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typing_error_is_recognised_and_another_word_is_not() {
        let known = ["reno-ecn", "dctcp", "cubic", "reno"];
        for (name, meant) in
            [("dtcp", Some("dctcp")), ("cubci", Some("cubic")), ("vegas", None), ("", None)]
        {
            assert_eq!(nearest(name, known), meant, "{name}");
        }
        assert_eq!(suggestion("vegas", ["reno", "cubic"]), "known: reno, cubic");
    }
}
