//! Underlays that users write: the objects, and the errors.

use std::fs;
use std::path::Path;

use vcc_engine::{FlowState, Hooks, Params, Slot, Underlay, sys};
use vcc_underlay::{Machine, Object, ObjectError, build, check};

/// Reno with a reduction by an eighth, and `change` in it.
fn gentle(change: impl Fn(String) -> String) -> String {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/congestion-control.md");
    let page = fs::read_to_string(page).expect("the page");
    change(page.split("```c\n").nth(1).expect("an underlay").split("```").next().unwrap().into())
}

fn build_text(text: &str) -> Result<Object, String> {
    let directory = tempfile::tempdir().expect("a directory");
    let source = directory.path().join("gentle.h");
    fs::write(&source, text).expect("a file");
    let output = |e: vcc_underlay::BuildError| match e.to_string().split_once("gentle.h:") {
        Some((_, rest)) => format!("gentle.h:{rest}"),
        None => e.to_string(),
    };
    build(&source).map(|(object, _)| object).map_err(output)
}

/// The number of the line with `text`.
fn line_of(source: &str, text: &str) -> usize {
    source.lines().position(|line| line.contains(text)).expect("a line") + 1
}

fn refusal(text: &str) -> String {
    build_text(text).expect_err("it is refused")
}

fn fault(text: &str) -> String {
    let output = refusal(text);
    output.strip_prefix("gentle.h:").expect("the fault's line").to_owned()
}

#[test]
fn an_underlay_becomes_an_object_whose_hooks_are_checked() {
    let object = build_text(&gentle(|it| it)).expect("an object");
    assert_eq!((object.name(), object.about()), ("gentle", "Reno with a reduction by an eighth"));
    assert_eq!(object.traits(), sys::CC_CONTROLS | sys::CC_ECN);
    let checked = check(&object).expect("it is sound");
    assert_eq!(checked.twins, 7);
}

/// One can be taken out of vcc, changed, and loaded again.
#[test]
fn each_built_in_underlay_is_sound_as_one_that_is_loaded() {
    let engine = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../engine/cc");
    for built_in in Underlay::built_in().filter(|it| it.controls()) {
        let source = engine.join(format!("{}.h", built_in.name().replace('-', "_")));
        let text = fs::read_to_string(source).expect("its file");
        let text = text.replace("#include \"../", "#include \"");
        let text = text.replace(&format!("\"{}\"", built_in.name()), "\"copy\"");
        let text = text.replace("VCC_CC_", "VCC_COPY_");
        let object = build_text(&text).unwrap_or_else(|e| panic!("{built_in}: {e}"));
        check(&object).unwrap_or_else(|e| panic!("{built_in}: {e}"));
    }
}

#[test]
fn a_window_of_0_is_reported_with_its_line() {
    let source = gentle(|it| {
        it.replace("vcc_max(cc->cwnd_segs - cc->cwnd_segs / 8, RENO_MIN_SSTHRESH_SEGS)", "0")
    });
    let line = line_of(&source, "ssthresh_segs = 0");
    let output = fault(&source);
    let expected =
        format!("{line}: leaves ssthresh_segs at 0: it must be 1 to 65535; the arguments were");
    assert!(output.starts_with(&expected), "{output}");
}

#[test]
fn a_window_of_nearly_2_to_32_is_reported_with_its_line() {
    let source = gentle(|it| {
        it.replace("\treno_on_timeout(cc);", "\treno_on_timeout(cc);\n\tcc->cwnd_segs = 0u - 1;")
    });
    let line = line_of(&source, "0u - 1");
    let output = fault(&source);
    assert!(output.starts_with(&format!("{line}: leaves cwnd_segs at 4294967295")), "{output}");
}

#[test]
fn a_division_by_0_is_reported_with_its_line() {
    let source = gentle(|it| {
        it.replace(
            "\treno_on_ack(cc, ack);",
            "\treno_on_ack(cc, ack);\n\tcc->own[0] /= ack->srtt_us;",
        )
    });
    let line = line_of(&source, "ack->srtt_us");
    let output = fault(&source);
    assert!(output.starts_with(&format!("{line}: divides by 0")), "{output}");
}

