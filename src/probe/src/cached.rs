//! The events of an object in a build-id cache: its file `probes`.
//!
//! ```text
//! %sdt_demo:tick=tick                                 a USDT marker
//! p:sdt_demo/tick /opt/demo:0x1146 arg1=%bx:s32       the line that creates its event, one per place
//! #leaf n                                             a user's definition
//! p:probe_demo/leaf /opt/demo:0x1139 n=%di:s64
//! ```

use std::collections::BTreeSet;
use std::fmt;

use rperf_names::matches_pattern;

use crate::definition::{Argument, ArgumentValue, Definition, FunctionPlace, Point, SourcePlace};
use crate::event::{ProbeEvent, ProbeTarget, name_for};
use crate::field::ProbeField;

/// The prefix of the heading of a USDT marker.
const MARKER: char = '%';
/// The prefix of the heading of a user's definition.
const DEFINITION: char = '#';

/// One definition with its events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CachedEntry {
    /// Whether the definition is a USDT marker.
    pub is_marker: bool,
    /// The definition: `leaf n`, `g:e=leaf n`, `sdt_demo:tick=tick`.
    pub text: String,
    /// The lines that create its events, verbatim.
    pub lines: Vec<String>,
}

impl CachedEntry {
    /// Creates the entry of a user's definition with the events at its places. `group` is the group unless the definition
    /// names one.
    #[must_use]
    pub fn new(definition: &Definition, group: &str, events: &[ProbeEvent]) -> Self {
        let lines = events.iter().map(|event| numbered(event).to_string());
        // Sorted and deduplicated, as in perf.
        let lines: BTreeSet<String> = lines.collect();
        Self {
            is_marker: false,
            text: heading(definition, group),
            lines: lines.into_iter().collect(),
        }
    }

    /// The events of the entry; invalid lines are skipped.
    pub fn events(&self) -> impl Iterator<Item = ProbeEvent> {
        self.lines.iter().filter_map(|line| ProbeEvent::parse(line))
    }

    /// Whether `pattern` matches the definition's text or the name (`GROUP:EVENT`) of one of its
    /// events. A pattern without a colon matches event names in all groups.
    #[must_use]
    pub fn is_covered(&self, pattern: &str) -> bool {
        let full_pattern = match pattern.contains(':') {
            true => pattern.to_owned(),
            false => format!("*:{pattern}"),
        };
        let is_named = |event: ProbeEvent| matches_pattern(&full_pattern, &event.full_name());
        matches_pattern(pattern, &self.text) || self.events().any(is_named)
    }

    /// Returns `GROUP:EVENT` if the text begins with `GROUP:EVENT=`.
    fn name(&self) -> Option<&str> {
        let (name, _) = self.text.split_once('=')?;
        let is_name_char = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
        (name.contains(':') && name.chars().all(is_name_char)).then_some(name)
    }

    /// Whether `older` is a user's definition with the same name or text.
    fn replaces(&self, older: &Self) -> bool {
        let has_same_name = self.name().is_some() && self.name() == older.name();
        !older.is_marker && (has_same_name || self.text == older.text)
    }
}

impl fmt::Display for CachedEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = if self.is_marker { MARKER } else { DEFINITION };
        writeln!(f, "{mark}{}", self.text)?;
        for line in &self.lines {
            writeln!(f, "{line}")?;
        }
        Ok(())
    }
}

/// Parses the text of a cache's file `probes`; empty lines and lines before the first heading are skipped.
#[must_use]
pub fn cached_entries(text: &str) -> Vec<CachedEntry> {
    let mut entries: Vec<CachedEntry> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        if let Some(heading) = line.strip_prefix([MARKER, DEFINITION]) {
            entries.push(CachedEntry {
                is_marker: line.starts_with(MARKER),
                text: heading.to_owned(),
                lines: Vec::new(),
            });
        } else if let Some(last) = entries.last_mut() {
            last.lines.push(line.to_owned());
        }
    }
    entries
}

/// Appends `new`, and removes users' older definitions with the same name or text. Markers are kept.
pub fn put_entry(entries: &mut Vec<CachedEntry>, new: CachedEntry) {
    entries.retain(|older| !new.replaces(older));
    entries.push(new);
}

