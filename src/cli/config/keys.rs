//! The settings of perf and rperf: the type of each value, and where it is used.

/// The type of a value.
#[derive(Clone, Copy)]
enum ValueKind {
    Boolean,
    Percent,
    Number,
    Choice(&'static [&'static str]),
    /// One of these words, or a boolean.
    Switch(&'static [&'static str]),
    Text,
}

/// Where a setting is used.
#[derive(Clone, Copy)]
enum SettingUse {
    /// Some command of rperf reads the setting.
    Read,
    /// The setting has no effect: the commands that read it in perf, and the reason.
    Unused(&'static [&'static str], &'static str),
    /// Only commands that rperf does not have read the setting.
    NoCommand,
}

use SettingUse::{NoCommand, Read, Unused};
use ValueKind::{Boolean, Choice, Number, Percent, Switch, Text};

/// A setting that perf documents, or that rperf has.
struct Setting {
    /// `section.key`, in lower case; `PREFIX*` matches all names with this prefix that have no entry of their own.
    name: &'static str,
    kind: ValueKind,
    usage: SettingUse,
}

/// Commands with browsers.
const BROWSERS: &[&str] = &["annotate", "report", "top"];
/// Commands that show code in a browser or as text.
const CODE: &[&str] = &["annotate", "report", "top"];
/// Commands that decode hardware traces.
const DECODERS: &[&str] = &["report", "script"];

const ADDR2LINE: &str = "source lines are read without addr2line";
const COLORS: &str = "the colors of the browsers are fixed";
const JUMPS: &str = "jumps are drawn the same way at all times";
const OFFSETS: &str = "addresses are shown the same way at all times";
const QUEUE: &str = "events are ordered without a queue";
const INTEL_PT: &str = "traces of Intel PT are not decoded";
const SOURCE_EVENTS: &str = "events from source files (-e FILE.c) are not supported";

