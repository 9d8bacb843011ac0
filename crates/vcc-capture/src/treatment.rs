//! How connections of a capture are treated: all alike, or each by a rule.

use vcc_domain::{Port, Rule, Rules};
use vcc_engine::{Act, FlowState, Mode, Params, Receive};

#[derive(Clone, Debug)]
pub struct Treatment {
    /// Without rules.
    params: Params,
    rules: Option<Rules>,
}

impl Treatment {
    /// All alike.
    pub fn from_params(params: Params) -> Self {
        Self { params: watching(params), rules: None }
    }

    /// Each by the rule that its SYN meets.
    pub fn from_rules(mut rules: Rules) -> Self {
        for rule in &mut rules.rules {
            rule.params = watching(rule.params);
        }
        Self { params: watching(Params::default()), rules: Some(rules) }
    }

    pub(crate) fn port(&self, max_flows: usize) -> Port {
        let mut port = Port::new(self.params, max_flows);
        if let Some(rules) = &self.rules {
            port.set_rules(rules.clone());
        }
        port
    }

    /// None if all are treated alike.
    pub fn rule_of(&self, flow: &FlowState) -> Option<&Rule> {
        self.rules.as_ref()?.rules.get(usize::from(flow.rule))
    }

    pub fn params_of(&self, flow: &FlowState) -> &Params {
        self.rule_of(flow).map_or(&self.params, |rule| &rule.params)
    }
}

/// The packets show what the ends did without vcc: a port holds, drops and sends nothing.
fn watching(mut params: Params) -> Params {
    params.0.mode = Mode::Shadow.number();
    params.0.act = Act::Window.number();
    params.0.receive = Receive::Guest.number();
    params
}
