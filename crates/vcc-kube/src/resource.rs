//! The resources of the API server that are read and written, with no more of them than is used:
//! a node's agent is small however large the objects are.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use kube::Resource;
use kube::api::{ApiResource, ObjectMeta, TypeMeta};
use kube::core::DynamicResourceScope;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::choice::Choice;

/// The API group of vcc's own resources.
pub const GROUP: &str = "vcc.internal";
/// Their version that this version of vcc reads and writes.
pub const VERSION: &str = "v1alpha1";

pub type Labels = BTreeMap<String, String>;

/// An object with those fields of its spec and its status that `P` and `U` name. Either may be missing.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(bound(deserialize = "P: DeserializeOwned + Default, U: DeserializeOwned"))]
pub struct Object<P, U> {
    #[serde(flatten)]
    types: Option<TypeMeta>,
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub spec: P,
    #[serde(default = "nothing", skip_serializing_if = "Option::is_none")]
    pub status: Option<U>,
}

fn nothing<U>() -> Option<U> {
    None
}

impl<P, U> Object<P, U> {
    pub fn new(name: &str, resource: &ApiResource, spec: P) -> Self {
        let (api_version, kind) = (resource.api_version.clone(), resource.kind.clone());
        Self {
            types: Some(TypeMeta { api_version, kind }),
            metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
            spec,
            status: None,
        }
    }
}

impl<P, U> Resource for Object<P, U> {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn group(resource: &ApiResource) -> Cow<'_, str> {
        resource.group.as_str().into()
    }

    fn version(resource: &ApiResource) -> Cow<'_, str> {
        resource.version.as_str().into()
    }

    fn kind(resource: &ApiResource) -> Cow<'_, str> {
        resource.kind.as_str().into()
    }

    fn api_version(resource: &ApiResource) -> Cow<'_, str> {
        resource.api_version.as_str().into()
    }

    fn plural(resource: &ApiResource) -> Cow<'_, str> {
        resource.plural.as_str().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// A policy as the API server has it. Its text is checked by [`crate::spec`].
pub type PolicyResource = Object<Value, Empty>;
/// Its status may come from another version of vcc, or from another writer.
pub type NodeResource = Object<Empty, Value>;
pub type PodResource = Object<PodSpec, PodStatus>;
/// Namespaces and nodes: only their metadata is of interest.
pub type BareResource = Object<Empty, Empty>;
pub type LeaseResource = Object<LeaseSpec, Empty>;

/// The present value is not read.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Empty {}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSpec {
    pub node_name: Option<String>,
    pub host_network: bool,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodStatus {
    pub phase: Option<String>,
    #[serde(rename = "podIPs")]
    pub pod_ips: Vec<PodIp>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct PodIp {
    pub ip: String,
}

/// coordination.k8s.io/v1. Times are RFC 3339 with microseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LeaseSpec {
    pub holder_identity: Option<String>,
    pub lease_duration_seconds: Option<i32>,
    pub acquire_time: Option<String>,
    pub renew_time: Option<String>,
}

fn resource(group: &str, version: &str, kind: &str, plural: &str) -> ApiResource {
    let api_version =
        if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version,
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    }
}

pub fn policies() -> ApiResource {
    resource(GROUP, VERSION, "VccPolicy", "vccpolicies")
}

pub fn vcc_nodes() -> ApiResource {
    resource(GROUP, VERSION, "VccNode", "vccnodes")
}

pub fn pods() -> ApiResource {
    resource("", "v1", "Pod", "pods")
}

pub fn namespaces() -> ApiResource {
    resource("", "v1", "Namespace", "namespaces")
}

pub fn nodes() -> ApiResource {
    resource("", "v1", "Node", "nodes")
}

pub fn events() -> ApiResource {
    resource("", "v1", "Event", "events")
}

pub fn leases() -> ApiResource {
    resource("coordination.k8s.io", "v1", "Lease", "leases")
}

/// A policy, and which one it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PolicyObject {
    pub name: String,
    pub uid: String,
    /// Grows with each change of the spec.
    pub generation: i64,
    /// In seconds since 1970.
    pub created: i64,
    /// It may have a megabyte, and several hold it.
    pub spec: Arc<Value>,
    /// Its spec was too large to be kept.
    #[serde(default)]
    pub is_omitted: bool,
}

impl From<PolicyResource> for PolicyObject {
    fn from(object: PolicyResource) -> Self {
        let ObjectMeta { name, uid, generation, creation_timestamp, .. } = object.metadata;
        Self {
            name: name.unwrap_or_default(),
            uid: uid.unwrap_or_default(),
            generation: generation.unwrap_or(0),
            created: creation_timestamp.map_or(0, |created| created.0.as_second()),
            spec: Arc::new(object.spec),
            is_omitted: false,
        }
    }
}

/// The fields of a pod that policies use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    pub uid: String,
    pub namespace: String,
    pub name: String,
    pub labels: Labels,
    /// By its annotations.
    pub choice: Choice,
    pub addresses: Vec<IpAddr>,
    /// It has no device of its own.
    pub host_network: bool,
    /// Its containers have ended, and others may have its addresses by now.
    pub has_ended: bool,
}

impl From<PodResource> for Pod {
    fn from(object: PodResource) -> Self {
        let ObjectMeta { name, namespace, uid, labels, annotations, .. } = object.metadata;
        let status = object.status.unwrap_or_default();
        let address = |ip: &PodIp| ip.ip.parse().ok();
        Self {
            uid: uid.unwrap_or_default(),
            namespace: namespace.unwrap_or_default(),
            name: name.unwrap_or_default(),
            labels: labels.unwrap_or_default(),
            choice: annotations.as_ref().map(Choice::from_annotations).unwrap_or_default(),
            addresses: status.pod_ips.iter().filter_map(address).collect(),
            host_network: object.spec.host_network,
            has_ended: matches!(status.phase.as_deref(), Some("Succeeded" | "Failed")),
        }
    }
}
