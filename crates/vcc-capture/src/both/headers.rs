//! The headers of a segment in front of the port and behind it.

use super::captured::*;
use super::change::Change;
use super::face::Direction;
use super::field::Field;
use crate::options::{self, TcpOption};

/// What a segment was in front of the port, and is behind it. Either may be a part of the other's
/// super-segment.
#[derive(Clone, Copy)]
pub(crate) struct Passed<'a> {
    pub direction: Direction,
    pub before: &'a Captured,
    pub after: &'a Captured,
    /// The sequence number itself differs: the two are recognised by their neighbours.
    pub is_moved: bool,
}

/// A field that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    Named(Change),
    /// With the values in front of the port and behind it.
    Unnamed(Field, [String; 2]),
}

const ECN_MASK: u8 = 3;
const CE: u8 = 3;

type Found<'a> = dyn FnMut(Finding) + 'a;

impl Passed<'_> {
    /// Reports each difference.
    pub(crate) fn compare(&self, found: &mut Found) {
        self.numbers(found);
        self.flags(found);
        self.window(found);
        self.options(found);
        self.ecn(found);
        self.ip(found);
    }

    /// Does the change's direction lead to the guest?
    fn is_to_guest(&self) -> bool {
        self.direction == Direction::ToGuest
    }

    /// Only the first part of a super-segment has its CWR and its urgent pointer.
    fn begin_together(&self) -> bool {
        self.is_moved || self.before.seq == self.after.seq
    }

    /// Only the last part of a super-segment has its PSH and FIN.
    fn end_together(&self) -> bool {
        self.is_moved || self.before.payload_end() == self.after.payload_end()
    }

    fn is_syn(&self) -> bool {
        self.before.has(SYN)
    }

    fn differ<T: PartialEq>(
        &self,
        found: &mut Found,
        field: Field,
        value: impl Fn(&Captured) -> T,
        text: impl Fn(T) -> String,
    ) {
        let [before, after] = [self.before, self.after].map(&value);
        if before != after {
            found(Finding::Unnamed(field, [text(before), text(after)]));
        }
    }

    fn numbers(&self, found: &mut Found) {
        if self.is_moved {
            self.differ(found, Field::Sequence, |it| it.seq, |seq| seq.to_string());
        }
        self.differ(found, Field::Acknowledgement, |it| it.ack, |ack| ack.to_string());
        self.differ(found, Field::Reserved, |it| it.reserved, |bits| format!("{bits:#x}"));
        if self.begin_together() {
            self.differ(found, Field::Urgent, |it| it.urgent, |urgent| urgent.to_string());
        }
    }

    fn flags(&self, found: &mut Found) {
        let mut kept = ACK | RST;
        if self.begin_together() {
            kept |= SYN | URG;
        }
        if self.end_together() {
            kept |= FIN;
        }
        self.differ(found, Field::Flags, |it| it.flags & kept, names);
        for (flag, added, removed, is_comparable) in [
            (ECE, Change::EceAdded, Change::EceRemoved, true),
            (AE, Change::AeAdded, Change::AeRemoved, true),
            (CWR, Change::CwrAdded, Change::CwrRemoved, self.begin_together()),
            (PSH, Change::PshAdded, Change::PshRemoved, self.end_together()),
        ] {
            match (self.before.has(flag), self.after.has(flag)) {
                (false, true) if is_comparable => found(Finding::Named(added)),
                (true, false) if is_comparable => found(Finding::Named(removed)),
                _ => {}
            }
        }
    }

    /// vcc translates the windows that its guest is shown. A peer is shown the guest's own.
    fn window(&self, found: &mut Found) {
        let (before, after) = (self.before, self.after);
        if !self.is_to_guest() {
            self.differ(found, Field::Window, |it| it.window, |window| window.to_string());
            return;
        }
        let bytes = |it: &Captured| it.scale.map(|scale| u64::from(it.window) << scale);
        let change = match (bytes(before), bytes(after)) {
            (Some(before), Some(after)) if after < before => Change::WindowLowered,
            (Some(before), Some(after)) if after > before => Change::WindowRaised,
            (Some(_), Some(_)) => return,
            _ if before.window != after.window => Change::WindowUnscaled,
            _ => return,
        };
        found(Finding::Named(change));
    }

    fn options(&self, found: &mut Found) {
        if self.before.options == self.after.options {
            return;
        }
        let removed = self.before.options.without(&self.after.options);
        let mut added = self.after.options.without(&self.before.options);
        for option in removed {
            let same = added.iter().position(|it| it.kind == option.kind && !option.is_of_vcc());
            let after = same.map(|at| added.swap_remove(at));
            self.option(found, Some(option), after);
        }
        added.into_iter().for_each(|option| self.option(found, None, Some(option)));
    }

    fn option(&self, found: &mut Found, before: Option<TcpOption>, after: Option<TcpOption>) {
        let change = match (before, after) {
            (Some(before), Some(after)) => self.lowered(before, after),
            (Some(before), None) => self.removed(before),
            (None, Some(after)) => self.added(after),
            (None, None) => return,
        };
        let kind = before.or(after).map(|it| it.kind).unwrap_or_default();
        found(match change {
            Some(change) => Finding::Named(change),
            None => Finding::Unnamed(Field::Option { kind }, [before, after].map(value_text)),
        });
    }

    /// The scale and the MSS that the guest is shown are at most the peer's.
    fn lowered(&self, before: TcpOption, after: TcpOption) -> Option<Change> {
        let from = options::number(before.value)?;
        let to = options::number(after.value).filter(|to| *to < from)?;
        match before.kind {
            _ if !self.is_syn() || !self.is_to_guest() => None,
            options::SCALE => Some(Change::Scale { from, to }),
            options::MSS => Some(Change::Mss { from, to }),
            _ => None,
        }
    }

    fn removed(&self, option: TcpOption) -> Option<Change> {
        let is_named = option.is_of_vcc() || option.kind == options::MPTCP && self.is_syn();
        is_named.then_some(Change::OptionRemoved { kind: option.kind })
    }

    fn added(&self, option: TcpOption) -> Option<Change> {
        let is_named = option.is_of_vcc() && !self.is_to_guest();
        is_named.then_some(Change::OptionAdded { kind: option.kind })
    }

    fn ecn(&self, found: &mut Found) {
        let change = match [self.before, self.after].map(|it| it.ip.traffic_class & ECN_MASK) {
            [before, after] if before == after => return,
            [CE, _] => Change::CeCleared,
            [_, CE] => Change::CeSet,
            [0, _] => Change::EctSet,
            [_, 0] => Change::EctCleared,
            _ => Change::EctChanged,
        };
        found(Finding::Named(change));
    }

    /// Identifications differ between a super-segment and its parts, and so do extension headers for its
    /// length.
    fn ip(&self, found: &mut Found) {
        if self.before.ip.hops != self.after.ip.hops {
            found(Finding::Named(Change::Hops));
        }
        let number = |number: u32| number.to_string();
        let dscp = |it: &Captured| u32::from(it.ip.traffic_class >> 2);
        self.differ(found, Field::Dscp, dscp, number);
        self.differ(found, Field::FlowLabel, |it| it.ip.flow_label, |it| format!("{it:#x}"));
        let dont_fragment = |it: &Captured| u32::from(it.ip.dont_fragment);
        self.differ(found, Field::DontFragment, dont_fragment, number);
        if self.begin_together() && self.end_together() {
            let more = |it: &Captured| it.ip.more.clone();
            self.differ(found, Field::IpOptions, more, |bytes| hex(&bytes));
        }
    }
}

