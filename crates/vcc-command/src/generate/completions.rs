use std::fs;
use std::path::Path;

use anyhow::Context;
use clap::Arg;
use clap::builder::PossibleValuesParser;
use clap_complete::{Shell, generate_to};

use crate::markup::quoted;

/// Words that only the host knows, and by which command: a placeholder stands for them in what clap
/// generates.
struct Words {
    placeholder: &'static str,
    command: &'static str,
}

const DEVICES: Words = Words {
    placeholder: "@devices@",
    command: "ls /sys/class/net 2>/dev/null | grep -vx bonding_masters",
};
const PORTS: Words = Words { placeholder: "@ports@", command: "vcc generate ports 2>/dev/null" };
const UNDERLAYS: Words =
    Words { placeholder: "@underlays@", command: "vcc generate underlays 2>/dev/null" };
const EXPERIMENTS: Words = Words {
    placeholder: "@experiments@",
    command: "vcc-lab list 2>/dev/null | tail -n +2 | cut -d ' ' -f 1",
};
const ALL: [Words; 4] = [DEVICES, PORTS, UNDERLAYS, EXPERIMENTS];

/// bash expands the words of a list, and a name may contain anything: `$(...)`, for one.
const HARMLESS: &str = "grep -x '[[:alnum:]._@-]*'";

/// Where a device need not be a port.
const TAKE_DEVICES: [&str; 3] = ["attach", "doctor", "domain"];

fn words(command: &str, arg: &Arg) -> Option<Words> {
    let name = arg.get_value_names()?.first()?.as_str();
    let takes_devices = TAKE_DEVICES.contains(&command) && arg.get_id() != "same_guest_as";
    match (command, name) {
        (_, "DEV") if takes_devices => Some(DEVICES),
        (_, "DEV") => Some(PORTS),
        ("unload", "NAME") if arg.is_positional() => Some(UNDERLAYS),
        ("run", "ID") => Some(EXPERIMENTS),
        _ => None,
    }
}

pub fn write(command: clap::Command, directory: &Path) -> anyhow::Result<()> {
    let name = command.get_name().to_owned();
    let positionals = positionals_of_fish(&command, &[]);
    let mut command = prepared(command);
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        let failed = || format!("cannot write completions to {}", directory.display());
        let path = generate_to(shell, &mut command, &name, directory).with_context(failed)?;
        let mut text = fs::read_to_string(&path).with_context(failed)?;
        if shell == Shell::Fish {
            text += &positionals;
        }
        if shell == Shell::Bash {
            // Clap spells the name of a program with a dash in two ways, and finds no subcommand of it.
            let [spelled, known] = ["__subcmd__", "__"].map(|dash| name.replace('-', dash));
            text = text.replace(&format!("{spelled}__subcmd__"), &format!("{known}__subcmd__"));
        }
        for words in ALL {
            text = with_words(shell, &name, text, &words);
        }
        fs::write(&path, text).with_context(failed)?;
    }
    Ok(())
}

/// With placeholders for words of the host, and without markup in descriptions.
fn prepared(command: clap::Command) -> clap::Command {
    let name = command.get_name().to_owned();
    let place = |arg: Arg| {
        let help = arg.get_help().map(|help| quoted(&help.to_string()));
        let arg = match help {
            Some(help) => arg.help(help),
            None => arg,
        };
        match words(&name, &arg) {
            Some(words) => arg.value_parser(PossibleValuesParser::new([words.placeholder])),
            None => arg,
        }
    };
    let about = command.get_about().map(|about| quoted(&about.to_string()));
    let command = match about {
        Some(about) => command.about(about),
        None => command,
    };
    command.mut_args(place).mut_subcommands(prepared)
}

/// Clap generates none. `path`: the commands above, without the name of the program.
fn positionals_of_fish(command: &clap::Command, path: &[&str]) -> String {
    let mut text = String::new();
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        let path = [path, &[below.get_name()]].concat();
        text += &positionals_of_fish(below, &path);
        let args = below.get_positionals().filter_map(|arg| words(below.get_name(), arg));
        for Words { placeholder, .. } in args {
            let seen: Vec<String> =
                path.iter().map(|it| format!("__fish_seen_subcommand_from {it}")).collect();
            let (program, when) = (command_name(command), seen.join("; and "));
            text += &format!("complete -c {program} -n \"{when}\" -f -a \"{placeholder}\\t''\"\n");
        }
    }
    text
}

/// Of the program, once clap has built its commands.
fn command_name(command: &clap::Command) -> &str {
    let whole = command.get_bin_name().unwrap_or(command.get_name());
    whole.split(' ').next().unwrap_or(whole)
}

fn with_words(shell: Shell, name: &str, text: String, words: &Words) -> String {
    let Words { placeholder, command } = words;
    let command = format!("{command} | {HARMLESS}");
    match shell {
        Shell::Fish => text.replace(&format!("{placeholder}\\t''"), &format!("({command})")),
        Shell::Zsh if text.contains(placeholder) => {
            let function = format!("_{name}_{}", placeholder.trim_matches('@'));
            let begin = format!("\n_{name}() {{\n");
            let definition = format!(
                "\n{function}() {{\n    local -a names\n    names=(${{(f)\"$({command})\"}})\n    \
                 compadd \"$@\" -a names\n}}\n"
            );
            text.replace(&format!("({placeholder})"), &function).replacen(
                &begin,
                &format!("{definition}{begin}"),
                1,
            )
        }
        _ => text.replace(placeholder, &format!("$({command})")),
    }
}
