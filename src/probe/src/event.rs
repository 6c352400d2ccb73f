//! Probe events as tracefs knows them: the lines of `uprobe_events` and `kprobe_events`.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use rperf_events::is_pattern;

use crate::definition::{Definition, Place, Point, SourcePlace};
use crate::field::Field;
use crate::search::Probe;

/// The longest name of an event or a group that the kernel takes, in bytes (`MAX_EVENT_NAME_LEN`, one is the zero).
const MAX_NAME: usize = 63;
/// What the name of a return ends in.
const RETURN: &str = "__return";
/// The longest name of a field that it takes.
const MAX_FIELD_NAME: usize = 32;
/// How many events of one name get numbers.
const MAX_NUMBER: usize = 1024;

/// A probe with the name of its event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The group.
    pub group: String,
    /// The name.
    pub name: String,
    /// Where it is.
    pub target: Target,
    /// Whether the return of a function is probed.
    pub is_return: bool,
    /// What is recorded.
    pub fields: Vec<Field>,
}

/// Where a probe is, in the kernel's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// In a program or library.
    Program {
        /// The object.
        object: String,
        /// Where it is in the file.
        file_offset: u64,
        /// The counter that switches the marker on.
        semaphore: Option<u64>,
    },
    /// In the kernel, or in a module of it.
    Kernel {
        /// The module.
        module: Option<String>,
        /// A function, or the start of the kernel.
        symbol: String,
        /// Bytes behind it.
        offset: u64,
    },
}

impl fmt::Display for Target {
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

impl fmt::Display for Event {
    /// The line that creates it.
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

impl Event {
    /// The line of the kernel's boot configuration that makes it (Documentation/admin-guide/bootconfig.rst, `ftrace.event`); it knows
    /// one group. `None` for a probe of a program.
    #[must_use]
    pub fn boot_line(&self) -> Option<String> {
        let Target::Kernel { .. } = self.target else {
            return None;
        };
        let fields = self.fields.iter().map(|field| format!(" {field}"));
        let fields: String = fields.collect();
        let (name, target) = (&self.name, &self.target);
        Some(format!(
            "ftrace.event.kprobes.{name}.probe = '{target}{fields}'"
        ))
    }
}

/// The group of an object's probes: `probe_` and its name up to the first dot or dash.
#[must_use]
pub fn group_of(object: &Path) -> String {
    let name = object.file_name().unwrap_or_default().to_string_lossy();
    let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let base = end.and_then(|end| name.get(..end)).unwrap_or(&name);
    format!("probe_{base}")
}

/// The group of the kernel's probes.
pub const KERNEL_GROUP: &str = "probe";

/// The group of a marker's event: `sdt_` and its provider.
#[must_use]
pub fn group_of_provider(provider: &str) -> String {
    format!("sdt_{}", clean(provider))
}

/// What the kernel takes for the name of a field (`MAX_ARG_NAME_LEN` in kernel/trace/trace_probe.h).
pub(crate) fn field_name(name: &str) -> String {
    let mut name = clean(name);
    name.truncate(MAX_FIELD_NAME);
    name
}

/// What the kernel takes for a name: other characters become underscores.
fn clean(name: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.chars()
        .map(|c| if allowed(c) { c } else { '_' })
        .collect()
}

/// The name of a probe's event before it is made distinct from others.
#[must_use]
pub fn base_name(definition: &Definition, probe: &Probe) -> String {
    name_for(definition, &probe.name)
}

/// The same for the function at whose place it is, which counts where the definition names none.
pub(crate) fn name_for(definition: &Definition, function: &str) -> String {
    if let Some(event) = &definition.event {
        return named(event, definition.point.is_return());
    }
    let (name, line) = match &definition.point {
        Point::Function { name, place, .. } if !is_pattern(name) => match place {
            Place::Source(SourcePlace::Line(line)) => (name.as_str(), Some(line)),
            _ => (name.as_str(), None),
        },
        _ => (function, None),
    };
    // A path is left out, and so is what compilers and linkers add: f.constprop.0, f@@VERSION.
    let name = name.rsplit("::").next().unwrap_or(name);
    let end = name.find(['.', '@']).filter(|end| *end > 0);
    let name = end.and_then(|end| name.get(..end)).unwrap_or(name);
    let mut clean = clean(name);
    if !clean.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        clean.insert(0, '_');
    }
    let suffix = match (line, definition.point.is_return()) {
        (Some(line), _) => format!("_L{line}"),
        (None, true) => RETURN.to_owned(),
        (None, false) => String::new(),
    };
    clean.truncate(MAX_NAME.saturating_sub(suffix.len()));
    clean + &suffix
}

/// The name that the user gave, as perf makes an event's of it: a return shows as one.
fn named(event: &str, is_return: bool) -> String {
    if !is_return || event.ends_with(RETURN) {
        return event.to_owned();
    }
    let end = event.len().min(MAX_NAME - RETURN.len());
    event.get(..end).unwrap_or(event).to_owned() + RETURN
}

/// A name that is not among `taken`: the base, or one with a number behind it. `None` when all numbers are taken.
#[must_use]
pub fn distinct_name(base: &str, taken: &BTreeSet<String>) -> Option<String> {
    if !taken.contains(base) {
        return Some(base.to_owned());
    }
    let numbered = (1..MAX_NUMBER).map(|number| {
        let number = format!("_{number}");
        let end = base.len().min(MAX_NAME - number.len());
        format!("{}{number}", base.get(..end).unwrap_or(base))
    });
    numbered.into_iter().find(|name| !taken.contains(name))
}

/// An event that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Existing {
    /// The group.
    pub group: String,
    /// The name.
    pub name: String,
    /// Whether the return of a function is probed.
    pub is_return: bool,
    /// What is probed.
    pub place: ExistingPlace,
    /// The names of its fields.
    pub fields: Vec<String>,
}

