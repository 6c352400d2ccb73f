//! Probe events in tracefs: the lines of `uprobe_events` and `kprobe_events`.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use rperf_names::is_pattern;

use crate::definition::{Definition, FunctionPlace, Point, SourcePlace};
use crate::field::ProbeField;
use crate::search::Probe;

/// The maximum length of an event name in bytes (`MAX_EVENT_NAME_LEN` minus the NUL).
const MAX_NAME: usize = 63;
/// The suffix of a return probe's name.
const RETURN_SUFFIX: &str = "__return";
/// The maximum length of a field name in bytes (`MAX_ARG_NAME_LEN` in kernel/trace/trace_probe.h, which does not count the NUL).
const MAX_FIELD_NAME: usize = 32;
/// The suffixes of duplicate event names are numbers below this one (`MAX_EVENT_INDEX` of perf).
const MAX_SUFFIX: usize = 1024;

/// A probe with its event name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeEvent {
    /// The group.
    pub group: String,
    /// The name.
    pub name: String,
    /// The probe's target.
    pub target: ProbeTarget,
    /// Whether it is a return probe.
    pub is_return: bool,
    /// The recorded fields.
    pub fields: Vec<ProbeField>,
}

/// The target of a probe, in the kernel's syntax.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProbeTarget {
    /// A program or library.
    Program {
        /// The path of the object.
        object: String,
        /// The file offset.
        file_offset: u64,
        /// The file offset of the USDT semaphore; `None` if there is none.
        semaphore: Option<u64>,
    },
    /// The kernel or a module.
    Kernel {
        /// The module; `None` for the kernel itself.
        module: Option<String>,
        /// A function, or `_text`, the start of the kernel.
        symbol: String,
        /// Offset from the symbol in bytes.
        offset: u64,
    },
}

impl fmt::Display for ProbeTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program {
                object,
                file_offset,
                semaphore,
            } => {
                write!(f, "{object}:{file_offset:#x}")?;
                match semaphore {
                    Some(semaphore) => write!(f, "({semaphore:#x})"),
                    None => Ok(()),
                }
            }
            Self::Kernel {
                module,
                symbol,
                offset,
            } => {
                if let Some(module) = module {
                    write!(f, "{module}:")?;
                }
                write!(f, "{symbol}+{offset}")
            }
        }
    }
}

impl fmt::Display for ProbeEvent {
    /// Writes the line that creates the event.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_return { 'r' } else { 'p' };
        let Self {
            group,
            name,
            target,
            ..
        } = self;
        write!(f, "{kind}:{group}/{name} {target}")?;
        for field in &self.fields {
            write!(f, " {field}")?;
        }
        Ok(())
    }
}

impl ProbeEvent {
    /// Returns the bootconfig entry that creates the event (Documentation/trace/boottime-trace.rst, `ftrace.event.kprobes`),
    /// always in the group `kprobes`. `None` for a probe of a program.
    #[must_use]
    pub fn bootconfig_entry(&self) -> Option<String> {
        let ProbeTarget::Kernel { .. } = self.target else {
            return None;
        };
        let fields = self.fields.iter().map(|field| format!(" {field}"));
        let fields: String = fields.collect();
        let (name, target) = (&self.name, &self.target);
        let suffix = if self.is_return { "%return" } else { "" };
        Some(format!(
            "ftrace.event.kprobes.{name}.probe = '{target}{suffix}{fields}'"
        ))
    }
}

/// Returns the group of an object's probes: `probe_` and the file name up to the first character that names cannot have, like a
/// dot or dash.
#[must_use]
pub fn group_of(object: &Path) -> String {
    let name = object.file_name().unwrap_or_default().to_string_lossy();
    let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let base = end.and_then(|end| name.get(..end)).unwrap_or(&name);
    format!("probe_{base}")
}

/// The group of kernel probes.
pub const KERNEL_GROUP: &str = "probe";

/// Returns the group of a USDT probe: `sdt_` and its provider.
#[must_use]
pub fn group_of_provider(provider: &str) -> String {
    format!("sdt_{}", valid_name(provider))
}

/// Returns a field name that the kernel accepts: invalid characters are replaced, and the name is truncated to
/// [`MAX_FIELD_NAME`].
pub(crate) fn field_name(name: &str) -> String {
    let mut name = valid_name(name);
    name.truncate(MAX_FIELD_NAME);
    name
}

/// Replaces characters that the kernel does not accept in names with underscores.
fn valid_name(name: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.chars()
        .map(|c| if allowed(c) { c } else { '_' })
        .collect()
}

