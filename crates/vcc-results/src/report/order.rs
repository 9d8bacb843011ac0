//! The order of results: figure 2 before figure 11.

use super::ResultFile;
use std::path::PathBuf;

/// Numbers within a name by their size.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    Number(u64),
    Text(String),
}

pub fn key(file: &ResultFile) -> (Vec<Part>, PathBuf) {
    (parts(&file.report.experiment), file.path.clone())
}

pub fn parts(name: &str) -> Vec<Part> {
    let characters: Vec<char> = name.chars().collect();
    let alike = characters.chunk_by(|a, b| a.is_ascii_digit() == b.is_ascii_digit());
    let part = |part: &[char]| {
        let text: String = part.iter().collect();
        text.parse().map_or(Part::Text(text), Part::Number)
    };
    alike.map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_count_by_their_size() {
        let mut names = ["vcc-fig11", "acdc-tab1", "vcc-fig2", "acdc-fig9", "vcc-shadow"];
        names.sort_by_key(|name| parts(name));
        assert_eq!(names, ["acdc-fig9", "acdc-tab1", "vcc-fig2", "vcc-fig11", "vcc-shadow"]);
    }
}
