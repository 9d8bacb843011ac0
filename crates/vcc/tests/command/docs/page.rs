//! The pages, and the lines that a reader is to type.

use std::fs;
use std::path::{Path, PathBuf};

pub struct Page {
    pub name: String,
    pub lines: Vec<String>,
    /// Name and text of the files that it shows.
    pub files: Vec<(String, String)>,
}

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the sources")
}

impl Page {
    /// By its path below the root.
    pub fn read(name: &str) -> Self {
        let text = fs::read_to_string(root().join(name)).expect("UTF-8");
        Self { name: name.to_owned(), lines: lines(name, &text), files: files(&text) }
    }

    pub fn all() -> Vec<Self> {
        names().iter().map(|name| Self::read(name)).collect()
    }
}

/// The text of a page below a heading, up to the next one of its level.
pub fn section(page: &str, heading: &str) -> String {
    let text = std::fs::read_to_string(root().join(page)).expect("UTF-8");
    let (_, section) = text.split_once(&format!("\n## {heading}\n")).expect("the section");
    section.split("\n## ").next().unwrap_or_default().to_owned()
}

/// README.md, docs/*.md and experiments/README.md, sorted.
pub fn names() -> Vec<String> {
    let root = root();
    let mut paths = vec![root.join("README.md"), root.join("experiments/README.md")];
    for entry in fs::read_dir(root.join("docs")).expect("docs") {
        paths.push(entry.expect("an entry").path());
    }
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    let name =
        |path: PathBuf| path.strip_prefix(&root).expect("a path below it").display().to_string();
    let mut names: Vec<String> = paths.into_iter().map(name).collect();
    names.sort();
    names
}

/// The lines of all ```` ```sh ```` blocks, without their comments.
pub fn lines(name: &str, text: &str) -> Vec<String> {
    let (mut lines, mut fence, mut begun) = (Vec::new(), None, String::new());
    for line in text.lines() {
        match (line.trim().strip_prefix("```"), fence) {
            (Some(language), None) => {
                let known = ["", "sh", "toml", "c", "json", "rust", "xml", "yaml"];
                assert!(known.contains(&language), "{name}: a block of {language}: sh is tested");
                fence = Some(language);
            }
            (Some(_), Some(_)) => fence = None,
            (None, Some("sh")) => {
                let line = line.split_once(" #").map_or(line, |(line, _)| line).trim();
                if let Some(part) = line.strip_suffix('\\') {
                    begun += part.trim_end();
                    begun += " ";
                } else if !line.is_empty() && !line.starts_with('#') {
                    lines.push(std::mem::take(&mut begun) + line);
                }
            }
            _ => {}
        }
    }
    assert!(fence.is_none() && begun.is_empty(), "{name}: a block without an end");
    lines
}

/// The blocks behind a paragraph that ends with "the file `NAME`:".
pub fn files(text: &str) -> Vec<(String, String)> {
    let named = |before: &str| {
        let rest = before.trim_end().strip_suffix("`:")?;
        rest.rsplit_once("file `").map(|(_, name)| name.to_owned())
    };
    let (mut files, mut rest) = (Vec::new(), text);
    while let Some((before, behind)) = rest.split_once("```") {
        let Some((block, after)) = behind.split_once("```") else { break };
        let block = block.split_once('\n').map_or("", |(_, block)| block);
        files.extend(named(before).map(|name| (name, block.to_owned())));
        rest = after;
    }
    files
}
