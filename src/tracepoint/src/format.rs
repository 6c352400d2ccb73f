//! The `format` file of an event in tracefs.

use crate::{Error, Field};

/// The description of one tracepoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Format {
    /// Name without the system (`sched_switch`).
    pub name: String,
    /// Number in `common_type` of a raw record and in `attr.config`.
    pub id: u64,
    /// Fields common to all events (`common_type`, `common_pid`, …).
    pub common_fields: Vec<Field>,
    /// Fields of this event; may be empty.
    pub fields: Vec<Field>,
    /// The text after `print fmt: `; empty if there is none.
    pub print_fmt: String,
}

/// Element types of dynamic arrays, with the size of an element in bytes. The size of elements of other types is unknown.
const ELEMENT_SIZES: [(&str, usize); 9] = [
    ("u8", 1),
    ("u16", 2),
    ("u32", 4),
    ("u64", 8),
    ("s8", 1),
    ("s16", 2),
    ("s32", 4),
    ("s64", 8),
    ("char", 1),
];

impl Format {
    /// Parses a `format` file of a kernel whose longs have `long_size` bytes.
    ///
    /// # Errors
    /// The name or the id is missing, or the id or a field cannot be parsed. A missing `print fmt` is no error.
    pub fn parse(text: &str, long_size: usize) -> Result<Self, Error> {
        let (head, print_fmt) = match text.split_once("\nprint fmt:") {
            Some((head, print_fmt)) => (head, print_fmt.trim().to_owned()),
            None => (text, String::new()),
        };
        let mut format = Self {
            name: value_of(head, "name")?.to_owned(),
            id: 0,
            common_fields: Vec::new(),
            fields: Vec::new(),
            print_fmt,
        };
        let id = value_of(head, "ID")?;
        format.id = id.parse().map_err(|_| Error::Id {
            event: format.name.clone(),
            text: id.to_owned(),
        })?;
        // The kernel lists the common fields first, then an empty line, then the fields of the event.
        let mut in_common = true;
        for (index, line) in head.lines().enumerate() {
            let Some(declaration) = line.trim_start().strip_prefix("field:") else {
                if line.trim().is_empty() && !format.common_fields.is_empty() {
                    in_common = false;
                }
                continue;
            };
            let field = parse_field(declaration, long_size).ok_or_else(|| Error::Field {
                event: format.name.clone(),
                line: index + 1,
                text: line.trim().to_owned(),
            })?;
            if in_common {
                format.common_fields.push(field);
            } else {
                format.fields.push(field);
            }
        }
        Ok(format)
    }

    /// The common field of this name; if there is none, the event's own field.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Field> {
        let mut all = self.common_fields.iter().chain(&self.fields);
        all.find(|field| field.name == name)
    }
}

/// Returns the text after `key:` in the first line that begins with `key:`.
fn value_of<'a>(head: &'a str, key: &'static str) -> Result<&'a str, Error> {
    let mut lines = head.lines();
    lines
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))
        .map(str::trim)
        .ok_or(Error::Missing(key))
}

/// Parses `TYPE NAME[N];\toffset:A;\tsize:B;\tsigned:C;`. Old kernels omit `signed`.
fn parse_field(declaration: &str, long_size: usize) -> Option<Field> {
    let mut parts = declaration.split(';');
    let declared = parts.next()?.trim();
    let mut offset = None;
    let mut size = None;
    let mut is_signed = false;
    for part in parts {
        match part.trim().split_once(':') {
            Some(("offset", value)) => offset = Some(value.parse().ok()?),
            Some(("size", value)) => size = Some(value.parse().ok()?),
            Some(("signed", value)) => is_signed = value != "0",
            _ => {}
        }
    }
    let (type_name, name) = split_declaration(declared)?;
    let mut field = Field {
        offset: offset?,
        size: size?,
        element_size: 0,
        is_signed,
        is_array: type_name.contains('['),
        is_relative: type_name.starts_with("__rel_loc"),
        is_dynamic: type_name.starts_with("__data_loc") || type_name.starts_with("__rel_loc"),
        is_string: false,
        is_pointer: type_name.contains('*'),
        is_long: type_name.contains("long"),
        name,
        type_name,
    };
    let has_byte_type = ["char", "u8", "s8"]
        .iter()
        .any(|byte_type| field.type_name.contains(byte_type));
    // In very old kernels, the only dynamic fields were strings, located by a two-byte offset.
    let is_old_string = field.is_dynamic && field.size == 2;
    field.is_array |= is_old_string;
    field.is_string = field.is_array && (has_byte_type || is_old_string);
    field.element_size = element_size(&field, long_size);
    Some(field)
}

/// Splits `char comm[16]` into the type `char[16]` and the name `comm`, and `__data_loc char[] comm` into `__data_loc char[]` and
/// `comm`.
fn split_declaration(declared: &str) -> Option<(String, String)> {
    let (before, brackets) = match declared.find('[') {
        Some(start) if declared.ends_with(']') => declared.split_at(start),
        _ => (declared, ""),
    };
    let before = before.trim_end();
    let start = before.rfind(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))? + 1;
    let name = before.get(start..).filter(|name| !name.is_empty())?;
    let type_name = before.get(..start)?.trim();
    (!type_name.is_empty()).then(|| (format!("{type_name}{brackets}"), name.to_owned()))
}

/// Returns the value of [`Field::element_size`].
fn element_size(field: &Field, long_size: usize) -> usize {
    if !field.is_array && !field.is_dynamic {
        return field.size;
    }
    let inside = field.type_name.split_once('[').map_or("", |(_, rest)| rest);
    let count = inside.trim_end_matches(']').trim().parse::<usize>();
    if let Ok(count @ 1..) = count {
        return field.size / count;
    }
    if field.is_dynamic {
        let (before, _) = field.type_name.split_once('[').unwrap_or_default();
        let element = before.rsplit(' ').next().unwrap_or_default();
        let known = ELEMENT_SIZES.iter().find(|(name, _)| *name == element);
        return known.map_or(0, |(_, size)| *size);
    }
    // An array whose number of elements is not a number: `char[TASK_COMM_LEN]`.
    match field {
        _ if field.is_string => 1,
        _ if field.is_long => long_size,
        _ => 0,
    }
}
