//! A row of a vendor's table: the JSON object of an event or a metric.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::number::number;

/// Keys with their values as text. Numbers may be JSON strings or, as in Arm's layout, JSON numbers; lists and objects
/// are ignored.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(transparent)]
pub(super) struct Row(BTreeMap<String, Scalar>);

/// A value that cannot be converted: not a number or, for the key `Filter`, not a list of event terms (`NAME=NUMBER`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BadValue {
    pub(super) key: &'static str,
    pub(super) value: String,
    /// What the value should be, with an article.
    pub(super) expected: &'static str,
}

impl fmt::Display for BadValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            key,
            value,
            expected,
        } = self;
        write!(f, "`{key}' is `{value}', which is not {expected}")
    }
}

impl Row {
    /// A value, trimmed; `None` if it is missing, empty, `null`, a list or an object.
    pub(super) fn text(&self, key: &str) -> Option<&str> {
        let value = self.0.get(key)?.0.as_deref()?.trim();
        (!value.is_empty() && value != "null").then_some(value)
    }

    /// A number, or the first of a comma-separated list; `None` if [`Self::text`] is `None`.
    pub(super) fn number(&self, key: &'static str) -> Result<Option<u64>, BadValue> {
        let Some(text) = self.text(key) else {
            return Ok(None);
        };
        let first = text.split(',').next().unwrap_or(text).trim();
        let value = number(first).ok_or_else(|| BadValue {
            key,
            value: text.to_owned(),
            expected: "a number",
        })?;
        Ok(Some(value))
    }

    /// Whether a value is present and not 0.
    pub(super) fn is_set(&self, key: &str) -> bool {
        self.text(key).is_some_and(|value| value != "0")
    }

    /// Merges rows: the values of `self`, and those of `base` whose keys `self` lacks. An empty value or `null` in `self` hides
    /// that of `base`, too.
    pub(super) fn over(&self, base: &Self) -> Self {
        let mut merged = base.0.clone();
        merged.extend(self.0.clone());
        Self(merged)
    }

    #[cfg(test)]
    pub(super) fn of(pairs: &[(&str, &str)]) -> Self {
        let pairs = pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), Scalar(Some((*value).to_owned()))));
        Self(pairs.collect())
    }
}

/// A string, number or boolean (0 or 1) as text; `None` for other JSON types.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Scalar(Option<String>);

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ScalarVisitor)
    }
}

struct ScalarVisitor;

impl<'de> Visitor<'de> for ScalarVisitor {
    type Value = Scalar;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_str<E>(self, text: &str) -> Result<Scalar, E> {
        Ok(Scalar(Some(text.to_owned())))
    }

    fn visit_string<E>(self, text: String) -> Result<Scalar, E> {
        Ok(Scalar(Some(text)))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Scalar, E> {
        Ok(Scalar(Some(value.to_string())))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Scalar, E> {
        Ok(Scalar(Some(value.to_string())))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Scalar, E> {
        Ok(Scalar(Some(value.to_string())))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Scalar, E> {
        Ok(Scalar(Some(u8::from(value).to_string())))
    }

    fn visit_unit<E>(self) -> Result<Scalar, E> {
        Ok(Scalar(None))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Scalar, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Scalar(None))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Scalar, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Scalar(None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_scalar_json_values_are_read() {
        let text = r#"{"a": " 0x1A6,0x1A7 ", "b": 12, "c": null, "d": "null", "e": [1, {}], "f": {"g": 1}, "h": true, "i": "zz"}"#;
        let row: Row = serde_json::from_str(text).unwrap();
        assert_eq!(row.number("a"), Ok(Some(0x1a6)));
        assert_eq!(row.number("b"), Ok(Some(12)));
        for none in ["c", "d", "e", "f", "nosuch"] {
            assert_eq!(row.text(none), None, "{none}");
        }
        assert!(row.is_set("h") && !row.is_set("c"));
        let bad = BadValue {
            key: "i",
            value: "zz".to_owned(),
            expected: "a number",
        };
        assert_eq!(row.number("i"), Err(bad));
    }

    #[test]
    fn own_values_override_the_base() {
        let base = Row::of(&[("EventCode", "0x1"), ("BriefDescription", "base")]);
        let own = Row::of(&[("BriefDescription", "own")]);
        let both = own.over(&base);
        assert_eq!(
            [both.text("EventCode"), both.text("BriefDescription")],
            [Some("0x1"), Some("own")]
        );
    }
}
