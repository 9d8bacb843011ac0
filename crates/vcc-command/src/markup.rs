//! Help is written as documentation comments, with Markdown, which a terminal and a man page do not
//! render.

/// With code in quotes, and links as their text.
pub(crate) fn quoted(text: &str) -> String {
    marked(text, "'", "'")
}

/// With `begin` and `end` around code, and links as their text.
pub(crate) fn marked(text: &str, begin: &str, end: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(|line| of_line(line, begin, end)).collect();
    lines.join("\n")
}

/// Code does not go over the end of a line: clap joins the lines of a paragraph.
fn of_line(line: &str, begin: &str, end: &str) -> String {
    let mut marked = String::new();
    let mut rest = line;
    while let Some((before, code, after)) = code_in(rest) {
        marked += &without_links(before);
        marked += &[begin, code, end].concat();
        rest = after;
    }
    marked + &without_links(rest)
}

/// The first code of a line, and what is before and behind it.
fn code_in(line: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = line.split_once('`')?;
    let (code, after) = rest.split_once('`')?;
    Some((before, code, after))
}

/// `[text](target)` becomes `text`, and `**text**`.
fn without_links(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((link, after)) = rest
        .split_once("](")
        .and_then(|(link, target)| target.split_once(')').map(|(_, after)| (link, after)))
    {
        let (before, name) = link.rsplit_once('[').unwrap_or((link, ""));
        plain += before;
        plain += name;
        rest = after;
    }
    (plain + rest).replace("**", "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_no_part_of_help() {
        for (markdown, expected) in [
            ("as `vcc attach` does, or `[[ports]]`", "as 'vcc attach' does, or '[[ports]]'"),
            ("[inside](coexistence.md#tunnels), **always**", "inside, always"),
            ("[DEV]... (see [a](b) and [c](d))", "[DEV]... (see a and c)"),
            ("an odd ` one", "an odd ` one"),
        ] {
            assert_eq!(quoted(markdown), expected);
        }
    }
}
