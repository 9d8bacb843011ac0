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
