//! Scripts: text that states, line by line, what the guest's application does, what the peer sends,
//! and what has to come from the guest. docs/testing.md describes the notation.

use std::time::Duration;

use crate::bed::Mode;
use crate::cards::Card;
use crate::segment::{Segment, number};

#[derive(Clone, Debug)]
pub struct Script {
    /// The file's, and the choices of `vary`.
    pub name: String,
    pub events: Vec<Event>,
}

#[derive(Clone, Debug)]
pub struct Event {
    pub line: usize,
    pub text: String,
    modes: Vec<Mode>,
    /// Of the guest, by which a segment passes.
    pub card: Card,
    pub what: What,
    /// What the other side of the port sees of the segment, by mode.
    across: Vec<(Vec<Mode>, Option<Segment>)>,
}

#[derive(Clone, Debug)]
pub enum What {
    Call(Call),
    /// The guest sends this.
    Guest(Segment),
    /// The peer sends this.
    Peer(Segment),
    /// A router reports that the guest's last data were too big (RFC 1191).
    TooBig {
        mtu_bytes: u32,
    },
    Wait(Duration),
    /// The guest sends nothing in reply.
    Quiet,
    /// A new connection of the same ends, with this initial sequence number of the peer.
    Again {
        isn: u32,
    },
    Set {
        name: String,
        value: String,
    },
    RtoMin(String),
    /// The peer's initial sequence number.
    Isn(u32),
    /// The guest sends by this card.
    Route(Card),
    /// What comes to the guest waits, and it sends nothing.
    Pause,
    /// The guest takes what has waited.
    Resume,
    /// The port forgets what has been idle for so long.
    Idle(Duration),
    /// It has forgotten the connection. Then it keeps the next ones as long as usual.
    Forgotten,
}

/// Of the guest's application.
#[derive(Clone, Debug)]
pub enum Call {
    Option { name: String, value: i32 },
    Connect,
    ConnectWith { bytes: usize },
    Connected,
    Fails(String),
    Listen,
    Accept,
    Send { bytes: usize, urgent: bool },
    Receive { bytes: usize },
    ReceiveUrgent,
    ReceiveEnd,
    ShutDown,
    Close,
    Abort,
    State(String),
}

impl Event {
    pub fn is_for(&self, mode: Mode) -> bool {
        self.modes.contains(&mode)
    }

    /// What the other side must see in this mode, if the script states it; Some(None): nothing.
    pub fn across(&self, mode: Mode) -> Option<&Option<Segment>> {
        self.across.iter().find(|(modes, _)| modes.contains(&mode)).map(|(_, what)| what)
    }
}

impl Script {
    /// All scripts of a file: one for each choice of its `vary` line.
    pub fn read_all(name: &str, text: &str) -> Result<Vec<Self>, String> {
        let vary = text.lines().find_map(|line| line.strip_prefix("vary "));
        let names: Vec<&str> = vary.unwrap_or_default().split_whitespace().collect();
        let mut scripts = Vec::new();
        for choice in 0..1_u32 << names.len() {
            let is_set = |name: &str| {
                let place = names.iter().position(|known| *known == name)?;
                Some(choice >> place & 1 == 1)
            };
            let chosen = names
                .iter()
                .map(|name| format!(" {name}={}", u8::from(is_set(name) == Some(true))));
            let name = format!("{name}{}", chosen.collect::<String>());
            let chosen = choose(text, &is_set).map_err(|e| format!("{name}: {e}"))?;
            scripts.push(Self::read(name, &chosen)?);
        }
        Ok(scripts)
    }

    fn read(name: String, text: &str) -> Result<Self, String> {
        let mut events: Vec<Event> = Vec::new();
        let mut of_script = Mode::ALL.to_vec();
        for (at, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() || line.starts_with("vary ") {
                continue;
            }
            let failed = |why: String| format!("{name}:{}: {line}: {why}", at + 1);
            let (modes, rest) = read_modes(line).map_err(failed)?;
            let modes = modes.unwrap_or_else(|| of_script.clone());
            if let Some(names) = rest.strip_prefix("modes ") {
                of_script = modes_named(names).map_err(failed)?;
            } else if let Some(seen) = rest.strip_prefix("at ") {
                let before =
                    events.last_mut().ok_or("no segment before it".into()).map_err(failed)?;
                if before.card == Card::Second {
                    return Err(failed("card 2 has no port".into()));
                }
                before.across.push((modes, read_across(&before.what, seen).map_err(failed)?));
            } else {
                let (rest, card) = read_card(rest);
                let what = read_what(rest).map_err(failed)?;
                let text = line.to_string();
                events.push(Event { line: at + 1, text, modes, card, what, across: Vec::new() });
            }
        }
        Ok(Script { name, events })
    }

    pub fn is_for(&self, mode: Mode) -> bool {
        self.events.iter().any(|event| event.is_for(mode))
    }

    /// Whether the guest has to do the same under these modes.
    pub fn is_alike(&self, one: Mode, other: Mode) -> bool {
        self.events.iter().all(|event| event.is_for(one) == event.is_for(other))
    }
}

