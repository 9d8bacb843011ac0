use super::super::document::Document;
use super::super::locate::Source;
use super::text::matches;
use serde::Deserialize;
use toml::Spanned;
use toml::de::Deserializer;

const MATRIX: &str = r#"
[[cases]]
name = "first"
[[cases]]
name = "{side}-{mtu}"
floor = 0
net.mtu = "{mtu}"
series = "{side} at {mtu} bytes"
exclude = ["off-9000"]
[cases.matrix]
side.without = {}
side.off.port.mode = "off"
side.on.port = { mode = "{side}", list = [1, "{mtu}"] }
side.on.bound = { over = "without-{mtu}", max = 2 }
mtu = [9000, 1500]
[cases.overrides]
"on-*, without-1500".late = true
on-1500.bound.max = 1.5
on-1500.late = false
"on-9000"."asks-{mtu}" = 1
[[cases]]
name = "last-{n}"
matrix.n = [0.5, true, "text"]
value = "{n}"
"#;

const WRITTEN: &str = r#"
[[cases]]
name = "first"
[[cases]]
name = "without-9000"
floor = 0
net.mtu = 9000
series = "without at 9000 bytes"
[[cases]]
name = "without-1500"
floor = 0
net.mtu = 1500
series = "without at 1500 bytes"
late = true
[[cases]]
name = "off-1500"
floor = 0
net.mtu = 1500
series = "off at 1500 bytes"
port.mode = "off"
[[cases]]
name = "on-9000"
floor = 0
net.mtu = 9000
series = "on at 9000 bytes"
port = { mode = "on", list = [1, 9000] }
bound = { over = "without-9000", max = 2 }
late = true
asks-9000 = 1
[[cases]]
name = "on-1500"
floor = 0
net.mtu = 1500
series = "on at 1500 bytes"
port = { mode = "on", list = [1, 1500] }
bound = { over = "without-1500", max = 1.5 }
late = false
[[cases]]
name = "last-0.5"
value = 0.5
[[cases]]
name = "last-true"
value = true
[[cases]]
name = "last-text"
value = "text"
"#;

fn read(source: &str) -> toml::Table {
    let document = Document::parse(source).unwrap();
    let table = Spanned::new(document.span(), document.table().clone());
    toml::Table::deserialize(Deserializer::from(table)).unwrap()
}

#[test]
fn a_matrix_is_the_cases_that_it_stands_for() {
    assert_eq!(read(MATRIX), read(WRITTEN));
}

/// The page of the fields has an example, and says which cases it makes.
#[test]
fn the_documented_example_makes_the_documented_cases() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments/README.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, example) = page.split_once("```toml\n[[cases]]\nname = \"{guest}-{mtu}\"").unwrap();
    let (example, text) = example.split_once("```").unwrap();
    let example = format!("[[cases]]\nname = \"{{guest}}-{{mtu}}\"{example}");
    let (_, names) = text.split_once("This example makes ").unwrap();
    let names = names.split_once(" |").unwrap().0.replace(" and ", ", ");
    let made = read(&example);
    let made = made["cases"].as_array().unwrap().iter();
    let made: Vec<String> =
        made.map(|case| format!("`{}`", case["name"].as_str().unwrap())).collect();
    assert_eq!(made.join(", "), names);
}

