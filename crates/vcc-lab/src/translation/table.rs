//! The `vcc` table of a guest: `mode`, the port's buffer, and the keys of a policy.

use serde::de::{DeserializeSeed, Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::str::FromStr;

use crate::experiment::bounded::Kib;
use vcc_engine::{BufferPolicy, Mode};
use vcc_policy::{KEYS, Key, Scalar, Settings, Surface, Value};

/// A key that is left out has vcc's default.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Vcc {
    pub mode: VccMode,
    pub buffer_kib: Option<Kib>,
    pub buffer_policy: Option<BufferPolicy>,
    pub settings: Settings,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VccMode {
    #[default]
    Off,
    Enforce,
    Shadow,
}

impl VccMode {
    /// None where vcc is off.
    fn of_engine(self) -> Option<Mode> {
        match self {
            VccMode::Off => None,
            VccMode::Enforce => Some(Mode::Enforce),
            VccMode::Shadow => Some(Mode::Shadow),
        }
    }
}

const MODE: &str = "mode";
const BUFFER_KIB: &str = "buffer_kib";
const BUFFER_POLICY: &str = "buffer_policy";

/// A value of the engine's by its name.
struct Named<T>(T);

impl<'de, T: FromStr<Err: fmt::Display>> Deserialize<'de> for Named<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map(Self).map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for Vcc {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(Table)
    }
}

struct Table;

impl<'de> Visitor<'de> for Table {
    type Value = Vcc;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table of vcc's keys")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vcc, A::Error> {
        let mut vcc = Vcc::default();
        while let Some(name) = map.next_key()? {
            match name {
                Name::Mode => vcc.mode = map.next_value()?,
                Name::BufferKib => vcc.buffer_kib = map.next_value()?,
                Name::BufferPolicy => {
                    vcc.buffer_policy = map.next_value::<Option<Named<_>>>()?.map(|it| it.0);
                }
                Name::Key(key) => vcc.settings.set(key, map.next_value_seed(ValueOf(key))?),
            }
        }
        if let (Some(mode), Some(key)) = (vcc.mode.of_engine(), Key::named(MODE)) {
            vcc.settings.set(key, Value::Number(mode.number().into()));
        }
        Ok(vcc)
    }
}

enum Name {
    Mode,
    BufferKib,
    BufferPolicy,
    Key(&'static Key),
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let name = String::deserialize(from)?;
        match name.as_str() {
            MODE => return Ok(Self::Mode),
            BUFFER_KIB => return Ok(Self::BufferKib),
            BUFFER_POLICY => return Ok(Self::BufferPolicy),
            _ => {}
        }
        Key::named(&name).map(Self::Key).ok_or_else(|| {
            let hint = Surface::File.renamed(&name).unwrap_or_else(|| {
                let names: Vec<&str> = KEYS.iter().map(|key| key.name).collect();
                format!("expected one of {}", names.join(", "))
            });
            D::Error::custom(format!("unknown field `{name}`: {hint}"))
        })
    }
}

/// The value of a key, as a policy has it.
struct ValueOf(&'static Key);

impl ValueOf {
    fn read<E: Error>(&self, scalar: Scalar<'_>) -> Result<Value, E> {
        self.0.kind.read(scalar).map_err(E::custom)
    }
}

impl<'de> DeserializeSeed<'de> for ValueOf {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl Visitor<'_> for ValueOf {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.kind.wanted())
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Value, E> {
        self.read(Scalar::Flag(flag))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Value, E> {
        self.read(Scalar::Integer(Some(number)))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Value, E> {
        self.read(Scalar::Integer(i64::try_from(number).ok()))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Value, E> {
        self.read(Scalar::Float(number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        self.read(Scalar::Text(text))
    }
}
