//! A segment in the notation of the scripts, with numbers relative to the initial ones.

use std::fmt;

use vcc_frames::Packet;
use vcc_frames::wire::*;

use crate::option::{self, TcpOption};

/// The letters of the flags, in the order in which they are written.
const LETTERS: [(u16, char); 9] = [
    (SYN, 'S'),
    (FIN, 'F'),
    (RST, 'R'),
    (PSH, 'P'),
    (URG, 'U'),
    (ECE, 'E'),
    (CWR, 'W'),
    (AE, 'A'),
    (ACK, '.'),
];
/// ECE, if the guest's SYN asked the fabric for ECN.
const ECE_IF_ASKED: char = 'e';
const NOT_ECT: u8 = 0;
const MARKS: [(u8, &str); 4] = [(NOT_ECT, "not-ect"), (ECT_0, "ect0"), (ECT_1, "ect1"), (CE, "ce")];

/// The initial sequence numbers of a connection; the guest's is known once it has sent a SYN.
#[derive(Clone, Copy, Debug, Default)]
pub struct Initial {
    pub guest: Option<u32>,
    pub peer: u32,
}

impl Initial {
    fn sequence_number(&self, guest: bool) -> u32 {
        if guest { self.guest.unwrap_or(0) } else { self.peer }
    }
}

pub fn relative(number: u32, to: u32) -> i64 {
    i64::from(number.wrapping_sub(to) as i32)
}

pub fn absolute(number: i64, to: u32) -> u32 {
    to.wrapping_add(number as u32)
}

/// A segment as a line describes it; fields that it leaves out may be anything.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Segment {
    /// The ECN field of the IP header.
    pub mark: Option<u8>,
    pub flags: u16,
    pub ece_if_asked: bool,
    pub seq: i64,
    pub bytes: u32,
    pub ack: Option<i64>,
    pub window: Option<u16>,
    pub urgent: Option<u16>,
    pub options: Option<Vec<TcpOption>>,
}

impl Segment {
    /// Reads `[ce] P. 1:101(100) ack 1 win 512 <TS 100>`.
    pub fn read(text: &str) -> Result<Self, String> {
        let (text, options) = match text.split_once('<') {
            None => (text, None),
            Some((text, rest)) => {
                let inner = rest.trim_end().strip_suffix('>').ok_or("the options have no end")?;
                (text, Some(option::read_all(inner)?))
            }
        };
        let mut words = text.split_whitespace().peekable();
        let mark = words.peek().and_then(|word| MARKS.iter().find(|(_, name)| name == word));
        if mark.is_some() {
            words.next();
        }
        let mut segment = Self { mark: mark.map(|(mark, _)| *mark), options, ..Self::default() };
        segment.read_flags(words.next().ok_or("a segment has flags")?)?;
        segment.read_place(words.next().ok_or("a segment has SEQ:END(BYTES)")?)?;
        while let Some(word) = words.next() {
            let value = words.next().ok_or_else(|| format!("{word} has no value"))?;
            match word {
                "ack" => segment.ack = Some(number(value)?),
                "win" => segment.window = Some(number(value)?),
                "urg" => segment.urgent = Some(number(value)?),
                _ => return Err(format!("{word} is nothing of a segment")),
            }
        }
        match segment.ack.is_some() == (segment.flags & ACK != 0) {
            true => Ok(segment),
            false => Err("`ack` and the flag `.` go together".into()),
        }
    }

    fn read_flags(&mut self, word: &str) -> Result<(), String> {
        for letter in word.chars() {
            match LETTERS.iter().find(|(_, known)| *known == letter) {
                Some((flag, _)) => self.flags |= flag,
                None if letter == ECE_IF_ASKED => self.ece_if_asked = true,
                None if letter == '-' => {}
                None => return Err(format!("{letter} is no flag")),
            }
        }
        Ok(())
    }

