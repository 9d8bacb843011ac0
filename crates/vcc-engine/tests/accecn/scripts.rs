//! Linux's own conformance scripts for AccECN (tools/testing/selftests/net/packetdrill), played with
//! vcc in the place of Linux: what a script has Linux send, a guest without ECN sends, and vcc has to
//! leave on it the ECN bits of the script. The scripts are not ours to keep: the variable names the
//! directory that has them, as `scripts/check-accecn.sh` does.

use std::collections::BTreeMap;
use std::path::Path;
use std::{env, fs};

use super::*;
use vcc_engine::FlowState;

const DIRECTORY: &str = "VCC_ACCECN_SCRIPTS";

/// Where vcc does something else on purpose.
const OTHERWISE: [(&str, &str); 6] = [
    ("tcp_accecn_ipflags_drop", "a SYN that is not answered goes again without ECN at once"),
    ("tcp_accecn_multiple_syn_drop", "the same"),
    ("tcp_accecn_syn_ace_flags_drop", "the same"),
    ("tcp_accecn_syn_ace_flags_acked_after_retransmit", "the same"),
    ("tcp_accecn_synack_ce_updates_delivered_ce", "vcc's SYN-ACK is Not-ECT, and none marks it"),
    ("tcp_accecn_close_local_close_then_remote_fin", "in TIME-WAIT Linux sends no counter"),
];

struct Packet<'a> {
    from_peer: bool,
    wait_us: u64,
    ip_ecn: Option<u8>,
    flags: u16,
    seq: u32,
    payload_bytes: u32,
    ack: u32,
    window: u16,
    options: &'a str,
}

/// A line such as `+.002 > [ect0] EAP. 1:1001(1000) ack 1 win 264 <ECN e1b 1 ceb 0 e0b 1,nop>`.
fn packet(line: &str) -> Option<Packet<'_>> {
    let line = line.split("//").next().unwrap_or_default().trim();
    let at = line.find(['<', '>'])?;
    let (time, rest) = line.split_at(at);
    if !time.starts_with(['+', '0', '.']) || time.contains(['(', '{', '%']) {
        return None;
    }
    let latest = time.split('~').next_back()?.trim().trim_start_matches('+').trim();
    let seconds: f64 = latest.parse().ok()?;
    let (body, options) = match rest[1..].find('<') {
        Some(open) => (&rest[1..=open], rest[open + 2..].trim_end_matches('>')),
        None => (&rest[1..], ""),
    };
    let mut words = body.split_whitespace().peekable();
    let ip_ecn = match *words.peek()? {
        "[noecn]" => Some(sys::IP_ECN_NOT_ECT),
        "[ect1]" => Some(sys::IP_ECN_ECT_1),
        "[ect0]" => Some(sys::IP_ECN_ECT_0),
        "[ce]" => Some(sys::IP_ECN_CE),
        _ => None,
    };
    if ip_ecn.is_some() {
        words.next();
    }
    let mut flags = 0;
    for letter in words.next()?.chars() {
        flags |= match letter {
            'S' => sys::TCP_SYN,
            'F' => sys::TCP_FIN,
            'R' => sys::TCP_RST,
            'P' => sys::TCP_PSH,
            '.' => sys::TCP_ACK,
            'E' => sys::TCP_ECE,
            'W' => sys::TCP_CWR,
            'A' => sys::TCP_AE,
            '0'..='7' => letter.to_digit(8)? << 6,
            _ => return None,
        };
    }
    let (seq, rest) = words.next()?.split_once(':')?;
    let payload = rest.split_once('(')?.1.trim_end_matches(')');
    let mut named = BTreeMap::new();
    while let (Some(name), Some(value)) = (words.next(), words.next()) {
        named.insert(name, value.parse::<u32>().ok()?);
    }
    Some(Packet {
        from_peer: line[at..].starts_with('<'),
        wait_us: (seconds * 1e6) as u64,
        ip_ecn: ip_ecn.map(|ecn| ecn as u8),
        flags: flags as u16,
        seq: seq.parse().ok()?,
        payload_bytes: payload.parse().ok()?,
        ack: named.get("ack").copied().unwrap_or(0),
        window: named.get("win").copied().unwrap_or(65_535) as u16,
        options,
    })
}

/// Both sides number from these.
const GUEST: u32 = 7;
const PEER: u32 = 0xffff_ff00;

