//! Values of one number that stand outside of rules, each within bounds of its own.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use toml::Spanned;
use toml::de::DeValue;

use super::reader::{Value, checked, scalar};
use super::value_schema;
use crate::keys::Kind;
use crate::port::{BUFFER, BUFFER_POLICY, MAX_FLOWS, ORDER};
use crate::problem::Findings;

/// The kernel's ledger counts in 32 bits, and has to hold overdrafts beyond the window.
const POOL_WINDOW: Kind = Kind::Size { min: 1, max: 1 << 30 };

macro_rules! bounded {
    ($($(#[$doc:meta])* $name:ident: $kind:expr;)*) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $name(pub u32);

        impl Value for $name {
            fn read(value: &Spanned<DeValue<'_>>, findings: &mut Findings<'_>) -> Option<Self> {
                let read = checked($kind.read(scalar(value.get_ref())), &value.span(), findings);
                read?.number().map(Self)
            }
        }

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                value_schema::for_kind(&$kind)
            }
        }
    )* };
}

bounded! {
    /// Connections that a port tracks at a time.
    MaxFlows: MAX_FLOWS;
    /// The place of a port's programs among those of others.
    PortOrder: ORDER;
    /// The buffer of a port.
    BufferSize: BUFFER;
    /// How the connections of a port share its buffer.
    BufferSharing: BUFFER_POLICY;
    /// The window of a pool.
    PoolWindow: POOL_WINDOW;
}
