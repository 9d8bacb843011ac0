//! The columns of `kubectl get`.

use serde_json::{Value, json};

fn column(name: &str, kind: &str, path: &str, description: &str) -> Value {
    json!({ "name": name, "type": kind, "jsonPath": path, "description": description })
}

/// A column of `-o wide`.
fn wide(mut column: Value) -> Value {
    column["priority"] = json!(1);
    column
}

pub fn of_policies() -> Value {
    json!([
        column(
            "Priority",
            "integer",
            ".spec.priority",
            "The policy with the lowest number is first."
        ),
        column(
            "Everywhere",
            "string",
            ".status.everywhere",
            "The nodes with this generation in force, of all nodes.",
        ),
        column(
            "Refused",
            "integer",
            ".status.refused",
            "The nodes that refused this generation and keep an earlier one, or none.",
        ),
        column(
            "Canary",
            "string",
            ".spec.rollout.canary",
            "The share of nodes on which it is enforced."
        ),
        column(
            "Canary-Retrans",
            "string",
            ".status.canary.retransmissionsPerGb",
            "Retransmitted segments for each gigabyte, in the last minute, on the canary's nodes.",
        ),
        column(
            "Others-Retrans",
            "string",
            ".status.others.retransmissionsPerGb",
            "Retransmitted segments for each gigabyte, in the last minute, on the other nodes.",
        ),
        column(
            "Canary-RTT",
            "string",
            ".status.canary.rtt",
            "The median round-trip time on the canary's nodes."
        ),
        column(
            "Others-RTT",
            "string",
            ".status.others.rtt",
            "The median round-trip time on the other nodes."
        ),
        column("Age", "date", ".metadata.creationTimestamp", "The time since its creation."),
        wide(column(
            "Silent",
            "integer",
            ".status.silent",
            "The nodes without a report for three minutes.",
        )),
        wide(column("Message", "string", ".status.message", "The message of one node about it.")),
    ])
}

pub fn of_nodes() -> Value {
    json!([
        column(
            "Edition",
            "string",
            ".status.edition",
            "Equal on all nodes that have the same generations of the same policies in force.",
        ),
        column(
            "Ports",
            "integer",
            ".status.ports",
            "The devices whose connections the policies treat."
        ),
        column("Flows", "integer", ".status.flows", "The connections at the node's ports."),
        column("Problem", "string", ".status.problem", "The most urgent problem to solve."),
        column("Version", "string", ".status.version", "The version of vcc."),
        column("Kernel", "string", ".status.kernel", "The node's kernel."),
        column(
            "Seen",
            "date",
            ".status.updated",
            "The time since the agent's last report, which it writes each minute."
        ),
        wide(column(
            "Policies",
            "string",
            ".status.policies[*].name",
            "The policies that the node reads."
        )),
    ])
}
