//! Phrases that a reader stumbles over. Pages, comments and messages use the plain form instead.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use super::page::root;

/// Each phrase with its plain form. Words match as a whole, in upper and lower case.
const PHRASES: &[(&str, &str)] = &[
    ("is told", "is reported, is recognised, is asked"),
    ("are told", "are reported, are recognised, are distinguished"),
    ("was told", "was reported, was recognised, was asked"),
    ("were told", "were reported, were recognised, were asked"),
    ("tells of", "reports, names"),
    ("nobody can tell", "is unknown"),
    ("is said", "is stated, is reported"),
    ("are said", "are stated, are reported"),
    ("says so", "reports it"),
    ("goes on", "continues, keeps running"),
    ("go on", "continue, keep running"),
    ("went on", "continued, kept running"),
    ("none that can be", "is inconsistent, is invalid"),
    ("for want of", "because there is no, lacks"),
    ("whichever", "either, any"),
    ("by whatever", "under any"),
    ("in whatever", "in any"),
    ("is astray", "is inconsistent"),
    ("to be had", "can be obtained"),
];

/// Files, and directories with all that is below: of pages (`.md`) the text, of sources (`.rs`, `.h`) comments
/// and string literals, which includes messages and the help of commands.
const PLACES: &[&str] = &["crates", "engine", "fuzz/src", "CHANGELOG.md", "README.md", "docs"];

/// A comment, string literal or paragraph with the line of its beginning.
type Prose = (usize, String);

#[test]
fn texts_use_plain_phrases() {
    let mut texts = 0;
    let mut found = Vec::new();
    for file in PLACES.iter().flat_map(|place| files(&root().join(place))) {
        let name = file.strip_prefix(root()).expect("a path below the root").display().to_string();
        let text = fs::read_to_string(&file).expect("UTF-8");
        let is_page = file.extension().is_some_and(|extension| extension == "md");
        let proses = if is_page { paragraphs(&text) } else { comments_and_literals(&text) };
        texts += proses.len();
        for (line, prose) in proses {
            for (phrase, plain) in phrases_in(&prose) {
                found.push(format!("{name}:{line}: \"{phrase}\": write \"{plain}\""));
            }
        }
    }
    assert!(texts > 1000, "texts are found: {texts}");
    assert!(found.is_empty(), "phrases to replace:\n{}", found.join("\n"));
}

fn phrases_in(prose: &str) -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    let is_of_word = |c: char| c.is_alphanumeric() || c == '_';
    let words: Vec<String> =
        prose.split(|c| !is_of_word(c)).filter(|w| !w.is_empty()).map(str::to_lowercase).collect();
    let line = format!(" {} ", words.join(" "));
    PHRASES.iter().filter(move |(phrase, _)| line.contains(&format!(" {phrase} ")))
}

fn files(place: &Path) -> Vec<PathBuf> {
    if place.is_file() {
        return vec![place.to_owned()];
    }
    let entries = fs::read_dir(place).unwrap_or_else(|e| panic!("{}: {e}", place.display()));
    let paths = entries.map(|entry| entry.expect("an entry").path());
    // This file has the phrases themselves.
    let is_text = |path: &PathBuf| {
        let extension = path.extension().and_then(OsStr::to_str).unwrap_or_default();
        ["rs", "h", "md"].contains(&extension) && !path.ends_with("docs/phrases.rs")
    };
    let mut files: Vec<PathBuf> =
        paths.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect();
    files.retain(is_text);
    files.sort();
    files
}

/// The paragraphs of a page, without its code blocks.
fn paragraphs(text: &str) -> Vec<Prose> {
    let mut paragraphs: Vec<Prose> = Vec::new();
    let (mut is_code, mut is_new) = (false, true);
    for (at, line) in text.lines().enumerate() {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        if is_code || is_fence || line.trim().is_empty() {
            is_new = true;
        } else if is_new || line.starts_with('|') {
            paragraphs.push((at + 1, line.to_owned()));
            is_new = false;
        } else if let Some((_, paragraph)) = paragraphs.last_mut() {
            *paragraph += "\n";
            *paragraph += line;
        }
    }
    paragraphs
}

/// The comments of a source, consecutive lines joined, and its string literals.
fn comments_and_literals(code: &str) -> Vec<Prose> {
    let mut proses: Vec<Prose> = Vec::new();
    let mut last_comment_line = None;
    let (mut line, mut rest) = (1, code);
    while let Some(c) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            let length = rest.find('\n').unwrap_or(rest.len());
            let comment = rest[..length].trim_start_matches(['/', '!']);
            match (last_comment_line, proses.last_mut()) {
                (Some(last), Some((_, prose))) if last + 1 == line => {
                    *prose += comment;
                }
                _ => proses.push((line, comment.to_owned())),
            }
            last_comment_line = Some(line);
            length
        } else if rest.starts_with("/*") {
            let length = rest.find("*/").map_or(rest.len(), |end| end + 2);
            proses.push((line, rest[..length].to_owned()));
            length
        } else if c == '"' {
            let length = literal_length(rest);
            proses.push((line, rest[..length].replace("\\n", " ")));
            length
        } else if rest.starts_with("'\"'") || rest.starts_with("'\\\"'") {
            rest[1..].find('\'').map_or(1, |end| end + 2)
        } else {
            c.len_utf8()
        };
        line += rest[..length].matches('\n').count();
        rest = &rest[length..];
    }
    proses
}

/// The length of the string literal at the beginning of `code`, with its quotes.
fn literal_length(code: &str) -> usize {
    let mut is_escaped = false;
    for (at, c) in code.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    code.len()
}

#[test]
fn phrases_are_found_in_prose_alone() {
    let found = |prose: &str| phrases_in(prose).map(|(phrase, _)| *phrase).collect::<Vec<_>>();
    assert_eq!(found("It Goes\n on,"), ["goes on"]);
    assert_eq!(found("ago on, goes one, `goes_on`"), [""; 0]);

    let code = "/// It goes\n/// on.\nfn goes_on() { say(\"for \\\n    want of\"); } // '\"'\nlet a = '\"'; b";
    let proses = comments_and_literals(code);
    let lines: Vec<usize> = proses.iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [1, 3, 4], "{proses:?}");
    assert_eq!(found(&proses[0].1), ["goes on"]);
    assert_eq!(found(&proses[1].1), ["for want of"]);

    let header = "/*\n * It goes\n * on.\n */\nint goes_on; /* to be had */";
    let proses = comments_and_literals(header);
    assert_eq!(found(&proses[0].1), ["goes on"]);
    assert_eq!((found(&proses[1].1), proses[1].0), (vec!["to be had"], 5));

    let page = "A line\nof two.\n\n```sh\ngoes on\n```\n| one |\n| two |\n";
    let lines: Vec<usize> = paragraphs(page).iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [1, 7, 8]);
}
