//! Events of pods whose choices are refused: what the owner of a pod sees of it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kube::Client;
use kube::api::{Api, DynamicObject, PostParams};
use serde_json::json;
use tokio::sync::watch::Receiver;
use tokio::time::Instant;

use crate::choice::RefusedChoice;
use crate::pause::{Pause, within_limit};
use crate::resource;
use crate::trouble::Troubles;
use crate::writer::now;

/// A deployment with a wrong annotation may have hundreds of pods.
const APART: Duration = Duration::from_millis(100);
/// Between two pauses: a server that refuses all of them has other work.
const MOST_FAILURES: usize = 10;
const REASON: &str = "VccChoiceRefused";

/// Ends when the sender of the refusals is gone.
pub async fn write(
    client: Client,
    node: String,
    refusals: Receiver<Vec<RefusedChoice>>,
    troubles: Troubles,
) {
    let create = |name: String, refusal: RefusedChoice| {
        let (client, node) = (client.clone(), node.clone());
        async move { within_limit(create(&client, &node, &name, &refusal)).await }
    };
    write_by(create, refusals, troubles).await;
}

async fn write_by<F: Future<Output = kube::Result<()>>>(
    create: impl Fn(String, RefusedChoice) -> F,
    mut refusals: Receiver<Vec<RefusedChoice>>,
    troubles: Troubles,
) {
    const DOING: &str = "write Events of pods";
    let mut pause = Pause::new();
    // What there is an Event of already.
    let mut written: BTreeSet<String> = BTreeSet::new();
    // How often the others have failed.
    let mut failed: BTreeMap<String, usize> = BTreeMap::new();
    while refusals.changed().await.is_ok() {
        let mut is_retry = true;
        let mut next_try = Instant::now();
        loop {
            let all = refusals.borrow_and_update().clone();
            let mut left: BTreeMap<String, RefusedChoice> =
                all.into_iter().map(|refusal| (name(&refusal), refusal)).collect();
            written.retain(|name| left.contains_key(name));
            failed.retain(|name, _| left.contains_key(name));
            left.retain(|name, _| !written.contains(name));
            left.retain(|name, _| is_retry || !failed.contains_key(name));
            // Each has its turn, however many fail.
            let mut left: Vec<(String, RefusedChoice)> = left.into_iter().collect();
            left.sort_by_key(|(name, _)| failed.get(name).copied());
            let mut failures = 0;
            for (name, refusal) in left {
                match create(name.clone(), refusal).await {
                    Ok(()) => {
                        pause.reset();
                        failed.remove(&name);
                        written.insert(name);
                    }
                    Err(error) => {
                        troubles.failed(DOING, &error);
                        failures += 1;
                        *failed.entry(name).or_default() += 1;
                        // Other namespaces may have room, or no webhook that refuses Events.
                        let is_answer = matches!(error, kube::Error::Api(_));
                        if !is_answer || failures == MOST_FAILURES {
                            break;
                        }
                    }
                }
                tokio::time::sleep(APART).await;
            }
            if failed.is_empty() {
                troubles.works(DOING);
                break;
            }
            if is_retry {
                next_try = Instant::now() + pause.next();
            }
            // What is new does not wait for what has failed.
            is_retry = tokio::select! {
                () = tokio::time::sleep_until(next_try) => true,
                changed = refusals.changed() => match changed {
                    Ok(()) => false,
                    Err(_) => return,
                },
            };
        }
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
    use std::cell::RefCell;

    use tokio::sync::watch;

    use super::*;

    #[test]
    fn a_namespace_that_takes_no_events_keeps_no_other_from_its_own() {
        let refusal = |namespace: &str| RefusedChoice {
            namespace: namespace.to_owned(),
            pod: namespace.to_owned(),
            uid: format!("uid in {namespace}"),
            why: "no".to_owned(),
        };
        let (send, receive) = watch::channel(Vec::new());
        send.send_replace(["a", "b", "c"].map(refusal).to_vec());
        let (asked, troubles) = (RefCell::new(Vec::new()), Troubles::default());
        let create = |_, refusal: RefusedChoice| {
            let mut asked = asked.borrow_mut();
            asked.push(refusal.namespace);
            let is_refused = asked[asked.len() - 1] == "a" && asked.len() <= 4;
            let answer = kube::core::Status::failure("exceeded quota", "Forbidden").with_code(403);
            let result = if is_refused { Err(kube::Error::Api(answer.boxed())) } else { Ok(()) };
            std::future::ready(result)
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        runtime.expect("a runtime").block_on(async {
            let writes = write_by(create, receive, troubles.clone());
            // The first pause takes half a second to one and a half, the next one twice that.
            let looks = async {
                while asked.borrow().len() < 4 {
                    tokio::time::sleep(APART / 4).await;
                }
                assert_eq!(*asked.borrow(), ["a", "b", "c", "a"]);
                assert_eq!(troubles.lasting().len(), 1, "{:?}", troubles.lasting());
                while asked.borrow().len() < 5 || !troubles.lasting().is_empty() {
                    tokio::time::sleep(APART / 4).await;
                }
                assert_eq!(asked.borrow()[4..], ["a"]);
            };
            tokio::select! {
                () = writes => panic!("the sender is there"),
                () = looks => {}
                () = tokio::time::sleep(Duration::from_secs(20)) => panic!("{:?}", asked.borrow()),
            }
        });
    }

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
