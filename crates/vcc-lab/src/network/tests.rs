use super::*;
use crate::backend::{live, virtual_time};
use crate::scenario::{self, Scenario, Scheduler, Share};
use crate::translation::Vcc;
use vcc_results::result::Schedule;
use vcc_traffic::Pattern;
use vcc_traffic::requests::{Call, Kind};

const SMALL: &str = r#"
id = "small"
title = "t"
paper = "p"
[network]
topology = "star"
rate_mbps = 10
delay_us = 250
queue = "plain"
[queues.plain]
kind = "tail-drop"
limit_bytes = 100000
[duration]
warm_up_s = 1
measured_s = 2
runs = 3
quick = { warm_up_s = 0, measured_s = 1, runs = 1 }
[[guests]]
name = "ecn"
count = 2
ecn = true
[[guests]]
name = "legacy"
count = 1
ecn = false
[[metrics]]
name = "ratio"
measure = "goodput_ratio"
of = "legacy"
over = "ecn"
text = "m"
[plot]
kind = "goodput"
[[cases]]
name = "without"
"#;

fn parse(name: &str, text: &str) -> Result<Experiment<NetworkKind>> {
    experiment::parse(name, text)
}

/// The small experiment with more after its last line, which is in its only case.
fn with(more: &str) -> Result<Experiment<NetworkKind>> {
    parse("small.toml", &format!("{SMALL}{more}\n"))
}

fn try_scenario(experiment: &Experiment<NetworkKind>) -> Result<Scenario> {
    let quick = experiment.schedule(true);
    experiment.scenario(&experiment.cases[0], &quick, Stack::NewReno, &|name| name.to_owned())
}

fn scenario(experiment: &Experiment<NetworkKind>) -> Scenario {
    try_scenario(experiment).unwrap()
}

fn refused(source: &str) -> String {
    parse("small.toml", source).expect_err("must be refused").to_string()
}

#[test]
fn a_headline_is_of_what_there_is() {
    let with = |headline: &str| format!("headline = \"{headline}\"\n{SMALL}");
    let headline = parse("small.toml", &with("ratio without")).unwrap();
    assert_eq!(headline.header.headline.unwrap().case, "without");
    for (headline, problem) in [
        ("x without", "small.toml:1: headline: there is no metric 'x'"),
        ("ratio x", "small.toml:1: headline: there is no case 'x'"),
        ("ratio", "'ratio' is not 'METRIC CASE'"),
    ] {
        let error = refused(&with(headline));
        assert!(error.contains(problem), "{error}");
    }
}

/// Each is refused at its line, for no run would ever decide it.
#[test]
fn bounds_that_no_run_can_decide_are_refused() {
    let metrics = "[[metrics]]\nname = \"rtt\"\nmeasure = \"rtt_p50_us\"\ntext = \"m\"\n\
                   [[metrics]]\nname = \"fct\"\nmeasure = \"fct_p50_us\"\ntext = \"m\"\n\
                   [[metrics]]\nname = \"late\"\nmeasure = \"jain\"\nphase = 2\ntext = \"m\"\n\
                   [plot]";
    let source = SMALL.replace("[plot]", metrics).replace("runs = 3", "runs = 3\nphases = 2");
    let refused = |more: &str| refused(&format!("{source}{more}\n"));
    let line = source.lines().count() + 1;
    for (more, problem) in [
        ("expect.ratio = { min = nan }", "min nan is no number"),
        ("expect.ratio = { max = inf }", "max inf is no number"),
        ("expect.ratio.modern = { min = 2, max = 1 }", "min 2 is above max 1"),
        ("expect.ratio = { min = 1, relative_to = \"without\" }", "compared with itself"),
        ("expect.ratio.min = 1\nguests.legacy.count = 0", "the case has no flows of 'legacy'"),
        ("expect.ratio.min = 1\nguests.ecn.count = 0", "the case has no flows of 'ecn'"),
        ("expect.rtt.min = 1", "it takes `observe.probe_every_us`"),
        ("expect.fct.max = 1", "it takes transfers or messages"),
        (
            "expect.late.max = 1\nguests.ecn.phases = [1, 1]\nguests.legacy.phases = [1, 1]",
            "the case has no bulk flows",
        ),
    ] {
        let error = refused(more);
        assert!(error.starts_with(&format!("small.toml:{line}: cases[0].expect.")), "{error}");
        assert!(error.contains(problem), "{error}");
    }
    let other = "expect.ratio = { min = 1, relative_to = \"other\" }\n\
                 [[cases]]\nname = \"other\"\nguests.legacy.count = 0";
    assert!(refused(other).contains("no run of 'other' has it: the case has no flows of 'legacy'"));
    let watched = source.replace("[duration]", "[observe]\nprobe_every_us = 1000\n[duration]");
    assert!(parse("small.toml", &format!("{watched}expect.rtt.min = 1\n")).is_ok());
}

