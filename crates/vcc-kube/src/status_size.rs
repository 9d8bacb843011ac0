//! Keeps a node's status short under any policies: etcd has one of each node, and takes
//! no object beyond 1.5 MiB.

use vcc_policy::text::char_boundary;

use crate::status::NodeStatus;

/// As JSON. With as many policies as a node reads, of the longest names, it still has all of them.
pub const MOST_BYTES: usize = 128 << 10;

/// The first few names; a reader needs no more.
pub fn a_few(names: &[String]) -> String {
    const FEW: usize = 3;
    let more = if names.len() > FEW { ", ..." } else { "" };
    format!("{}{more}", names[..names.len().min(FEW)].join(", "))
}

/// Shortens the messages about policies first, beginning with the least important.
pub fn shorten(status: &mut NodeStatus, most_bytes: usize) {
    /// A status is read by people.
    const MOST_PROBLEMS: usize = 32;
    const LONGEST_PROBLEM: usize = 1024;
    /// Tenants write what is refused; the status has the number of them, too.
    const MOST_REFUSED_CHOICES: usize = 10;
    let problems = status.problems.len();
    cut(&mut status.problems, MOST_PROBLEMS, LONGEST_PROBLEM);
    if problems > MOST_PROBLEMS {
        status.problems.push(format!("{} more", problems - MOST_PROBLEMS));
    }
    cut_text(&mut status.problem, LONGEST_PROBLEM);
    cut(&mut status.refused_choices, MOST_REFUSED_CHOICES, LONGEST_PROBLEM);
    // The first message of a policy that was refused is why; warnings come last.
    for (messages, longest) in [(5, 500), (1, 200), (1, 60), (0, 0)] {
        if bytes(status) <= most_bytes {
            return;
        }
        status.policies.iter_mut().for_each(|it| cut(&mut it.messages, messages, longest));
    }
    /// Of the sentence about them.
    const ROOM: usize = 100;
    let (before, mut left) = (status.policies.len(), bytes(status) + ROOM);
    while left > most_bytes
        && let Some(last) = status.policies.pop()
    {
        left -= bytes(&last) + 1;
    }
    if status.policies.len() < before {
        let many = before - status.policies.len();
        status.problems.push(format!("{many} more policies are not listed: the status is full"));
    }
}

fn bytes(of: &impl serde::Serialize) -> usize {
    serde_json::to_vec(of).expect("a status is JSON").len()
}

fn cut(texts: &mut Vec<String>, most: usize, longest_bytes: usize) {
    texts.truncate(most);
    texts.iter_mut().for_each(|text| cut_text(text, longest_bytes));
}

fn cut_text(text: &mut String, longest_bytes: usize) {
    if text.len() > longest_bytes {
        text.truncate(char_boundary(text, longest_bytes));
        text.push_str("...");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::PolicyOnNode;

    fn status(policies: usize, name_bytes: usize, messages: usize) -> NodeStatus {
        let policy = |at: usize| PolicyOnNode {
            name: format!("{at:0name_bytes$}"),
            generation: 1_000_000,
            in_force: 1_000_000,
            mode: crate::status::AS_WRITTEN.to_owned(),
            messages: (0..messages).map(|it| format!("{it}: {}", "\u{e9}".repeat(300))).collect(),
        };
        let policies = (0..policies).map(policy).collect();
        NodeStatus { policies, ..NodeStatus::default() }
    }

    fn shortened(mut status: NodeStatus) -> NodeStatus {
        shorten(&mut status, MOST_BYTES);
        assert!(bytes(&status) <= MOST_BYTES, "{}", bytes(&status));
        status
    }

    #[test]
    fn messages_are_shortened_before_policies_are_left_out() {
        let small = status(10, 10, 20);
        assert_eq!(shortened(small.clone()), small);
        let many = shortened(status(256, 20, 20));
        assert_eq!(many.policies.len(), 256);
        assert!(many.policies.iter().all(|it| it.messages.len() == 1 && it.messages[0].len() > 60));
        let long = shortened(status(256, 253, 20));
        assert_eq!((long.policies.len(), long.problems.len()), (256, 0));
        let most = shortened(status(2000, 253, 1));
        assert!(most.policies.len() > 200 && most.policies[0].messages.is_empty());
        let left_out = 2000 - most.policies.len();
        let problem = format!("{left_out} more policies are not listed: the status is full");
        assert_eq!(most.problems, [problem]);
    }

    #[test]
    fn problems_without_end_are_counted() {
        let problem = "x".repeat(5000);
        let problems = vec![problem.clone(); 100];
        let status = shortened(NodeStatus { problem, problems, ..NodeStatus::default() });
        assert_eq!((status.problems.len(), status.problem.len()), (33, 1027));
        assert_eq!(status.problems[32], "68 more");
    }

    #[test]
    fn a_few_are_named() {
        let names = |count: usize| (0..count).map(|it| it.to_string()).collect::<Vec<String>>();
        assert_eq!(a_few(&names(1)), "0");
        assert_eq!(a_few(&names(3)), "0, 1, 2");
        assert_eq!(a_few(&names(4)), "0, 1, 2, ...");
    }
}