impl Packet<'_> {
    fn segment(&self, now_us: u64) -> Seg {
        let (own, other) = if self.from_peer { (PEER, GUEST) } else { (GUEST, PEER) };
        let mut segment = seg().at_us(now_us).win(self.window).room(20);
        segment.0.seq = own.wrapping_add(self.seq);
        segment.0.ack = other.wrapping_add(self.ack);
        segment.0.payload_bytes = self.payload_bytes;
        segment.0.flags = self.flags;
        segment.0.ip_ecn = self.ip_ecn.unwrap_or(0);
        for option in self.options.split(',') {
            let words: Vec<&str> = option.split_whitespace().collect();
            let number = |at: usize| words.get(at).and_then(|word| word.parse::<u32>().ok());
            match words.first().copied() {
                Some("mss") => segment = segment.mss(number(1).unwrap_or(1460) as u16),
                Some("wscale") => segment = segment.wscale(number(1).unwrap_or(8) as u8),
                Some("sackOK") => segment.0.options |= sys::OPT_SACK_PERMITTED as u16,
                Some("sack") => segment.0.options |= sys::OPT_SACK as u16,
                Some("ECN") => {
                    if let (Some(first), Some(ce)) = (number(2), number(4)) {
                        segment = segment.accecn_option(first, ce);
                    }
                }
                _ => {}
            }
        }
        segment
    }
}

/// Plays a script; the error says where vcc does something else.
fn play(text: &str) -> Result<u32, String> {
    let mut params = Params::default();
    params.0.feedback = 0;
    let mode = text.split("tcp_ecn=").nth(1).and_then(|rest| rest.chars().next());
    let opens = text.lines().filter_map(packet).next().is_some_and(|first| !first.from_peer);
    let speaks = mode == Some('3') || (mode == Some('5') && !opens);
    params.0.accecn = speaks.into();
    if mode == Some('0') || (opens && [Some('2'), Some('5')].contains(&mode)) {
        params = underlay("reno");
    }
    let (mut flow, mut now_us, mut sent) = (FlowState::default(), 1_000_000, 0);
    for line in text.lines() {
        if let Some(expected) = line.trim().strip_prefix("assert tcpi_delivered_ce == ") {
            let none = expected.starts_with('0');
            if none && flow.marks != 0 {
                return Err(format!("{} marks at: {line}", flow.marks));
            }
        }
        let Some(packet) = packet(line) else { continue };
        now_us += packet.wait_us;
        let mut segment = packet.segment(now_us);
        if packet.from_peer {
            flow.to_guest(&params, &segment.0);
            continue;
        }
        let expected = segment.0.flags & sys::TCP_ECN_BITS as u16;
        segment.0.flags &= !(sys::TCP_ECN_BITS as u16);
        segment.0.ip_ecn = 0;
        segment.0.options &= !((sys::OPT_ACCECN | sys::OPT_ACCECN_CE) as u16);
        let action = flow.from_guest(&params, &segment.0);
        let left = action.flags & sys::TCP_ECN_BITS as u16;
        if left != expected || packet.ip_ecn.is_some_and(|ip_ecn| ip_ecn != action.ip_ecn) {
            let (ace, ip_ecn) = (left >> 6, action.ip_ecn);
            return Err(format!("ACE {ace}, IP ECN field {ip_ecn} at: {line}"));
        }
        sent += 1;
    }
    Ok(sent)
}

#[test]
fn linux_scripts_see_what_linux_would_send() {
    let Some(directory) = env::var_os(DIRECTORY) else { return };
    let files = fs::read_dir(Path::new(&directory)).expect("the directory of the scripts");
    let (mut played, mut sent, mut wrong) = (0, 0, Vec::new());
    for file in files.flatten().map(|file| file.path()) {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if !name.starts_with("tcp_accecn_") {
            continue;
        }
        let text = fs::read_to_string(&file).expect("UTF-8");
        let other = OTHERWISE.iter().any(|(script, _)| *script == name);
        match (play(&text), other) {
            (Ok(count), false) => (played, sent) = (played + 1, sent + count),
            (Err(_), true) => {}
            (Ok(_), true) => wrong.push(format!("{name}: is as Linux has it")),
            (Err(why), false) => wrong.push(format!("{name}: {why}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    println!("figure: {played} scripts of Linux, {sent} segments; {} otherwise", OTHERWISE.len());
    assert!(played > 40 && sent > 100, "{played} scripts, {sent} segments");
}
