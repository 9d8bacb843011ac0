//! Every metric that there is. docs/metrics.md says what to do when one moves.

use super::{Kind, Metric};

const fn counter(
    name: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
) -> Metric {
    Metric { name, kind: Kind::Counter, labels, help }
}

const fn gauge(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric { name, kind: Kind::Gauge, labels, help }
}

macro_rules! metrics {
    ($($constant:ident = $kind:ident($name:literal, [$($label:literal),*], $help:literal);)*) => {
        $(pub const $constant: Metric = $kind($name, &[$($label),*], $help);)*

        /// In the order in which they are given.
        pub const METRICS: &[Metric] = &[$($constant),*];
    };
}

metrics! {
    BUILD_INFO = gauge("vcc_build_info", ["version"], "Always 1; the version is the label.");
    START_TIME = gauge("vcc_start_time_seconds", [], "When the daemon started, in Unix time.");
    PROBLEMS = gauge("vcc_problems", [], "Things that the operator has to mend; /healthz names them.");
    POLICY_EPOCH = gauge("vcc_policy_epoch", [], "Edition of the policy that holds; 0 for none.");
    RELOADS = counter("vcc_policy_reloads_total", ["result"], "Reloads of the policy by their result: ok or failed.");
    RELOAD_OK = gauge("vcc_policy_last_reload_success", [], "1 if the last reload of the policy succeeded, else 0.");
    RELOAD_TIME = gauge("vcc_policy_last_reload_timestamp_seconds", [], "When the policy was last reloaded, whatever the result, in Unix time.");
    ATTACH_FAILURES = counter("vcc_attach_failures_total", [], "Failed attempts to attach to a device.");
    CONTROL_REFUSED = counter("vcc_control_requests_refused_total", [], "Requests by the control socket that were refused.");

    PORTS = gauge("vcc_ports", ["state"], "Ports by state: attached, or failed where one cannot be read.");
    PORT_FLOWS = gauge("vcc_port_flows", ["device", "tenant", "stage"], "Connections in a port's table, by stage.");
    PORT_FLOWS_MAX = gauge("vcc_port_flows_max", ["device", "tenant"], "Connections that a port's table has room for.");
    PORT_WINDOW = gauge("vcc_port_window_bytes", ["device", "tenant"], "Windows shown to a port's guest, added up over its connections.");
    PORT_ACKED = counter("vcc_port_acked_bytes_total", ["device", "tenant"], "Payload of a port's guest that was acknowledged, as far as connections were seen twice; since the daemon started.");
    PORT_UNTRANSLATED = counter("vcc_port_untranslated_segments_total", ["device", "tenant", "reason"], "Segments that were passed untouched, dropped or not sent, by reason; since the port was attached.");

    RULE_INFO = gauge("vcc_rule_info", ["rule", "mode", "underlay"], "Always 1; mode and underlay of a rule are the labels.");
    RULE_FLOWS = gauge("vcc_rule_flows", ["rule"], "Live connections under a rule.");
    RULE_CONNECTIONS = counter("vcc_rule_connections_total", ["rule"], "Connections that came under a rule, those of reloads included; since the daemon started.");
    RULE_MARKS = counter("vcc_rule_marks_total", ["rule"], "ACKs and reports that told of congestion marks, of connections that live or have ended; since the daemon started, over reloads.");
    RULE_REDUCTIONS = counter("vcc_rule_reductions_total", ["rule"], "Reductions of a window for marks or loss, of connections that live or have ended; since the daemon started, over reloads.");
    RULE_RETRANSMISSIONS = counter("vcc_rule_retransmissions_total", ["rule"], "Segments that guests sent again, of connections that live or have ended; since the daemon started, over reloads.");
    RULE_DROPS = counter("vcc_rule_drops_total", ["rule"], "Segments that vcc dropped, of connections that live or have ended; since the daemon started, over reloads.");
    RULE_WINDOW = gauge("vcc_rule_window_bytes", ["rule"], "Windows shown to guests, added up over a rule's connections.");
    RULE_CWND = gauge("vcc_rule_cwnd_bytes", ["rule", "share"], "The underlay's window, over a rule's established connections.");
    RULE_SRTT = gauge("vcc_rule_srtt_seconds", ["rule", "share"], "Smoothed round-trip time, over a rule's established connections.");

    POOL_WINDOW = gauge("vcc_pool_window_bytes", ["pool"], "What the policy lets a pool's windows add up to.");
    POOL_HELD = gauge("vcc_pool_held_bytes", ["pool"], "What a pool's connections have in flight, and may still send.");
    POOL_IDLE = gauge("vcc_pool_idle_bytes", ["pool"], "What those of a pool's connections that are idle may still send.");
    POOL_MOST_HELD = gauge("vcc_pool_most_held_bytes", ["pool"], "The most that a pool's connections ever held.");
    POOL_WEIGHT = gauge("vcc_pool_weight", ["pool"], "Weights of a pool's active connections, added up.");
    POOL_OVERDRAWN = counter("vcc_pool_overdrawn_total", ["pool"], "How often a pool held more than its window: by one's least window, or by very many that woke up.");

    SNAPSHOT_OK = gauge("vcc_snapshot_success", [], "1 if the ports could be read for this answer, else 0; without it, there are no metrics of ports, rules and pools.");
    SNAPSHOT_DURATION = gauge("vcc_snapshot_duration_seconds", [], "How long reading the ports took.");
    SNAPSHOT_AGE = gauge("vcc_snapshot_age_seconds", [], "How old what is told here is; one reading serves all who ask within a second.");
    SNAPSHOT_FAILURES = counter("vcc_snapshot_failures_total", [], "Readings of the ports that failed.");
    WEB_REQUESTS = counter("vcc_web_requests_total", [], "HTTP requests that were answered as asked.");
    WEB_REFUSED = counter("vcc_web_refused_total", ["reason"], "HTTP requests and connections that were refused, by reason.");
    WEB_CONNECTIONS = gauge("vcc_web_connections", [], "Open HTTP connections, that of this answer included.");
}
