//! Tables of the documentation that code defines.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// With this variable a test writes the document instead of comparing it.
const WRITE: &str = "VCC_WRITE_DOCS";

/// A file of the documentation, and the command that writes its tables.
pub struct Document {
    path: PathBuf,
    command: &'static str,
}

/// A row of a table: its name, and the cells that code defines. The last cell is the document's own.
pub struct Row {
    pub name: &'static str,
    pub cells: Vec<String>,
}

impl Document {
    /// By its path in the project. `command` tests it.
    pub fn new(path: &str, command: &'static str) -> Self {
        Self { path: Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path), command }
    }

    pub fn text(&self) -> String {
        fs::read_to_string(&self.path).unwrap_or_else(|e| panic!("{}: {e}", self.path.display()))
    }

    /// The text between `<!-- NAME: generated -->` and `<!-- end of NAME -->` is this.
    #[track_caller]
    pub fn assert_generated(&self, name: &str, wanted: &str) {
        let text = self.text();
        let (begin, end) =
            (format!("<!-- {name}: generated -->\n"), format!("<!-- end of {name} -->\n"));
        let (before, rest) = text.split_once(&begin).expect("the begin of the table");
        let (_, after) = rest.split_once(&end).expect("the end of the table");
        self.assert_is(&text, &format!("{before}{begin}{wanted}{end}{after}"));
    }

    /// The tables have these rows and no others whose names `is_one` accepts.
    #[track_caller]
    pub fn assert_rows(&self, rows: &[Row], is_one: impl Fn(&str) -> bool) {
        let text = self.text();
        let mut missing: Vec<&Row> = rows.iter().collect();
        let mut written = String::new();
        for line in text.split_inclusive('\n') {
            let name = line.strip_prefix("| `").and_then(|rest| Some(rest.split_once("` |")?.0));
            let Some(name) = name.filter(|name| is_one(name)) else {
                written += line;
                continue;
            };
            let place = missing.iter().position(|row| row.name == name);
            let row =
                missing.remove(place.unwrap_or_else(|| panic!("`{name}` is there, or twice")));
            let own = line.trim_end().trim_end_matches('|').rsplit('|').next().unwrap_or_default();
            assert!(!own.trim().is_empty(), "{line}");
            let cells: String =
                row.cells.iter().map(|cell| format!("{} |", padded(cell))).collect();
            written += &format!("| `{name}` |{cells}{own}|\n");
        }
        let missing: Vec<&str> = missing.iter().map(|row| row.name).collect();
        assert!(missing.is_empty(), "rows of {missing:?} are missing");
        self.assert_is(&text, &written);
    }

    #[track_caller]
    fn assert_is(&self, text: &str, wanted: &str) {
        if text == wanted {
            return;
        }
        if env::var_os(WRITE).is_some() {
            return fs::write(&self.path, wanted).expect("written");
        }
        panic!("{} is stale: `{WRITE}=1 {}` writes it", self.path.display(), self.command);
    }
}

fn padded(cell: &str) -> String {
    if cell.is_empty() { String::new() } else { format!(" {cell}") }
}
