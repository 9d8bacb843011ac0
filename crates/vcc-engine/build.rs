//! Compiles the engine and the parsing of frames natively, and generates their Rust bindings.

use std::path::PathBuf;
use std::{env, fs};

fn main() {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("../..");
    let engine = root.join("engine");
    let datapath = root.join("datapath");
    for dir in [&engine, &engine.join("cc"), &datapath] {
        println!("cargo::rerun-if-changed={}", dir.display());
        for file in fs::read_dir(dir).expect("the engine's sources") {
            println!("cargo::rerun-if-changed={}", file.unwrap().path().display());
        }
    }
    for file in SOURCES.into_iter().chain(["frames.h"]) {
        println!("cargo::rerun-if-changed={file}");
    }

    let mut build = cc::Build::new();
    build
        .files(SOURCES)
        .include(&engine)
        .include(&datapath)
        .std("c11")
        // A broken law panics in Rust and unwinds through the engine to its caller.
        .flags(["-ffreestanding", "-fexceptions", "-Wall", "-Wextra", "-Werror"]);
    // Check the laws if debug assertions are on.
    if env::var_os("CARGO_CFG_DEBUG_ASSERTIONS").is_some() {
        build.define("VCC_CHECK_LAWS", None);
    }
    // faults/run.sh compiles the engine by itself, so as to exchange it under tests that are built once.
    println!("cargo::rerun-if-env-changed=VCC_ENGINE_SHARED");
    if let Ok(directory) = env::var("VCC_ENGINE_SHARED") {
        println!("cargo::rustc-link-search=native={directory}");
        println!("cargo::rustc-link-lib=dylib=vcc_engine");
    } else {
        build.compile("vcc_engine");
    }

    let parsed = || {
        bindgen::Builder::default()
            .clang_args(["-ffreestanding".into(), format!("-I{}", engine.display())])
            .clang_arg(format!("-I{}", datapath.display()))
            .clang_arg(format!("-I{}", env::var("CARGO_MANIFEST_DIR").unwrap()))
            .layout_tests(false)
    };
    let types = parsed()
        .header_contents(
            "bindings.h",
            "#include \"abi.h\"\n#include \"hold.h\"\n#include \"pmtu.h\"\n#include \"snoop_ack.h\"\n#include \"split.h\"\n#include \"ack_thinning.h\"\n#include \"frames.h\"\n",
        )
        .allowlist_type("vcc_.*|our_option")
        .allowlist_type("(cubic|dctcp)_own")
        .allowlist_var("SSTHRESH_INFINITE")
        .allowlist_var("KIND_(NOP|SACK)|OPT_(FACK|HELLO|PACK)_BYTES|TIMESTAMPS_ONLY")
        .allowlist_var("BETA_ONE|FLOW_RELEASED|KEY_INSIDE|GENEVE_PORT|VXLAN_(LINUX_)?PORT|LAYOUT_VERSION|PREFIX_EDITION_BITS")
        .allowlist_var("(CUBIC|DCTCP)_.*")
        .allowlist_var("CWND_MAX_SEGS|SEGMENT_1024|WINDOW_LEAST_1024|(EMIT_)?LOOK_MIN_MS")
        .allowlist_var("UNDERLAY_(LOADED|SLOTS)|CC_HOOKS_VERSION|CC_OWN_ALPHA|CC_ALPHA_ONE|DELAY_UNIT_SHIFT|HISTOGRAM_BUCKETS|HISTOGRAM_LEAST_SHIFT|REPAIR_NEVER_US|RTO_MAX_US|RTT_MAX_US|SNOOP_NEVER_SEGS|RECEIVE_BUFFER_MAX_BYTES|SNOOP_RESERVED_SEGS|HELD_(FRAME|HEADER)_BYTES|GRANT_IDLE_MS")
        .prepend_enum_name(false)
        .default_enum_style(bindgen::EnumVariation::Consts)
        .derive_default(true)
        .derive_eq(true);
    write(types, "bindings.rs");
    // The C that is compiled is also what Rust believes of it.
    let functions = parsed()
        .headers(SOURCES)
        .blocklist_type(".*")
        .allowlist_function(format!("{NATIVE}.*"))
        .allowlist_function("vcc_loaded_hook|loaded_traits")
        .override_abi(bindgen::Abi::CUnwind, ".*")
        .parse_callbacks(Box::new(WithoutPrefix))
        .raw_line("use crate::sys::*;");
    write(functions, "native.rs");
}

/// native.c: the engine; frames.c: the parsing of frames.
const SOURCES: [&str; 2] = ["native.c", "frames.c"];

/// The prefix of their functions, which have a module of their own in Rust.
const NATIVE: &str = "vcc_native_";

#[derive(Debug)]
struct WithoutPrefix;

impl bindgen::callbacks::ParseCallbacks for WithoutPrefix {
    fn item_name(&self, item: bindgen::callbacks::ItemInfo) -> Option<String> {
        item.name.strip_prefix(NATIVE).map(str::to_owned)
    }
}

fn write(builder: bindgen::Builder, file: &str) {
    let bindings = builder.generate().unwrap_or_else(|error| {
        panic!("cannot generate the engine's bindings: {error}: `make deps` installs libclang")
    });
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap()).join(file);
    bindings.write_to_file(out).expect("writing the bindings");
}
