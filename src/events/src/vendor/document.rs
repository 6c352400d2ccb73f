//! A JSON file of a vendor table, in any vendor's layout. A table, the events and metrics of processors, has one file or more.

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::row::Row;

/// The content of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Document {
    /// Events and metrics.
    pub(super) rows: Vec<Row>,
    /// `cpuid`: the processor of the file, in Arm's layout.
    pub(super) cpuid: Option<String>,
    /// Whether it contains metrics in Intel's own format, which are not in `rows`.
    pub(super) has_intel_metrics: bool,
}

impl Document {
    /// Parses a file: a list of objects, or an object with such a list in `Events` or `events`.
    ///
    /// # Errors
    /// The JSON error, with line and column.
    pub(super) fn parse(text: &str) -> serde_json::Result<Self> {
        // Some files begin with a byte order mark.
        serde_json::from_str(text.trim_start_matches('\u{feff}'))
    }
}

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DocumentVisitor)
    }
}

struct DocumentVisitor;

impl<'de> Visitor<'de> for DocumentVisitor {
    type Value = Document;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a list of events, or an object with one")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Document, A::Error> {
        let mut document = Document::default();
        while let Some(row) = list.next_element()? {
            document.rows.push(row);
        }
        Ok(document)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Document, A::Error> {
        let mut document = Document::default();
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "Events" | "events" => document.rows = map.next_value()?,
                "cpuid" => document.cpuid = map.next_value()?,
                "Metrics" => {
                    document.has_intel_metrics = true;
                    map.next_value::<IgnoredAny>()?;
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(document)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_layouts_are_parsed() {
        let row = Row::of(&[("EventName", "A")]);
        for text in [
            r#"[{"EventName": "A"}]"#,
            "\u{feff}[{\"EventName\": \"A\"}]",
            r#"{"Header": {"Version": "1"}, "Events": [{"EventName": "A"}]}"#,
        ] {
            assert_eq!(
                Document::parse(text).unwrap().rows,
                std::slice::from_ref(&row)
            );
        }
        let arm = Document::parse(r#"{"cpuid": "0x41d0c", "events": [], "refs": [1]}"#).unwrap();
        assert_eq!(arm.cpuid.as_deref(), Some("0x41d0c"));
        let intel = Document::parse(r#"{"Metrics": [{"Events": []}]}"#).unwrap();
        assert!(intel.has_intel_metrics && intel.rows.is_empty());
    }

    #[test]
    fn invalid_files_are_refused_with_the_position_of_the_error() {
        let error_text = |text| Document::parse(text).unwrap_err().to_string();
        assert!(error_text("[\n{\"a\": }]").contains("line 2 column 7"));
        assert!(error_text("[1]").contains("line 1"));
        // Of these errors only the text is checked, not the position.
        assert!(error_text("7").contains("expected a list of events"));
        assert!(error_text("").contains("EOF"));
    }
}
