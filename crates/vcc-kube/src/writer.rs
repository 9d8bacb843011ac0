//! Writes a node's status to the API server, the newest as soon as it can.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::json;
use tokio::sync::watch::Receiver;

use crate::pause::{Pause, within_limit};
use crate::resource::{self, BareResource, Empty, NodeResource};
use crate::status::NodeStatus;
use crate::trouble::Troubles;

/// What changes more often than this is written together.
const APART: Duration = Duration::from_millis(250);

/// Ends when the sender of the status is gone.
pub async fn write(
    client: Client,
    node: String,
    mut status: Receiver<NodeStatus>,
    troubles: Troubles,
) {
    const DOING: &str = "write this node's VccNode";
    let mut pause = Pause::new();
    while status.changed().await.is_ok() {
        loop {
            let newest = status.borrow_and_update().clone();
            match within_limit(put(&client, &node, newest)).await {
                Ok(()) => {
                    troubles.works(DOING);
                    pause.reset();
                    break;
                }
                Err(error) => {
                    troubles.failed(DOING, &error);
                    tokio::time::sleep(pause.next()).await;
                }
            }
        }
        tokio::time::sleep(APART).await;
    }
}

async fn put(client: &Client, node: &str, mut status: NodeStatus) -> kube::Result<()> {
    let api: Api<NodeResource> = Api::all_with(client.clone(), &resource::vcc_nodes());
    status.updated = now();
    let patch = Patch::Merge(json!({ "status": status }));
    match api.patch_status(node, &PatchParams::default(), &patch).await {
        Err(kube::Error::Api(answer)) if answer.code == 404 => {
            create(client, node).await?;
            api.patch_status(node, &PatchParams::default(), &patch).await.map(drop)
        }
        result => result.map(drop),
    }
}

/// The object goes with its node.
async fn create(client: &Client, node: &str) -> kube::Result<()> {
    let nodes: Api<BareResource> = Api::all_with(client.clone(), &resource::nodes());
    // A cluster of tests may have no such object, and an operator may not permit to read it.
    let owner = nodes.get_opt(node).await.ok().flatten().and_then(|node| node.metadata.uid);
    let kind = resource::vcc_nodes();
    let mut object = NodeResource::new(node, &kind, Empty {});
    object.metadata.owner_references = owner.map(|uid| {
        let (api_version, kind, name) = ("v1".to_owned(), "Node".to_owned(), node.to_owned());
        vec![OwnerReference { api_version, kind, name, uid, ..OwnerReference::default() }]
    });
    let api: Api<NodeResource> = Api::all_with(client.clone(), &kind);
    match api.create(&PostParams::default(), &object).await {
        // Another process of this node was first.
        Err(kube::Error::Api(answer)) if answer.code == 409 => Ok(()),
        result => result.map(drop),
    }
}

pub fn now() -> String {
    // Whole seconds, as in Kubernetes' own resources.
    Timestamp::from_second(Timestamp::now().as_second()).unwrap_or_default().to_string()
}
