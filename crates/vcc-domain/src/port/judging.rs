//! A port under rules: which of them treats a flow (`datapath/policy.h`).

use vcc_engine::{FlowState, Mode, Params, Segment, sys};

use super::core::{Core, opens};
use super::{Port, seconds};
use crate::flow_view::Seen;
use crate::frame::Direction;
use crate::pools::PoolUse;
use crate::rules::{Rule, RuleTotals, Rules};
use crate::table::{Entry, FlowId};
use vcc_engine::FlowKey;

impl Port {
    /// Puts rules in force: for new connections at once, and for all others but those in their
    /// handshake, which end it as they began. A connection that must be ignored and does not depend
    /// on the port is forgotten; of which something is held or promised, when that has arrived.
    pub fn set_rules(&mut self, mut rules: Rules) {
        let before = self.core.treatments.rules().map(|(rule, _)| &rule.params);
        let numbers = self.core.pools.number(&rules.pools, before);
        for Rule { params, .. } in &mut rules.rules {
            match numbers.get(usize::from(params.0.pool)) {
                Some(number) => params.0.pool = *number,
                None => params.0.pool_weight = 0,
            }
        }
        self.core.treatments.apply(rules, seconds(self.core.now_ns));
        self.note_treatments();
        for id in self.core.table.ids() {
            self.settle_rule(id);
        }
    }

    /// How often rules came into force; 0: there are none.
    pub fn epoch(&self) -> u32 {
        self.core.treatments.epoch()
    }

    /// The rules in force, with the totals of connections that have ended.
    pub fn rules(&self) -> impl Iterator<Item = (&Rule, &RuleTotals)> {
        self.core.treatments.rules()
    }

    /// The rules before them, under which handshakes may be.
    pub fn last_rules(&self) -> impl Iterator<Item = (&Rule, &RuleTotals)> {
        self.core.treatments.last_rules()
    }

    /// The pools of the rules in force, and others of which connections hold something.
    pub fn pools(&self) -> Vec<PoolUse> {
        let rules = self.core.treatments.rules().map(|(rule, _)| &rule.params);
        self.core.pools.uses(&rules.collect::<Vec<_>>()).collect()
    }

    /// The flows in order of their keys, with what the port has of them.
    pub fn seen(&self) -> impl Iterator<Item = Seen> {
        self.core.table.iter().map(|entry| self.core.seen(entry))
    }

    /// A flow likewise; None if the port does not know it.
    pub fn seen_of(&self, key: &FlowKey) -> Option<Seen> {
        self.core.table.of_key(key).map(|entry| self.core.seen(entry))
    }

    /// A new connection between the ends of one that has ended is judged for itself: the old one is
    /// forgotten.
    pub(super) fn ends_before_syn(
        &mut self,
        id: FlowId,
        direction: Direction,
        segment: &Segment,
    ) -> bool {
        let ends = opens(direction, segment) && self.core.gives_way(id);
        if ends {
            self.forget(id);
        }
        ends
    }

    /// Judges a flow again if its rule is no longer in force. False: there is no such flow, or no more.
    pub(super) fn settle_rule(&mut self, id: FlowId) -> bool {
        let stays = self.core.settle_rule(id);
        if !stays {
            self.forget(id);
        }
        stays
    }
}

impl Core {
    /// Has the connection ended, so that a new one between its ends has another flow? Not while an end
    /// lacks what it was promised: the SYN may be stray or forged.
    fn gives_way(&self, id: FlowId) -> bool {
        let has_ended = |entry: &Entry| {
            let Entry { state: flow, held, snooped, .. } = entry;
            let owes = flow.split_owes(&held.hold) || snooped.snoop.is_promise_due();
            u32::from(flow.stage) == sys::STAGE_CLOSED && !owes && !entry.depends()
        };
        self.treatments.epoch() != 0 && self.table.get(id).is_some_and(has_ended)
    }