#[test]
fn mistakes_are_one_line_with_the_place_and_the_next_step() {
    let many = format!("mtu = [{}]\nb = {{{}}}", list(40), table(40));
    for (old, new, expected) in [
        (
            "{side} at",
            "{sides} at",
            "f.toml:8: cases[1].series: there is no axis 'sides': there are side, mtu",
        ),
        (
            "{side} at",
            "{side at",
            "f.toml:8: cases[1].series: '{side at {mtu} bytes' has no } for its {",
        ),
        (
            "\"without-{mtu}\"",
            "\"without-{m}\"",
            "f.toml:14: cases[1].matrix.side.on.bound.over: there is no axis 'm'",
        ),
        (
            "\"asks-{mtu}\"",
            "\"asks-{m}\"",
            "f.toml:20: cases[1].overrides.on-9000.asks-{m}: there is no axis 'm'",
        ),
        (
            "{side}-{mtu}",
            "{side}",
            "f.toml:5: cases[1].name: '{side}' does not contain {mtu}: name every axis",
        ),
        (
            "name = \"{side}-{mtu}\"",
            "",
            "f.toml:4: cases[1]: needs a name with its axes, such as \"{side}-{mtu}\"",
        ),
        (
            "[9000, 1500]",
            "[1500, 1500]",
            "f.toml:5: cases[1].name: two cases of the matrix are called 'without-1500': rename a value",
        ),
        (
            "[9000, 1500]",
            "[]",
            "f.toml:15: cases[1].matrix.mtu: has no values: add one, or remove the axis",
        ),
        ("[9000, 1500]", "{}", "f.toml:15: cases[1].matrix.mtu: has no values"),
        ("[9000, 1500]", "9000", "f.toml:15: cases[1].matrix.mtu: must be a list of values"),
        ("[9000, 1500]", "[[1]]", "f.toml:15: cases[1].matrix.mtu[0]: must be a text"),
        (
            "side.without = {}",
            "side.without = 1",
            "f.toml:11: cases[1].matrix.side.without: must be a table of what it sets",
        ),
        (
            "side.without = {}",
            "side.without.name = \"x\"",
            "f.toml:11: cases[1].matrix.side.without.name: is of the whole matrix",
        ),
        (
            "matrix.n = [0.5, true, \"text\"]",
            "matrix = {}",
            "f.toml:23: cases[2].matrix: has no axes: name each axis",
        ),
        (
            "matrix.n = [0.5, true, \"text\"]",
            "matrix = 1",
            "f.toml:23: cases[2].matrix: must be a table: name each axis",
        ),
        (
            "[\"off-9000\"]",
            "[\"of-*\"]",
            "f.toml:9: cases[1].exclude[0]: no case of the matrix is called 'of-*': there are without-9000, ",
        ),
        (
            "[\"off-9000\"]",
            "[\"*\"]",
            "f.toml:9: cases[1].exclude: excludes every case of the matrix: leave one",
        ),
        ("[\"off-9000\"]", "\"off-9000\"", "f.toml:9: cases[1].exclude: must be a list of names"),
        (
            "on-1500.late",
            "off-9000.late",
            "f.toml:19: cases[1].overrides.off-9000: no case of the matrix is called 'off-9000'",
        ),
        (
            "on-*, without-1500",
            "on-*, with-1500",
            "f.toml:17: cases[1].overrides.on-*, with-1500: no case of the matrix is called 'with-1500'",
        ),
        (
            "\"asks-{mtu}\" = 1",
            "\"a{mtu}\" = 1\non-9000.a9000 = 1",
            "f.toml:4: cases[1]: sets 'a9000' twice in 'on-9000': rename one",
        ),
        (
            "mtu = [9000, 1500]",
            &many,
            "cases[1].matrix: makes 4800 cases: 1000 are the most, split it",
        ),
        (
            "name = \"first\"",
            "name = \"first\"\nexclude = [\"a\"]",
            "f.toml:4: cases[0].exclude: only valid beside a matrix",
        ),
    ] {
        assert!(MATRIX.contains(old), "{old}");
        let source = MATRIX.replacen(old, new, 1);
        let source = if new == many { source.replacen("-{mtu}", "-{mtu}-{b}", 1) } else { source };
        let problem = Document::parse(&source).err().expect(expected);
        let error = Source::new("f.toml", &source).error(problem).to_string();
        assert!(error.contains(expected), "{error}");
        assert!(!error.contains('\n'), "{error}");
    }
}

fn list(count: usize) -> String {
    (0..count).map(|number| format!("{number},")).collect()
}

fn table(count: usize) -> String {
    let values: Vec<String> = (0..count).map(|number| format!("v{number} = {{}}")).collect();
    values.join(", ")
}

#[test]
fn a_star_stands_for_any_text() {
    for (pattern, name) in
        [("a", "a"), ("a-*", "a-"), ("*-b", "a-b"), ("a*c*e", "abcde"), ("*", ""), ("a*a", "aa")]
    {
        assert!(matches(pattern, name), "{pattern} {name}");
    }
    for (pattern, name) in [("a", "ab"), ("a-*", "b-a"), ("*-b", "a-bc"), ("a*a", "a")] {
        assert!(!matches(pattern, name), "{pattern} {name}");
    }
}
