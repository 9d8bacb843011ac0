//! TCP options in the notation of the scripts.

use std::fmt;

use vcc_frames::wire::*;
use vcc_frames::{hex, options};

use crate::segment::{absolute, number, relative};

/// An option; None stands for any value in what is wanted, and for the usual one in what is sent.
#[derive(Clone, Debug, PartialEq)]
pub enum TcpOption {
    Mss(Option<u16>),
    WindowScale(Option<u8>),
    SackPermitted,
    /// Edges, relative to the initial sequence number of the other end.
    Sack(Vec<(i64, i64)>),
    Timestamps {
        value: Option<u32>,
        echo: Option<u32>,
    },
    FastOpen(Cookie),
    /// By vcc, on a SYN (docs/feedback.md).
    Hello,
    Other(u8, Vec<u8>),
}

/// Of TCP Fast Open (RFC 7413, 4.1.1).
#[derive(Clone, Debug, PartialEq)]
pub enum Cookie {
    Request,
    /// Any that came; what is sent is the last one from the guest.
    Seen,
    Is(Vec<u8>),
}

/// What an option that is sent may refer to.
pub struct Known<'a> {
    /// The last TSval from the guest.
    pub tsval: u32,
    pub cookie: &'a [u8],
    pub initial_guest: u32,
}

/// Reads `mss 1460, sackOK, TS 100 ecr 5, wscale 7, sack 1:5 7:9, FO seen`.
pub fn read_all(text: &str) -> Result<Vec<TcpOption>, String> {
    text.split(',').map(str::trim).filter(|word| !word.is_empty()).map(read).collect()
}

fn read(text: &str) -> Result<TcpOption, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    Ok(match words[..] {
        ["mss"] => TcpOption::Mss(None),
        ["mss", value] => TcpOption::Mss(Some(number(value)?)),
        ["wscale"] => TcpOption::WindowScale(None),
        ["wscale", value] => TcpOption::WindowScale(Some(number(value)?)),
        ["sackOK"] => TcpOption::SackPermitted,
        ["sack", ref blocks @ ..] if !blocks.is_empty() => {
            let block = |word: &&str| {
                let (left, right) = word.split_once(':').ok_or("a block is LEFT:RIGHT")?;
                Ok::<_, String>((number(left)?, number(right)?))
            };
            TcpOption::Sack(blocks.iter().map(block).collect::<Result<_, _>>()?)
        }
        ["TS"] => TcpOption::Timestamps { value: None, echo: None },
        ["TS", "ecr", echo] => TcpOption::Timestamps { value: None, echo: Some(number(echo)?) },
        ["TS", value] => TcpOption::Timestamps { value: Some(number(value)?), echo: None },
        ["TS", value, "ecr", echo] => {
            TcpOption::Timestamps { value: Some(number(value)?), echo: Some(number(echo)?) }
        }
        ["FO"] => TcpOption::FastOpen(Cookie::Request),
        ["FO", "seen"] => TcpOption::FastOpen(Cookie::Seen),
        ["FO", cookie] => TcpOption::FastOpen(Cookie::Is(read_hex(cookie)?)),
        ["hello"] => TcpOption::Hello,
        ["kind", kind, value] => TcpOption::Other(number(kind)?, read_hex(value)?),
        _ => return Err(format!("{text} is no option")),
    })
}

fn read_hex(text: &str) -> Result<Vec<u8>, String> {
    let byte = |at| text.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
    let bytes: Option<Vec<u8>> = (0..text.len()).step_by(2).map(byte).collect();
    bytes.ok_or_else(|| format!("{text} is not hexadecimal"))
}

/// The options of a segment. NOPs are left out; a malformed option ends the list.
pub fn decode(mut bytes: &[u8], initial_other: u32) -> Vec<TcpOption> {
    let mut decoded = Vec::new();
    while let [kind, rest @ ..] = bytes {
        match *kind {
            OPTION_END => break,
            OPTION_NOP => bytes = rest,
            kind => {
                let length = rest.first().copied().map_or(0, usize::from);
                let Some(value) = bytes.get(2..length) else { break };
                decoded.push(decode_one(kind, value, initial_other));
                bytes = &bytes[length..];
            }
        }
    }
    decoded
}