#[test]
fn a_closing_sentence_is_of_what_there_is() {
    let closing = "[in_short]\nmetric = \"ratio\"\ntext = \"{problem} {cure}\"\n\
                   problem = { case = \"without\" }\ncure = { case = \"with\", min = 0.5 }\n";
    let source = format!("{SMALL}[[cases]]\nname = \"with\"\n{closing}");
    assert!(parse("small.toml", &source).is_ok());
    for (old, new, problem) in [
        ("metric = \"ratio\"\ntext", "metric = \"x\"\ntext", "in_short.metric: there is no metric"),
        ("{ case = \"with\",", "{ case = \"x\",", "in_short.cure.case: there is no case 'x'"),
        ("{problem} {cure}", "{cure}", "in_short.text: has no {problem}"),
    ] {
        let error = refused(&source.replace(old, new));
        assert!(error.contains(problem), "{error}");
    }
}

#[test]
fn a_case_changes_only_what_it_names() {
    let more = "guests.legacy = { vcc.mode = \"enforce\", tso = false }\nnetwork.rate_mbps = 100";
    let experiment = with(more).unwrap();
    let case = &experiment.cases[0].parameters;
    assert_eq!((case.network.rate_bps, case.network.edge_rate_bps), (100_000_000, 100_000_000));
    assert_eq!((case.network.delay_ns, case.network.mtu_bytes), (250_000, 1500));
    let guests = scenario(&experiment).guests;
    let guests: Vec<_> = guests.iter().map(|it| (it.ecn, it.tso, it.fabric_ecn())).collect();
    let expected = [(true, true, true), (true, true, true), (false, false, true)];
    assert_eq!(guests, expected);
}

#[test]
fn a_table_in_a_case_is_laid_over_that_of_the_file() {
    let source =
        SMALL.replace("ecn = false", "ecn = false\nvcc = { underlay = \"reno\", prr = false }");
    let more = "guests.legacy.vcc = { mode = \"enforce\", prr = true }\nreceivers.ecn = false";
    let experiment = parse("small.toml", &format!("{source}{more}\n")).unwrap();
    let case = &experiment.cases[0].parameters;
    let expected: Vcc =
        toml::from_str("mode = \"enforce\"\nunderlay = \"reno\"\nprr = true").unwrap();
    assert_eq!(case.groups[1].vcc, expected);
    assert_eq!(case.groups[0].vcc, Vcc::default());
    assert!(!case.receivers.ecn && case.receivers.vcc == Vcc::default());
}

#[test]
fn shadow_mode_gives_no_ecn() {
    let experiment = with("guests.legacy.vcc.mode = \"shadow\"").unwrap();
    assert!(!scenario(&experiment).guests[2].fabric_ecn());
}

/// vcc's list of keys names the underlays.
#[test]
fn an_underlay_that_vcc_does_not_have_is_refused_with_its_line() {
    let source =
        format!("{SMALL}guests.legacy.vcc = {{ mode = \"enforce\", underlay = \"best\" }}\n");
    let error = refused(&source);
    let line = source.lines().count();
    let expected = format!("small.toml:{line}: guests.legacy.vcc: `best` is not an underlay");
    assert!(error.starts_with(&expected), "{error}");
}

#[test]
fn phases_are_numbered_from_one_and_both_ends_count() {
    let source = SMALL.replace("runs = 3", "runs = 3\nphases = 4");
    let source = format!("{source}guests.legacy.phases = [2, 3]\n");
    let experiment = parse("small.toml", &source).unwrap();
    let flows = scenario(&experiment).flows;
    assert_eq!((flows[0].phases.clone(), flows[2].phases.clone()), (0..4, 1..3));
}

#[test]
fn a_mix_is_one_case_a_row() {
    let more = "mixes = [[9, 1], [1, 9]]\nexpect.ratio = { relative_to = \"base\", max = 1 }\n\
                [[cases]]\nname = \"base\"\nmixes = [[9, 1]]\n[[cases]]\nname = \"base-1-9\"";
    let experiment = with(more).unwrap();
    let names: Vec<&str> = experiment.cases.iter().map(|case| case.name.as_str()).collect();
    assert_eq!(names, ["without-9-1", "without-1-9", "base-9-1", "base-1-9"]);
    let case = &experiment.cases[1];
    let groups: Vec<usize> = case.parameters.flows.iter().map(|flow| flow.group).collect();
    assert_eq!(groups, [0, 1, 1, 1, 1, 1, 1, 1, 1, 1]);
    let Parameters { x, series, .. } = &case.parameters;
    assert_eq!((*x, series.as_str()), (1.0, "without"));
    let relative_to = case.expect["ratio"].relative_to.as_deref();
    assert_eq!(relative_to, Some("base-1-9"), "the same mix is the one to compare with");
}

#[test]
fn counts_of_a_group_are_one_case_a_number() {
    let more = "counts.legacy = [1, 4]\nexpect.ratio = { relative_to = \"base\", max = 1 }\n\
                [[cases]]\nname = \"base\"\npanel = \"b\"\ncounts.legacy = [4, 1]";
    let experiment = with(more).unwrap();
    let names: Vec<&str> = experiment.cases.iter().map(|case| case.name.as_str()).collect();
    assert_eq!(names, ["without-1", "without-4", "base-4", "base-1"]);
    let [_, four, base, _] = &experiment.cases[..] else { panic!("four cases") };
    assert_eq!(four.expect["ratio"].relative_to.as_deref(), Some("base-4"));
    let (four, base) = (&four.parameters, &base.parameters);
    let groups: Vec<usize> = four.flows.iter().map(|flow| flow.group).collect();
    assert_eq!(groups, [0, 0, 1, 1, 1, 1], "the other group keeps its number");
    assert_eq!((four.x, four.series.as_str(), four.panel.as_str()), (4.0, "without", ""));
    assert_eq!(experiment.kind.placed(base).panel, "b");
}

