//! Every metric. docs/metrics.md says what to do when one changes.

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

const fn histogram(
    name: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
) -> Metric {
    Metric { name, kind: Kind::Histogram, labels, help }
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
    START_TIME = gauge("vcc_start_time_seconds", [], "Start of the daemon, in Unix time.");
    PROBLEMS = gauge("vcc_problems", [], "Problems that the operator has to solve; /healthz names them.");
    POLICY_EPOCH = gauge("vcc_policy_epoch", [], "Edition of the policy in force; 0 for none.");
    RELOADS = counter("vcc_policy_reloads_total", ["result"], "Reloads of the policy by result: ok or failed.");
    RELOAD_OK = gauge("vcc_policy_last_reload_success", [], "1 if the last reload of the policy succeeded, else 0.");
    RELOAD_TIME = gauge("vcc_policy_last_reload_timestamp_seconds", [], "Time of the last reload of the policy, successful or not, in Unix time.");
    ATTACH_FAILURES = counter("vcc_attach_failures_total", [], "Failed attempts to attach to a device.");
    CONTROL_REFUSED = counter("vcc_control_requests_refused_total", [], "Refused requests on the control socket.");
    RECORDS_WRITTEN = counter("vcc_records_written_total", [], "Records of connections that were written; only with --records.");
    RECORDS_LOST = counter("vcc_records_lost_total", [], "Records of connections that could not be written; only with --records.");
    RECORDS_FAILING = gauge("vcc_records_failing", [], "1 while records of connections cannot be written, else 0; only with --records.");

    PORTS = gauge("vcc_ports", ["state"], "Ports by state: attached, or failed if a port cannot be read.");
    TABLES = gauge("vcc_tables_bytes", [], "The kernel's memory of the tables of all ports; only with a port in the kernel.");
    PORT_FLOWS = gauge("vcc_port_flows", ["device", "tenant", "stage"], "Connections in a port's table, by stage.");
    PORT_FLOWS_MAX = gauge("vcc_port_flows_max", ["device", "tenant"], "Size of a port's table of connections.");
    PORT_WINDOW = gauge("vcc_port_window_bytes", ["device", "tenant"], "Windows shown to a port's guest, summed over its connections.");
    PORT_HELD = gauge("vcc_port_held_bytes", ["device", "tenant"], "Bytes that the buffer of a port of `vcc domain` keeps.");
    PORT_PROMISED = gauge("vcc_port_promised_bytes", ["device", "tenant"], "Bytes that a port of `vcc domain` has acknowledged, and the end in whose name has not.");
    PORT_CHANNEL_UP = gauge("vcc_port_channel_up", ["device", "tenant"], "1 if the guest's congestion control follows the channel of a port of `vcc domain`, else 0; only with a channel.");
    PORT_CHANNEL_MALFORMED = counter("vcc_port_channel_malformed_messages_total", ["device", "tenant"], "Malformed messages of the guest on the channel, each of which closed it; since `vcc domain` started.");
    PORT_COST_SECONDS = counter("vcc_port_cost_seconds_total", ["device", "tenant", "direction"], "Time that a device's own programs took for frames of a direction, while the kernel counted it; since they were attached.");
    PORT_COST_FRAMES = counter("vcc_port_cost_frames_total", ["device", "tenant", "direction"], "Frames for which that time was counted; a super-segment is one.");
    PORT_ACKED = counter("vcc_port_acked_bytes_total", ["device", "tenant"], "Acknowledged payload of a port's guest, between the first and the last reading of each connection; since the daemon started.");
    PORT_FABRIC_DELAY = histogram("vcc_port_fabric_delay_seconds", ["device", "tenant"], "Times that fabric and peer took to answer a port's guest; since the port was attached.");
    PORT_GUEST_DELAY = histogram("vcc_port_guest_delay_seconds", ["device", "tenant"], "Times that a port's guest took to answer; since the port was attached.");
    PORT_UNTRANSLATED = counter("vcc_port_untranslated_segments_total", ["device", "tenant", "reason"], "Segments that were passed untouched, dropped or not sent, by reason; since the port was attached.");

    TRIAL_CONNECTIONS = gauge("vcc_trial_connections", ["device"], "Connections in shadow mode during the last minute.");
    TRIAL_LIMITED_CONNECTIONS = gauge("vcc_trial_limited_connections", ["device"], "Of these, those of which more was in flight than the underlay's window would have been.");
    TRIAL_LIMITED_BYTES = gauge("vcc_trial_limited_bytes_ratio", ["device"], "The part of their bytes that the underlay would have delayed.");
    TRIAL_LIMITED_TIME = gauge("vcc_trial_limited_time_ratio", ["device"], "The part of their time in which more was in flight than the underlay's window.");
    TRIAL_WINDOW = gauge("vcc_trial_window_ratio", ["device"], "The underlay's window over what was in flight, where that was more: the median.");
    TRIAL_QUEUE = gauge("vcc_trial_queue_seconds", ["device"], "The median over the connections of their round-trip time less their least one.");

    RULE_INFO = gauge("vcc_rule_info", ["rule", "mode", "underlay"], "Always 1; mode and underlay of a rule are the labels.");
    RULE_FLOWS = gauge("vcc_rule_flows", ["rule"], "Live connections under a rule.");
    RULE_CONNECTIONS = counter("vcc_rule_connections_total", ["rule"], "Connections that came under a rule, by a SYN or a reload; since the daemon started.");
    RULE_MARKS = counter("vcc_rule_marks_total", ["rule"], "ACKs and reports that carried congestion marks, of live and closed connections; since the daemon started, over reloads.");
    RULE_REDUCTIONS = counter("vcc_rule_reductions_total", ["rule"], "Reductions of the window for marks or losses, of live and closed connections; since the daemon started, over reloads.");
    RULE_RETRANSMISSIONS = counter("vcc_rule_retransmissions_total", ["rule"], "Segments that guests retransmitted, of live and closed connections; since the daemon started, over reloads.");
    RULE_DROPS = counter("vcc_rule_drops_total", ["rule"], "Segments that vcc dropped, of live and closed connections; since the daemon started, over reloads.");
    RULE_WINDOW = gauge("vcc_rule_window_bytes", ["rule"], "Windows shown to guests, summed over a rule's connections.");
    RULE_CWND = gauge("vcc_rule_cwnd_bytes", ["rule", "share"], "Congestion window of the underlay, quantiles over a rule's established connections.");
    RULE_SRTT = gauge("vcc_rule_srtt_seconds", ["rule", "share"], "Smoothed round-trip time, quantiles over a rule's established connections.");

    POOL_WINDOW = gauge("vcc_pool_window_bytes", ["pool"], "Window of a pool in the policy.");
    POOL_HELD = gauge("vcc_pool_held_bytes", ["pool"], "Bytes that a pool's connections have in flight or may still send.");
    POOL_IDLE = gauge("vcc_pool_idle_bytes", ["pool"], "Bytes that a pool's idle connections may still send.");
    POOL_MOST_HELD = gauge("vcc_pool_most_held_bytes", ["pool"], "Maximum of the bytes that a pool's connections held so far.");
    POOL_WEIGHT = gauge("vcc_pool_weight", ["pool"], "Sum of the weights of a pool's active connections.");
    POOL_OVERDRAWN = counter("vcc_pool_overdrawn_total", ["pool"], "How often a pool was charged beyond its window: for the least window of a connection, for many that became active at once, for one that came with more than was left, or for a guest that sent more than it was shown.");

    SNAPSHOT_OK = gauge("vcc_snapshot_success", [], "1 if the ports could be read for this answer, else 0; at 0 there are no metrics of ports, rules and pools.");
    SNAPSHOT_DURATION = gauge("vcc_snapshot_duration_seconds", [], "Duration of the reading of the ports.");
    SNAPSHOT_AGE = gauge("vcc_snapshot_age_seconds", [], "Age of the reading; one serves all requests within half a second.");
    SNAPSHOT_FAILURES = counter("vcc_snapshot_failures_total", [], "Failed readings of the ports.");
    WEB_REQUESTS = counter("vcc_web_requests_total", [], "Answered HTTP requests.");
    WEB_REFUSED = counter("vcc_web_refused_total", ["reason"], "Refused HTTP requests and connections, by reason.");
    WEB_CONNECTIONS = gauge("vcc_web_connections", [], "Open HTTP connections, that of this answer included.");
}