/// All settings, in alphabetical order.
const SETTINGS: &[Setting] = &[
    Setting {
        name: "annotate.addr2line",
        kind: Text,
        usage: Unused(CODE, ADDR2LINE),
    },
    Setting {
        name: "annotate.demangle",
        kind: Boolean,
        usage: Unused(&["annotate"], "use --no-demangle"),
    },
    Setting {
        name: "annotate.demangle_kernel",
        kind: Boolean,
        usage: Unused(&["annotate"], "use --demangle-kernel"),
    },
    Setting {
        name: "annotate.disassembler_style",
        kind: Choice(&["att", "intel"]),
        usage: Read,
    },
    Setting {
        name: "annotate.disassemblers",
        kind: Text,
        usage: Unused(
            CODE,
            "the built-in disassembler is used unless --objdump is given",
        ),
    },
    Setting {
        name: "annotate.hide_src_code",
        kind: Boolean,
        usage: Read,
    },
    Setting {
        name: "annotate.jump_arrows",
        kind: Boolean,
        usage: Unused(CODE, JUMPS),
    },
    Setting {
        name: "annotate.objdump",
        kind: Text,
        usage: Unused(CODE, "use --objdump"),
    },
    Setting {
        name: "annotate.offset_level",
        kind: Number,
        usage: Unused(CODE, OFFSETS),
    },
    Setting {
        name: "annotate.show_linenr",
        kind: Boolean,
        usage: Unused(CODE, "annotate --print-line shows line numbers"),
    },
    Setting {
        name: "annotate.show_nr_jumps",
        kind: Boolean,
        usage: Unused(CODE, JUMPS),
    },
    Setting {
        name: "annotate.show_nr_samples",
        kind: Boolean,
        usage: Read,
    },
    Setting {
        name: "annotate.show_total_period",
        kind: Boolean,
        usage: Read,
    },
    Setting {
        name: "annotate.use_offset",
        kind: Boolean,
        usage: Unused(CODE, OFFSETS),
    },
    Setting {
        name: "auxtrace.dumpdir",
        kind: Text,
        usage: Unused(DECODERS, "traces of s390 are not decoded"),
    },
    Setting {
        name: "buildid-cache.debuginfod",
        kind: Text,
        usage: Read,
    },
    Setting {
        name: "buildid.dir",
        kind: Text,
        usage: Read,
    },
    Setting {
        name: "call-graph.dump-size",
        kind: Number,
        usage: Read,
    },
    Setting {
        name: "call-graph.order",
        kind: Choice(&["callee", "caller"]),
        usage: Read,
    },
    Setting {
        name: "call-graph.print-limit",
        kind: Number,
        usage: Read,
    },
    Setting {
        name: "call-graph.print-type",
        kind: Choice(&["graph", "fractal", "flat", "folded", "none"]),
        usage: Read,
    },
    Setting {
        name: "call-graph.record-mode",
        kind: Choice(&["fp", "dwarf", "lbr"]),
        usage: Read,
    },
    Setting {
        name: "call-graph.sort-key",
        kind: Choice(&["function", "address"]),
        usage: Read,
    },
    Setting {
        name: "call-graph.threshold",
        kind: Percent,
        usage: Read,
    },
    Setting {
        name: "color.ui",
        kind: Switch(&["always", "never", "auto"]),
        usage: Read,
    },
    Setting {
        name: "colors.*",
        kind: Text,
        usage: Unused(BROWSERS, COLORS),
    },
    Setting {
        name: "convert.queue-size",
        kind: Text,
        usage: Unused(&["data"], QUEUE),
    },
    Setting {
        name: "core.addr2line-disable-warn",
        kind: Boolean,
        usage: Unused(CODE, ADDR2LINE),
    },
    Setting {
        name: "core.addr2line-timeout",
        kind: Number,
        usage: Unused(CODE, ADDR2LINE),
    },
    Setting {
        name: "core.pager",
        kind: Text,
        usage: Read,
    },
    Setting {
        name: "core.proc-map-timeout",
        kind: Number,
        usage: Read,
    },
    Setting {
        name: "daemon.*",
        kind: Text,
        usage: NoCommand,
    },
    Setting {
        name: "diff.compute",
        kind: Text,
        usage: Read,
    },
    Setting {
        name: "diff.order",
        kind: Number,
        usage: Read,
    },
    Setting {
        name: "ftrace.*",
        kind: Text,
        usage: NoCommand,
    },
    Setting {
        name: "gtk.*",
        kind: Boolean,
        usage: Unused(
            BROWSERS,
            "there is no GTK browser; --tui and --stdio select the user interface",
        ),
    },
    Setting {
        name: "help.*",
        kind: Text,
        usage: Unused(
            &["help"],
            "manual pages are built in and shown in the pager",
        ),
    },
    Setting {
        name: "hist.percentage",
        kind: Choice(&["absolute", "relative"]),
        usage: Read,
    },
    Setting {
        name: "intel-pt.*",
        kind: Text,
        usage: Unused(DECODERS, INTEL_PT),
    },
    Setting {
        name: "itrace.*",
        kind: Text,
        usage: Unused(DECODERS, INTEL_PT),
    },
    Setting {
        name: "kmem.default",
        kind: Choice(&["page", "slab"]),
        usage: Read,
    },
    Setting {
        name: "llvm.*",
        kind: Text,
        usage: Unused(&["record"], SOURCE_EVENTS),
    },
    Setting {
        name: "man.*",
        kind: Text,
        usage: Unused(
            &["help"],
            "manual pages are built in and shown in the pager",
        ),
    },
    Setting {
        name: "pager.*",
        kind: Text,
        usage: Read,
    },
    Setting {
        name: "record.aio",
        kind: Number,
        usage: Unused(&["record"], "records are written synchronously"),
    },
    Setting {
        name: "record.build-id",
        kind: Choice(&["cache", "no-cache", "skip", "mmap"]),
        usage: Read,
    },
    Setting {
        name: "record.call-graph",
        kind: Text,
        usage: Read,
    },
    Setting {
        name: "record.debuginfod",
        kind: Text,
        usage: Unused(
            &["record"],
            "objects are downloaded when a recording is read, if rperf.debuginfod is set",
        ),
    },
    Setting {
        name: "report.children",
        kind: Boolean,
        usage: Read,
    },
    Setting {
        name: "report.group",
        kind: Boolean,
        usage: Read,
    },
    Setting {
        name: "report.percent-limit",
        kind: Percent,
        usage: Read,
    },
    Setting {
        name: "report.queue-size",
        kind: Text,
        usage: Unused(&["report"], QUEUE),
    },
    Setting {
        name: "report.skip-empty",
        kind: Boolean,
        usage: Read,
    },
    Setting {
        name: "report.sort_order",
        kind: Text,
        usage: Read,
    },
    Setting {
        name: "rperf.debuginfod",
        kind: Text,
        usage: Read,
    },
    Setting {
        name: "rperf.jobs",
        kind: Number,
        usage: Read,
    },
    Setting {
        name: "samples.*",
        kind: Text,
        usage: Unused(
            &["report"],
            "the browser lists samples of a function without other events around them; 'script' prints all samples",
        ),
    },
    Setting {
        name: "scripts.*",
        kind: Text,
        usage: Unused(&["report"], "the browser has no menu of scripts"),
    },
    Setting {
        name: "session-*",
        kind: Text,
        usage: NoCommand,
    },
    Setting {
        name: "stat.big-num",
        kind: Boolean,
        usage: Read,
    },
    Setting {
        name: "stat.bpf-counter-events",
        kind: Text,
        usage: Read,
    },
    Setting {
        name: "stat.no-csv-summary",
        kind: Boolean,
        usage: Read,
    },
    Setting {
        name: "top.call-graph",
        kind: Text,
        usage: Read,
    },
    Setting {
        name: "top.children",
        kind: Boolean,
        usage: Read,
    },
    Setting {
        name: "trace.*",
        kind: Text,
        usage: Unused(&["trace"], "rperf trace does not use it"),
    },
    Setting {
        name: "trace.args_alignment",
        kind: Number,
        usage: Read,
    },
    Setting {
        name: "trace.show_arg_names",
        kind: Boolean,
        usage: Read,
    },
    Setting {
        name: "trace.show_duration",
        kind: Boolean,
        usage: Read,
    },
    Setting {
        name: "trace.show_timestamp",
        kind: Boolean,
        usage: Read,
    },
    Setting {
        name: "trace.show_zeros",
        kind: Boolean,
        usage: Read,
    },
    Setting {
        name: "tui.annotate",
        kind: Boolean,
        usage: Read,
    },
    Setting {
        name: "tui.report",
        kind: Boolean,
        usage: Read,
    },
    Setting {
        name: "tui.top",
        kind: Boolean,
        usage: Read,
    },
    Setting {
        name: "ui.show-headers",
        kind: Boolean,
        usage: Unused(
            &["report", "top"],
            "the browsers always show the titles of columns",
        ),
    },
];