#[test]
fn an_unknown_word_of_an_underlay_is_reported_with_its_line() {
    let source = gentle(|it| {
        let index = "\treno_on_ack(cc, ack);\n\tcc->own[ack->mss_bytes] = 1;";
        it.replace("\treno_on_ack(cc, ack);", index)
    });
    let line = line_of(&source, "own[ack->mss_bytes]");
    let output = fault(&source);
    assert!(
        output.starts_with(&format!("{line}: writes memory that a hook may not write")),
        "{output}"
    );
}

#[test]
fn an_endless_loop_is_reported_with_its_line() {
    let source = gentle(|it| {
        let add = "\treno_on_ack(cc, ack);\n\tfor (uint32_t i = 0; i < ack->acked_bytes; i++)\n\t\tcc->own[0] ^= cc->own[0] * 3 + i;";
        it.replace("\treno_on_ack(cc, ack);", add)
    });
    let line = line_of(&source, "for (uint32_t i");
    let output = fault(&source);
    let lines = [line, line + 1].map(|line| format!("{line}: has run for 4096 instructions"));
    assert!(lines.iter().any(|line| output.starts_with(line)), "{output}");
}

#[test]
fn data_of_its_own_is_refused() {
    let source = gentle(|it| {
        let it = it.replace(
            "VCC_INLINE void gentle_init",
            "static uint32_t calls;\n\nVCC_INLINE void gentle_init",
        );
        it.replace("\treno_on_ack(cc, ack);", "\treno_on_ack(cc, ack);\n\tcc->own[0] = ++calls;")
    });
    let output = refusal(&source);
    assert!(output.contains("data of its own"), "{output}");
    assert!(output.starts_with(&format!("gentle.h:{}: ", line_of(&source, "++calls"))), "{output}");
}

#[test]
fn a_map_of_its_own_is_refused() {
    let source = gentle(|it| {
        let map = "struct { int (*type)[2]; } m __attribute__((section(\".maps\"), used));\n";
        it.replace("VCC_INLINE void gentle_init", &format!("{map}VCC_INLINE void gentle_init"))
    });
    // The frame reads the file twice, and only what is in its guard once.
    let output = refusal(&source);
    assert!(output.contains("data of its own (section .maps)"), "{output}");
}

#[test]
fn a_call_of_the_kernel_is_refused_with_its_line() {
    let source = gentle(|it| {
        let add = "\treno_on_ack(cc, ack);\n\tcc->own[0] = (uint32_t)((uint64_t (*)(void))5)();";
        it.replace("\treno_on_ack(cc, ack);", add)
    });
    let output = refusal(&source);
    let line = line_of(&source, "(*)(void)");
    assert!(output.starts_with(&format!("gentle.h:{line}: calls a function")), "{output}");
}

#[test]
fn what_the_compiler_says_names_file_and_line() {
    let source = gentle(|it| it.replace("reno_on_idle(cc, initial", "reno_on_idel(cc, initial"));
    let output = refusal(&source);
    let place = format!("gentle.h:{}:2: error: ", line_of(&source, "reno_on_idel"));
    assert!(output.contains(&place), "{output}");
}

#[test]
fn a_name_that_another_has_or_none_can_type_is_refused() {
    for (name, why) in [("dctcp", "built-in"), ("Gentle", "lower-case"), ("", "lower-case")] {
        let source = gentle(|it| it.replace("\"gentle\"", &format!("\"{name}\"")));
        let output = refusal(&source);
        assert!(output.contains(why), "{output}");
    }
}

#[test]
fn a_file_that_is_none_is_refused() {
    let none = |bytes: &[u8]| Object::parse(bytes.to_vec()).expect_err("it is none");
    assert_eq!(none(b""), ObjectError::NoUnderlay);
    assert_eq!(none(b"#include \"reno.h\""), ObjectError::NoUnderlay);
    let this = fs::read(std::env::current_exe().expect("its path")).expect("its bytes");
    assert_eq!(none(&this), ObjectError::NoUnderlay);
    let object = build_text(&gentle(|it| it)).expect("an object");
    // Cut off, as by a full disk.
    for part in 1..20 {
        let bytes = object.bytes();
        none(&bytes[..bytes.len() * part / 20]);
    }
}

#[test]
fn what_is_no_regular_file_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let fifo = directory.path().join("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status().expect("mkfifo");
    assert!(made.success());
    let refused = Object::read(&fifo).expect_err("it is none").to_string();
    assert_eq!(refused, "cannot be read: not a regular file");
    let refused = build(&fifo).expect_err("it is none").to_string();
    assert!(refused.ends_with("fifo: not a regular file"), "{refused}");
}

