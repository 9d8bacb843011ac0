//! Events of pods whose choices are refused: what the owner of a pod sees of it.

use std::collections::BTreeSet;
use std::time::Duration;

use kube::Client;
use kube::api::{Api, DynamicObject, PostParams};
use serde_json::json;
use tokio::sync::watch::Receiver;

use crate::choice::RefusedChoice;
use crate::pause::{Pause, within_limit};
use crate::resource;
use crate::trouble::Troubles;
use crate::writer::now;

/// A deployment with a wrong annotation may have hundreds of pods.
const APART: Duration = Duration::from_millis(100);
const REASON: &str = "VccChoiceRefused";

/// Ends when the sender of the refusals is gone.
pub async fn write(
    client: Client,
    node: String,
    mut refusals: Receiver<Vec<RefusedChoice>>,
    troubles: Troubles,
) {
    const DOING: &str = "write Events of pods";
    let mut pause = Pause::new();
    // What there is an Event of already.
    let mut written: BTreeSet<String> = BTreeSet::new();
    while refusals.changed().await.is_ok() {
        let mut names = BTreeSet::new();
        let refused = refusals.borrow_and_update().clone();
        for refusal in refused {
            let name = name(&refusal);
            names.insert(name.clone());
            while !written.contains(&name) {
                match within_limit(create(&client, &node, &name, &refusal)).await {
                    Ok(()) => {
                        troubles.works(DOING);
                        pause.reset();
                        written.insert(name.clone());
                        tokio::time::sleep(APART).await;
                    }
                    Err(error) => {
                        troubles.failed(DOING, &error);
                        tokio::time::sleep(pause.next()).await;
                        // Newer refusals may no longer have this one.
                        if refusals.has_changed().unwrap_or(true) {
                            break;
                        }
                    }
                }
            }
        }
        written.retain(|name| names.contains(name));
    }
}

/// The same for the same refusal, so that an agent that starts anew writes none twice.
fn name(refusal: &RefusedChoice) -> String {
    const LONGEST: usize = 200;
    let hash = crc32fast::hash(format!("{} {}", refusal.uid, refusal.why).as_bytes());
    let pod = &refusal.pod[..vcc_policy::text::char_boundary(&refusal.pod, LONGEST)];
    format!("{}.vcc-{hash:08x}", pod.trim_end_matches(['.', '-']))
}

async fn create(
    client: &Client,
    node: &str,
    name: &str,
    refusal: &RefusedChoice,
) -> kube::Result<()> {
    let RefusedChoice { namespace, pod, uid, why } = refusal;
    let kind = resource::events();
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &kind);
    let now = now();
    let event = DynamicObject::new(name, &kind).within(namespace).data(json!({
        "involvedObject": {
            "apiVersion": "v1", "kind": "Pod", "namespace": namespace, "name": pod, "uid": uid,
        },
        "type": "Warning",
        "reason": REASON,
        "message": format!("{why}; the pod keeps the policy's settings"),
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
        "source": { "component": "vcc", "host": node },
    }));
    match api.create(&PostParams::default(), &event).await {
        // It was written before, or the namespace is gone or going.
        Err(kube::Error::Api(answer)) if is_moot(&answer) => Ok(()),
        result => result.map(drop),
    }
}

fn is_moot(answer: &kube::core::Status) -> bool {
    match answer.code {
        404 | 409 => true,
        403 => answer.message.contains("because it is being terminated"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_s_name_is_that_of_its_pod_and_reason() {
        let refusal = |pod: &str, why: &str| RefusedChoice {
            namespace: "shop".to_owned(),
            pod: pod.to_owned(),
            uid: "u".to_owned(),
            why: why.to_owned(),
        };
        let of = |pod: &str, why: &str| name(&refusal(pod, why));
        assert_eq!(of("web", "no"), of("web", "no"));
        assert_ne!(of("web", "no"), of("web", "never"));
        assert!(of("web", "no").starts_with("web.vcc-"));
        let long = of(&format!("{}-.{}", "a".repeat(198), "b".repeat(50)), "no");
        assert!(long.len() < 253 && !long.contains("-.vcc"), "{long}");
    }
}