/// An error in a case of a matrix names the entry, the case, and the line of the value.
#[test]
fn an_error_in_a_case_of_a_matrix_names_both() {
    let matrix = "[[cases]]\nname = \"with-{mtu}-{count}\"\nnetwork.mtu_bytes = \"{mtu}\"\n\
                  guests.legacy.count = \"{count}\"\nmatrix.mtu = [1500, 9000]\n\
                  matrix.count = [0, 4]\n";
    let experiment = with(matrix).unwrap();
    let cases = experiment.cases.iter();
    let made: Vec<_> = cases
        .map(|case| {
            let network = &case.parameters.network;
            (case.name.as_str(), network.mtu_bytes, network.guests)
        })
        .collect();
    let expected = [
        ("without", 1500, 3),
        ("with-1500-0", 1500, 2),
        ("with-1500-4", 1500, 6),
        ("with-9000-0", 9000, 2),
        ("with-9000-4", 9000, 6),
    ];
    assert_eq!(made, expected);
    let first = SMALL.matches('\n').count() + 1;
    for (old, new, line, expected) in [
        ("9000]", "576]", 4, "cases[1](with-576-0): matrix.mtu: 576 is not within 1280 and 9216"),
        ("4]", "250]", 0, "cases[1](with-1500-250): has 252 guests"),
        ("legacy.count", "ghost.count", 3, "cases[1](with-1500-0).guests.ghost: there is no group"),
        (
            "\"{mtu}\"",
            "\"{mtu} bytes\"",
            2,
            "cases[1](with-1500-0): network.mtu_bytes: invalid type",
        ),
        (
            "matrix.mtu",
            "expect.x.min = 1\nmatrix.mtu",
            4,
            "cases[1](with-1500-0).expect.x: there is no metric",
        ),
    ] {
        assert!(matrix.contains(old), "{old}");
        let error = with(&matrix.replacen(old, new, 1)).unwrap_err().to_string();
        let place = format!("small.toml:{}: {expected}", first + line);
        assert!(error.starts_with(&place), "{error} instead of {place}");
    }
}

#[test]
fn quick_and_stack_make_another_scenario() {
    let experiment = with("").unwrap();
    let case = &experiment.cases[0];
    let quick = experiment.schedule(true);
    assert_eq!(quick, Schedule { warm_up_s: 0.0, measured_s: 1.0, runs: 1 });
    let name = |name: &str| format!("kernel's {name}");
    let modern = experiment.scenario(case, &quick, Stack::Modern, &name).unwrap();
    assert!(modern.sack);
    assert_eq!(modern.measured_ns, 1_000_000_000);
    assert_eq!(modern.guests[0].congestion_control, "kernel's reno");
    assert!(!scenario(&experiment).sack);
    assert_eq!(experiment.schedule(false).runs, 3);
}