/// Returns the name of a probe's event before it is made unique.
#[must_use]
pub fn base_name(definition: &Definition, probe: &Probe) -> String {
    name_for(definition, &probe.name)
}

/// Returns the base name: the definition's event name, otherwise a name derived from the function's name, with a suffix for the
/// line or for a return probe. `function` is the name of the function found, used if the definition has only a pattern or no
/// function name.
pub(crate) fn name_for(definition: &Definition, function: &str) -> String {
    if let Some(event) = &definition.event {
        return user_event_name(event, definition.point.is_return());
    }
    let (name, line) = match &definition.point {
        Point::Function { name, place, .. } if !is_pattern(name) => match place {
            FunctionPlace::Source(SourcePlace::Line(line)) => (name.as_str(), Some(line)),
            _ => (name.as_str(), None),
        },
        _ => (function, None),
    };
    // Namespaces, and suffixes added by compilers and linkers, are removed: f.constprop.0, f@@VERSION.
    let name = name.rsplit("::").next().unwrap_or(name);
    let end = name.find(['.', '@']).filter(|end| *end > 0);
    let name = end.and_then(|end| name.get(..end)).unwrap_or(name);
    let mut clean = valid_name(name);
    if !clean.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        clean.insert(0, '_');
    }
    let suffix = match (line, definition.point.is_return()) {
        (Some(line), _) => format!("_L{line}"),
        (None, true) => RETURN_SUFFIX.to_owned(),
        (None, false) => String::new(),
    };
    clean.truncate(MAX_NAME.saturating_sub(suffix.len()));
    clean + &suffix
}

/// Returns the event name for the name that the user chose: as in perf, a return probe's name gets a suffix if it lacks it.
fn user_event_name(event: &str, is_return: bool) -> String {
    if !is_return || event.ends_with(RETURN_SUFFIX) {
        return event.to_owned();
    }
    let end = event.len().min(MAX_NAME - RETURN_SUFFIX.len());
    event.get(..end).unwrap_or(event).to_owned() + RETURN_SUFFIX
}

/// Returns a name that is not in `taken`: `base`; if it is taken, `base` with `_1`, `_2` and so on, truncated before the number
/// if the name is too long. `None` if all numbers are taken.
#[must_use]
pub fn distinct_name(base: &str, taken: &BTreeSet<String>) -> Option<String> {
    if !taken.contains(base) {
        return Some(base.to_owned());
    }
    let numbered = (1..MAX_SUFFIX).map(|number| {
        let number = format!("_{number}");
        let end = base.len().min(MAX_NAME - number.len());
        format!("{}{number}", base.get(..end).unwrap_or(base))
    });
    numbered.into_iter().find(|name| !taken.contains(name))
}

/// An existing event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExistingEvent {
    /// The group.
    pub group: String,
    /// The name.
    pub name: String,
    /// Whether it is a return probe.
    pub is_return: bool,
    /// The probe's target.
    pub target: ExistingTarget,
    /// The field names.
    pub fields: Vec<String>,
}

/// The target of an existing event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExistingTarget {
    /// A program or library.
    File {
        /// Its path.
        path: String,
        /// File offset.
        offset: u64,
    },
    /// The kernel or a module, in the kernel's syntax: `vfs_read+0`, `module:function+0`.
    Kernel(String),
}

impl ExistingEvent {
    /// Parses a line of `uprobe_events` or `kprobe_events`; `None` for other kinds of events and for malformed lines.
    #[must_use]
    pub fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        let (kind, name) = words.next()?.split_once(':')?;
        // A return probe may have its maximum number of instances after the letter: `r8`.
        let is_return = match kind.get(..1)? {
            "p" => false,
            "r" => true,
            _ => return None,
        };
        let (group, name) = name.split_once('/')?;
        let target = parse_target(words.next()?);
        let fields = words.filter_map(|word| Some(word.split_once('=')?.0.to_owned()));
        Some(Self {
            group: group.to_owned(),
            name: name.to_owned(),
            is_return,
            target,
            fields: fields.collect(),
        })
    }

    /// Returns `group:name`.
    #[must_use]
    pub fn full_name(&self) -> String {
        format!("{}:{}", self.group, self.name)
    }

    /// Returns the line that removes the event when written to `uprobe_events` or `kprobe_events`.
    #[must_use]
    pub fn removal(&self) -> String {
        format!("-:{}/{}", self.group, self.name)
    }
}

