//! Any text of a policy: reading ends with a policy or with problems, and what is accepted means the
//! same in each form.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use vcc_policy::{Checked, Connection, KEYS, Kind, Policy, Role, Rule};

use crate::input::Input;
use crate::steps;

/// Input bytes from here on stand for words.
const WORDS_FROM: u8 = 0x80;

const WORDS: &[&str] = &[
    "[[ports]]\n",
    "[[pools]]\n",
    "[[rules]]\n",
    "[default]\n",
    "name = ",
    "device = ",
    "socket = ",
    "tenant = ",
    "peer = ",
    "guest_port = ",
    "peer_port = ",
    "role = ",
    "vlan = ",
    "pool = ",
    "weight = ",
    "size = ",
    "max_flows = ",
    "buffer = ",
    "\"a\"\n",
    "\"b\"\n",
    "\"vm*\"\n",
    "\"10.0.0.0/8\"\n",
    "\"fd00::/8\"\n",
    "[\"0.0.0.0/0\", \"::/0\"]\n",
    "\"1-1024\"\n",
    "80\n",
    "[1, 4094]\n",
    "\"client\"\n",
    "\"server\"\n",
    "true\n",
    "false\n",
    "0\n",
    "1\n",
    "0.5\n",
    "\"1 MiB\"\n",
    "\"10ms\"\n",
    "\"100 Mbit/s\"\n",
    "\"dctcp\"\n",
    "\"reno-ecn\"\n",
    "\"cubic\"\n",
    "\"shadow\"\n",
    "\"drain\"\n",
    "\"ignore\"\n",
    "\"hold\"\n",
    "\"split\"\n",
    "\"none\"\n",
];

pub fn run(bytes: &[u8]) {
    let text = text(bytes);
    steps::count();
    let policy = match Policy::parse(&text, "policy.toml") {
        Ok(Checked { policy, warnings }) => {
            warnings.iter().for_each(|warning| assert!(!warning.to_string().is_empty()));
            policy
        }
        Err(wrong) => {
            assert!(wrong.errors() > 0, "refused without a reason");
            assert!(!wrong.to_string().is_empty());
            return;
        }
    };
    assert_tables(&policy, &mut Input::new(bytes));
    policy.rules().iter().for_each(assert_rewritten);
}

/// Mostly what is typed, with words of a policy for bytes that no text has.
fn text(bytes: &[u8]) -> String {
    let word = |byte: u8| {
        let at = usize::from(byte - WORDS_FROM);
        let key =
            at.checked_sub(WORDS.len()).map(|at| format!("{} = ", KEYS[at % KEYS.len()].name));
        key.unwrap_or_else(|| WORDS[at].to_owned())
    };
    let part = |&byte: &u8| if byte < WORDS_FROM { char::from(byte).into() } else { word(byte) };
    bytes.iter().map(part).collect()
}

/// The compiled tables find the rule that comes first, and a query returns why.
fn assert_tables(policy: &Policy, input: &mut Input) {
    let compiled = policy.compile();
    for _ in 0..4 {
        let c = connection(input);
        let (port, rule) = (compiled.port_set(c.affiliation()), policy.judge(&c));
        assert_eq!(compiled.judge(&port, &c), rule, "{c:?}");
        let explained = policy.explain(&c);
        assert_eq!((explained.rule, explained.misses.len()), (rule, rule));
        assert!(explained.misses.iter().all(|miss| !miss.reasons.is_empty()), "{c:?}");
    }
}

fn connection(input: &mut Input) -> Connection {
    let peer: IpAddr = match input.below(2) {
        0 => Ipv4Addr::from_bits(input.u32()).into(),
        _ => Ipv6Addr::from_bits(u128::from(input.u32()) << 96 | u128::from(input.u32())).into(),
    };
    Connection {
        tenant: input.pick(&[None, Some("a"), Some("b")]).map(str::to_owned),
        class: None,
        guest: SocketAddr::new(Ipv4Addr::new(10, 0, 0, 1).into(), input.u16()),
        peer: SocketAddr::new(peer, input.pick(&[80, 1024, 1025, 0])),
        vlan: input.pick(&[None, Some(0), Some(1), Some(4094)]),
        role: input.pick(&Role::ALL),
    }
}

/// A treatment that is written out, key by key, is read again as it was.
fn assert_rewritten(rule: &Rule) {
    assert!(!rule.to_string().is_empty());
    let treatment = rule.treatment();
    // A pool is the policy's, and so is what is enforced with it.
    if treatment.pool.is_some() {
        return;
    }
    let mut text = "[default]\n".to_owned();
    for key in KEYS {
        let Some(number) = key.get(treatment).filter(|number| Some(*number) != key.default())
        else {
            continue;
        };
        assert!(!matches!(key.kind, Kind::Pool), "a pool's number");
        text += &format!("{} = {}\n", key.name, key.kind.toml(number));
    }
    let again =
        Policy::parse(&text, "again.toml").unwrap_or_else(|wrong| panic!("{wrong}\n{text}"));
    let read = again.policy.rules().last().expect("the default").treatment();
    assert_eq!(read.params, treatment.params, "{text}");
}