/// One line each: the file, the line, the field, what is wrong and what would be right.
#[test]
fn errors_say_where_and_what() {
    let line = |part: &str| 1 + SMALL[..SMALL.find(part).unwrap()].matches('\n').count();
    for (old, new, expected) in [
        ("delay_us = 250", "delay_ms = 250", "delay_ms: unknown field `delay_ms`"),
        ("count = 2", "count = -2", "count: invalid value"),
        ("queue = \"plain\"", "queue = \"red9\"", "network.queue: there is no queue 'red9'"),
        ("rate_mbps = 10", "rate_mbps = 1000000", "rate_mbps: 1000000 is not within"),
        ("measured_s = 2", "measured_s = 0", "duration.measured_s: must be more than 0"),
        ("of = \"legacy\"", "of = \"lost\"", "metrics[0].of: there is no group of guests 'lost'"),
        (
            "paper = \"p\"",
            "observe.queue_every_us = 0\npaper = \"p\"",
            "observe.queue_every_us: 0 is not within",
        ),
        ("id = \"small\"", "id = \"Small one\"", "id: an id is made of lower-case letters"),
        ("measure = \"goodput_ratio\"", "measure = \"r\"", "metrics[0].measure: there is no"),
    ] {
        let error = refused(&SMALL.replacen(old, new, 1));
        assert!(error.starts_with(&format!("small.toml:{}: {expected}", line(old))), "{error}");
        assert!(!error.contains('\n'), "{error}");
    }
    let last = SMALL.matches('\n').count() + 1;
    for (more, expected) in [
        ("guests.ghost.count = 1", "cases[0].guests.ghost: there is no group"),
        ("guests.legacy.vcc.mode = \"on\"", "guests.legacy.vcc.mode: unknown variant `on`"),
        (
            "guests.legacy.vcc.priority = 1.5",
            "guests.legacy.vcc.priority: must be a number from 0 to 1",
        ),
        ("guests.legacy.vcc.rate_cap = 5", "guests.legacy.vcc.rate_cap: must be 8K to 34000G"),
        ("guests.legacy.vcc.beta = 0.5", "unknown field `beta`: `beta` is now `priority`"),
        ("guests.legacy.vcc.cap_bytes = 5000", "`cap_bytes` is now `window_cap`"),
        ("guests.legacy.vcc.cap_mbps = 50", "`cap_mbps` is now `rate_cap`"),
        ("guests.legacy.vcc.floor_segs = 2", "`floor_segs` is now `window_floor_segments`"),
        (
            "guests.legacy.phases = [1, 2]",
            "guests.legacy.phases: [1, 2] must be two phases in order",
        ),
        (
            "guests.legacy.vcpu.core = \"c1\"",
            "legacy.vcpu.core: there is no core 'c1': there are none",
        ),
        ("receivers.interrupt_us = 2000", "receivers.interrupt_us: 2000 is not within 0 and 1000"),
        ("receivers.vcpu.core = \"c1\"", "cases[0].receivers.vcpu.core: there is no core 'c1'"),
        ("guests.legacy.vcpu.load_percent = 101", "load_percent: 101 is not within 0 and 100"),
        ("cores.c0.scheduler = \"fifo\"", "cores.c0.scheduler: unknown variant `fifo`"),
        (
            "cores.c0 = { scheduler = \"round-robin\", spare_cores = 1 }",
            "cores.c0.spare_cores: only valid for the credit",
        ),
        ("receivers.vcc.mod = \"off\"", "receivers.vcc.mod: unknown field `mod`"),
        ("expect.jane = { min = 1 }", "cases[0].expect.jane: there is no metric 'jane'"),
        ("mixes = [[1, 2, 3]]", "cases[0].mixes[0]: has 3 counts"),
        ("counts.ghost = [1]", "cases[0].counts.ghost: there is no group of guests 'ghost'"),
        (
            "counts = { ecn = [1], legacy = [1] }",
            "cases[0].counts: only one group of guests can have counts",
        ),
        ("guests = { ecn.count = 0, legacy.count = 0 }", "cases[0]: has 0 guests"),
        ("guests.ecn.count = 4000000000", "guests.ecn.count: 4000000000 is not within"),
        ("network.mtu_bytes = 576", "network.mtu_bytes: 576 is not within 1280 and 9216"),
        ("network.delay_us = 2000000", "network.delay_us: 2000000 is not within"),
        ("guests.ecn.edge_delay_us = 2000000", "guests.ecn.edge_delay_us: 2000000 is not within"),
        ("expect.ratio = { min = 2, max = 1 }", "cases[0].expect.ratio: min 2 is above max 1"),
        ("expect.ratio.spread = 25", "cases[0].expect.ratio: spread 25 is not within 0 and 1"),
        (
            "expect.ratio.paper_quotient = 1",
            "cases[0].expect.ratio: paper_quotient needs relative_to",
        ),
        ("expect.ratio.relative_to = \"x\"", "cases[0].expect.ratio: there is no case 'x'"),
    ] {
        let error = refused(&format!("{SMALL}{more}\n"));
        assert!(error.starts_with("small.toml:") && error.contains(expected), "{error}");
        let named: usize = error.split(':').nth(1).unwrap().parse().unwrap();
        assert!((last - 2..=last).contains(&named), "{error}");
    }
}

#[test]
fn guests_and_receivers_share_cores_by_their_names() {
    let source = SMALL.replace("[duration]", "[cores.b]\nscheduler = \"round-robin\"\n[duration]");
    let more = "cores.a = { scheduler = \"credit\", slice_ms = 10, spare_cores = 3, background.count = 2 }\n\
                guests.legacy.vcpu = { core = \"b\", load_percent = 60 }\nreceivers.vcpu.core = \"a\"";
    let scenario = scenario(&parse("small.toml", &format!("{source}{more}\n")).unwrap());
    let share = |percent| Share { percent, period_ns: 30_000_000 };
    let credit = scenario::Core {
        scheduler: Scheduler::Credit { slice_ns: 10_000_000, spare_cores: 3 },
        background: vec![share(100); 2],
        wakeup_ns: 0,
        driver_ns: None,
    };
    assert_eq!(scenario.cores[0], credit);
    assert_eq!(scenario.cores[1].scheduler, Scheduler::RoundRobin { slice_ns: 30_000_000 });
    let vcpus: Vec<_> = scenario.guests.iter().map(|guest| guest.vcpu).collect();
    assert_eq!(vcpus, [None, None, Some(scenario::Vcpu { core: 1, load: share(60) })]);
    assert_eq!(scenario.receivers.vcpu, Some(scenario::Vcpu { core: 0, load: share(0) }));
}

