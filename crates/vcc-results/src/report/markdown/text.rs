//! Words and tables of Markdown.

/// One line, in which nothing is markup: not of Markdown's tables, and not of HTML.
pub fn line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").replace('|', "\\|").replace('<', "&lt;")
}

/// Paragraphs, which empty lines divide.
pub fn paragraphs(text: &str) -> String {
    let paragraphs: Vec<String> =
        text.split("\n\n").map(line).filter(|text| !text.is_empty()).collect();
    paragraphs.join("\n\n")
}

const WIDTH: usize = 120;

/// Broken into lines, none of which Markdown mistakes for the beginning of a list, a heading or a
/// quote.
pub fn wrapped(text: &str) -> String {
    let (mut lines, mut line) = (Vec::new(), String::new());
    for word in text.split(' ') {
        let width = line.chars().count() + 1 + word.chars().count();
        if !line.is_empty() && width > WIDTH && !is_markup(word) {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line += word;
    }
    lines.push(line);
    lines.join("\n")
}

fn is_markup(word: &str) -> bool {
    let number = word.trim_end_matches(['.', ')']);
    let is_item = number.len() < word.len() && number.chars().all(|c| c.is_ascii_digit());
    is_item || word.starts_with(['-', '+', '*', '#', '>', '=', '~'])
}

/// As inline code; a code cannot hold a backtick of its own.
pub fn code(text: &str) -> String {
    format!("`{}`", line(text).replace('`', "'"))
}

pub fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let mut text = row(head.iter().copied());
    text += &format!("|{}\n", "---|".repeat(head.len()));
    rows.iter().for_each(|cells| text += &row(cells.iter().map(String::as_str)));
    text
}

pub fn row<'a>(cells: impl Iterator<Item = &'a str>) -> String {
    let cells: Vec<String> = cells.map(|cell| format!(" {cell} ")).collect();
    format!("|{}|\n", cells.join("|"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_begins_with_markup() {
        let words = format!("{} 5. - # end", ["word"; 24].join(" "));
        let lines = wrapped(&words);
        assert_eq!(
            lines.split_whitespace().collect::<Vec<_>>(),
            words.split(' ').collect::<Vec<_>>()
        );
        assert_eq!(lines.lines().count(), 2, "{lines}");
        assert!(lines.ends_with("\nend"), "{lines}");
    }

    #[test]
    fn words_of_others_are_no_markup() {
        assert_eq!(line("a | b\n <!-- c"), "a \\| b &lt;!-- c");
        assert_eq!(paragraphs("a\nb\n\n\nc"), "a b\n\nc");
    }
}
