//! A flow in JSON: each column by its key, `null` for what is unknown.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::columns::COLUMNS;
use crate::flow::FlowView;
use crate::value::Value;

impl Serialize for FlowView {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(COLUMNS.len()))?;
        for column in COLUMNS {
            map.serialize_entry(column.key, &(column.value)(self))?;
        }
        map.end()
    }
}

impl Serialize for Value<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Unknown => to.serialize_none(),
            Self::Text(text) => to.serialize_str(text),
            Self::End(end) => to.collect_str(end),
            Self::Integer(number) => to.serialize_u64(*number),
            Self::Real(number) => to.serialize_f64(*number),
        }
    }
}