#[test]
fn a_core_that_is_per_guest_is_one_for_each() {
    let core = "cores.a = { scheduler = \"credit\", per_guest = true }\n";
    let scenario_of = |more: &str| scenario(&with(&format!("{core}{more}")).unwrap());
    let apart = scenario_of("guests.ecn.vcpu.core = \"a\"\nguests.legacy.vcpu.core = \"a\"");
    let cores = apart.guests.iter().map(|guest| guest.vcpu.map(|vcpu| vcpu.core));
    assert_eq!(cores.collect::<Vec<_>>(), [Some(0), Some(1), Some(2)]);
    assert!(apart.cores.len() == 3 && apart.cores[1..].iter().all(|it| *it == apart.cores[0]));
    let error = with(&format!("{core}receivers.vcpu.core = \"a\"")).unwrap_err().to_string();
    assert!(error.contains("receivers.vcpu.core: a core that is per guest"), "{error}");
}

#[test]
fn switches_of_tcp_are_for_virtual_time_alone() {
    let scenario = scenario(&with("guests.legacy.tcp = { frto = false, pvtcp = true }").unwrap());
    let parameters: Vec<_> = scenario.guests[2].tcp.parameters().collect();
    assert_eq!(parameters, [("ipv4/tcp_pvtcp", "1"), ("ipv4/tcp_frto", "0")]);
    assert_eq!(scenario.guests[0].tcp.parameters().count(), 0);
    let refusal = live::check(&scenario).unwrap_err().to_string();
    assert!(refusal.contains("switches of guests' TCP"), "{refusal}");
}

#[test]
fn switches_of_the_papers_stack_are_for_it_alone() {
    let more =
        "guests.legacy = { tcp = { frto = true }, newreno = { frto = false, timestamps = false } }";
    let experiment = with(more).unwrap();
    let switches = |stack| {
        let quick = experiment.schedule(true);
        let case = &experiment.cases[0];
        let scenario = experiment.scenario(case, &quick, stack, &|name| name.to_owned()).unwrap();
        scenario.guests[2].tcp.parameters().collect::<Vec<_>>()
    };
    let frto = ("ipv4/tcp_frto", "2");
    assert_eq!(switches(Stack::NewReno), [frto, ("ipv4/tcp_timestamps", "0")]);
    assert_eq!(switches(Stack::Modern), [frto]);
}

#[test]
fn interrupts_are_of_each_group_and_of_the_receivers_and_in_virtual_time_alone() {
    let more = "guests.legacy.interrupt_us = 0\nreceivers.interrupt_us = 3\n";
    let set = scenario(&parse("small.toml", &format!("{SMALL}{more}")).unwrap());
    let every_ns: Vec<_> = set.guests.iter().map(|guest| guest.interrupt_every_ns).collect();
    assert_eq!(every_ns, [None, None, Some(0)]);
    assert_eq!(set.receivers.interrupt_every_ns, Some(3000));
    let hosts = set.hosts(&set.topology());
    assert_eq!(hosts.last().and_then(|receiver| receiver.interrupt_every_ns), Some(3000));
    let refusal = live::check(&set).unwrap_err().to_string();
    assert!(refusal.contains("interrupts"), "{refusal}");
    assert!(live::check(&scenario(&parse("small.toml", SMALL).unwrap())).is_ok());
}

#[test]
fn a_port_sends_by_itself_in_virtual_time_alone() {
    let vcc = "guests.legacy.vcc = { mode = \"enforce\", emit = true, emit_after = \"2ms\" }\n";
    let set = scenario(&parse("small.toml", &format!("{SMALL}{vcc}")).unwrap());
    assert!(virtual_time::check(&set).is_ok());
    let refusal = live::check(&set).unwrap_err().to_string();
    assert!(
        refusal.contains("segments that a port sends to its guest by itself need"),
        "{refusal}"
    );
}

#[test]
fn a_guest_or_its_receiver_cheats_in_virtual_time_alone() {
    let cheats = |cheat: &str, more: &str| {
        let source = format!("{SMALL}guests.legacy.cheat = \"{cheat}\"\n{more}");
        let set = scenario(&parse("small.toml", &source).unwrap());
        let hosts = set.hosts(&set.topology());
        let cheats = hosts.iter().map(|host| host.cheat.map(|cheat| cheat.name));
        (cheats.collect::<Vec<_>>(), set)
    };
    let (at, set) = cheats("ignores-window", "");
    assert_eq!(at, [None, None, Some("ignores-window"), None]);
    assert!(virtual_time::check(&set).is_ok());
    let refusal = live::check(&set).unwrap_err().to_string();
    assert!(refusal.contains("guests that cheat need virtual time"), "{refusal}");
    let refusal = virtual_time::check(&cheats("splits-acks", "").1).unwrap_err().to_string();
    assert!(refusal.contains("a cheating receiver that is others' too"), "{refusal}");
    let (at, set) = cheats("splits-acks", "network.topology = \"dumbbell\"\n");
    assert_eq!(at, [None, None, None, None, None, Some("splits-acks")]);
    assert!(virtual_time::check(&set).is_ok());
    let error = refused(&format!("{SMALL}guests.legacy.cheat = \"steals\"\n"));
    assert!(error.contains("there is no cheat 'steals': there are ignores-window"), "{error}");
}

