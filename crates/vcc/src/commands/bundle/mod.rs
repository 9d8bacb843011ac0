//! A file with what a report of a problem needs.

mod addresses;
mod archive;
mod collection;
mod contents;
mod host;

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use jiff::Timestamp;
use vcc_command::output;
use vcc_daemon::counted;

use self::collection::Collection;
use super::private_file;

/// Write a file with the state of vcc and of this host, for a report of a problem
///
/// The file is a tar.gz that only its owner can read, and it contains no payload. Its MANIFEST.txt lists the
/// files: the output of doctor, status, ports and flows, the policy in force, counters, metrics, versions, and
/// the last lines about vcc in the journal and about BPF in the kernel's log. What could not be collected is
/// listed in problems.txt and on stderr; the command succeeds without it. Run it as root.
///
/// The addresses of guests and peers are in the file, unless --anonymous replaces them. Names of devices,
/// tenants, guests, rules and programs stay. Read the file before you pass it on.
#[derive(clap::Args)]
pub struct Arguments {
    /// The file to write, or `-` for stdout [default: vcc-bundle-HOST-DATE.tar.gz]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,

    /// Replace each IP address by a made-up one, the same in all files; TCP ports stay
    #[arg(long)]
    anonymous: bool,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let is_to_stdout = arguments.file.as_deref() == Some(Path::new("-"));
    if is_to_stdout && io::stdout().is_terminal() {
        bail!("a bundle is no text, and stdout is a terminal: `vcc bundle FILE`");
    }
    let now = Timestamp::now();
    let name = name(arguments, now);
    let mut collection = Collection::default();
    contents::collect(&mut collection);
    if arguments.anonymous {
        addresses::replace_in(collection.texts());
    }
    collection.problems().iter().for_each(|problem| output::complain(problem));
    let addresses = if arguments.anonymous { "made up" } else { "those of guests and peers" };
    let at = now.strftime("%F %T UTC");
    let title = format!("{name}, written at {at}; addresses are {addresses}");
    let (files, problems) = (collection.files(), collection.problems().len());
    let packed = archive::pack(&name, &collection.finish(&title), now)?;
    if is_to_stdout {
        return to_stdout(&packed);
    }
    let file = arguments.file.clone().unwrap_or_else(|| format!("{name}.tar.gz").into());
    private_file::write(&file, &packed)
        .with_context(|| format!("cannot write {}", file.display()))?;
    let about = if arguments.anonymous {
        "names of devices, tenants and rules are in it; addresses are made up"
    } else {
        "it has the addresses of guests and peers, which --anonymous replaces"
    };
    output::say(&format!(
        "wrote {}: {}, {}; {about}\n",
        file.display(),
        counted(files, "file"),
        counted(problems, "problem")
    ));
    Ok(ExitCode::SUCCESS)
}

/// Of the directory in the archive, and of the default file.
fn name(arguments: &Arguments, now: Timestamp) -> String {
    // The host's name may be its address.
    let host = if arguments.anonymous {
        "anonymous".to_owned()
    } else {
        fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default()
    };
    let in_names = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
    let host: String = host.trim().chars().map(in_names).collect();
    format!("vcc-bundle-{host}-{}", now.strftime("%Y%m%d-%H%M%S"))
}

fn to_stdout(bytes: &[u8]) -> anyhow::Result<ExitCode> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        // As with text, a reader that has gone is no failure.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(error).context("cannot write to stdout")
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}