/// Returns the names of the settings that some command of rperf reads, except those that end with `*`.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let read = SETTINGS.iter().filter(|known| matches!(known.usage, Read));
    let names = read.map(|known| known.name);
    names.filter(|name| !name.ends_with('*'))
}

/// Returns why `command` ignores a setting that the same command of perf reads; if `command` is `None`, why all commands ignore
/// it. Returns `None` if the setting is read, is unknown, or is not one that perf's `command` reads.
pub(super) fn why_unused(name: &str, command: Option<&str>) -> Option<&'static str> {
    match find(name)?.usage {
        Unused(commands, why) => command
            .is_none_or(|command| commands.contains(&command))
            .then_some(why),
        NoCommand if command.is_none() => Some("only a command that rperf does not have reads it"),
        Read | NoCommand => None,
    }
}

/// Whether perf or rperf has this setting.
pub(super) fn is_known(name: &str) -> bool {
    find(name).is_some()
}

/// Returns the known setting nearest to `name`, if one is similar.
pub(super) fn nearest(name: &str) -> Option<&'static str> {
    let names = SETTINGS.iter().map(|known| known.name);
    rperf_names::nearest(name, names.filter(|name| !name.ends_with('*')))
}

fn find(name: &str) -> Option<&'static Setting> {
    let exact = SETTINGS.iter().find(|known| known.name == name);
    let has_prefix = |known: &&Setting| {
        let prefix = known.name.strip_suffix('*');
        prefix.is_some_and(|prefix| name.starts_with(prefix))
    };
    exact.or_else(|| SETTINGS.iter().find(has_prefix))
}