    fn read_place(&mut self, word: &str) -> Result<(), String> {
        let wrong = || format!("{word} is not SEQ:END(BYTES)");
        let (seq, rest) = word.split_once(':').ok_or_else(wrong)?;
        let (end, rest) = rest.split_once('(').ok_or_else(wrong)?;
        self.seq = number(seq)?;
        self.bytes = number(rest.strip_suffix(')').ok_or_else(wrong)?)?;
        let end: i64 = number(end)?;
        if end - self.seq == i64::from(self.bytes) { Ok(()) } else { Err(wrong()) }
    }

    /// What came, in numbers relative to the initial ones.
    pub fn from_packet(packet: &Packet, from_guest: bool, initial: Initial) -> Self {
        let ack = relative(packet.ack, initial.sequence_number(!from_guest));
        Segment {
            mark: Some(packet.traffic_class & ECN_MASK),
            flags: packet.flags,
            ece_if_asked: false,
            seq: relative(packet.seq, initial.sequence_number(from_guest)),
            bytes: packet.payload.len() as u32,
            ack: (packet.flags & ACK != 0).then_some(ack),
            window: Some(packet.window),
            urgent: (packet.flags & URG != 0).then_some(packet.urgent),
            options: Some(option::decode(&packet.options, initial.sequence_number(!from_guest))),
        }
    }

    /// What differs from what is wanted; None if nothing does.
    pub fn differs(&self, wanted: &Segment) -> Option<&'static str> {
        let other = |came: Option<i64>, wanted: Option<i64>| wanted.is_some() && came != wanted;
        let number = |value: Option<u16>| value.map(i64::from);
        let options_differ = match (&self.options, &wanted.options) {
            (Some(came), Some(wanted)) => {
                came.len() != wanted.len() || !wanted.iter().zip(came).all(|(w, c)| w.admits(c))
            }
            _ => false,
        };
        let different = [
            (wanted.mark.is_some() && self.mark != wanted.mark, "the ECN field"),
            (self.flags != wanted.flags, "flags"),
            (self.seq != wanted.seq, "the sequence number"),
            (self.bytes != wanted.bytes, "the length"),
            (other(self.ack, wanted.ack), "the acknowledgement"),
            (other(number(self.window), number(wanted.window)), "the window"),
            (other(number(self.urgent), number(wanted.urgent)), "the urgent pointer"),
            (options_differ, "options"),
        ];
        different.into_iter().find(|(differs, _)| *differs).map(|(_, what)| what)
    }

    /// Where its payload lies in the stream of its sender.
    pub fn stream_offset(&self) -> i64 {
        if self.flags & SYN != 0 { self.seq } else { self.seq - 1 }
    }
}

pub fn number<T: std::str::FromStr>(word: &str) -> Result<T, String> {
    word.parse().map_err(|_| format!("{word} is no number that fits here"))
}

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |(mark, _): &&(u8, &str)| *mark != NOT_ECT && Some(*mark) == self.mark;
        if let Some((_, name)) = MARKS.iter().find(shown) {
            write!(f, "{name} ")?;
        }
        for (flag, letter) in LETTERS {
            if self.flags & flag != 0 {
                write!(f, "{letter}")?;
            }
        }
        if self.ece_if_asked {
            write!(f, "{ECE_IF_ASKED}")?;
        }
        if self.flags == 0 {
            write!(f, "-")?;
        }
        let Segment { seq, bytes, .. } = self;
        write!(f, " {seq}:{}({bytes})", seq + i64::from(*bytes))?;
        if let Some(ack) = self.ack {
            write!(f, " ack {ack}")?;
        }
        if let Some(window) = self.window {
            write!(f, " win {window}")?;
        }
        if let Some(urgent) = self.urgent {
            write!(f, " urg {urgent}")?;
        }
        match self.options.as_deref() {
            None | Some([]) => Ok(()),
            Some(options) => {
                let options: Vec<String> = options.iter().map(TcpOption::to_string).collect();
                write!(f, " <{}>", options.join(", "))
            }
        }
    }
}
