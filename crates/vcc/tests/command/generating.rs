//! `vcc generate`: man pages and completions.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;
use vcc_policy::{KEYS, Key, dashed};
use vcc_testing::{ip, on_a_host, skip};

use crate::vcc;

/// Files that are gone with the value.
struct Generated(TempDir);

impl Generated {
    fn new(what: &str) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().display();
        assert_eq!(vcc(&format!("generate {what} {path}")).well(), "");
        Self(directory)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn names(&self) -> Vec<String> {
        let name = |entry: fs::DirEntry| entry.file_name().into_string().expect("UTF-8");
        let entries = fs::read_dir(self.0.path()).expect("a directory");
        let mut names: Vec<_> = entries.map(|entry| name(entry.expect("an entry"))).collect();
        names.sort();
        names
    }
}

/// The commands below `path`, by its help.
fn commands(path: &str) -> Vec<String> {
    let help = vcc(&format!("{path} --help")).well();
    let Some((_, list)) = help.split_once("\nCommands:\n") else { return Vec::new() };
    let lines = list.lines().take_while(|line| !line.is_empty());
    let names = lines.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    names.filter(|name| !["", "help"].contains(name)).map(str::to_owned).collect()
}

/// `what` in a shell, where it is installed.
#[track_caller]
fn shell(program: &str, arguments: &[&str]) -> Option<Output> {
    match Command::new(program).args(arguments).output() {
        Ok(output) => Some(output),
        Err(_) => {
            skip(&format!("no {program}"));
            None
        }
    }
}

#[track_caller]
fn printed(output: &Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && stderr.is_empty(), "{stderr}");
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

fn utf8(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

#[test]
fn every_command_has_a_page() {
    let pages = Generated::new("man");
    let mut expected = vec!["vcc.8".to_owned()];
    for command in commands("") {
        expected.push(format!("vcc-{command}.8"));
        expected.extend(commands(&command).iter().map(|below| format!("vcc-{command}-{below}.8")));
    }
    expected.sort();
    assert!(expected.len() > 15, "{expected:?}");
    assert_eq!(pages.names(), expected);

    let page = fs::read_to_string(pages.file("vcc-attach.8")).expect("a page");
    assert!(page.contains("--underlay") || page.contains("\\-\\-underlay"), "{page}");
    for name in pages.names() {
        let page = pages.file(&name);
        let Some(rendered) = shell("man", &["--warnings", "-l", utf8(&page)]) else { return };
        assert!(printed(&rendered).contains("NAME"), "{name}");
    }
}

/// What a terminal or a man page would show as it is.
fn has_markup(text: &str) -> Option<&str> {
    text.lines().find(|line| ["`", "](", "**"].iter().any(|mark| line.contains(mark)))
}

/// What a page's synopsis types behind `vcc`: the file's name joins words by hyphens, which a word may have, too.
fn command_of(page: &str) -> Option<String> {
    let (_, synopsis) = page.split_once(".SH SYNOPSIS\n\\fBvcc")?;
    let (command, _) = synopsis.split_once("\\fR")?;
    Some(command.replace("\\-", "-"))
}

#[test]
fn help_and_pages_are_free_of_markup() {
    let pages = Generated::new("man");
    for name in pages.names() {
        let text = fs::read_to_string(pages.file(&name)).expect("a page");
        assert_eq!(has_markup(&text), None, "{name}");
        let command = command_of(&text).expect("a synopsis");
        for help in ["--help", "-h"] {
            let text = vcc(&format!("{command} {help}")).well();
            assert_eq!(has_markup(&text), None, "vcc{command} {help}");
        }
    }
    let attach = fs::read_to_string(pages.file("vcc-attach.8")).expect("a page");
    assert!(attach.contains("until \\fBvcc detach\\fR or"), "{attach}");
    let completions = Generated::new("completions");
    // The others have backticks of their own syntax.
    let zsh = fs::read_to_string(completions.file("_vcc")).expect("a script");
    assert!(!zsh.contains("\\`"), "{zsh}");
}

#[test]
fn what_packages_are_made_with_is_not_shown() {
    let completions = Generated::new("completions");
    assert_eq!(completions.names(), ["_vcc", "vcc.bash", "vcc.fish"]);
    for name in completions.names() {
        let text = fs::read_to_string(completions.file(&name)).expect("a script");
        let text = text.replace("vcc generate ports ", "").replace("vcc generate underlays ", "");
        assert!(text.contains("attach") && !text.contains("generate"), "{name}");
    }
    assert!(!vcc("--help").well().contains("generate"));
    let complaint = vcc("generate man /proc/nowhere").complaint(1);
    assert!(complaint.starts_with("cannot create the directory /proc/nowhere:"), "{complaint}");
}

#[test]
fn former_options_are_not_completed() {
    let completions = Generated::new("completions");
    for name in completions.names() {
        let text = fs::read_to_string(completions.file(&name)).expect("a script");
        let is_offered = |key: &str| {
            let option = dashed(key);
            // fish has the second form.
            [format!("--{option}"), format!("-l {option}")].iter().any(|form| {
                let mut after = text.match_indices(form).map(|(at, _)| &text[at + form.len()..]);
                after.any(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '-'))
            })
        };
        assert!(is_offered("window_cap"), "{name}");
        for (former, _) in KEYS.iter().flat_map(Key::formerly) {
            assert!(!is_offered(former), "{former} in {name}");
        }
    }
}

