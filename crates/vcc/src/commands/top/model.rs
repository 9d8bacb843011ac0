//! What is shown and how: neither drawn nor read here.

use std::collections::HashMap;

use vcc_view::{Filter, FlowKey, FlowView, PortView, RuleView, Snapshot, Sort, Words};

use super::history::History;

pub struct Model {
    pub ports: Vec<PortView>,
    pub rules: Vec<RuleView>,
    /// The flows that all filters admit, in their order.
    pub flows: Vec<FlowView>,
    /// The number of flows before the typed filter.
    pub flow_count: usize,
    pub sort: Sort,
    /// The typed filter.
    pub typed: String,
    pub is_typing: bool,
    pub has_detail: bool,
    pub has_help: bool,
    /// The last error or notice.
    pub note: Option<String>,
    filter: Filter,
    all: Vec<FlowView>,
    /// None: the first one.
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

    /// Call it after each change of the filter or the order.
    pub(super) fn arrange(&mut self) {
        self.sort.apply(&mut self.all);
        let words = Words::new(&self.typed);
        let is_meant = |flow: &&FlowView| words.are_in(flow);
        self.flows = self.all.iter().filter(is_meant).cloned().collect();
        self.flow_count = self.all.len();
        if self.selected_index().is_none() {
            self.selected = None;
        }
    }

    /// The index of the selected flow among those shown.
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

    /// Of all flows that the command line admits, without the typed filter.
    pub fn goodput_bits_per_s(&self) -> f64 {
        self.all.iter().filter_map(|flow| flow.rates).map(|rates| rates.goodput_bits_per_s).sum()
    }

    pub fn set_note(&mut self, note: Option<String>) {
        self.note = note;
    }

    pub fn is_paused(&self) -> bool {
        self.is_paused
    }

    pub(super) fn toggle_pause(&mut self) {
        self.is_paused = !self.is_paused;
    }

    pub fn is_over(&self) -> bool {
        self.is_over
    }

    pub(super) fn end(&mut self) {
        self.is_over = true;
    }
}
