//! Compiles the library that is preloaded into QEMU.

use std::path::PathBuf;
use std::{env, io};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=locks.c");
    let library = PathBuf::from(env::var_os("OUT_DIR").unwrap()).join("locks.so");
    let status = cc::Build::new()
        .get_compiler()
        .to_command()
        .args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o"])
        .arg(library)
        .arg("locks.c")
        .status()?;
    if !status.success() {
        return Err(io::Error::other("locks.c could not be compiled, as said above"));
    }
    Ok(())
}