/// Formats the heading of a definition as perf does, without the heading's prefix. It begins with `group:event=` if the
/// definition names its event or its point is a line of a function. The file of a point in a file is preceded by `@`. Arguments
/// that are members get a name (`name=it->name`).
#[must_use]
pub fn heading(definition: &Definition, group: &str) -> String {
    let group = definition.group.as_deref().unwrap_or(group);
    let is_line = matches!(
        &definition.point,
        Point::Function {
            place: FunctionPlace::Source(SourcePlace::Line(_)),
            ..
        }
    );
    // Only the definition can give the name: headings are formatted without searching for the function.
    let found_function = "";
    let name = match &definition.event {
        Some(event) => Some(event.clone()),
        None => is_line.then(|| name_for(definition, found_function)),
    };
    let assignment = name.map(|name| format!("{group}:{name}="));
    let file_prefix = match definition.point {
        Point::File { .. } => "@",
        _ => "",
    };
    let mut text = format!(
        "{}{file_prefix}{}",
        assignment.unwrap_or_default(),
        definition.point
    );
    for argument in &definition.arguments {
        text.push(' ');
        text.push_str(&argument_text(argument));
    }
    text
}

/// The text of an argument. A member for which the user chose no name is preceded by its field name.
fn argument_text(argument: &Argument) -> String {
    let is_member =
        matches!(&argument.value, ArgumentValue::Variable { members, .. } if !members.is_empty());
    match argument.field_name() {
        Some(name) if is_member && argument.name.is_none() => format!("{name}={}", argument.text),
        _ => argument.text.clone(),
    }
}

/// Gives unnamed arguments the kernel's default names (`arg1`, `arg2`), since perf expects names.
fn numbered(event: &ProbeEvent) -> ProbeEvent {
    let fields = event
        .fields
        .iter()
        .zip(1..)
        .map(|(field, number)| ProbeField {
            name: field.name.clone().or_else(|| Some(format!("arg{number}"))),
            ..field.clone()
        });
    ProbeEvent {
        fields: fields.collect(),
        ..event.clone()
    }
}

impl ProbeEvent {
    /// Parses a line of the form that [`ProbeEvent`]'s `Display` writes; `None` if it is malformed. Fetch arguments are not
    /// parsed: their text after the name is the base of the field.
    #[must_use]
    pub fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        let (kind, name) = words.next()?.split_once(':')?;
        let is_return = match kind {
            "p" => false,
            "r" => true,
            _ => return None,
        };
        let (group, name) = name.split_once('/')?;
        let target = parse_target(words.next()?)?;
        let fields = words.map(|word| {
            let (name, base) = match word.split_once('=') {
                Some((name, base)) => (Some(name.to_owned()), base),
                None => (None, word),
            };
            ProbeField {
                name,
                base: base.to_owned(),
                reads: Vec::new(),
                kind: None,
            }
        });
        Some(Self {
            group: group.to_owned(),
            name: name.to_owned(),
            target,
            is_return,
            fields: fields.collect(),
        })
    }

    /// Returns `group:name`.
    #[must_use]
    pub fn full_name(&self) -> String {
        format!("{}:{}", self.group, self.name)
    }

    /// Returns the line that removes the event when written to `kprobe_events` or `uprobe_events`.
    #[must_use]
    pub fn removal(&self) -> String {
        format!("-:{}/{}", self.group, self.name)
    }
}

