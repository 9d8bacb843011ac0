//! A row in JSON: each column by its key, `null` for unknown values.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::column::Column;
use crate::columns::{FLOW_COLUMNS, PORT_COLUMNS, RULE_COLUMNS, TOTAL_COLUMNS};
use crate::flow::FlowView;
use crate::port::PortView;
use crate::rule::RuleView;
use crate::sums::Sums;
use crate::value::Value;

macro_rules! rows {
    ($($row:ty: $columns:expr;)*) => {$(
        impl Serialize for $row {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                serialize(self, $columns, to)
            }
        }
    )*};
}

rows! {
    FlowView: FLOW_COLUMNS;
    PortView: PORT_COLUMNS;
    RuleView: RULE_COLUMNS;
    Sums: TOTAL_COLUMNS;
}

fn serialize<T, S: Serializer>(row: &T, columns: &[Column<T>], to: S) -> Result<S::Ok, S::Error> {
    let mut map = to.serialize_map(Some(columns.len()))?;
    for column in columns {
        map.serialize_entry(column.key, &(column.value)(row))?;
    }
    map.end()
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