fn parse_target(word: &str) -> ExistingTarget {
    let kernel = || ExistingTarget::Kernel(word.to_owned());
    let Some((path, offset)) = word
        .rsplit_once(':')
        .filter(|(path, _)| path.starts_with('/'))
    else {
        return kernel();
    };
    // The offset of a semaphore may follow in parentheses.
    let offset = offset.split('(').next().unwrap_or(offset);
    let digits = offset.strip_prefix("0x").unwrap_or(offset);
    match u64::from_str_radix(digits, 16) {
        Ok(offset) => ExistingTarget::File {
            path: path.to_owned(),
            offset,
        },
        Err(_) => kernel(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::parse;

    fn probe(name: &str) -> Probe {
        Probe {
            symbol: name.to_owned(),
            offset: 0,
            name: name.to_owned(),
            provider: None,
            file_offset: 0x1139,
            semaphore: None,
            is_return: false,
            is_inlined: false,
            fields: Vec::new(),
        }
    }

    #[test]
    fn groups_and_names() {
        assert_eq!(group_of(Path::new("/lib/libc.so.6")), "probe_libc");
        assert_eq!(group_of(Path::new("/bin/a-b")), "probe_a");
        for (definition, function, expected) in [
            ("f", "f", "f"),
            ("f%return", "f", "f__return"),
            ("f:3", "f", "f_L3"),
            ("f+4", "f", "f"),
            ("m*", "main", "main"),
            ("a.c:3", "f", "f"),
            ("a::b::f", "f", "f"),
            ("f.part.0", "f.part.0", "f"),
            ("x=f", "f", "x"),
            ("x=f%return", "f", "x__return"),
            ("g:x__return=f%return", "f", "x__return"),
            ("0x12", "abs_12", "abs_12"),
            ("op*", "operator+", "operator_"),
        ] {
            let name = base_name(&parse(definition).unwrap(), &probe(function));
            assert_eq!(name, expected, "{definition}");
        }
        let long = "x".repeat(200);
        let long = parse(&format!("{long}%return")).unwrap();
        assert_eq!(base_name(&long, &probe("x")).len(), MAX_NAME);
    }

    #[test]
    fn duplicate_names_get_a_number() {
        let mut taken: BTreeSet<String> = BTreeSet::new();
        for expected in ["f", "f_1", "f_2"] {
            let name = distinct_name("f", &taken).unwrap();
            assert_eq!(name, expected);
            taken.insert(name);
        }
    }

    /// Bootconfig entries are written but, unlike lines, not parsed.
    #[test]
    fn lines_are_written_and_parsed() {
        let event = ProbeEvent {
            group: "probe_calc".to_owned(),
            name: "leaf".to_owned(),
            target: ProbeTarget::Program {
                object: "/opt/calc".to_owned(),
                file_offset: 0x1139,
                semaphore: Some(0x3018),
            },
            is_return: false,
            fields: vec![ProbeField {
                name: Some("n".to_owned()),
                base: "%di".to_owned(),
                reads: Vec::new(),
                kind: Some("s64".to_owned()),
            }],
        };
        let line = event.to_string();
        assert_eq!(line, "p:probe_calc/leaf /opt/calc:0x1139(0x3018) n=%di:s64");
        let read = ExistingEvent::parse(&line).unwrap();
        assert_eq!(read.full_name(), "probe_calc:leaf");
        assert_eq!(read.removal(), "-:probe_calc/leaf");
        assert_eq!(read.fields, ["n"]);
        let target = ExistingTarget::File {
            path: "/opt/calc".to_owned(),
            offset: 0x1139,
        };
        assert_eq!(read.target, target);
        let kernel = ExistingEvent::parse("r8:g/e vfs_read+0 arg1=$retval").unwrap();
        assert!(kernel.is_return);
        assert_eq!(
            kernel.target,
            ExistingTarget::Kernel("vfs_read+0".to_owned())
        );
        assert_eq!(ExistingEvent::parse("# nothing"), None);
        assert_eq!(event.bootconfig_entry(), None);
        let target = ProbeTarget::Kernel {
            module: None,
            symbol: "vfs_read".to_owned(),
            offset: 4,
        };
        let boot = ProbeEvent { target, ..event };
        assert_eq!(
            boot.bootconfig_entry().as_deref(),
            Some("ftrace.event.kprobes.leaf.probe = 'vfs_read+4 n=%di:s64'")
        );
        let return_probe = ProbeEvent {
            is_return: true,
            ..boot
        };
        let entry = return_probe.bootconfig_entry().unwrap();
        assert!(entry.contains("'vfs_read+4%return n="), "{entry}");
    }
}