fn decode_one(kind: u8, value: &[u8], initial_other: u32) -> TcpOption {
    let edge = |at| relative(read_u32(value, at), initial_other);
    match (kind, value.len()) {
        (OPTION_MSS, 2) => TcpOption::Mss(Some(read_u16(value, 0))),
        (OPTION_WSCALE, 1) => TcpOption::WindowScale(Some(value[0])),
        (OPTION_SACK_PERMITTED, 0) => TcpOption::SackPermitted,
        (OPTION_SACK, bytes) if bytes % 8 == 0 => {
            TcpOption::Sack((0..bytes).step_by(8).map(|at| (edge(at), edge(at + 4))).collect())
        }
        (OPTION_TIMESTAMPS, 8) => TcpOption::Timestamps {
            value: Some(read_u32(value, 0)),
            echo: Some(read_u32(value, 4)),
        },
        (OPTION_FAST_OPEN, 0) => TcpOption::FastOpen(Cookie::Request),
        (OPTION_FAST_OPEN, _) => TcpOption::FastOpen(Cookie::Is(value.to_vec())),
        (OPTION_EXPERIMENT, 6) if value[..2] == EXPERIMENT_NAME => TcpOption::Hello,
        (kind, _) => TcpOption::Other(kind, value.to_vec()),
    }
}

impl TcpOption {
    /// Whether an option that came is the one that is wanted.
    pub fn admits(&self, came: &TcpOption) -> bool {
        fn fits<T: PartialEq>(wanted: &Option<T>, came: &Option<T>) -> bool {
            wanted.is_none() || wanted == came
        }
        match (self, came) {
            (Self::Mss(wanted), Self::Mss(came)) => fits(wanted, came),
            (Self::WindowScale(wanted), Self::WindowScale(came)) => fits(wanted, came),
            (
                Self::Timestamps { value, echo },
                Self::Timestamps { value: came_value, echo: came_echo },
            ) => fits(value, came_value) && fits(echo, came_echo),
            (Self::FastOpen(Cookie::Seen), Self::FastOpen(Cookie::Is(_))) => true,
            _ => self == came,
        }
    }

    pub fn encode(&self, known: &Known) -> Result<Vec<u8>, String> {
        let edge = |at: &i64| absolute(*at, known.initial_guest);
        Ok(match self {
            Self::Mss(value) => options::mss(value.ok_or("an MSS needs a value here")?),
            Self::WindowScale(value) => options::wscale(value.ok_or("a scale needs a value here")?),
            Self::SackPermitted => options::sack_permitted(),
            Self::Sack(blocks) => {
                let blocks: Vec<_> = blocks.iter().map(|(l, r)| (edge(l), edge(r))).collect();
                options::sack(&blocks)
            }
            Self::Timestamps { value, echo } => {
                let value = value.ok_or("timestamps need a value here")?;
                options::timestamps(value, echo.unwrap_or(known.tsval))
            }
            Self::FastOpen(cookie) => {
                let cookie = match cookie {
                    Cookie::Request => &[],
                    Cookie::Seen => known.cookie,
                    Cookie::Is(cookie) => cookie,
                };
                [&[OPTION_FAST_OPEN, 2 + cookie.len() as u8], cookie].concat()
            }
            Self::Hello => options::hello(HELLO_OFFER),
            Self::Other(kind, value) => [&[*kind, 2 + value.len() as u8], &value[..]].concat(),
        })
    }
}

impl fmt::Display for TcpOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn shown<T: ToString>(value: &Option<T>) -> String {
            value.as_ref().map_or(String::new(), |value| format!(" {}", value.to_string()))
        }
        match self {
            Self::Mss(value) => write!(f, "mss{}", shown(value)),
            Self::WindowScale(value) => write!(f, "wscale{}", shown(value)),
            Self::SackPermitted => write!(f, "sackOK"),
            Self::Sack(blocks) => {
                write!(f, "sack")?;
                blocks.iter().try_for_each(|(left, right)| write!(f, " {left}:{right}"))
            }
            Self::Timestamps { value, echo: None } => write!(f, "TS{}", shown(value)),
            Self::Timestamps { value, echo: Some(echo) } => {
                write!(f, "TS{} ecr {echo}", shown(value))
            }
            Self::FastOpen(Cookie::Request) => write!(f, "FO"),
            Self::FastOpen(Cookie::Seen) => write!(f, "FO seen"),
            Self::FastOpen(Cookie::Is(cookie)) => write!(f, "FO {}", hex(cookie)),
            Self::Hello => write!(f, "hello"),
            Self::Other(kind, value) => write!(f, "kind {kind} {}", hex(value)),
        }
    }
}