/// bash passes the words and the position of the cursor.
const ASK_BASH: &str = r#"source "$1"; COMP_LINE=$2; read -ra COMP_WORDS <<<"$2"
    [[ $2 == *" " ]] && COMP_WORDS+=("")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMP_POINT=${#2}; COMP_TYPE=9
    _vcc vcc "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
    printf '%s\n' "${COMPREPLY[@]}""#;

/// The command, as a shell finds it.
fn path() -> String {
    let own = Path::new(env!("CARGO_BIN_EXE_vcc")).parent().expect("a directory");
    format!("{}:{}", own.display(), std::env::var("PATH").expect("a path"))
}

#[test]
fn names_that_the_host_knows_are_completed() {
    on_a_host(|| {
        let completions = Generated::new("completions");
        ip("link add port1 type veth peer name guest1");
        ip("link add pine type veth peer name palm");
        // bash would run it.
        ip("link add p$(reboot) type veth peer name p`id`");
        vcc("attach port1").well();
        let ask = |program: &str, arguments: &[&str]| {
            let output = Command::new(program).args(arguments).env("PATH", path()).output().ok()?;
            let printed = printed(&output);
            // fish adds a description behind a tab.
            let words = printed.lines().filter_map(|line| line.split('\t').next());
            let mut words: Vec<String> = words.map(str::to_owned).collect();
            words.sort();
            Some(words)
        };
        let script = completions.file("vcc.bash");
        let fish = completions.file("vcc.fish");
        for (line, expected) in [
            ("vcc attach p", &["palm", "pine", "port1"][..]),
            ("vcc attach port1 pi", &["pine"]),
            ("vcc doctor --device p", &["palm", "pine", "port1"]),
            ("vcc detach p", &["port1"]),
            ("vcc attach pine --same-guest-as p", &["port1"]),
            ("vcc explain 1.1.1.1:1 1.1.1.2:2 --device p", &["port1"]),
        ] {
            let answer = ask("bash", &["-c", ASK_BASH, "bash", utf8(&script), line]);
            assert_eq!(answer.expect("bash"), expected, "{line}");
            let in_fish = format!("source {}; complete --do-complete '{line}'", utf8(&fish));
            let Some(answer) = ask("fish", &["--no-config", "-c", &in_fish]) else { continue };
            assert_eq!(answer, expected, "{line}");
        }
        let text = fs::read_to_string(completions.file("_vcc")).expect("a script");
        assert!(text.contains(":DEV:_vcc_devices' \\\n") && text.contains("\n_vcc_ports() {\n"));
    });
}

#[test]
fn bash_completes() {
    let completions = Generated::new("completions");
    let script = completions.file("vcc.bash");
    let Some(checked) = shell("bash", &["-n", utf8(&script)]) else { return };
    printed(&checked);
    for (line, expected) in [
        ("vcc att", "attach"),
        ("vcc policy ch", "check"),
        ("vcc attach veth3 --under", "--underlay"),
        ("vcc attach veth3 --underlay dctcp-", "dctcp-priority"),
    ] {
        let answer = shell("bash", &["-c", ASK_BASH, "bash", utf8(&script), line]).expect("bash");
        assert_eq!(printed(&answer), format!("{expected}\n"), "{line}");
    }
}

#[test]
fn zsh_reads_its_completions() {
    let completions = Generated::new("completions");
    let script = completions.file("_vcc");
    let Some(checked) = shell("zsh", &["--no-rcs", "-n", utf8(&script)]) else { return };
    printed(&checked);
    let ask = r#"fpath=($1 $fpath); autoload -Uz compinit; compinit -u -D; print $_comps[vcc]"#;
    let answer =
        shell("zsh", &["--no-rcs", "-c", ask, "zsh", utf8(completions.0.path())]).expect("zsh");
    assert_eq!(printed(&answer), "_vcc\n");
}

#[test]
fn fish_completes() {
    let completions = Generated::new("completions");
    let script = completions.file("vcc.fish");
    let ask = format!("source {}; complete --do-complete 'vcc policy ch'", utf8(&script));
    let Some(answer) = shell("fish", &["--no-config", "-c", &ask]) else { return };
    let answer = printed(&answer);
    assert!(answer.starts_with("check\t"), "{answer}");
}

#[test]
fn the_definitions_of_kubernetes_resources_are_those_of_the_packages() {
    let file = include_str!("../../../../packaging/kubernetes/crds.yaml");
    assert!(
        vcc("generate crds").well() == file,
        "`vcc generate crds >packaging/kubernetes/crds.yaml`; what was there is stable, so only add"
    );
}