fn names(flags: u16) -> String {
    let all = [(FIN, "FIN"), (SYN, "SYN"), (RST, "RST"), (ACK, "ACK"), (URG, "URG")];
    let set = all.iter().filter(|(flag, _)| flags & flag != 0);
    let names: Vec<&str> = set.map(|(_, name)| *name).collect();
    if names.is_empty() { "none".to_owned() } else { names.join("|") }
}

fn value_text(option: Option<TcpOption>) -> String {
    option.map_or_else(|| "absent".to_owned(), |option| hex(option.value))
}

fn hex(bytes: &[u8]) -> String {
    match bytes {
        [] => "empty".to_owned(),
        _ => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
    }
}

#[cfg(test)]
mod tests {
    use vcc_frames::options as tcp;

    use super::super::testing::captured;
    use super::*;
    use crate::options::Options;

    type Edit = fn(&mut Captured);

    fn findings(direction: Direction, base: Edit, before: Edit, after: Edit) -> Vec<Finding> {
        let made = |edit: Edit| {
            captured(|it| {
                base(it);
                edit(it);
            })
        };
        let (before, after) = (made(before), made(after));
        let passed = Passed { direction, before: &before, after: &after, is_moved: false };
        let mut all = Vec::new();
        passed.compare(&mut |finding| all.push(finding));
        all
    }