/// libbpf's messages have names of types, and are read as UTF-8.
#[test]
fn a_name_that_is_not_utf_8_is_refused() {
    let object = build_text(&gentle(|it| it)).expect("an object");
    for (name, section) in
        [("vcc_cc_ack\0", ".BTF"), ("cwnd_segs\0", ".BTF"), ("LBB0_5\0", ".strtab")]
    {
        let mut bytes = object.bytes().to_vec();
        let at = bytes.windows(name.len()).position(|it| it == name.as_bytes()).expect("a name");
        bytes[at] = 0xff;
        let refused = Object::parse(bytes).expect_err("refused");
        assert_eq!(refused, ObjectError::BadText(section.into()), "{name}");
    }
}

/// Their addresses are not what was there when the hooks were run.
#[test]
fn what_refers_to_the_kernel_is_refused() {
    let add = |code: &str| {
        let code = code.to_owned();
        gentle(move |it| {
            let it =
                it.replace("\treno_on_ack(cc, ack);", &format!("\treno_on_ack(cc, ack);\n{code}"));
            it.replace(
                "VCC_INLINE void gentle_init",
                "extern const void bpf_prog_active __attribute__((section(\".ksyms\")));\n\
                 struct task_struct { int pid; } __attribute__((preserve_access_index));\n\
                 VCC_INLINE void gentle_init",
            )
        })
    };
    let source = add("\tcc->own[0] = (uint32_t)(unsigned long)&bpf_prog_active;");
    let output = refusal(&source);
    let line = line_of(&source, ")&bpf_prog_active");
    assert!(
        output.starts_with(&format!("gentle.h:{line}: refers to 'bpf_prog_active'")),
        "{output}"
    );
    let field = "__builtin_preserve_field_info(((struct task_struct *)0)->pid, 0)";
    let source = add(&format!("\tcc->own[0] = {field};"));
    let output = refusal(&source);
    // At the place where the compiler has put the constant.
    assert!(output.contains(": has an instruction that depends on the types"), "{output}");
}

#[test]
fn code_beside_the_hooks_is_refused() {
    let more = |section: &str| {
        let function = format!(
            "__attribute__((section(\"{section}\"), used)) static int more(void *skb)\n\
             {{\n\treturn skb ? 1 : 0;\n}}\n"
        );
        gentle(move |it| {
            it.replace(
                "VCC_INLINE void gentle_init",
                &format!("{function}VCC_INLINE void gentle_init"),
            )
        })
    };
    let output = refusal(&more("tcx/ingress"));
    assert!(output.contains("has code in section tcx/ingress"), "{output}");
    assert!(refusal(&more(".text")).contains("calls a function that is not inlined"));
}

#[test]
fn another_version_is_refused() {
    let mut bytes = build_text(&gentle(|it| it)).expect("an object").bytes().to_vec();
    let at = bytes.windows(8).position(|it| it == b"vcc-cc\0\0").expect("its head");
    bytes[at + 8] += 1;
    assert_eq!(Object::parse(bytes.clone()).expect_err("another's"), ObjectError::OtherVersion);
    assert_eq!(Object::name_in(&bytes).as_deref(), Some("gentle"));
    // Nor does one whose hooks are given less pass.
    bytes[at + 8] -= 1;
    bytes[at + 16] -= 4;
    assert_eq!(Object::parse(bytes).expect_err("another's"), ObjectError::OtherVersion);
}

/// The machine and the engine's own code are two readings of the same C.
#[test]
fn the_machine_runs_an_underlay_as_the_engine_does() {
    let text = gentle(|_| {
        let engine = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../engine/cc/cubic.h");
        let cubic = fs::read_to_string(engine).expect("cubic");
        cubic.replace("#include \"../", "#include \"").replace("\"cubic\"", "\"cubic-copy\"")
    });
    let object = build_text(&text).expect("an object");
    let copy = Slot::from_index(3).expect("a slot").fill(vcc_engine::Loaded {
        name: "cubic-copy",
        about: "",
        traits: object.traits(),
        hooks: std::sync::Arc::new(Machine::from_object(&object)),
    });
    let cubic: Underlay = "cubic".parse().expect("it is built in");
    let windows = [cubic, copy].map(|underlay| {
        let params = Params::with(|p| p.underlay = underlay.number());
        let mut flow = established(&params);
        (0..5000).map(|ack| advance(&mut flow, &params, ack)).collect::<Vec<u32>>()
    });
    assert!(windows[0].iter().max() > windows[0].iter().min(), "nothing has happened");
    assert_eq!(windows[0], windows[1]);
}