#[test]
fn receivers_have_receive_buffers_in_virtual_time_alone() {
    let more = "receivers.receive_buffer_kib = 1024\n";
    let set = scenario(&parse("small.toml", &format!("{SMALL}{more}")).unwrap());
    let hosts = set.hosts(&set.topology());
    assert_eq!(hosts.last().and_then(|host| host.receive_buffer_bytes), Some(1 << 20));
    assert_eq!(hosts.first().and_then(|host| host.receive_buffer_bytes), None);
    let refusal = live::check(&set).unwrap_err().to_string();
    assert!(refusal.contains("receive buffers"), "{refusal}");
}

#[test]
fn receivers_have_a_backlog_behind_their_rings_in_virtual_time_alone() {
    let more = "receivers.backlog_segs = 700\n";
    let set = scenario(&parse("small.toml", &format!("{SMALL}{more}")).unwrap());
    let segs: Vec<_> = set.hosts(&set.topology()).iter().map(|host| host.backlog_segs).collect();
    assert_eq!((segs.first(), segs.last()), (Some(&0), Some(&700)));
    let refusal = live::check(&set).unwrap_err().to_string();
    assert!(refusal.contains("backlogs"), "{refusal}");
}

#[test]
fn a_queue_that_cannot_be_is_found_before_the_run() {
    let red = "kind = \"red\"\nmin_bytes = 90000\nmax_bytes = 90001\nlimit_bytes = 1000000\n\
               average_packet_bytes = 1500\nburst_packets = 10\nprobability = 1.0\necn = true";
    let error = refused(&SMALL.replace("kind = \"tail-drop\"\nlimit_bytes = 100000", red));
    assert!(error.contains("queues.plain: burst_packets 10 is too small"), "{error}");
}

#[test]
fn a_host_without_a_port_cannot_have_vcc() {
    let source = SMALL.replace("paper = \"p\"", "paper = \"p\"\nhosts = \"tap\"");
    assert!(parse("small.toml", &source).is_ok());
    let error = refused(&format!("{source}guests.legacy.vcc.mode = \"enforce\"\n"));
    assert!(error.contains("use hosts = \"veth\""), "{error}");
}

/// The small experiment in a mesh of four, 0 to 2 in the one group and 3 in the other.
fn mesh(flows: &str) -> String {
    let source = SMALL.replace("\"star\"", "\"mesh\"").replace("count = 2", "count = 3");
    let measure = "goodput_ratio\"\nof = \"legacy\"\nover = \"ecn\"";
    format!("{}{flows}\n", source.replace(measure, "jain\""))
}

/// Name, sender and receiver of each flow of the only case.
fn flows_of(source: &str) -> Vec<(String, usize, usize)> {
    let experiment = parse("small.toml", source).unwrap_or_else(|error| panic!("{error}"));
    let flows = scenario(&experiment).flows;
    let named = |group: usize| experiment.kind.groups()[group].to_owned();
    flows.iter().map(|flow| (named(flow.group), flow.sender, flow.receiver)).collect()
}

fn named(name: &str, pairs: &[(usize, usize)]) -> Vec<(String, usize, usize)> {
    pairs.iter().map(|&(sender, receiver)| (name.to_owned(), sender, receiver)).collect()
}

#[test]
fn each_guest_sends_to_its_receiver_where_nothing_else_is_said() {
    let expected = [named("ecn", &[(0, 3), (1, 3)]), named("legacy", &[(2, 3)])].concat();
    assert_eq!(flows_of(SMALL), expected);
    let dumbbell = SMALL.replace("\"star\"", "\"dumbbell\"");
    let expected = [named("ecn", &[(0, 3), (1, 4)]), named("legacy", &[(2, 5)])].concat();
    assert_eq!(flows_of(&dumbbell), expected);
}

#[test]
fn patterns_say_who_sends_to_whom() {
    let stride = "[[flows]]\nname = \"s\"\nfrom = \"ecn\"\npattern = \"stride\"\nsteps = [1, 2]";
    let pairs = [(0, 1), (0, 2), (1, 2), (1, 0), (2, 0), (2, 1)];
    assert_eq!(flows_of(&mesh(stride)), named("s", &pairs));
    let incast = "[[flows]]\nname = \"i\"\nfrom = \"ecn\"\npattern = \"incast\"\nto = \"legacy\"";
    let incast_pairs = named("i", &[(0, 3), (1, 3), (2, 3)]);
    assert_eq!(flows_of(&mesh(incast)), incast_pairs);
    let all = "[[flows]]\nname = \"a\"\nfrom = \"ecn\"\npattern = \"all-to-all\"";
    let pairs = [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)];
    assert_eq!(flows_of(&mesh(all)), named("a", &pairs));
    let both = format!("{all}\n{incast}");
    assert_eq!(flows_of(&mesh(&both)), [named("a", &pairs), incast_pairs].concat());
}

/// An application of a guest has flows of its own, of transfers as of messages.
#[test]
fn several_flows_of_transfers_lead_from_a_guest_to_another() {
    let incast = "[[flows]]\nname = \"i\"\nfrom = \"legacy\"\npattern = \"incast\"\n\
                  to = \"ecn\"\nworkers = 2\n";
    let transfers = format!("{incast}traffic = {{ transfers = {{ bytes = 1000, count = 5 }} }}");
    let once = [(3, 0), (3, 1), (3, 2)];
    assert_eq!(flows_of(&mesh(&transfers)), named("i", &[once, once].concat()));
    let error = refused(&mesh(incast));
    assert!(error.contains("flows[0].workers: only valid for messages, transfers and"), "{error}");
}