fn parse_target(word: &str) -> Option<ProbeTarget> {
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    if word.starts_with('/') {
        let (object, place) = word.rsplit_once(':')?;
        let (offset, semaphore) = match place.strip_suffix(')') {
            Some(offsets) => {
                let (offset, semaphore) = offsets.split_once('(')?;
                (offset, Some(number(semaphore)?))
            }
            None => (place, None),
        };
        return Some(ProbeTarget::Program {
            object: object.to_owned(),
            file_offset: number(offset)?,
            semaphore,
        });
    }
    let (module, place) = match word.split_once(':') {
        Some((module, place)) => (Some(module.to_owned()), place),
        None => (None, word),
    };
    let (symbol, offset) = match place.rsplit_once('+') {
        Some((symbol, offset)) => (symbol, number(offset)?),
        None => (place, 0),
    };
    Some(ProbeTarget::Kernel {
        module,
        symbol: symbol.to_owned(),
        offset,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::definition::parse;

    const TEXT: &str = "\
%sdt_demo:tick=tick
p:sdt_demo/tick /opt/demo:0x1146(0x3018) arg1=%bx:s32
#g:e=leaf n
p:g/e /opt/demo:0x1139 n=%di:s64
#m*%return
r:probe_demo/main__return /opt/demo:0x118d
r:probe_demo/middle__return /opt/demo:0x1168 %ax
#vfs_read
p:probe/vfs_read vfs_read+0 arg1=+0(%di):string
#start
p:probe/start veth:start+4
";

    #[test]
    fn texts_are_read_and_written() {
        let entries = cached_entries(TEXT);
        let written: String = entries.iter().map(CachedEntry::to_string).collect();
        assert_eq!(written, TEXT);
        let markers: Vec<bool> = entries.iter().map(|entry| entry.is_marker).collect();
        assert_eq!(markers, [true, false, false, false, false]);
        for entry in &entries {
            let events: Vec<String> = entry.events().map(|event| event.to_string()).collect();
            assert_eq!(events, entry.lines);
        }
        assert_eq!(cached_entries("p:a/b /c:0x1\n\n"), []);
    }

    #[test]
    fn patterns_cover_texts_and_names() {
        let entries = cached_entries(TEXT);
        let covered = |pattern: &str| -> Vec<&str> {
            let covered = entries.iter().filter(|entry| entry.is_covered(pattern));
            covered.map(|entry| entry.text.as_str()).collect()
        };
        assert_eq!(covered("g:*"), ["g:e=leaf n"]);
        assert_eq!(covered("e"), ["g:e=leaf n"]);
        assert_eq!(covered("*leaf*"), ["g:e=leaf n"]);
        assert_eq!(covered("mid*"), ["m*%return"]);
        assert_eq!(covered("probe:*"), ["vfs_read", "start"]);
        assert_eq!(covered("*:*").len(), 5);
        assert_eq!(covered("nosuch"), [""; 0]);
    }

    #[test]
    fn headings_match_perf() {
        for (definition, expected) in [
            ("leaf", "leaf"),
            ("leaf%return $retval", "leaf%return $retval"),
            ("leaf@calc.c+4", "leaf+4@calc.c"),
            ("leaf:1", "probe_calc:leaf_L1=leaf:1"),
            ("calc.c:5 n", "@calc.c:5 n"),
            ("e=leaf n:u8", "probe_calc:e=leaf n:u8"),
            ("g:e=middle $vars", "g:e=middle $vars"),
            (
                "middle it->name:string it->val a=count",
                "middle name=it->name:string val=it->val a=count",
            ),
            ("middle it->name[1]", "middle name=it->name[1]"),
            ("leaf;s*", "leaf;s*"),
            ("0x1139", "0x1139"),
        ] {
            let parsed = parse(definition).unwrap();
            assert_eq!(heading(&parsed, "probe_calc"), expected, "{definition}");
        }
    }

    #[test]
    fn an_entry_replaces_its_previous_version() {
        let mut entries = cached_entries(TEXT);
        let event = ProbeEvent::parse("p:g/e /opt/demo:0x1168 %di n=%si").unwrap();
        let definition = parse("g:e=middle %di n=%si").unwrap();
        put_entry(&mut entries, CachedEntry::new(&definition, "g", &[event]));
        let definition = parse("m*%return").unwrap();
        put_entry(&mut entries, CachedEntry::new(&definition, "g", &[]));
        let texts: Vec<&str> = entries.iter().map(|entry| entry.text.as_str()).collect();
        assert_eq!(
            texts,
            [
                "sdt_demo:tick=tick",
                "vfs_read",
                "start",
                "g:e=middle %di n=%si",
                "m*%return"
            ]
        );
        assert_eq!(entries[3].lines, ["p:g/e /opt/demo:0x1168 arg1=%di n=%si"]);
        // A marker of the same name is not replaced.
        let definition = parse("sdt_demo:tick=leaf").unwrap();
        let entry = CachedEntry::new(&definition, "g", &[]);
        assert!(!entry.replaces(&entries[0]));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "([%#]?[a-z:/=+() 0-9]{0,20}\n?){0,6}") {
            for entry in cached_entries(&text) {
                let _whatever = (entry.events().count(), entry.is_covered("a*:b*"), entry.name());
            }
        }
    }
}
