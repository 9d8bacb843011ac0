//! What a node's agent watches.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::Client;
use kube::runtime::watcher::Config;
use tokio::sync::mpsc;

use super::Change;
use crate::budget::Budget;
use crate::cluster_state::Needs;
use crate::resource::{self, BareResource, Pod, PodResource};
use crate::store::Store;
use crate::summarist::watch_policies;
use crate::trouble::Troubles;
use crate::watch::{Watch, watch};

/// The watches, some of which only some policies need.
pub(super) struct Watches {
    client: Client,
    wake: mpsc::UnboundedSender<Change>,
    troubles: Troubles,
    policies: Watch,
    _own: Watch,
    namespaces: Option<Watch>,
    peers: BTreeMap<Arc<str>, Watch>,
}

impl Watches {
    pub(super) fn new(
        client: Client,
        wake: mpsc::UnboundedSender<Change>,
        troubles: Troubles,
        node: &str,
        budget: Budget,
    ) -> Self {
        let send = wake.clone();
        let send = move |news| send.send(Change::OwnPods(news)).is_ok();
        // From the server's cache: etcd would have to look at all pods of the cluster.
        let config = Config::default().any_semantic().fields(&format!("spec.nodeName={node}"));
        let why = (&troubles, " of this node");
        let own = watch(&client, &resource::pods(), config, why, by_uid, send);
        let policies = policies(&client, &troubles, budget, wake.clone());
        let peers = BTreeMap::new();
        Self { client, wake, troubles, policies, _own: own, namespaces: None, peers }
    }

    pub(super) fn list_policies_again(&mut self, budget: Budget) {
        self.policies = policies(&self.client, &self.troubles, budget, self.wake.clone());
    }

    /// Begins what is needed, and ends what is not.
    pub(super) fn follow(&mut self, needs: &Needs, peers: &mut BTreeMap<Arc<str>, Store<Pod>>) {
        if needs.namespaces && self.namespaces.is_none() {
            let send = self.wake.clone();
            let send = move |news| send.send(Change::Namespaces(news)).is_ok();
            let read = |namespace: BareResource| {
                let metadata = namespace.metadata;
                (metadata.name.unwrap_or_default(), metadata.labels.unwrap_or_default())
            };
            let resource = resource::namespaces();
            let config = Config::default().any_semantic();
            let why = (&self.troubles, "");
            self.namespaces = Some(watch(&self.client, &resource, config, why, read, send));
        }
        let is_needed = |selector: &Arc<str>| needs.peers.contains(&**selector);
        self.peers.retain(|selector, _| is_needed(selector));
        peers.retain(|selector, _| is_needed(selector));
        for selector in &needs.peers {
            if self.peers.contains_key(selector.as_str()) {
                continue;
            }
            let selector: Arc<str> = selector.as_str().into();
            let (send, key) = (self.wake.clone(), selector.clone());
            let send = move |news| send.send(Change::Peers(key.clone(), news)).is_ok();
            let config = Config::default().any_semantic().labels(&selector);
            let labels = if selector.is_empty() { "any" } else { &selector };
            let why = format!(" with labels: {labels}");
            let why = (&self.troubles, why.as_str());
            let watch = watch(&self.client, &resource::pods(), config, why, by_uid, send);
            peers.insert(selector.clone(), Store::default());
            self.peers.insert(selector, watch);
        }
    }
}

fn policies(
    client: &Client,
    troubles: &Troubles,
    budget: Budget,
    wake: mpsc::UnboundedSender<Change>,
) -> Watch {
    let send = move |news| wake.send(Change::Policies(news)).is_ok();
    watch_policies(client, (troubles, ""), (budget, std::convert::identity), send)
}

fn by_uid(object: PodResource) -> (String, Pod) {
    let pod = Pod::from(object);
    (pod.uid.clone(), pod)
}
