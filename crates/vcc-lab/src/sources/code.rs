//! The lines of a source file that a figure can depend on: no comments, no tests.

/// What is left of a file.
#[derive(Debug, Default, PartialEq)]
pub struct Code<'a> {
    /// Without indentation.
    pub lines: Vec<&'a str>,
    /// Modules that only tests have.
    pub test_modules: Vec<&'a str>,
}

/// By the extension of the file's name.
pub fn parse<'a>(extension: &str, text: &'a str) -> Code<'a> {
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    match extension {
        "rs" => rust(text),
        "c" | "h" => Code { lines: c(text), ..Code::default() },
        "sh" | "toml" => {
            let lines = lines().filter(|line| !line.starts_with('#'));
            Code { lines: lines.collect(), ..Code::default() }
        }
        // In others, such as a kernel's configuration, a comment can have a meaning.
        _ => Code { lines: lines().collect(), ..Code::default() },
    }
}

/// Leaves out items at the margin that are `#[cfg(test)]`. As rustfmt has them, an item ends with the
/// first line at the margin that ends in a brace or a semicolon.
fn rust(text: &str) -> Code<'_> {
    let mut code = Code::default();
    let mut in_test = false;
    for line in text.lines() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with("//") {
            continue;
        }
        if line == "#[cfg(test)]" {
            in_test = true;
        } else if in_test {
            let at_margin = !line.starts_with(char::is_whitespace);
            if at_margin && trimmed.ends_with(['}', ';']) {
                code.test_modules.extend(module(trimmed));
                in_test = false;
            }
        } else {
            code.lines.push(trimmed);
        }
    }
    code
}

/// The name in `mod NAME;`
fn module(line: &str) -> Option<&str> {
    line.strip_suffix(';')?.split_once("mod ").map(|(_, name)| name)
}

fn c(text: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut in_comment = false;
    for line in text.lines() {
        let mut rest = line.trim();
        loop {
            if in_comment {
                let Some((_, after)) = rest.split_once("*/") else { break };
                (rest, in_comment) = (after.trim_start(), false);
            }
            let Some(comment) = rest.strip_prefix("/*") else { break };
            (rest, in_comment) = (comment, true);
        }
        if in_comment || rest.is_empty() || rest.starts_with("//") {
            continue;
        }
        lines.push(rest);
        in_comment = rest.rsplit_once("/*").is_some_and(|(_, comment)| !comment.contains("*/"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_tests_of_rust_are_left_out() {
        let text = "//! About it.\n\nmod a;\n#[cfg(test)]\nmod tests;\n#[cfg(test)]\n#[path = \"x.rs\"]\n\
                    pub(crate) mod made;\n#[cfg(test)]\npub use made::{\n    B,\n};\n\n/// About b.\n\
                    fn b() {\n    // Why.\n    c(); // How.\n}\n\n#[cfg(test)]\nmod more {\n    \
                    fn d() {\n    }\n}\nfn e() {}\n";
        let code = parse("rs", text);
        assert_eq!(code.lines, ["mod a;", "fn b() {", "c(); // How.", "}", "fn e() {}"]);
        assert_eq!(code.test_modules, ["tests", "made"]);
    }

    #[test]
    fn comments_of_c_are_left_out() {
        let text = "/* SPDX */\n/*\n * About it.\n */\n#include \"a.h\"\n\n// Why.\n\
                    int a; /* begins here\n          and ends here */ int b;\n/* x */ int c; /* y */\n";
        let lines = ["#include \"a.h\"", "int a; /* begins here", "int b;", "int c; /* y */"];
        assert_eq!(parse("h", text).lines, lines);
    }

    #[test]
    fn comments_of_scripts_are_left_out_and_those_of_configurations_are_not() {
        let text = "# a\n\n  b = 1 # c\n";
        assert_eq!(parse("sh", text).lines, ["b = 1 # c"]);
        assert_eq!(parse("toml", text).lines, ["b = 1 # c"]);
        assert_eq!(parse("", "# CONFIG_X is not set\n").lines, ["# CONFIG_X is not set"]);
    }
}