/// Clients of the group `ecn` ask the guest of the group `legacy`, which asks the first of `ecn`.
fn tiers() -> String {
    mesh(
        "[requests.page]\nrequest_bytes = 100\nresponse_bytes = 50000\n\
         calls = [{ flows = \"b\", request = \"row\", count = 3, at_once = 2 }]\n\
         [requests.row]\nrequest_bytes = 10\nresponse_bytes = 2000\n\
         [[flows]]\nname = \"a\"\nfrom = \"ecn\"\npattern = \"incast\"\nto = \"legacy\"\n\
         traffic = { requests = { think_ms = 7 } }\nasks = { page = 2, row = 5 }\n\
         [[flows]]\nname = \"b\"\nfrom = \"legacy\"\npattern = \"incast\"\nto = \"ecn\"\n\
         workers = 4\ntraffic = { requests = { connections = \"new\" } }",
    )
}

#[test]
fn requests_are_of_clients_and_of_servers_that_ask_others() {
    let more =
        "guests.legacy = { serves_at_once = 9, congestion_control = \"flood\" }\n[requests.page]";
    let source = tiers().replacen("[requests.page]", more, 1);
    let set = scenario(&parse("small.toml", &source).unwrap());
    let call = Call { kind: 1, group: 1, count: 3, at_once: 2 };
    let page = Kind { request_bytes: 100, response_bytes: 50_000, calls: vec![call] };
    let row = Kind { request_bytes: 10, response_bytes: 2000, calls: Vec::new() };
    assert_eq!(set.requests, [page, row]);
    assert_eq!(set.flows.len(), 3 + 4 * 3);
    assert!(set.flows[..3].iter().all(|flow| flow.asks == [(0, 2), (1, 5)]));
    assert!(set.flows[3..].iter().all(|flow| flow.asks.is_empty()));
    assert_eq!(set.guests[3].serves_at_once, Some(9));
    let plan = set.plan(1);
    let ends = plan.flows.iter().map(|flow| {
        (flow.congestion_control.as_str(), flow.congestion_control_at_receiver.as_str())
    });
    let expected = [vec![("reno", "flood"); 3], vec![("flood", "reno"); 12]].concat();
    assert_eq!(ends.collect::<Vec<_>>(), expected, "responses are data of the receiver");
    let ports = plan.ports();
    assert_eq!(ports[..3], [5001; 3], "its source port says which flow it is");
    assert_eq!(
        ports[3..],
        [5001, 5001, 5001, 5002, 5002, 5002, 5003, 5003, 5003, 5004, 5004, 5004]
    );
    let refusal = live::check(&set).unwrap_err().to_string();
    assert!(refusal.contains("requests"), "{refusal}");
}

#[test]
fn requests_that_cannot_be_are_refused() {
    for (old, new, expected) in [
        (
            "request = \"row\"",
            "request = \"x\"",
            "requests.page.calls[0].request: there is no request",
        ),
        (
            "flows = \"b\"",
            "flows = \"x\"",
            "requests.page.calls[0].flows: there is no group of flows",
        ),
        ("flows = \"b\"", "flows = \"a\"", "calls[0].flows: 'a' must be requests without 'asks'"),
        ("request = \"row\"", "request = \"page\"", "requests.page.calls: its calls lead back"),
        ("row = 5", "x = 5", "flows[0].asks: there is no request 'x'"),
        ("row = 5", "row = 0", "0 is not within 1 and"),
        ("count = 3, at", "count = 0, at", "0 is not within 1 and"),
        (
            "{ connections = \"new\" }",
            "{ think_ms = 5 }",
            "flows[1].traffic: 'think_ms' and 'strobe' are of clients",
        ),
        (
            "{ connections = \"new\" }",
            "{ strobe = true }",
            "flows[1].traffic: 'think_ms' and 'strobe' are of clients",
        ),
        ("{ requests = { think_ms = 7 } }", "\"bulk\"", "flows[0].asks: only valid for requests"),
        (
            "workers = 4",
            "phases = [1, 1]",
            "flows[1].phases: messages and requests are sent in all",
        ),
        ("ecn = false", "ecn = false\ncwnd_clamp_segs = 5", "legacy.cwnd_clamp_segs: not possible"),
        (
            "from = \"legacy\"\npattern = \"incast\"\nto = \"ecn\"",
            "from = \"ecn\"\npattern = \"incast\"\nto = \"legacy\"",
            "requests.page.calls[0].flows: 'b' begin at 'ecn', but over 'a' it is 'legacy' that responds",
        ),
    ] {
        let source = tiers().replacen(old, new, 1);
        assert_ne!(source, tiers(), "{old}");
        let error = refused(&source);
        assert!(error.starts_with("small.toml:") && error.contains(expected), "{error}");
    }
}

#[test]
fn guests_of_a_group_may_be_further_away() {
    let more = "guests.legacy.edge_delay_us = 30000";
    let network = scenario(&with(more).unwrap()).network;
    assert_eq!((network.delay_ns, network.edge_delays_ns), (250_000, [(2, 30_000_000)].into()));
}

