//! Label selectors, as Kubernetes' own resources have them.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::{Selector, SelectorExt};
use serde_json::Value;

use crate::resource::{Labels, Pod};

/// Which pods are meant: all whose labels and whose namespace's labels match. One that is left out
/// matches all.
#[derive(Clone, Debug, Default)]
pub struct PodSelector {
    pub namespaces: Option<Selector>,
    pub pods: Option<Selector>,
}

/// None where the pod's namespace has not been heard of yet.
pub type NamespaceLabels<'a> = Option<&'a Labels>;

impl PodSelector {
    pub fn matches(&self, pod: &Pod, namespace: NamespaceLabels<'_>) -> bool {
        self.pods.as_ref().is_none_or(|pods| pods.matches(&pod.labels))
            && self
                .namespaces
                .as_ref()
                .is_none_or(|wanted| namespace.is_some_and(|labels| wanted.matches(labels)))
    }

    /// What a watch asks the API server for: the namespace is for the watcher to compare.
    pub fn of_pods(&self) -> String {
        self.pods.as_ref().map(ToString::to_string).unwrap_or_default()
    }
}

/// Reads a selector of `matchLabels` and `matchExpressions`.
pub fn read(value: &Value) -> Result<Selector, String> {
    const WANTED: &str = "a label selector, of `matchLabels` and `matchExpressions`";
    let Value::Object(keys) = value else { return Err(format!("must be {WANTED}")) };
    if let Some(odd) =
        keys.keys().find(|key| !["matchLabels", "matchExpressions"].contains(&key.as_str()))
    {
        let odd = vcc_policy::text::shortened(odd);
        return Err(format!("`{odd}` is not a key of a label selector: must be {WANTED}"));
    }
    let selector: LabelSelector = serde_json::from_value(value.clone())
        .map_err(|error| format!("must be {WANTED}: {error}"))?;
    for (key, value) in selector.match_labels.iter().flatten() {
        check_label(key, std::iter::once(value))?;
    }
    for wanted in selector.match_expressions.iter().flatten() {
        check_label(&wanted.key, wanted.values.iter().flatten())?;
        let has_values = wanted.values.as_ref().is_some_and(|values| !values.is_empty());
        let operator = vcc_policy::text::shortened(&wanted.operator);
        const OPERATORS: [&str; 4] = ["In", "NotIn", "Exists", "DoesNotExist"];
        match wanted.operator.as_str() {
            unknown if !OPERATORS.contains(&unknown) => {
                let known = OPERATORS.join(", ");
                return Err(format!("`{operator}` is not an operator of labels; known: {known}"));
            }
            "In" | "NotIn" if !has_values => {
                return Err(format!("`{operator}` of the label `{}` needs `values`", wanted.key));
            }
            "Exists" | "DoesNotExist" if has_values => {
                return Err(format!(
                    "`{operator}` of the label `{}` takes no `values`",
                    wanted.key
                ));
            }
            _ => {}
        }
    }
    let selector = Selector::try_from(selector).map_err(|error| error.to_string())?;
    let bytes = selector.to_string().len();
    if bytes > LONGEST_BYTES {
        return Err(format!("has {bytes} bytes as a selector; the limit is {LONGEST_BYTES}"));
    }
    Ok(selector)
}

/// It is a part of a watch's URL.
const LONGEST_BYTES: usize = 8192;

/// The API server refuses a watch for labels that no object can have.
fn check_label<'a>(key: &str, mut values: impl Iterator<Item = &'a String>) -> Result<(), String> {
    const NAME: &str =
        "at most 63 letters, digits, `-`, `_` and `.`, with a letter or digit at both ends";
    let (prefix, name) =
        key.rsplit_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    if !is_label_name(name) || prefix.is_some_and(|prefix| !is_domain(prefix)) {
        let key = vcc_policy::text::shortened(key);
        return Err(format!(
            "`{key}` is not the key of a label: it has {NAME}, perhaps after a domain and `/`"
        ));
    }
    match values.find(|value| !value.is_empty() && !is_label_name(value)) {
        None => Ok(()),
        Some(odd) => {
            let odd = vcc_policy::text::shortened(odd);
            Err(format!("`{odd}` is not the value of a label: it has {NAME}, or is empty"))
        }
    }
}

fn is_label_name(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    has_ends(text, 63, |byte| byte.is_ascii_alphanumeric()) && text.bytes().all(is_inner)
}

