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
        column("Priority", "integer", ".spec.priority", "A policy of a lower number comes first."),
        column(
            "Everywhere",
            "string",
            ".status.everywhere",
            "The nodes that do what this generation says, of all nodes.",
        ),
        column(
            "Refused",
            "integer",
            ".status.refused",
            "The nodes that refused this generation, and have an earlier one or none.",
        ),
        column(
            "Canary",
            "string",
            ".spec.rollout.canary",
            "The share of nodes that have it as it is written."
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
        column("Age", "date", ".metadata.creationTimestamp", "Since it was made."),
        wide(column(
            "Silent",
            "integer",
            ".status.silent",
            "The nodes that have written nothing for three minutes.",
        )),
        wide(column("Message", "string", ".status.message", "What a node says of it.")),
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
            "Devices whose connections are under the policies."
        ),
        column("Flows", "integer", ".status.flows", "Their connections."),
        column("Problem", "string", ".status.problem", "What somebody has to solve first."),
        column("Version", "string", ".status.version", "Of vcc."),
        column("Kernel", "string", ".status.kernel", "Of the node."),
        column(
            "Seen",
            "date",
            ".status.updated",
            "Since the agent wrote its status, which it does each minute."
        ),
        wide(column(
            "Policies",
            "string",
            ".status.policies[*].name",
            "All policies that it reads."
        )),
    ])
}