fn segment(now_us: u64, flags: u32, seq: u32, ack: u32, payload_bytes: u32) -> vcc_engine::Segment {
    vcc_engine::Segment {
        now_us,
        flags: flags as u16,
        seq,
        ack,
        payload_bytes,
        window: 60_000,
        option_room_bytes: 20,
        ..Default::default()
    }
}

fn established(params: &Params) -> FlowState {
    let mut flow = FlowState::default();
    let mut syn = segment(0, sys::TCP_SYN, 0, 0, 0);
    syn.options = (sys::OPT_MSS | sys::OPT_WSCALE | sys::OPT_SACK_PERMITTED) as u16;
    (syn.mss, syn.wscale) = (1448, 10);
    flow.from_guest(params, &syn);
    let answer = vcc_engine::Segment { flags: (sys::TCP_SYN | sys::TCP_ACK) as u16, ack: 1, ..syn };
    flow.to_guest(params, &answer);
    flow.from_guest(params, &segment(100, sys::TCP_ACK, 1, 1, 0));
    flow
}

/// Some data and its ACK, or now and then a timeout; returns the window.
fn advance(flow: &mut FlowState, params: &Params, step: u32) -> u32 {
    let now_us = 1000 + u64::from(step) * 20_000;
    let seq = flow.snd_nxt;
    let room_bytes = flow.cc.cwnd_segs * 1448;
    flow.from_guest(params, &segment(now_us, sys::TCP_ACK, seq, 1, room_bytes.min(1 << 20)));
    if step % 500 == 499 {
        flow.deadline(params, now_us + 3_000_000, false);
    }
    let acked = flow.snd_nxt;
    flow.to_guest(params, &segment(now_us + 10_000, sys::TCP_ACK, 1, acked, 0));
    assert!(flow.is_sound());
    flow.cc.cwnd_segs
}

#[test]
fn whatever_an_underlay_leaves_the_engine_bounds_it() {
    /// Leaves something else for each state that it finds.
    struct Hostile;
    impl Hooks for Hostile {
        fn run(
            &self,
            cc: &mut sys::vcc_cc_state,
            _: Option<&sys::vcc_cc_ack>,
            _: Option<&sys::vcc_params>,
            call: u64,
        ) {
            let mut random = cc.credit_bytes ^ cc.cwnd_segs.rotate_left(16) ^ call as u32;
            let mut next = || {
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let extreme = [0, 1, u32::MAX][(random >> 30) as usize % 3];
                if random & 0x100 == 0 { random } else { extreme }
            };
            *cc = sys::vcc_cc_state {
                cwnd_segs: next(),
                ssthresh_segs: next(),
                credit_bytes: next(),
                own: std::array::from_fn(|_| next()),
                path: sys::vcc_path {
                    rtt_us: next(),
                    rtt_min_us: next(),
                    rtt_least_us: next(),
                    least_since_us: next(),
                    rate_bytes_per_ms: next(),
                    target_us: next(),
                },
                floor_segs: next() as u16,
                part_1024: next() as i16,
            };
        }
    }
    let underlay = Slot::from_index(2).expect("a slot").fill(vcc_engine::Loaded {
        name: "hostile",
        about: "",
        traits: sys::CC_CONTROLS | sys::CC_ECN | sys::CC_ALPHA,
        hooks: std::sync::Arc::new(Hostile),
    });
    let params = Params::with(|p| p.underlay = underlay.number());
    let mut flow = established(&params);
    for step in 0..20_000 {
        advance(&mut flow, &params, step);
    }
    // Unloaded, it continues with NewReno, from any state.
    underlay.slot().expect("its slot").empty();
    assert!("hostile".parse::<Underlay>().is_err(), "its name is free");
    for step in 20_000..21_000 {
        advance(&mut flow, &params, step);
    }
    let mut moved = flow;
    moved.move_underlay(underlay, Underlay::default());
    assert_eq!((moved.underlay, moved.cc.cwnd_segs), (2, flow.cc.cwnd_segs));
    assert!(moved.is_sound());
}