/// Replaces `{NAME?this|that}` and `{NAME}` by what is chosen.
fn choose(text: &str, is_set: &impl Fn(&str) -> Option<bool>) -> Result<String, String> {
    let mut chosen = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let (inner, after) = after.split_once('}').ok_or("a { without }")?;
        let (name, texts) = inner.split_once('?').unwrap_or((inner, "1|0"));
        let is_set = is_set(name).ok_or_else(|| format!("{name} is not in the line `vary`"))?;
        let (this, that) = texts.split_once('|').unwrap_or((texts, ""));
        chosen += before;
        chosen += if is_set { this } else { that };
        rest = after;
    }
    Ok(chosen + rest)
}

/// The modes in brackets before a line.
fn read_modes(line: &str) -> Result<(Option<Vec<Mode>>, &str), String> {
    match line.strip_prefix('[') {
        None => Ok((None, line)),
        Some(rest) => {
            let (names, rest) = rest.split_once(']').ok_or("a [ without ]")?;
            Ok((Some(modes_named(names)?), rest.trim()))
        }
    }
}

fn modes_named(names: &str) -> Result<Vec<Mode>, String> {
    let mut modes = Vec::new();
    for name in names.split_whitespace() {
        let is_meant = |mode: &Mode| match name {
            "translated" => mode.translates(),
            "untouched" => !mode.translates(),
            name => mode.name() == name,
        };
        let before = modes.len();
        modes.extend(Mode::ALL.into_iter().filter(is_meant));
        if modes.len() == before {
            return Err(format!("{name} is no mode"));
        }
    }
    Ok(modes)
}

/// A segment's card is at the end of its line.
fn read_card(line: &str) -> (&str, Card) {
    match line.strip_suffix(" by card 2") {
        Some(segment) if line.starts_with(['<', '>']) => (segment, Card::Second),
        _ => (line, Card::First),
    }
}

fn read_across(what: &What, seen: &str) -> Result<Option<Segment>, String> {
    let (side, rest) = seen.split_once(' ').ok_or("at what?")?;
    match (what, side) {
        (What::Guest(_), "fabric") => Segment::read(rest).map(Some),
        (What::Peer(_), "guest") if rest == "nothing" => Ok(None),
        (What::Peer(_), "guest") => Segment::read(rest).map(Some),
        _ => Err("`at fabric` is about what the guest sends, `at guest` about what the peer sends"
            .into()),
    }
}

fn read_what(line: &str) -> Result<What, String> {
    if let Some(segment) = line.strip_prefix("> ") {
        return Segment::read(segment).map(What::Guest);
    }
    if let Some(segment) = line.strip_prefix("< ") {
        return match segment.strip_prefix("too big, mtu ") {
            Some(mtu) => Ok(What::TooBig { mtu_bytes: number(mtu)? }),
            None => Segment::read(segment).map(What::Peer),
        };
    }
    let words: Vec<&str> = line.split_whitespace().collect();
    let call = match words[..] {
        ["wait", time] => return read_time(time).map(What::Wait),
        ["quiet"] => return Ok(What::Quiet),
        ["route", "by", "card", "1"] => return Ok(What::Route(Card::First)),
        ["route", "by", "card", "2"] => return Ok(What::Route(Card::Second)),
        ["pause"] => return Ok(What::Pause),
        ["resume"] => return Ok(What::Resume),
        ["idle", time] => return read_time(time).map(What::Idle),
        ["forgotten"] => return Ok(What::Forgotten),
        ["again", isn] => return Ok(What::Again { isn: number(isn)? }),
        ["isn", isn] => return Ok(What::Isn(number(isn)?)),
        ["rto_min", time] => return Ok(What::RtoMin(time.into())),
        ["set", name, ref value @ ..] => {
            return Ok(What::Set { name: name.into(), value: value.join(" ") });
        }
        ["option", name, value] => Call::Option { name: name.into(), value: number(value)? },
        ["connect"] => Call::Connect,
        ["connect", "with", bytes] => Call::ConnectWith { bytes: number(bytes)? },
        ["connected"] => Call::Connected,
        ["fails", error] => Call::Fails(error.into()),
        ["listen"] => Call::Listen,
        ["accept"] => Call::Accept,
        ["send", bytes] => Call::Send { bytes: number(bytes)?, urgent: false },
        ["send", bytes, "urgent"] => Call::Send { bytes: number(bytes)?, urgent: true },
        ["receive", "urgent"] => Call::ReceiveUrgent,
        ["receive", "end"] => Call::ReceiveEnd,
        ["receive", bytes] => Call::Receive { bytes: number(bytes)? },
        ["shutdown"] => Call::ShutDown,
        ["close"] => Call::Close,
        ["abort"] => Call::Abort,
        ["state", name] => Call::State(name.into()),
        _ => return Err("there is no such line".into()),
    };
    Ok(What::Call(call))
}

fn read_time(text: &str) -> Result<Duration, String> {
    let ms = text.strip_suffix("ms").ok_or("a time is a number and `ms`")?;
    Ok(Duration::from_millis(number(ms)?))
}
