//! The messages about what is wrong.

use vcc_policy::{Policy, Severity};

/// All messages about a policy, without the one about missing ports.
fn problems_of(text: &str) -> Vec<String> {
    problems_of_file(&format!("{text}\n[[ports]]\ndevice = \"x\"\n"))
}

fn problems_of_file(text: &str) -> Vec<String> {
    let problems = match Policy::parse(text, "p.toml") {
        Ok(checked) => checked.warnings,
        Err(wrong) => wrong.problems,
    };
    problems.iter().map(|p| p.to_string().lines().next().unwrap().to_owned()).collect()
}

#[track_caller]
fn assert_problem(text: &str, expected: &str) {
    let problems = problems_of(text);
    assert!(problems.iter().any(|line| line.contains(expected)), "{text}\n{problems:#?}");
}

/// Asserts that a rule with these lines leads to the `expected` finding.
#[track_caller]
fn of_rule(lines: &str, expected: &str) {
    assert_problem(&format!("[[rules]]\nname = \"x\"\n{lines}\n"), expected);
}

#[test]
fn everything_at_once_each_with_its_place() {
    let text = "\
[[rules]]
name = \"web\"
underlay = \"dtcp\"
peer = [\"10.0.0.1/8\", \"fd00::/8\"]
guest_prt = 80
[[rules]]
name = \"web\"
x = [1,
";
    let wrong = Policy::parse(text, "p.toml").expect_err("much is wrong");
    let expected = "\
p.toml:3:12: error: `dtcp` is not an underlay; the nearest is `dctcp`
 3 | underlay = \"dtcp\"
   |            ^^^^^^
p.toml:4:9: error: 10.0.0.1/8 has bits set beyond its prefix; the network is 10.0.0.0/8, the \
address 10.0.0.1
 4 | peer = [\"10.0.0.1/8\", \"fd00::/8\"]
   |         ^^^^^^^^^^^^
p.toml:5:1: error: unknown key `guest_prt`; the nearest is `guest_port`
 5 | guest_prt = 80
   | ^^^^^^^^^
p.toml:7:8: error: the rule in line 2 also has the name `web`
 7 | name = \"web\"
   |        ^^^^^";
    assert!(wrong.to_string().starts_with(expected), "{wrong}");
    assert!(wrong.problems.last().unwrap().message.starts_with("this is not TOML"), "{wrong}");
}

#[test]
fn invalid_values() {
    for (line, expected) in [
        (
            "underlay = \"westwood\"",
            "`westwood` is not an underlay; known: transparent, reno, reno-ecn",
        ),
        ("underlay = 3", "must be the name of an underlay, not an integer"),
        ("mode = \"enforced\"", "`enforced` is not a mode; the nearest is `enforce`"),
        ("role = \"both\"", "`both` is not a role; known: client, server"),
        ("peer = \"10.0.0.0/33\"", "the prefix of an IPv4 network has at most 32 bits, not 33"),
        ("peer = \"fd00::/129\"", "the prefix of an IPv6 network has at most 128 bits, not 129"),
        (
            "peer = \"10.0.0.0/99999999999999999999\"",
            "`10.0.0.0/99999999999999999999` is not a network",
        ),
        ("peer = \"10.0.0.0/255.0.0.0\"", "`10.0.0.0/255.0.0.0` is not a network"),
        ("peer = \"fd00::1/8\"", "the network is fd00::/8"),
        (
            "peer = \"::ffff:10.0.0.0/104\"",
            "this is an IPv4 network in IPv6 notation; write 10.0.0.0/8",
        ),
        ("peer = []", "an empty list matches nothing"),
        ("guest_port = 0", "must be a port from 1 to 65535, not 0"),
        ("guest_port = 65536", "must be a port from 1 to 65535, not 65536"),
        ("guest_port = -1", "must be a port from 1 to 65535, not -1"),
        ("peer_port = \"90-80\"", "the range is reversed; write \"80-90\""),
        ("peer_port = \"http\"", "`http` is not a port"),
        ("vlan = 4095", "must be a VLAN from 1 to 4094, or 0 for untagged, not 4095"),
        ("window_cap = 0", "must be 1 to 4294967295, not 0; leave the key out for no limit"),
        ("window_cap = \"2MB\"", "a size is a number"),
        ("window_cap = -1", "must be 1 to 4294967295"),
        ("window_cap = 0x1_0000_0000", "must be 1 to 4294967295"),
        ("rate_cap = -8000", "must be 8K to 34000G"),
        ("rate_cap = 99999999999999999999", "must be 8K to 34000G"),
        ("underlay = \"dctcp-priority\"\npriority = 0x2", "must be a number from 0 to 1"),
        ("rate_cap = \"1K\"", "must be 8K to 34000G"),
        ("window_max = \"1K\"", "must be 64K to 1G"),
        ("window_floor_segments = 1001", "must be a number from 0 to 1000, not 1001"),
        ("rto_min = 200", "must be a time with its unit, like \"10ms\", not an integer"),
        ("rto_min = \"2h\"", "must be 1ms to 1min"),
        ("idle_established = \"25d\"", "must be 1min to 24d"),
        ("prr = \"yes\"", "must be true or false, not a string"),
        ("tenant = \"\"", "a name must not be empty"),
        ("underlay = \"dctcp-priority\"\npriority = 1.5", "must be a number from 0 to 1"),
    ] {
        of_rule(line, expected);
    }
    let name = "x".repeat(63);
    assert_eq!(problems_of(&format!("[[rules]]\nname = \"{name}\"")), [""; 0]);
    assert_problem(&format!("[[rules]]\nname = \"{name}x\""), "a name has at most 63 bytes");
    for (window, expected) in [
        ("0", "must be 1 to 1G, not 0"),
        ("\"1025M\"", "must be 1 to 1G"),
        ("-1", "must be 1 to 1G"),
    ] {
        assert_problem(&format!("[[pools]]\nname = \"x\"\nwindow = {window}"), expected);
    }
    assert_problem(
        "[rules]\nname = \"x\"",
        "the heading of a list needs double brackets: [[rules]]",
    );
    assert_problem("[default]\nmode = \"shadow\"\n[[default]]", "this is not TOML");
    assert_problem(
        "[[default]]\nmode = \"shadow\"",
        "there is only one such table; write [default] once",
    );
    assert_problem(
        "[[ports]]\ndevice = \"a[b\"",
        "invalid pattern: `[` needs letters and a `]` after it",
    );
    assert_problem(
        "[[ports]]\ndevice = \"a[b*\"",
        "invalid pattern: `[` needs letters and a `]` after it",
    );
    assert_problem("[[ports]]\ndevice = \"****b\"", "a single `*` matches any letters; write `*b`");
    assert_problem("[[ports]]\ndevice = \"a**[**]b\"", "any letters; write `a*[**]b`");
    assert_problem("[[ports]]\ndevice = \"a\\u0000\"", "a device name cannot contain '\\0'");
    assert_problem("[[ports]]\ndevice = \"a/b\"", "cannot contain '/'");
    assert_problem("[[ports]]\ndevice = \"a-name-of-16-byt\"", "at most 15 bytes");
    assert_problem(
        "[[ports]]\nmax_flows = 0\ndevice = \"a\"",
        "a number from 1 to 16777216, not 0",
    );
}

#[test]
fn ports_that_look_into_tunnels() {
    let port = |lines: &str| problems_of_file(&format!("[[ports]]\n{lines}\n"));
    for inside in ["\"gre\"", "[\"vxlan\", \"geneve\"]", "[]"] {
        assert_eq!(port(&format!("device = \"x\"\ninside = {inside}")), [""; 0], "{inside}");
    }
    for (lines, expected) in [
        ("device = \"x\"\ninside = \"vxlam\"", "`vxlam` is not a kind of tunnel; "),
        ("device = \"x\"\ninside = [\"gre\", 4]", "a kind of tunnel"),
        ("socket = \"/run/a\"\ninside = \"gre\"", "`inside` is for a port with a `device`"),
    ] {
        let problems = port(lines);
        assert!(problems.len() == 1 && problems[0].contains(expected), "{lines}: {problems:?}");
    }
}

#[test]
fn devices_of_one_guest_are_one_port() {
    let second = |lines: &str| {
        let first =
            "[[ports]]\ndevice = \"a\"\nguest = \"web\"\ntenant = \"acme\"\ninside = \"gre\"\n";
        problems_of_file(&format!("{first}[[ports]]\ndevice = \"b\"\n{lines}\n"))
    };
    let same = "tenant = \"acme\"\ninside = \"gre\"";
    for lines in [format!("guest = \"web\"\norder = \"first\"\n{same}"), "guest = \"db\"".into()] {
        assert_eq!(second(&lines), [""; 0], "{lines}");
    }
    for (key, lines) in [
        ("tenant", "inside = \"gre\"".to_owned()),
        ("inside", "tenant = \"acme\"".to_owned()),
        ("max_flows", format!("max_flows = 7\n{same}")),
    ] {
        let problems = second(&format!("guest = \"web\"\n{lines}"));
        let expected = format!(
            "the devices of the guest `web` are one port, and their `{key}` differs from that in line 3: give \
             both the same, or two guests"
        );
        assert!(problems.len() == 1 && problems[0].contains(&expected), "{key}: {problems:?}");
    }
    let problems = problems_of_file("[[ports]]\nsocket = \"/run/a\"\nguest = \"web\"\n");
    assert!(
        problems.len() == 1 && problems[0].contains("`guest` is for a port with a `device`"),
        "{problems:?}"
    );
}

#[test]
fn ports_that_are_sockets() {
    let port = |lines: &str| problems_of_file(&format!("[[ports]]\n{lines}\n"));
    let socket = "socket = \"/run/vcc-*/card\"";
    for lines in ["", "buffer = \"64K\"\nbuffer_policy = \"prioritized\"", "buffer = 1073741824"] {
        assert_eq!(port(&format!("{socket}\n{lines}")), [""; 0]);
    }
    for (lines, place, expected) in [
        (
            format!("device = \"x\"\n{socket}"),
            "3:10",
            "a port has a `device` or a `socket`, not both",
        ),
        (format!("{socket}\nbuffer = \"63K\""), "3:10", "must be 64K to 1G, not 64512"),
        (format!("{socket}\nbuffer = \"2G\""), "3:10", "must be 64K to 1G, not 2147483648"),
        (
            format!("{socket}\nbuffer_policy = \"fare\""),
            "3:17",
            "`fare` is not a policy for the buffer; known: none, fair, prioritized",
        ),
        (
            "socket = 1".into(),
            "2:10",
            "must be a pattern of paths, like \"/run/vcc-domain-*/card\", \
            not an integer",
        ),
        ("socket = \"run/card\"".into(), "2:10", "the path of a socket begins with `/`"),
        ("socket = \"/a\\u0000\"".into(), "2:10", "a path cannot contain '\\0'"),
        (
            format!("socket = \"/{}\"", "x".repeat(107)),
            "2:10",
            "the path of a socket has at most 107 bytes",
        ),
    ] {
        assert_eq!(port(&lines), [format!("p.toml:{place}: error: {expected}")], "{lines}");
    }
    let hidden = port("socket = \"/run/*\"\n[[ports]]\nsocket = \"/run/vcc/a\"");
    let warning = "never reached: `/run/*` in line 2 matches all of these sockets first";
    assert_eq!(hidden, [format!("p.toml:4:10: warning: {warning}")]);
    assert_eq!(port("device = \"*\"\n[[ports]]\nsocket = \"/run/a\""), [""; 0]);
}

#[test]
fn devices_with_a_buffer() {
    let port = |lines: &str| problems_of_file(&format!("[[ports]]\ndevice = \"x*\"\n{lines}\n"));
    for lines in
        ["buffer = \"8M\"", "buffer = \"64K\"\nbuffer_policy = \"none\"\ntenant = \"deep\""]
    {
        assert_eq!(port(lines), [""; 0]);
    }
    for (lines, place, expected) in [
        (
            "buffer_policy = \"none\"",
            "3:17",
            "`buffer_policy` needs a `buffer`, like buffer = \"4M\", with which `vcc domain --device` \
             serves the port: one in the kernel has none",
        ),
        (
            "buffer = \"8M\"\ninside = \"gre\"",
            "4:10",
            "`inside` is for a port without a `buffer`, as `vcc domain --device` serves this one: it does \
             not look into tunnels",
        ),
        (
            "buffer = \"8M\"\norder = \"last\"",
            "4:9",
            "`order` is for a port without a `buffer`, as `vcc domain --device` serves this one: it goes \
             before all other programs",
        ),
        (
            "buffer = \"8M\"\nguest = \"web\"",
            "4:9",
            "`guest` is for a port without a `buffer`, as `vcc domain --device` serves this one: each \
             process serves one device",
        ),
    ] {
        assert_eq!(port(lines), [format!("p.toml:{place}: error: {expected}")], "{lines}");
    }
    let hidden = port("[[ports]]\ndevice = \"x1\"\nbuffer = \"8M\"");
    let warning = "never reached: `x*` in line 2 matches all of these devices first";
    assert_eq!(hidden, [format!("p.toml:4:10: warning: {warning}")]);
}

#[test]
fn what_a_port_in_front_of_a_device_cannot_do() {
    let rule = |lines: &str| {
        let ports = "[[ports]]\ndevice = \"x\"\nbuffer = \"8M\"\ntenant = \"deep\"\n[[ports]]\n\
            socket = \"/run/a\"\ntenant = \"deeper\"\n";
        let rule = format!("[[rules]]\nname = \"r\"\n{lines}\nguest_ecn = \"override\"\n");
        let all = problems_of_file(&format!("{ports}{rule}"));
        all.into_iter().filter(|line| !line.contains("no rule uses")).collect::<Vec<_>>()
    };
    let ring = "`receive` needs the guest's receive ring, and the ports `x` of line 2 are of `vcc domain \
        --device`, which does not see it: ask in this rule for a `tenant` that only ports with a `socket` \
        have";
    assert_eq!(rule("receive = \"ring\""), [format!("p.toml:10:11: error: {ring}")]);
    for fine in [
        "act = \"hold\"\nretransmit = true",
        "act = \"split\"\nreceive = \"guest\"",
        "act = \"split\"\nreceive = \"accept\"\ntenant = \"deeper\"",
    ] {
        assert_eq!(rule(fine), [""; 0], "{fine}");
    }
}

#[test]
fn what_a_port_cannot_do() {
    const PORTS: &str = "[[ports]]\ndevice = \"x\"\ntenant = \"bare\"\n[[ports]]\ndevice = \"y\"\n\
        [[ports]]\nsocket = \"/run/a\"\ntenant = \"deep\"\n";
    let of = |ports: &str, lines: &str| {
        let all = problems_of_file(&format!("{ports}{lines}\nguest_ecn = \"override\"\n"));
        all.into_iter().filter(|line| !line.contains("no rule uses")).collect::<Vec<_>>()
    };
    let rule = |lines: &str| of(PORTS, &format!("[[rules]]\nname = \"r\"\n{lines}"));
    let in_kernel = |asked: &str, port: &str| {
        format!(
            "{asked}, and the ports {port} are in the kernel: ask in this rule for a `tenant` that \
             only ports with a `socket` or a `buffer` have"
        )
    };
    for (lines, place, expected) in [
        ("act = \"hold\"", "11:7", in_kernel("`act` needs a buffer", "`x` of line 2")),
        (
            "act = \"split\"\nreceive = \"ring\"",
            "11:7",
            in_kernel("`act`, `receive` need a buffer", "`x` of line 2"),
        ),
        (
            "retransmit = true\nact = \"hold\"",
            "12:7",
            in_kernel("`act`, `retransmit` need a buffer", "`x` of line 2"),
        ),
        (
            "receive = \"ring\"\ntenant = [\"deep\", \"bare\"]",
            "11:11",
            in_kernel("`receive` needs a buffer", "`x` of line 2"),
        ),
    ] {
        assert_eq!(rule(lines), [format!("p.toml:{place}: error: {expected}")], "{lines}");
    }
    for fine in [
        "act = \"split\"\nreceive = \"ring\"\ntenant = \"deep\"",
        "act = \"window\"\nretransmit = false\nreceive = \"guest\"",
    ] {
        assert_eq!(rule(fine), [""; 0], "{fine}");
    }
    let default = of(PORTS, "[default]\nreceive = \"ring\"");
    assert!(default[0].ends_with(
        "are in the kernel: use it in a rule with a `tenant` that only ports with a `socket` or a \
         `buffer` have"
    ));
    assert_eq!(of("[[ports]]\nsocket = \"/run/a\"\n", "[default]\nact = \"hold\""), [""; 0]);
    assert_eq!(of("", "[[ports]]\ndevice = 1\n[default]\nact = \"hold\"").len(), 1);
}

#[test]
fn processes_do_not_share_a_pool() {
    const PORTS: &str = "[[ports]]\ndevice = \"x*\"\ntenant = \"bare\"\n[[ports]]\nsocket = \
        \"/run/a\"\ntenant = \"deep\"\n[[ports]]\ndevice = \"y\"\nbuffer = \"1M\"\ntenant = \"front\"\n\
        [[ports]]\nsocket = \"/run/[bc]\"\ntenant = \"deeper\"\n[[pools]]\nname = \"gold\"\nwindow = \
        \"2M\"\n";
    let rules = |lines: &[&str]| {
        let rule = |(number, lines): (usize, &&str)| {
            format!(
                "[[rules]]\nname = \"{number}\"\npool = \"gold\"\n{lines}\nguest_ecn = \
                \"override\"\n"
            )
        };
        let rules: String = lines.iter().enumerate().map(rule).collect();
        problems_of_file(&format!("{PORTS}{rules}"))
    };
    let apart = |line: u32, ports: &str| {
        format!(
            "p.toml:{line}:8: warning: the pool `gold` is not shared {ports}: each process of `vcc \
             domain` has one of its own, with the same window"
        )
    };
    for fine in ["bare", "deep", "front"] {
        assert_eq!(rules(&[&format!("tenant = \"{fine}\"")]), [""; 0], "{fine}");
    }
    let several = "among the ports `/run/[bc]` of line 12";
    assert_eq!(rules(&["tenant = \"deeper\""]), [apart(19, several)]);
    let kernel = "between the ports `x*` of line 2 and `/run/a` of line 5";
    assert_eq!(rules(&["tenant = [\"deep\", \"bare\"]"]), [apart(19, kernel)]);
    let domains = "between the ports `/run/a` of line 5 and `y` of line 8";
    assert_eq!(rules(&["tenant = [\"front\", \"deep\"]"]), [apart(19, domains)]);
    // By another rule than the first, and only once.
    let tenants = ["bare", "front", "deep"].map(|it| format!("tenant = \"{it}\""));
    let between = "between the ports `x*` of line 2 and `y` of line 8";
    let all = [&*tenants[0], &*tenants[1], &*tenants[2]];
    assert_eq!(rules(&all), [apart(24, between)]);
}

#[test]
fn ways_to_act_that_have_no_effect() {
    let rule = |lines: &str| {
        problems_of_file(&format!("[[ports]]\nsocket = \"/a\"\n[default]\n{lines}\n"))
    };
    for (lines, expected) in [
        ("retransmit = true", "`retransmit` has no effect without `act = \"hold\"`"),
        (
            "act = \"hold\"\nunderlay = \"cubic\"\nwindow_floor_segments = 0",
            "`window_floor_segments = 0` needs an underlay that has windows below one segment \
             (dctcp, dctcp-priority, swift), not cubic",
        ),
        (
            "act = \"split\"\nretransmit = true",
            "`retransmit` has no effect without `act = \"hold\"`",
        ),
        (
            "mode = \"shadow\"\nact = \"split\"",
            "`act` takes effect only with `mode = \"enforce\"`; the mode is shadow",
        ),
        (
            "mode = \"shadow\"\nreceive = \"ring\"",
            "`receive` takes effect only with `mode = \"enforce\"`; the mode is shadow",
        ),
        (
            "underlay = \"transparent\"\nact = \"hold\"",
            "`act` needs an underlay that controls the window (reno, reno-ecn, dctcp, \
             dctcp-priority, cubic, vegas, swift), not transparent",
        ),
    ] {
        let problems = rule(lines);
        let [problems] = &problems[..] else { panic!("{lines}: {problems:#?}") };
        assert!(problems.ends_with(&format!("error: {expected}")), "{lines}: {problems}");
    }
    assert_eq!(rule("act = \"hold\"\nretransmit = true\nreceive = \"ring\""), [""; 0]);
}

#[test]
fn fractions_are_numbers_too() {
    for (line, key, value) in [
        ("rto_min = \"0.2s\"", "rto_min", None),
        ("rto_min = \"0.25s\"", "rto_min", Some("\"250ms\"")),
        ("idle_handshake = \"1.5min\"", "idle_handshake", Some("\"90s\"")),
        ("window_cap = \"1.5M\"", "window_cap", Some("\"1536K\"")),
        ("window_max = \"0.5G\"", "window_max", Some("\"512M\"")),
        // In binary fractions this is less than it assert_problem.
        ("rate_cap = \"2.3G\"", "rate_cap", Some("\"2300M\"")),
    ] {
        let text = format!("[[ports]]\ndevice = \"x\"\n[default]\n{line}\n");
        let checked = Policy::parse(&text, "p.toml").unwrap_or_else(|wrong| panic!("{wrong}"));
        let mut changes = checked.policy.rules()[0].treatment().changes();
        let change = changes.find(|(changed, _)| changed.name == key);
        let shown = change.map(|(changed, number)| changed.kind.toml(number));
        assert_eq!(shown.as_deref(), value, "{line}");
    }
    of_rule("rto_min = \"0.2\"", "a time is a number with a unit: us, ms, s, min, h or d");
    of_rule("window_cap = \"1,5M\"", "a size is a number of bytes, with K, M or G");
}

#[test]
fn a_key_that_belongs_elsewhere() {
    for (text, expected) in [
        ("[[ports]]\nunderlay = \"dctcp\"", "`underlay` belongs in [[rules]] or [default]"),
        ("[[ports]]\nwindow = \"1M\"", "`window` belongs in [[pools]]"),
        ("[[rules]]\nmax_flows = 1", "`max_flows` belongs in [[ports]]"),
        ("[default]\nname = \"x\"", "`name` belongs in [[pools]] or [[rules]]"),
        ("[[rules]]\ndefault = 1", "`default` belongs at the top of the file"),
        ("mode = \"shadow\"", "`mode` belongs in [[rules]] or [default]"),
        // Also where something here is called much alike.
        ("[[pools]]\ntenant = 1", "`tenant` belongs in [[ports]] or [[rules]]"),
    ] {
        assert_problem(&format!("{text}\n"), expected);
    }
}

#[test]
fn former_names_are_refused_with_the_new_one() {
    for key in vcc_policy::KEYS {
        for (former, _) in key.formerly() {
            let now = format!("unknown key `{former}`; `{former}` is now `{}", key.name);
            of_rule(&format!("{former} = 1"), &now);
        }
    }
}

#[test]
fn not_a_text() {
    let text = "[default]\nmode = \"shadow\"\n";
    let wide: String = text.chars().flat_map(|c| [c, '\0']).collect();
    for text in [wide, format!("{text}\0\0\0\n"), "\0".into()] {
        let problems = problems_of_file(&text);
        let [line] = &problems[..] else { panic!("{problems:#?}") };
        assert!(line.contains("a NUL byte: save the file as UTF-8"), "{line}");
    }
}

#[test]
fn long_values_are_shortened() {
    let long = "x".repeat(5000);
    let digits = "9".repeat(5000);
    for line in [
        format!("{long} = 1"),
        format!("underlay = \"{long}\""),
        format!("peer = \"{long}\""),
        format!("peer_port = \"{long}\""),
        format!("peer_port = {digits}"),
        format!("vlan = {digits}"),
        format!("window_floor_segments = {digits}"),
        format!("window_cap = \"{digits}\""),
        format!("rto_min = \"{long}\""),
        format!("tenant = \"{long}\""),
        format!("pool = \"{long}\""),
        long.clone(),
        format!("prr = {long}"),
        format!("a = 1\na.{long} = 1"),
        format!("{long} = 1\n{long} = 1"),
    ] {
        let problems = problems_of(&format!("[[rules]]\nname = \"x\"\n{line}\n"));
        assert!(!problems.is_empty(), "{line}");
        for line in problems {
            assert!(line.len() < 400, "{} bytes: {line}", line.len());
        }
    }
    for device in
        [format!("[{long}]*"), format!("{long}*"), format!("[{long}"), format!("**[{long}]")]
    {
        for again in ["", "a"] {
            let port = format!("[[ports]]\ndevice = \"{device}\"\n");
            for line in
                problems_of(&format!("{port}{}", port.replace("\"\n", &format!("{again}\"\n"))))
            {
                assert!(line.len() < 400, "{} bytes: {line}", line.len());
            }
        }
    }
}

#[test]
fn missing_keys() {
    assert_problem(
        "[[ports]]\ntenant = \"a\"",
        "`device` is missing, like device = \"vnet*\", or `socket`",
    );
    assert_problem("[[pools]]\nname = \"a\"", "`window` is missing");
    assert_problem("[[pools]]\nwindow = \"2M\"", "`name` is missing: rules refer to a pool by it");
    assert_problem("[[rules]]\nvlan = 3", "`name` is missing: metrics");
    of_rule("pool = \"gold\"", "no pool has the name `gold`; there are none");
    assert_problem(
        "[[pools]]\nname = \"gold\"\nwindow = \"2M\"\n[default]\npool = \"gld\"",
        "no pool has the name `gld`; the nearest is `gold`",
    );
}

#[test]
fn contradictions() {
    of_rule(
        "priority = 0.5",
        "`priority` needs an underlay that knows priorities (dctcp-priority), not reno-ecn",
    );
    of_rule("emit_after = \"20ms\"", "`emit_after` has no effect without `emit = true`");
    of_rule("weight = 3", "`weight` has no effect without `pool`");
    of_rule(
        "underlay = \"transparent\"\npool = \"a\"",
        "`pool` needs an underlay that controls the window (reno, reno-ecn",
    );
    of_rule(
        "underlay = \"transparent\"\npolice = true",
        "`police` needs an underlay that controls the window (reno, reno-ecn",
    );
    assert_problem("[[rules]]\nname = \"default\"", "the name `default` is that of [default]");
    let pool = "[[pools]]\nname = \"gold\"\nwindow = \"2M\"\n";
    assert_problem(&(pool.to_owned() + pool), "the pool in line 2 also has the name `gold`");
}

#[test]
fn a_floor_above_a_limit() {
    const OVERRIDE: &str = "guest_ecn = \"override\"\n";
    let rule = |lines: &str| {
        let pool = "[[pools]]\nname = \"gold\"\nwindow = \"128K\"\n";
        format!(
            "{pool}[[rules]]\nname = \"x\"\nvlan = 3\n{lines}\n{OVERRIDE}[default]\n\
             pool = \"gold\"\n{OVERRIDE}"
        )
    };
    let cap = "window_cap = \"64K\"\nwindow_floor_segments";
    let expected = ":8:25: error: `window_floor_segments = 123`, at least 65928 bytes, exceeds \
        `window_cap = \"64K\"`";
    assert_problem(&rule(&format!("{cap} = 123")), expected);
    assert_eq!(problems_of(&rule(&format!("{cap} = 122"))), [""; 0]);
    let pool = "pool = \"gold\"\nwindow_floor_segments";
    for mode in ["enforce", "shadow"] {
        let expected = "exceeds the pool's window of 128K";
        assert_problem(&rule(&format!("mode = \"{mode}\"\n{pool} = 245")), expected);
    }
    assert_eq!(problems_of(&rule(&format!("{pool} = 244"))), [""; 0]);
}

#[test]
fn one_mistake_is_reported_once() {
    assert_eq!(
        problems_of("[[rules]]\nname = \"x\"\nunderlay = \"dctcpp\"\npriority = 0.5").len(),
        1
    );
    assert_eq!(problems_of("[[rules]]\nname = 3").len(), 1);
    // The condition that could not be read is not taken for none.
    assert_eq!(
        problems_of("[[rules]]\nname = \"x\"\nvlan = 5000\n[[rules]]\nname = \"y\"").len(),
        1
    );
}

#[test]
fn warnings_of_what_may_not_be_meant() {
    let pool = "[[pools]]\nname = \"gold\"\nwindow = \"8K\"\n";
    assert_problem(pool, "no rule uses the pool `gold`");
    assert_problem(pool, "a window of 8K holds fewer than 10 segments");
    let port = "[[ports]]\ndevice = \"vnet*\"\ntenant = \"acme\"\n";
    assert_problem(
        &format!("{port}[[rules]]\nname = \"x\"\ntenant = \"acm\""),
        "no port has the tenant `acm`; the nearest is `acme`",
    );
    assert_problem(
        &format!("{port}[[ports]]\ndevice = \"vnet-a*\""),
        "`vnet*` in line 2 matches all",
    );
    for line in ["police = true", "emit = true"] {
        of_rule(
            &format!("mode = \"shadow\"\n{line}"),
            "takes effect only with `mode = \"enforce\"`; the mode is shadow",
        );
    }
    of_rule(
        "underlay = \"transparent\"\nrate_cap = \"1M\"",
        "`rate_cap` needs an underlay that controls the window",
    );
    of_rule("window_cap = 1459", "`window_cap = 1459` is less than a segment of Ethernet");
    let rule = "[[rules]]\nname = \"x\"\nmode = \"shadow\"\npool = \"gold\"\n";
    let checked = Policy::parse(&format!("{pool}{rule}"), "p.toml").expect("a policy");
    assert_eq!(checked.policy.rules()[0].treatment().pool, None);
    assert!(checked.warnings.iter().all(|warning| warning.severity == Severity::Warning));
}

#[test]
fn limits_that_a_guest_escapes_by_its_own_ecn() {
    let pool = "[[pools]]\nname = \"gold\"\nwindow = \"2M\"\n";
    let rule = |lines: &str| problems_of(&format!("{pool}[default]\n{lines}\n"));
    let escaped = |place: &str, keys: &str| {
        format!(
            "p.toml:{place}: warning: {keys} not bind a guest that negotiates ECN itself: its \
             connections are left alone without `guest_ecn = \"override\"`"
        )
    };
    let limits = ["police = true", "window_cap = \"64K\"", "rate_cap = \"1G\"", "pool = \"gold\""];
    for limit in limits {
        let (key, _) = limit.split_once(" = ").unwrap();
        let place = format!("5:{}", key.len() + 4);
        // Whether the underlay uses ECN or not.
        for others in ["", "guest_ecn = \"leave\"", "underlay = \"cubic\""] {
            let problems = rule(&format!("{limit}\n{others}")).into_iter();
            let problems: Vec<String> =
                problems.filter(|it| !it.contains("no rule uses")).collect();
            assert_eq!(problems, [escaped(&place, &format!("`{key}` does"))]);
        }
    }
    let all = limits.join("\n");
    // At the first of them as the keys are listed.
    assert_eq!(rule(&all), [escaped("8:8", "`pool`, `window_cap`, `rate_cap`, `police` do")]);
    assert_eq!(rule(&format!("{all}\nguest_ecn = \"override\"")), [""; 0]);
    for lines in [
        "police = false",
        "emit = true",
        "mode = \"shadow\"\nwindow_cap = \"64K\"",
        "underlay = \"transparent\"\nwindow_cap = \"64K\"",
    ] {
        let problems = rule(lines);
        assert!(!problems.iter().any(|it| it.contains("not bind")), "{problems:#?}");
    }
}

#[test]
fn an_underlay_that_is_led_by_delays_without_measuring_them() {
    for underlay in ["swift", "vegas"] {
        let rule =
            |lines: &str| problems_of(&format!("[default]\nunderlay = \"{underlay}\"\n{lines}\n"));
        let warning = format!(
            "p.toml:3:10: warning: with `delays = false`, {underlay} counts the time for which a receiver \
             delays its ACKs as delay of the path, and sends too slowly: set `delays = true`"
        );
        assert_eq!(rule("delays = false"), std::slice::from_ref(&warning));
        assert_eq!(rule("delays = false\nmode = \"shadow\""), [warning]);
        assert_eq!(rule("delays = true"), [""; 0]);
    }
    assert_eq!(problems_of("[default]\nunderlay = \"dctcp\"\ndelays = false\n"), [""; 0]);
}

#[test]
fn duplicate_acks_that_are_never_due() {
    let rule = |lines: &str| problems_of(&format!("[default]\nunderlay = \"dctcp\"\n{lines}\n"));
    let never = |at: &str, after: &str, timeout: &str| {
        format!(
            "p.toml:{at}: warning: `emit_after = \"{after}\"` is too late: guests are assumed to have timed \
             out by then, with `rto_min = \"{timeout}\"`, and no duplicate ACK is sent"
        )
    };
    let set = |after: &str| rule(&format!("emit = true\nemit_after = \"{after}\""));
    assert_eq!(set("2s"), [never("4:14", "2s", "200ms")]);
    assert_eq!(set("200ms"), [never("4:14", "200ms", "200ms")]);
    assert_eq!(set("199ms"), [""; 0]);
    assert_eq!(rule("emit = true\nrto_min = \"5ms\""), [never("4:11", "10ms", "5ms")]);
    assert_eq!(rule("rto_min = \"5ms\""), [""; 0]);
}

#[test]
fn guests_that_may_continue_without_vcc() {
    let rule = |lines: &str| problems_of(&format!("[default]\nmigratable = true\n{lines}\n"));
    assert_eq!(rule("underlay = \"swift\""), [""; 0]);
    let by_loss = "p.toml:2:14: warning: with `migratable = true`, dctcp responds to losses alone: \
                   marks would be unanswered for a guest that continues without vcc";
    assert_eq!(rule("underlay = \"dctcp\""), [by_loss]);
    for promise in ["act = \"split\"", "receive = \"ring\""] {
        let problems = rule(&format!("underlay = \"swift\"\n{promise}"));
        let expected = format!("`migratable = true` and `{promise}` exclude each other");
        assert!(problems.iter().any(|it| it.contains(&expected)), "{problems:?}");
    }
}

#[test]
fn keys_without_effect_where_connections_are_left_alone() {
    let expected = "`mode = \"ignore\"` leaves connections alone: `underlay` has no effect";
    of_rule("mode = \"ignore\"\nunderlay = \"dctcp\"", expected);
    let lines = "underlay = \"dctcp\"\nmode = \"ignore\"\nwindow_cap = 5000\npolice = true";
    let rule = format!("[[rules]]\nname = \"x\"\nvlan = 1\n{lines}");
    let expected = "p.toml:4:12: warning: `mode = \"ignore\"` leaves connections alone: `underlay`, \
        `window_cap`, `police` have no effect";
    assert_eq!(problems_of(&rule), [expected]);
    assert_eq!(problems_of("[[rules]]\nname = \"x\"\nvlan = 1\nmode = \"ignore\""), [""; 0]);
    let idle = "mode = \"ignore\"\npolice = true\nemit = true\non_full = \"drop\"\n";
    let checked = Policy::parse(&format!("[default]\n{idle}"), "p.toml").expect("a policy");
    let treatment = checked.policy.rules()[0].treatment();
    let params = treatment.params.0;
    assert_eq!((params.police, params.emit, params.on_full), (0, 0, 0));
}

#[test]
fn without_ports() {
    let rule = "[[rules]]\nname = \"x\"\n";
    let expected = "p.toml:3:1: warning: there are no [[ports]]: with this policy a daemon detaches \
        from all devices";
    assert_eq!(problems_of_file(rule), [expected]);
    assert_eq!(problems_of_file("").len(), 1);
    assert_eq!(problems_of_file("ports = []").len(), 1);
    // Ports that could not be parsed are not reported as missing.
    assert_eq!(problems_of_file("[ports]\ndevice = \"x\"").len(), 1);
    assert_eq!(problems_of_file("[[port]]\ndevice = \"x\"").len(), 1);
}

#[test]
fn rules_that_are_never_reached() {
    let rules = |conditions: &[&str]| {
        let rule = |(n, condition): (usize, &&str)| {
            format!("[[rules]]\nname = \"{}\"\n{condition}\n", ["a", "b", "c"][n])
        };
        conditions.iter().enumerate().map(rule).collect::<String>()
    };
    for (conditions, expected) in [
        (&["", "vlan = 3"][..], "`b` is never reached: rule `a` (line 2) matches all"),
        (&["peer = \"10.0.0.0/8\"", "peer = [\"10.1.0.0/16\", \"10.2.3.4\"]"], "`b` is never"),
        (&["guest_port = [80, \"81-90\"]", "guest_port = \"80-90\"\nvlan = 1"], "`b` is never"),
        (
            &["role = \"client\"", "vlan = 9\nrole = \"server\"", "vlan = 9"],
            "`c` is never reached: rules `a` (line 2), `b` (line 5) together match all",
        ),
        (&["peer = \"0.0.0.0/0\"", "peer = \"::/0\"", "vlan = 9"], "`c` is never reached"),
    ] {
        assert_problem(&rules(conditions), expected);
    }
    assert_problem(&(rules(&[""]) + "[default]\nmode = \"shadow\""), "`default` is never reached");
    for reached in [
        &["vlan = 3", ""][..],
        &["vlan = 3\nrole = \"client\"", "vlan = 3"],
        &["peer = \"::/0\"", "peer = \"10.0.0.0/8\""],
        &["guest_port = \"80-90\"", "peer_port = \"80-90\""],
    ] {
        assert_eq!(problems_of(&rules(reached)), [""; 0]);
    }
}