    /// Judges a flow again if its rule is no longer in force. One in its handshake ends that first.
    /// False: it must be forgotten.
    fn settle_rule(&mut self, id: FlowId) -> bool {
        let depends = self.table.get(id).is_some_and(Entry::depends);
        let Some(Entry { key, state: flow, held, snooped, member, .. }) = self.table.get_mut(id)
        else {
            return false;
        };
        let (hold, snoop) = (&held.hold, &snooped.snoop);
        let is_ignored = |params: &Params| params.0.mode == Mode::Ignore.number();
        let is_free = |flow: &FlowState| {
            let owes = flow.split_owes(hold) || hold.0.held_bytes > 0 || snoop.is_promise_due();
            !flow.is_kept() && !owes && !depends
        };
        if !self.treatments.is_outdated(flow)
            || (flow.is_half_open() && self.treatments.is_of_last(flow))
        {
            // The data owed when its rule came into force have been delivered.
            let ends = self.treatments.epoch() != 0
                && is_ignored(self.treatments.params_of(flow))
                && is_free(flow);
            return !ends;
        }
        let guest_opened = flow.has(sys::FLOW_GUEST_OPENED);
        let (rule, params) = self.treatments.judge(key, guest_opened);
        let params = *params;
        if is_ignored(&params) && is_free(flow) {
            return false;
        }
        self.treatments.come_under(flow, rule);
        flow.judge_anew(&params);
        self.pools.judge_anew((flow, hold), member, &params);
        true
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use vcc_engine::Underlay;
    use vcc_frames::Packet;

    use super::*;
    use crate::testing::{ACK, SYN, Talk};

    const IGNORED: usize = 0;
    const FIRST: usize = 1;
    const SECOND: usize = 2;

    fn rules(judge: fn(&FlowKey, bool) -> usize) -> Rules {
        let rule = |(name, params): (&str, _)| Rule { name: name.to_owned(), params };
        let named = [
            ("ignored", Params::with(|params| params.mode = Mode::Ignore.number())),
            ("first", Params::with(|params| params.prr = 0)),
            ("second", Params::default()),
        ];
        let rules = named.into_iter().map(rule).collect();
        Rules { rules, judge: Arc::new(judge), pools: Vec::new(), polices: false }
    }

    fn ruled(judge: fn(&FlowKey, bool) -> usize) -> Talk {
        let mut talk = Talk::v4();
        talk.port.set_rules(rules(judge));
        talk
    }

    fn connections(talk: &Talk) -> Vec<u64> {
        talk.port.rules().map(|(_, totals)| totals.connections).collect()
    }

    fn rule_of(talk: &Talk) -> (u8, usize) {
        (talk.flow().epoch, talk.flow().rule.into())
    }

    fn syn(talk: &mut Talk) {
        let syn = Packet { flags: SYN, ack: 0, ..talk.segment(true) };
        talk.pass(true, &syn);
    }

    #[test]
    fn the_rule_is_that_of_the_syn() {
        let mut talk = ruled(|key, guest_opened| match guest_opened {
            true if key.peer().port() == 80 => FIRST,
            _ => IGNORED,
        });
        talk.open(&[]);
        assert_eq!((rule_of(&talk), connections(&talk)), ((1, FIRST), vec![0, 1, 0]));
        assert_eq!(talk.port.core.treatments.params_of(talk.flow()).0.prr, 0);
        talk.peer.set_port(81);
        talk.open(&[]);
        assert_eq!((talk.port.flows().count(), connections(&talk)), (1, vec![0, 1, 0]));
        let counters = talk.port.counters();
        assert_eq!([sys::COUNT_IGNORED, sys::COUNT_UNKNOWN].map(|it| counters.get(it)), [1, 2]);
    }

    #[test]
    fn a_handshake_ends_as_it_began() {
        let mut talk = ruled(|_, _| FIRST);
        syn(&mut talk);
        talk.port.set_rules(rules(|_, _| SECOND));
        assert_eq!((rule_of(&talk), connections(&talk)), ((1, FIRST), vec![0, 1, 0]));
        let mut other = Talk { port: talk.port.clone(), ..Talk::v4() };
        // Its rule is about to be overwritten.
        talk.port.set_rules(rules(|_, _| FIRST));
        assert_eq!((rule_of(&talk), connections(&talk)), ((3, FIRST), vec![0, 2, 0]));
        other.open(&[]);
        assert_eq!((rule_of(&other), connections(&other)), ((2, SECOND), vec![0, 1, 1]));
    }

    #[test]
    fn what_is_to_be_ignored_is_forgotten_unless_it_depends_on_the_port() {
        const WSCALE: &[u8] = &[3, 3, 7, 1];
        for (options, depends) in [(&[][..], false), (WSCALE, true)] {
            let mut talk = Talk::v4();
            let mut plain = rules(|_, _| SECOND);
            // Neither ECN nor feedback, on which it would depend.
            let reno: Underlay = "reno".parse().expect("an underlay");
            plain.rules[SECOND].params.0.underlay = reno.number();
            plain.rules[SECOND].params.0.feedback = 0;
            talk.port.set_rules(plain);
            let syn =
                Packet { flags: SYN, ack: 0, options: options.to_vec(), ..talk.segment(true) };
            talk.pass(true, &syn);
            talk.guest_next += 1;
            let answer =
                Packet { flags: SYN | ACK, options: options.to_vec(), ..talk.segment(false) };
            talk.pass(false, &answer);
            talk.peer_next += 1;
            talk.pass(true, &talk.segment(true));
            assert_eq!(talk.flow().is_bound(), depends);
            talk.port.set_rules(rules(|_, _| IGNORED));
            assert_eq!(talk.port.flows().count(), usize::from(depends));
            assert_eq!(talk.port.last_rules().map(|(_, it)| it.connections).sum::<u64>(), 1);
        }
    }

    #[test]
    fn a_new_connection_between_the_same_ends_is_judged_for_itself() {
        let mut talk = ruled(|_, guest_opened| if guest_opened { FIRST } else { SECOND });
        talk.open(&[]);
        let rst = sys::TCP_RST as u16;
        talk.pass(true, &Packet { flags: rst, ..talk.segment(true) });
        talk.pass(false, &Packet { flags: SYN, ack: 0, ..talk.segment(false) });
        assert_eq!((rule_of(&talk), connections(&talk)), ((1, SECOND), vec![0, 1, 1]));
    }
}