    fn unnamed(findings: &[Finding]) -> Vec<Field> {
        let field = |finding: &Finding| match finding {
            Finding::Named(_) => None,
            Finding::Unnamed(field, _) => Some(*field),
        };
        findings.iter().filter_map(field).collect()
    }

    const NOTHING: Edit = |_| {};

    #[test]
    fn changes_of_flags_and_marks_are_named_in_both_directions() {
        let cases: [(Edit, Change, Change); 5] = [
            (|it| it.flags |= ECE, Change::EceAdded, Change::EceRemoved),
            (|it| it.flags |= CWR, Change::CwrAdded, Change::CwrRemoved),
            (|it| it.flags |= AE, Change::AeAdded, Change::AeRemoved),
            (|it| it.flags |= PSH, Change::PshAdded, Change::PshRemoved),
            (|it| it.ip.traffic_class = 2, Change::EctSet, Change::EctCleared),
        ];
        for direction in Direction::BOTH {
            for (edit, added, removed) in cases {
                let found = findings(direction, NOTHING, NOTHING, edit);
                assert_eq!(found, [Finding::Named(added)]);
                let found = findings(direction, NOTHING, edit, NOTHING);
                assert_eq!(found, [Finding::Named(removed)]);
            }
        }
        let marked: Edit = |it| it.ip.traffic_class = 3;
        let cleared = findings(Direction::ToGuest, NOTHING, marked, |it| it.ip.traffic_class = 2);
        assert_eq!(cleared, [Finding::Named(Change::CeCleared)]);
    }

    #[test]
    fn windows_are_compared_in_bytes() {
        let wide: Edit = |it| (it.window, it.scale) = (10, Some(7));
        let cases: [(Edit, &[Change]); 5] = [
            (|it| (it.window, it.scale) = (40, Some(5)), &[]),
            (|it| (it.window, it.scale) = (39, Some(5)), &[Change::WindowLowered]),
            (|it| (it.window, it.scale) = (41, Some(5)), &[Change::WindowRaised]),
            (|it| (it.window, it.scale) = (40, None), &[Change::WindowUnscaled]),
            (|it| (it.window, it.scale) = (10, None), &[]),
        ];
        for (after, changes) in cases {
            let found = findings(Direction::ToGuest, NOTHING, wide, after);
            let named: Vec<Finding> = changes.iter().map(|it| Finding::Named(*it)).collect();
            assert_eq!(found, named);
        }
        let found = findings(Direction::FromGuest, NOTHING, wide, |it| it.window = 9);
        assert_eq!(unnamed(&found), [Field::Window]);
    }

    fn set(segment: &mut Captured, options: &[Vec<u8>]) {
        segment.options = Options::new(&tcp::join(options));
    }

