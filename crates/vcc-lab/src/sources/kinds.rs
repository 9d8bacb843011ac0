//! What figures depend on, by the kind of the measurement.

/// A measurement depends on these crates and all that they use, on what they compile or embed, and on
/// these parts of crates of which the rest changes no figure.
pub struct Kind {
    pub name: &'static str,
    pub crates: &'static [&'static str],
    pub parts: &'static [Part],
}

/// Files with a name of their own.
#[derive(Clone, Copy)]
pub struct Part {
    pub name: &'static str,
    /// Below the root: directories, files, or all files of a directory with an extension, `guest/*.h`.
    pub paths: &'static [&'static str],
}

/// What a crate compiles or embeds from outside of it.
pub const OUTSIDE: &[(&str, Part)] = &[
    ("vcc-engine", part("engine", &["engine"])),
    ("vcc-engine", part("datapath/parsing", &PARSING)),
    ("vcc-port", part("datapath", &["datapath"])),
    ("vcc-uml", part("guest/kernel", &GUEST_KERNEL)),
    ("vcc-qemu", part("guest/live", &["guest/live", "guest/debian.sh", "guest/pvtcp"])),
];

/// Both shells have them.
const PARSING: [&str; 8] = [
    "datapath/abi.h",
    "datapath/byte_order.h",
    "datapath/frame_bytes.h",
    "datapath/holds_tcp.h",
    "datapath/options.h",
    "datapath/our_options.h",
    "datapath/protocols.h",
    "datapath/tcp_header.h",
];

const GUEST_KERNEL: [&str; 5] =
    ["guest/kernel", "guest/debian.sh", "guest/pvtcp/6.12", "guest/flood.h", "guest/flood_tcp.h"];

pub const KINDS: &[Kind] = &[
    Kind {
        name: "live",
        crates: &["vcc-fabric", "vcc-port", "vcc-traffic"],
        parts: &[GUEST_CONTROLS, RESULTS, RUNS, NETWORK, SCENARIO, TRANSLATION, LIVE],
    },
    Kind {
        name: "virtual",
        crates: VIRTUAL_CRATES,
        parts: &[RESULTS, RUNS, NETWORK, SCENARIO, TRANSLATION, CHEATS, VIRTUAL_TIME],
    },
    Kind {
        name: "machines",
        crates: &["vcc-domain", "vcc-port", "vcc-qemu", "vcc-traffic", "vcc-vcpu", "vcc-vhost"],
        parts: &[GUEST_CONTROLS, RESULTS, RUNS, DOMAIN, METER, MACHINES],
    },
    Kind {
        name: "wire",
        crates: &["vcc-port", "vcc-traffic"],
        parts: &[RESULTS, RUNS, SCENARIO, TRANSLATION, LIVE, METER, WIRE],
    },
    bench("bench-connections", &["vcc-port"], &[MEASURE]),
    bench("bench-datapath", &["vcc-port"], &[MEASURE]),
    bench("bench-domain", &["vcc-domain"], &[MEASURE]),
    bench("bench-flood", &["vcc-port", "vcc-traffic"], &[BENCH_FLOOD]),
    bench("bench-host", &["vcc-port", "vcc-view"], &[MEASURE, FLOWS, BENCH_HOST]),
    bench("bench-ports", &["vcc-daemon"], &[BENCH_PORTS]),
    bench(
        "bench-throughput",
        &["vcc-port", "vcc-traffic", "vcc-vhost"],
        &[DOMAIN, BENCH_THROUGHPUT],
    ),
    bench("bench-virtual", VIRTUAL_CRATES, &[SCENARIO, VIRTUAL_TIME, BENCH_VIRTUAL]),
];

const VIRTUAL_CRATES: &[&str] =
    &["vcc-domain", "vcc-fabric", "vcc-overlay", "vcc-traffic", "vcc-uml"];

const GUEST_CONTROLS: Part = part("guest", &["guest/*.c", "guest/*.h"]);
/// Measures, validity and verdicts, but not how they are shown.
const RESULTS: Part = part(
    "vcc-results",
    &[
        "crates/vcc-results/src/measure",
        "crates/vcc-results/src/result",
        "crates/vcc-results/src/report/outcome.rs",
        "crates/vcc-results/src/report/verdict.rs",
    ],
);
/// Which runs a case has, in which order.
const RUNS: Part = part("vcc-lab/runs", &["crates/vcc-lab/src/experiment/run.rs"]);
const NETWORK: Part = part("vcc-lab/network", &["crates/vcc-lab/src/network"]);
const SCENARIO: Part = part("vcc-lab/scenario", &["crates/vcc-lab/src/scenario"]);
const TRANSLATION: Part = part("vcc-lab/translation", &["crates/vcc-lab/src/translation"]);
const CHEATS: Part = part("vcc-lab/cheats", &["crates/vcc-lab/src/cheats"]);
const LIVE: Part = part("vcc-lab/live", &["crates/vcc-lab/src/backend/live"]);
const VIRTUAL_TIME: Part = part("vcc-lab/virtual", &["crates/vcc-lab/src/backend/virtual_time"]);
/// CPU use, of the run and of others.
const METER: Part = part("vcc-lab/meter", &["crates/vcc-lab/src/base/meter.rs"]);
const MACHINES: Part = part("vcc-lab/machines", &["crates/vcc-lab/src/machines"]);
const WIRE: Part = part("vcc-lab/wire", &["crates/vcc-lab/src/wire"]);
const BENCH_VIRTUAL: Part = part("vcc-lab/bench", &["crates/vcc-lab/src/bench"]);
const DOMAIN: Part = part("vcc/domain", &["crates/vcc/src/commands/domain"]);
const FLOWS: Part = part("vcc/flows", &["crates/vcc/src/commands/flows"]);
const MEASURE: Part = part("vcc-bench/measure", &["crates/vcc-bench/src/measure"]);
const BENCH_FLOOD: Part = part("vcc-bench/flood", &["crates/vcc-bench/src/flood"]);
const BENCH_HOST: Part = part("vcc-bench/host", &["crates/vcc-bench/src/host.rs"]);
const BENCH_PORTS: Part = part("vcc-bench/ports", &["crates/vcc-bench/src/ports"]);
const BENCH_THROUGHPUT: Part = part(
    "vcc-bench/throughput",
    &["crates/vcc-bench/src/throughput.rs", "crates/vcc-bench/src/wire.rs"],
);

const fn part(name: &'static str, paths: &'static [&'static str]) -> Part {
    Part { name, paths }
}

/// A benchmark is a kind of its own.
const fn bench(
    name: &'static str,
    crates: &'static [&'static str],
    parts: &'static [Part],
) -> Kind {
    Kind { name, crates, parts }
}
