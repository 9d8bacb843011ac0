//! Names with axes in braces, and patterns of names.

pub(super) enum Piece<'t> {
    Text(&'t str),
    Axis(&'t str),
}

/// The text cut at the axes in braces, or None where one has no end.
pub(super) fn pieces(text: &str) -> Option<Vec<Piece<'_>>> {
    let (mut pieces, mut rest) = (Vec::new(), text);
    while let Some((before, after)) = rest.split_once('{') {
        let (axis, after) = after.split_once('}').filter(|(axis, _)| !axis.contains('{'))?;
        if !before.is_empty() {
            pieces.push(Piece::Text(before));
        }
        pieces.push(Piece::Axis(axis));
        rest = after;
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest));
    }
    Some(pieces)
}

/// Is this the name of a case? Each * in the pattern stands for any text.
pub(super) fn matches(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        let Some((_, after)) = name.split_once(part) else { return false };
        name = after;
    }
    name.ends_with(last)
}