    #[test]
    fn options_change_where_their_direction_and_segment_allow_it() {
        let syn: Edit = |it| it.flags = SYN;
        let plain: Edit = |it| set(it, &[tcp::mss(1460), tcp::wscale(7)]);
        let lower: Edit = |it| set(it, &[tcp::mss(1452), tcp::wscale(5)]);
        let lowered = [Change::Mss { from: 1460, to: 1452 }, Change::Scale { from: 7, to: 5 }];
        let to_guest = |base, before, after| findings(Direction::ToGuest, base, before, after);
        let from_guest = |base, before, after| findings(Direction::FromGuest, base, before, after);
        let both = [Field::Option { kind: 2 }, Field::Option { kind: 3 }];
        assert_eq!(to_guest(syn, plain, lower), lowered.map(Finding::Named));
        assert_eq!(unnamed(&to_guest(syn, lower, plain)), both, "raised");
        assert_eq!(unnamed(&to_guest(NOTHING, plain, lower)), both, "no SYN");
        assert_eq!(unnamed(&from_guest(syn, plain, lower)), both, "to the peer");

        let report: Edit = |it| set(it, &[tcp::pack(1, 2)]);
        let added = || Finding::Named(Change::OptionAdded { kind: 172 });
        let removed = || Finding::Named(Change::OptionRemoved { kind: 172 });
        assert_eq!(from_guest(NOTHING, NOTHING, report), [added()]);
        assert_eq!(to_guest(NOTHING, report, NOTHING), [removed()]);
        assert_eq!(unnamed(&to_guest(NOTHING, NOTHING, report)), [Field::Option { kind: 172 }]);
        let other: Edit = |it| set(it, &[tcp::pack(3, 4)]);
        assert_eq!(from_guest(NOTHING, other, report), [removed(), added()]);

        let mptcp: Edit = |it| set(it, &[vec![30, 4, 0, 1]]);
        let removed = Finding::Named(Change::OptionRemoved { kind: 30 });
        assert_eq!(from_guest(syn, mptcp, NOTHING), [removed]);
        assert_eq!(unnamed(&from_guest(NOTHING, mptcp, NOTHING)), [Field::Option { kind: 30 }]);
        let stamps: Edit = |it| set(it, &[tcp::timestamps(1, 2)]);
        let found = to_guest(NOTHING, stamps, |it| set(it, &[tcp::timestamps(1, 3)]));
        let values = ["0000000100000002", "0000000100000003"].map(str::to_owned);
        assert_eq!(found, [Finding::Unnamed(Field::Option { kind: 8 }, values)]);
        let found = to_guest(NOTHING, stamps, NOTHING);
        let values = ["0000000100000002", "absent"].map(str::to_owned);
        assert_eq!(found, [Finding::Unnamed(Field::Option { kind: 8 }, values)]);
    }

    #[test]
    fn other_fields_stay() {
        let cases: [(Edit, Field); 10] = [
            (|it| it.ack = 1, Field::Acknowledgement),
            (|it| it.reserved = 0x200, Field::Reserved),
            (|it| it.urgent = 1, Field::Urgent),
            (|it| it.flags |= URG, Field::Flags),
            (|it| it.flags |= FIN, Field::Flags),
            (|it| it.flags &= !ACK, Field::Flags),
            (|it| it.ip.traffic_class = 4, Field::Dscp),
            (|it| it.ip.flow_label = 1, Field::FlowLabel),
            (|it| it.ip.dont_fragment = false, Field::DontFragment),
            (|it| it.ip.more = vec![1], Field::IpOptions),
        ];
        for direction in Direction::BOTH {
            for (edit, field) in cases {
                let found = findings(direction, NOTHING, NOTHING, edit);
                assert_eq!(unnamed(&found), [field], "{found:?}");
                assert_eq!(found.len(), 1);
            }
        }
    }

    /// A device repeats only a part of the flags on all parts.
    #[test]
    fn a_part_has_not_all_of_its_super_segment() {
        let whole: Edit = |it| {
            (it.payload_bytes, it.urgent) = (3000, 9);
            it.flags |= CWR | PSH | FIN | URG;
        };
        let middle: Edit = |it| (it.seq, it.payload_bytes) = (1000, 1000);
        assert_eq!(findings(Direction::FromGuest, NOTHING, whole, middle), []);
        let last: Edit = |it| (it.seq, it.payload_bytes) = (2000, 1000);
        let found = findings(Direction::FromGuest, NOTHING, whole, last);
        assert_eq!(unnamed(&found), [Field::Flags]);
        assert!(found.contains(&Finding::Named(Change::PshRemoved)), "{found:?}");
    }
}