/// Where an existing event is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExistingPlace {
    /// In a program or library.
    File {
        /// Its path.
        path: String,
        /// Where in the file.
        offset: u64,
    },
    /// In the kernel or a module of it, as the kernel says it: `vfs_read+0`, `module:function+0`.
    Kernel(String),
}

impl Existing {
    /// Reads a line of `uprobe_events` or `kprobe_events`; `None` for those that are no probes of one of these kinds.
    #[must_use]
    pub fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        let (kind, name) = words.next()?.split_once(':')?;
        let is_return = match kind.get(..1)? {
            "p" => false,
            "r" => true,
            _ => return None,
        };
        let (group, name) = name.split_once('/')?;
        let place = place(words.next()?);
        let fields = words.filter_map(|word| Some(word.split_once('=')?.0.to_owned()));
        Some(Self {
            group: group.to_owned(),
            name: name.to_owned(),
            is_return,
            place,
            fields: fields.collect(),
        })
    }

    /// `group:name`.
    #[must_use]
    pub fn full_name(&self) -> String {
        format!("{}:{}", self.group, self.name)
    }

    /// The line that removes it.
    #[must_use]
    pub fn removal(&self) -> String {
        format!("-:{}/{}", self.group, self.name)
    }
}

fn place(word: &str) -> ExistingPlace {
    let kernel = || ExistingPlace::Kernel(word.to_owned());
    let Some((path, offset)) = word
        .rsplit_once(':')
        .filter(|(path, _)| path.starts_with('/'))
    else {
        return kernel();
    };
    let offset = offset.split('(').next().unwrap_or(offset);
    let digits = offset.strip_prefix("0x").unwrap_or(offset);
    match u64::from_str_radix(digits, 16) {
        Ok(offset) => ExistingPlace::File {
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
            ("malloc@@GLIBC", "malloc", "malloc"),
            ("x=f", "f", "x"),
            ("x=f%return", "f", "x__return"),
            ("g:x__return=f%return", "f", "x__return"),
            ("0x12", "abs_12", "abs_12"),
            ("op*", "operator+", "operator_"),
        ] {
            let name = match parse(definition) {
                Ok(parsed) => base_name(&parsed, &probe(function)),
                // Versions would be taken for source files.
                Err(_) => continue,
            };
            assert_eq!(name, expected, "{definition}");
        }
        let long = "x".repeat(200);
        let long = parse(&format!("{long}%return")).unwrap();
        assert_eq!(base_name(&long, &probe("x")).len(), MAX_NAME);
    }

    #[test]
    fn names_are_made_distinct() {
        let mut taken: BTreeSet<String> = BTreeSet::new();
        for expected in ["f", "f_1", "f_2"] {
            let name = distinct_name("f", &taken).unwrap();
            assert_eq!(name, expected);
            taken.insert(name);
        }
    }

    #[test]
    fn lines_are_written_and_read() {
        let event = Event {
            group: "probe_calc".to_owned(),
            name: "leaf".to_owned(),
            target: Target::Program {
                object: "/opt/calc".to_owned(),
                file_offset: 0x1139,
                semaphore: Some(0x3018),
            },
            is_return: false,
            fields: vec![Field {
                name: Some("n".to_owned()),
                base: "%di".to_owned(),
                reads: Vec::new(),
                kind: Some("s64".to_owned()),
            }],
        };
        let line = event.to_string();
        assert_eq!(line, "p:probe_calc/leaf /opt/calc:0x1139(0x3018) n=%di:s64");
        let read = Existing::parse(&line).unwrap();
        assert_eq!(read.full_name(), "probe_calc:leaf");
        assert_eq!(read.removal(), "-:probe_calc/leaf");
        assert_eq!(read.fields, ["n"]);
        let place = ExistingPlace::File {
            path: "/opt/calc".to_owned(),
            offset: 0x1139,
        };
        assert_eq!(read.place, place);
        let kernel = Existing::parse("r8:g/e vfs_read+0 arg1=$retval").unwrap();
        assert!(kernel.is_return);
        assert_eq!(kernel.place, ExistingPlace::Kernel("vfs_read+0".to_owned()));
        assert_eq!(Existing::parse("# nothing"), None);
        assert_eq!(event.boot_line(), None);
        let target = Target::Kernel {
            module: None,
            symbol: "vfs_read".to_owned(),
            offset: 4,
        };
        let boot = Event { target, ..event };
        assert_eq!(
            boot.boot_line().as_deref(),
            Some("ftrace.event.kprobes.leaf.probe = 'vfs_read+4 n=%di:s64'")
        );
    }
}
