//! The values of conditions: names, networks, ports, VLANs.

use std::borrow::Cow;
use std::net::IpAddr;

use ipnet::IpNet;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use toml::Spanned;
use toml::de::DeValue;

use super::reader::{Located, Value, checked, integer, text, wrong_type};
use super::value_schema::inline_schema;
use crate::conditions::PortRange;
use crate::connection::Role;
use crate::name;
use crate::nearest::suggestion;
use crate::problem::Findings;
use crate::text::shortened;

/// One value, or a list of them.
#[derive(Clone, Debug)]
pub(crate) struct OneOrMany<T>(pub Vec<Located<T>>);

impl<T: Value> Value for OneOrMany<T> {
    fn read(value: &Spanned<DeValue<'_>>, findings: &mut Findings<'_>) -> Option<Self> {
        match value.get_ref() {
            DeValue::Array(values) if values.is_empty() => {
                findings.error(
                    &value.span(),
                    "an empty list matches nothing; leave the key out to match anything",
                );
                None
            }
            DeValue::Array(values) => {
                // Valid values are kept, so that later checks find further errors.
                let values: Vec<_> =
                    values.iter().filter_map(|value| Located::read(value, findings)).collect();
                (!values.is_empty()).then_some(Self(values))
            }
            _ => Some(Self(vec![Located::read(value, findings)?])),
        }
    }
}

impl<T: JsonSchema> JsonSchema for OneOrMany<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("OneOrMany{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = generator.subschema_for::<T>();
        json_schema!({ "anyOf": [one, { "type": "array", "minItems": 1, "items": one }] })
    }
}

/// The name of a rule, a pool or a tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name(pub String);

impl Value for Name {
    fn read(value: &Spanned<DeValue<'_>>, findings: &mut Findings<'_>) -> Option<Self> {
        let name = text(value, "a name, as a string", findings)?;
        checked(name::check(name), &value.span(), findings)?;
        Some(Self(name.to_owned()))
    }
}

inline_schema!(
    Name,
    json_schema!({
        "type": "string", "minLength": 1, "maxLength": name::LONGEST_BYTES
    })
);

impl Value for Role {
    fn read(value: &Spanned<DeValue<'_>>, findings: &mut Findings<'_>) -> Option<Self> {
        let name = text(value, "the name of a role", findings)?;
        let found = Role::ALL.into_iter().find(|role| role.name() == name);
        if found.is_none() {
            findings.error_with(&value.span(), || {
                let known = suggestion(name, Role::ALL.map(Role::name));
                format!("`{}` is not a role; {known}", shortened(name))
            });
        }
        found
    }
}

inline_schema!(Role, json_schema!({ "enum": Role::ALL.map(Role::name) }));

/// A network; an address is a network of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Network(pub IpNet);

impl Network {
    fn parse(text: &str) -> Result<IpNet, String> {
        let net = match text.parse::<IpAddr>() {
            Ok(address) => IpNet::from(address),
            Err(_) => text.parse().map_err(|_| {
                Self::too_long(text).unwrap_or_else(|| {
                    let text = shortened(text);
                    format!("`{text}` is not a network, like 10.0.0.0/8 or fd00::/8, or an address")
                })
            })?,
        };
        if net.trunc() != net {
            return Err(format!(
                "{net} has bits set beyond its prefix; the network is {}, the address {}",
                net.trunc(),
                net.addr()
            ));
        }
        if let IpNet::V6(v6) = net {
            let mapped = v6.addr().to_ipv4_mapped().filter(|_| v6.prefix_len() >= 96);
            if let Some(v4) = mapped {
                let length = v6.prefix_len() - 96;
                return Err(format!(
                    "this is an IPv4 network in IPv6 notation; write {v4}/{length}"
                ));
            }
        }
        Ok(net)
    }

    /// The error where only the prefix is too long.
    fn too_long(text: &str) -> Option<String> {
        let (address, length) = text.split_once('/')?;
        let (family, most) = match address.parse().ok()? {
            IpAddr::V4(_) => ("IPv4", 32),
            IpAddr::V6(_) => ("IPv6", 128),
        };
        let length = length.parse::<u64>().ok().filter(|length| *length > most)?;
        Some(format!("the prefix of an {family} network has at most {most} bits, not {length}"))
    }
}

impl Value for Network {
    fn read(value: &Spanned<DeValue<'_>>, findings: &mut Findings<'_>) -> Option<Self> {
        let text = text(value, "a network, like \"10.0.0.0/8\"", findings)?;
        checked(Self::parse(text), &value.span(), findings).map(Self)
    }
}

inline_schema!(
    Network,
    json_schema!({ "type": "string", "pattern": "^[0-9A-Fa-f.:]+(/[0-9]+)?$" })
);

impl PortRange {
    fn parse(text: &str) -> Result<Self, String> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let wrong = || {
            let text = shortened(text);
            format!("`{text}` is not a port, like 80, or a range, like \"8000-8100\"")
        };
        let number = |text: &str| text.trim().parse::<u64>().map_err(|_| wrong());
        let (first, last) = (port(number(first)?)?, port(number(last)?)?);
        if first > last {
            return Err(format!("the range is reversed; write \"{last}-{first}\""));
        }
        Ok(Self { first, last })
    }
}

fn port(number: u64) -> Result<u16, String> {
    let port = u16::try_from(number).ok().filter(|port| *port != 0);
    port.ok_or_else(|| not_a_port(&number.to_string()))
}

fn not_a_port(number: &str) -> String {
    format!("must be a port from 1 to 65535, not {}", shortened(number))
}

impl Value for PortRange {
    fn read(value: &Spanned<DeValue<'_>>, findings: &mut Findings<'_>) -> Option<Self> {
        let range = match value.get_ref() {
            DeValue::String(text) => Self::parse(text),
            DeValue::Integer(number) => integer(value.get_ref())
                .and_then(|number| u64::try_from(number).ok())
                .ok_or_else(|| not_a_port(&number.to_string()))
                .and_then(port)
                .map(|port| Self { first: port, last: port }),
            other => {
                wrong_type(&value.span(), other, "a port or a range, like \"80-90\"", findings);
                return None;
            }
        };
        checked(range, &value.span(), findings)
    }
}

inline_schema!(
    PortRange,
    json_schema!({
        "anyOf": [
            { "type": "integer", "minimum": 1, "maximum": 65_535 },
            { "type": "string", "pattern": "^ *[0-9]+ *(- *[0-9]+ *)?$" },
        ]
    })
);

/// 0 stands for untagged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VlanId(pub u16);

impl VlanId {
    /// 4095 is reserved (802.1Q, 9.6).
    const LAST: u16 = 4094;
}

impl Value for VlanId {
    fn read(value: &Spanned<DeValue<'_>>, findings: &mut Findings<'_>) -> Option<Self> {
        let DeValue::Integer(number) = value.get_ref() else {
            wrong_type(&value.span(), value.get_ref(), "a VLAN number", findings);
            return None;
        };
        let id = integer(value.get_ref()).and_then(|id| u16::try_from(id).ok());
        let id = id.filter(|id| *id <= Self::LAST).ok_or_else(|| {
            let number = number.to_string();
            format!(
                "must be a VLAN from 1 to {}, or 0 for untagged, not {}",
                Self::LAST,
                shortened(&number)
            )
        });
        checked(id, &value.span(), findings).map(Self)
    }
}

inline_schema!(VlanId, json_schema!({ "type": "integer", "minimum": 0, "maximum": VlanId::LAST }));