/// Checks the value of `name`; the error names the expected values.
pub(super) fn check(name: &str, value: &str) -> Result<(), String> {
    let Some(Setting { kind, .. }) = find(name) else {
        return Ok(());
    };
    let (good, expected) = match kind {
        Boolean => (
            super::boolean(value).is_some(),
            "expected true or false".to_owned(),
        ),
        Percent => {
            let percent = value.strip_suffix('%').unwrap_or(value).parse::<f64>();
            (
                percent.is_ok_and(|percent| (0.0..=100.0).contains(&percent)),
                "expected a percentage".to_owned(),
            )
        }
        Number => (value.parse::<u64>().is_ok(), "expected a number".to_owned()),
        Choice(words) => (
            words.contains(&value),
            format!("expected one of {}", words.join(", ")),
        ),
        Switch(words) => (
            words.contains(&value) || super::boolean(value).is_some(),
            format!("expected one of {}, true, false", words.join(", ")),
        ),
        Text => (true, String::new()),
    };
    if good { Ok(()) } else { Err(expected) }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn values_are_checked_by_kind() {
        assert!(check("call-graph.order", "caller").is_ok());
        assert_eq!(
            check("call-graph.order", "up"),
            Err("expected one of callee, caller".to_owned())
        );
        assert!(check("report.percent-limit", "0.5").is_ok());
        assert!(check("report.percent-limit", "NaN").is_err());
        assert!(check("color.ui", "auto").is_ok());
        assert!(check("color.ui", "on").is_ok());
        assert!(check("color.ui", "red").is_err());
        assert!(check("colors.top", "red, default").is_ok());
        assert!(check("something.else", "whatever").is_ok());
    }

    #[test]
    fn unused_settings_are_reported_by_the_commands_that_read_them_in_perf() {
        assert_eq!(why_unused("colors.top", Some("report")), Some(COLORS));
        assert_eq!(why_unused("colors.top", Some("stat")), None);
        assert_eq!(why_unused("colors.top", None), Some(COLORS));
        assert_eq!(why_unused("report.children", Some("report")), None);
        assert_eq!(why_unused("trace.show_prefix", Some("record")), None);
        assert!(why_unused("trace.show_prefix", None).is_some());
        assert_eq!(why_unused("something.else", None), None);
    }

    #[test]
    fn unknown_settings_have_a_nearest_name() {
        assert!(is_known("colors.top") && is_known("report.children"));
        assert!(!is_known("report.childre"));
        assert_eq!(nearest("report.childre"), Some("report.children"));
        assert_eq!(nearest("something.else"), None);
    }

    /// Appends the Rust sources of a folder; skips `cli/config`, whose table names all settings, read or not.
    fn read_sources(folder: &Path, text: &mut String) {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() && !path.ends_with("cli/config") {
                read_sources(&path, text);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                *text += &std::fs::read_to_string(&path).expect("source text");
            }
        }
    }

    #[test]
    fn settings_are_read_exactly_if_declared_as_read() {
        assert!(SETTINGS.is_sorted_by(|left, right| left.name < right.name));
        let mut text = String::new();
        read_sources(
            &Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cli"),
            &mut text,
        );
        for name in names() {
            assert!(
                text.contains(&format!("\"{name}\"")),
                "{name} is read nowhere"
            );
        }
        for unread in SETTINGS.iter().filter(|known| !matches!(known.usage, Read)) {
            for reader in ["text", "flag"] {
                let call = format!(".{reader}(\"{}\")", unread.name);
                assert!(!text.contains(&call), "{} is read", unread.name);
            }
        }
    }
}
