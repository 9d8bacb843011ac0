use std::path::Path;

use anyhow::Context;
use clap_complete::{Shell, generate_to};

pub fn write(mut command: clap::Command, directory: &Path) -> anyhow::Result<()> {
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        let name = command.get_name().to_owned();
        generate_to(shell, &mut command, name, directory)
            .with_context(|| format!("cannot write completions to {}", directory.display()))?;
    }
    Ok(())
}