/// RFC 1123, in lower case.
fn is_domain(text: &str) -> bool {
    let is_outer = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_label = |label: &str| {
        has_ends(label, 253, is_outer) && label.bytes().all(|it| is_outer(it) || it == b'-')
    };
    text.len() <= 253 && text.split('.').all(is_label)
}

fn has_ends(text: &str, longest: usize, is_outer: impl Fn(u8) -> bool) -> bool {
    let [first, .., last] = text.as_bytes() else {
        return text.len() == 1 && is_outer(text.as_bytes()[0]);
    };
    text.len() <= longest && is_outer(*first) && is_outer(*last)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn pod(pairs: &[(&str, &str)]) -> Pod {
        Pod {
            uid: "u".into(),
            namespace: "shop".into(),
            name: "web-0".into(),
            labels: labels(pairs),
            choice: Default::default(),
            addresses: Vec::new(),
            host_network: false,
            has_ended: false,
        }
    }

    #[test]
    fn labels_of_the_pod_and_of_its_namespace_have_to_match() {
        let web = pod(&[("app", "web"), ("tier", "front")]);
        let acme = labels(&[("tenant", "acme")]);
        let all = || read(&json!({})).ok();
        let selector = |namespaces: Value, pods: Value| PodSelector {
            namespaces: Some(read(&namespaces).expect("namespaces")),
            pods: Some(read(&pods).expect("pods")),
        };
        assert!(PodSelector::default().matches(&web, None));
        assert!(PodSelector { namespaces: None, pods: all() }.matches(&web, None));
        let both = selector(
            json!({ "matchLabels": { "tenant": "acme" } }),
            json!({ "matchExpressions": [
                { "key": "app", "operator": "In", "values": ["web", "api"] },
                { "key": "debug", "operator": "DoesNotExist" },
            ] }),
        );
        assert!(both.matches(&web, Some(&acme)));
        assert!(!both.matches(&web, Some(&labels(&[("tenant", "umbrella")]))));
        assert!(!both.matches(&web, None), "its namespace is unknown as yet");
        assert!(!both.matches(&pod(&[("app", "web"), ("debug", "")]), Some(&acme)));
        assert!(!both.matches(&pod(&[]), Some(&acme)));
    }

    #[test]
    fn what_labels_may_be_is_right() {
        for (key, value) in [
            ("app", ""),
            ("a", "b"),
            ("app.kubernetes.io/name", "x"),
            ("A_b-c.d", "1.2.3_rc-1"),
            (&"k".repeat(63), &"v".repeat(63)),
        ] {
            read(&json!({ "matchLabels": { key: value } })).expect(key);
        }
    }

    #[test]
    fn errors_name_the_cause() {
        for (value, why) in [
            (json!("app=web"), "must be a label selector, of `matchLabels` and `matchExpressions`"),
            (json!({ "app": "web" }), "`app` is not a key of a label selector"),
            (json!({ "matchLabels": { "app": 1 } }), "must be a label selector"),
            (
                json!({ "matchExpressions": [{ "key": "app", "operator": "Near" }] }),
                "`Near` is not an operator of labels; known: In, NotIn, Exists, DoesNotExist",
            ),
            (
                json!({ "matchExpressions": [{ "key": "app", "operator": "In", "values": [] }] }),
                "`In` of the label `app` needs `values`",
            ),
            (
                json!({ "matchExpressions": [{ "key": "a", "operator": "Exists", "values": ["b"] }] }),
                "`Exists` of the label `a` takes no `values`",
            ),
            (
                json!({ "matchLabels": { "app": "web server" } }),
                "`web server` is not the value of a label: it has at most 63 letters",
            ),
            (json!({ "matchLabels": { "a b": "c" } }), "`a b` is not the key of a label"),
            (json!({ "matchLabels": { "-/a": "c" } }), "`-/a` is not the key of a label"),
            (json!({ "matchLabels": { "": "c" } }), "`` is not the key of a label"),
            (
                json!({ "matchExpressions": [
                    { "key": "a", "operator": "In", "values": (0..2000).map(|it| format!("v{it}")).collect::<Vec<_>>() },
                ] }),
                "the limit is 8192",
            ),
        ] {
            let reason = read(&value).expect_err("wrong");
            assert!(reason.contains(why), "{value}: {reason}");
        }
    }
}
