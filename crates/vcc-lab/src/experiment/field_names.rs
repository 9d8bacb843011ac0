//! The names of a struct's fields, which only its `Deserialize` knows.

use serde::de::value::Error;
use serde::de::{DeserializeOwned, Deserializer, Error as _, Visitor};
use serde::forward_to_deserialize_any;

/// Empty unless `T` derives `Deserialize` and is a struct.
pub fn field_names<T: DeserializeOwned>() -> &'static [&'static str] {
    let mut names: &[&str] = &[];
    // It fails once the names are noted.
    drop(T::deserialize(Notebook(&mut names)));
    names
}

/// Notes what a struct asks for, and gives nothing.
struct Notebook<'n>(&'n mut &'static [&'static str]);

impl<'de> Deserializer<'de> for Notebook<'_> {
    type Error = Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        *self.0 = fields;
        Err(Error::custom("has no values"))
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("has no values"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Deserialize)]
    struct Some {
        #[serde(rename = "first")]
        _a: u32,
        #[serde(default, rename = "second")]
        _b: Vec<String>,
    }

    #[test]
    fn names_are_those_of_the_file() {
        assert_eq!(field_names::<Some>(), ["first", "second"]);
        assert_eq!(field_names::<Vec<u32>>(), [""; 0]);
    }
}