/// A case may change a group of flows by its name; hosts know whom they talk to, both ways.
#[test]
fn a_case_changes_flows_and_hosts_know_their_peers() {
    let source = mesh(
        "flows.s.steps = [2]\n[[flows]]\nname = \"s\"\nfrom = \"ecn\"\npattern = \"stride\"\n\
         steps = [1]\ntraffic = \"ping-pong\"\n[[flows]]\nname = \"i\"\nfrom = \"ecn\"\n\
         pattern = \"incast\"\nto = \"legacy\"",
    );
    let experiment = parse("small.toml", &source).unwrap();
    let scenario = scenario(&experiment);
    let pairs: Vec<_> = scenario.flows.iter().map(|flow| (flow.sender, flow.receiver)).collect();
    assert_eq!(pairs, [(0, 2), (1, 0), (2, 1), (0, 3), (1, 3), (2, 3)]);
    assert_eq!(scenario.flows[0].pattern, Pattern::PingPong);
    assert_eq!(scenario.network.busiest, 3, "three lead to it, and one to each of the others");
    let hosts = scenario.hosts(&scenario.topology());
    let peers: Vec<_> = hosts.into_iter().map(|host| host.peers).collect();
    assert_eq!(peers, [vec![2, 1, 3], vec![0, 2, 3], vec![0, 1, 3], vec![0, 1, 2]]);
}

#[test]
fn switches_may_have_a_memory_of_a_size() {
    let source = SMALL
        .replace("rate_mbps = 10", "rate_mbps = 10\nswitch_memory = { bytes = 9000, alpha = 0.5 }");
    let memory = parse("small.toml", &source).unwrap();
    let memory = memory.cases[0].parameters.network.memory.clone().unwrap();
    assert_eq!((memory.bytes, memory.alpha), (9000, 0.5));
}

#[test]
fn flows_and_networks_that_cannot_be_are_refused() {
    let stride = "[[flows]]\nname = \"s\"\nfrom = \"ecn\"\npattern = \"stride\"\nsteps = [1]";
    let changed = |old: &str, new: &str| mesh(&stride.replace(old, new));
    let in_network = |text: &str| SMALL.replace("delay_us", &format!("{text}\ndelay_us"));
    let two_tier = |text: &str| in_network(text).replace("\"star\"", "\"two-tier\"");
    for (source, expected) in [
        (mesh(""), "network.topology: all hosts of this topology are guests: describe the flows"),
        (changed("\"stride\"", "\"ring\""), "unknown variant `ring`, expected one of `peers`"),
        (
            changed("\"stride\"\nsteps = [1]", "\"peers\""),
            "flows[0].pattern: this topology has no receivers",
        ),
        (changed("\"ecn\"", "\"ghost\""), "flows[0].from: there is no group of guests 'ghost'"),
        (changed("steps = [1]", ""), "flows[0].steps: a stride needs them"),
        (changed("[1]", "[1, 3]"), "flows[0].steps: 3 does not lead to another one of the 3 of"),
        (changed("[1]", "[1, 1]"), "flows[0].steps: has 1 twice"),
        (changed("\"ecn\"", "\"legacy\""), "flows[0].steps: 1 does not lead to another one"),
        (changed("\"stride\"", "\"incast\""), "flows[0].steps: only valid for a stride"),
        (changed("\"stride\"\nsteps = [1]", "\"incast\""), "flows[0].to: an incast needs the"),
        (changed("steps", "to = \"ecn\"\nsteps"), "flows[0].to: only valid for an incast"),
        (mesh(&format!("{stride}\n{stride}")), "flows[1].name: two groups of flows are called 's'"),
        (mesh(&format!("flows.t.steps = [2]\n{stride}")), "cases[0].flows.t: there is no group of"),
        (mesh(&format!("flows.s.steps = [4]\n{stride}")), "cases[0].flows.s.steps: 4 does not"),
        (
            mesh(&format!("guests.ecn.vcc.mode = \"shadow\"\n{}", stride.replace("[1]", "[1, 2]"))),
            "cases[0].guests.ecn.vcc.mode: shadow mode is for guests that send one flow each",
        ),
        (
            mesh(stride).replace("ecn = false", "ecn = false\ntraffic = \"ping-pong\""),
            "guests[1].traffic: belongs in [[flows]]",
        ),
        (in_network("leaves = 2"), "network.leaves: only valid for a two-tier network"),
        (two_tier("spines = 2"), "network.leaves: a two-tier network needs 'leaves' and 'spines'"),
        (two_tier("leaves = 2"), "network.spines: a two-tier network needs"),
        (two_tier("leaves = 4\nspines = 1"), "network.leaves: 3 guests cannot fill 4 leaves"),
        (in_network("switch_memory = { bytes = 0, alpha = 1.0 }"), "0 is not within 1 and"),
        (in_network("switch_memory = { bytes = 9000 }"), "missing field `alpha`"),
    ] {
        let error = refused(&source);
        assert!(error.starts_with("small.toml:") && error.contains(expected), "{error}");
    }
}
