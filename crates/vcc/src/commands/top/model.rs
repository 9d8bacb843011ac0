//! What is shown and how, apart from the drawing and from the reading.

use std::collections::HashMap;

use super::history::History;
use crate::end::End;
use crate::seen::filter::Filter;
use crate::seen::flow::FlowKey;
use crate::seen::sort::Sort;
use crate::seen::{FlowView, PortView, RuleView, Snapshot};

pub struct Model {
    pub ports: Vec<PortView>,
    pub rules: Vec<RuleView>,
    /// Those that the filters admit, in their order.
    pub flows: Vec<FlowView>,
    /// How many there are beside the filter that was typed.
    pub flow_count: usize,
    pub sort: Sort,
    /// What was typed to choose flows.
    pub typed: String,
    pub is_typing: bool,
    pub has_detail: bool,
    pub has_help: bool,
    /// What went wrong last, or is worth a word.
    pub note: Option<String>,
    filter: Filter,
    all: Vec<FlowView>,
    /// None: whichever is the first.
    selected: Option<FlowKey>,
    histories: HashMap<FlowKey, History>,
    round: u64,
    is_paused: bool,
    is_over: bool,
}

impl Model {
    pub fn new(filter: Filter, sort: Sort) -> Self {
        Self {
            ports: Vec::new(),
            rules: Vec::new(),
            flows: Vec::new(),
            flow_count: 0,
            sort,
            typed: String::new(),
            is_typing: false,
            has_detail: true,
            has_help: false,
            note: None,
            filter,
            all: Vec::new(),
            selected: None,
            histories: HashMap::new(),
            round: 0,
            is_paused: false,
            is_over: false,
        }
    }

    pub fn update(&mut self, snapshot: Snapshot) {
        self.round += 1;
        self.ports = snapshot.ports;
        self.rules = snapshot.rules;
        self.all = snapshot.flows;
        self.all.retain(|flow| self.filter.admits(flow));
        for flow in &self.all {
            let history = self.histories.entry(flow.key.clone()).or_default();
            history.note(flow);
            history.round = self.round;
        }
        self.histories.retain(|_, history| history.round == self.round);
        self.arrange();
    }

    /// After each change of what is shown, and in which order.
    pub(super) fn arrange(&mut self) {
        self.sort.apply(&mut self.all);
        let terms: Vec<Term> = self.typed.split_whitespace().map(Term::of).collect();
        let is_meant = |flow: &&FlowView| terms.iter().all(|term| term.is_in(flow));
        self.flows = self.all.iter().filter(is_meant).cloned().collect();
        self.flow_count = self.all.len();
        if self.selected_index().is_none() {
            self.selected = None;
        }
    }

    /// Where the selected flow stands among those that are shown.
    pub fn selected_index(&self) -> Option<usize> {
        match &self.selected {
            Some(selected) => self.flows.iter().position(|flow| flow.key == *selected),
            None => (!self.flows.is_empty()).then_some(0),
        }
    }

    pub fn selected(&self) -> Option<(&FlowView, &History)> {
        let flow = &self.flows[self.selected_index()?];
        Some((flow, self.histories.get(&flow.key)?))
    }

    pub(super) fn select(&mut self, index: usize) {
        let last = self.flows.len().saturating_sub(1);
        self.selected = self.flows.get(index.min(last)).map(|flow| flow.key.clone());
    }

    /// Of all flows at a port, whatever is shown of them.
    pub fn port_sum(&self, port: &str, of: fn(&FlowView) -> Option<f64>) -> f64 {
        self.all.iter().filter(|flow| flow.port == port).filter_map(of).sum()
    }

    pub fn rule_sum(&self, rule: &str, of: fn(&FlowView) -> Option<f64>) -> f64 {
        self.all.iter().filter(|flow| flow.rule.as_deref() == Some(rule)).filter_map(of).sum()
    }

    pub fn sum(&self, of: fn(&FlowView) -> Option<f64>) -> f64 {
        self.all.iter().filter_map(of).sum()
    }

    pub fn tell(&mut self, note: Option<String>) {
        self.note = note;
    }

    pub fn is_paused(&self) -> bool {
        self.is_paused
    }

    pub(super) fn pause_or_go_on(&mut self) {
        self.is_paused = !self.is_paused;
    }

    pub fn is_over(&self) -> bool {
        self.is_over
    }

    pub(super) fn end(&mut self) {
        self.is_over = true;
    }
}

/// A word of what was typed: one end of a connection, or a part of what its line says.
enum Term {
    End(End),
    Part(String),
}

impl Term {
    fn of(word: &str) -> Self {
        word.parse().map_or_else(|_| Self::Part(word.to_lowercase()), Self::End)
    }

    fn is_in(&self, flow: &FlowView) -> bool {
        match self {
            Self::End(end) => end.is(flow.key.1.guest) || end.is(flow.key.1.peer),
            Self::Part(part) => {
                let words: [&str; 6] = [
                    &flow.port,
                    &flow.guest,
                    &flow.peer,
                    flow.stage,
                    &flow.underlay,
                    flow.limited_by,
                ];
                words.iter().any(|word| word.contains(part.as_str()))
            }
        }
    }
}
