//! The features that `version --build-options` lists and `check feature` queries.

use std::fmt;

/// A feature under perf's name.
#[derive(Debug)]
pub(crate) struct Feature {
    /// perf's name, which scripts query.
    pub(crate) name: &'static str,
    /// Whether this program has the feature, with or without perf's library for it. bpf (libbpf), libLLVM, libbfd and libunwind
    /// are off, since perf lists what they do under other names, too, such as bpf_skeletons and dwarf-unwind.
    pub(crate) is_built_in: bool,
    /// How the feature is provided, or why it is missing.
    note: &'static str,
}

/// The features, sorted by name.
pub(crate) const FEATURES: &[Feature] = &[
    with(
        "aio",
        "writes go to the page cache; record --aio changes nothing",
    ),
    with("babeltrace2-ctf-writer", "data convert --to-ctf"),
    without(
        "bpf",
        "no libbpf: trace -s, lock contention -b and bench uprobe load programs of their own",
    ),
    with(
        "bpf_skeletons",
        "programs of its own: stat --bpf-counters and -b, record --off-cpu and --filter",
    ),
    with("debuginfod", "debug files over HTTP and HTTPS"),
    with("demangle", "C++, Rust and OCaml names"),
    with(
        "dwarf",
        "source lines, inlined functions, variables of probes",
    ),
    with("dwarf-unwind", "user stacks unwound by DWARF"),
    with("dwarf_getlocations", "locations of variables"),
    with("get_cpuid", "the processor's name selects event tables"),
    Feature {
        name: "glibc",
        is_built_in: cfg!(target_env = "gnu"),
        note: "the C library of this build",
    },
    without(
        "libLLVM",
        "not used: lines and instructions are decoded in process",
    ),
    without(
        "libbfd",
        "not used: symbols and lines are decoded in process",
    ),
    without("libbpf-strings", "metadata of BPF programs is not recorded"),
    with("libcapstone", "instructions of x86 and arm64"),
    without("libcrypto", "not used: build-ids are read, not generated"),
    with("libdw-dwarf-unwind", "user stacks unwound by DWARF"),
    with("libelf", "symbol tables of ELF files"),
    with("libnuma", "record --affinity=node, --threads=numa"),
    without("libopencsd", "traces of CoreSight are not decoded"),
    with("libperl", "Perl scripts, run by the program perl"),
    without("libpfm4", "vendor events come from tables"),
    with("libpython", "Python scripts, run by the program python3"),
    with("libslang", "browsers of report, annotate, top"),
    with("libtraceevent", "raw data of tracepoints"),
    without("libunwind", "not used: see dwarf-unwind"),
    with("lzma", "modules and debug sections compressed by xz"),
    with("numa_num_possible_cpus", "record --affinity=node"),
    with("rust", "test -w code_with_type"),
    with("syscall_table", "names of system calls, for trace"),
    with("zlib", "compressed modules and sections, exports"),
    with("zstd", "compressed recordings, modules and sections"),
];

const fn with(name: &'static str, note: &'static str) -> Feature {
    Feature {
        name,
        is_built_in: true,
        note,
    }
}

const fn without(name: &'static str, note: &'static str) -> Feature {
    Feature {
        name,
        is_built_in: false,
        note,
    }
}

impl Feature {
    /// Returns the feature of this name, case-insensitive.
    pub(crate) fn find(name: &str) -> Option<&'static Self> {
        let mut features = FEATURES.iter();
        features.find(|feature| feature.name.eq_ignore_ascii_case(name))
    }
}

/// perf's line of a feature, without the newline.
impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.is_built_in { "on " } else { "OFF" };
        write!(f, "{:>22}: [ {state} ]  # {}", self.name, self.note)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_and_found_in_any_case() {
        assert!(FEATURES.is_sorted_by(|left, right| left.name < right.name));
        assert_eq!(
            Feature::find("LIBELF").map(|found| found.name),
            Some("libelf")
        );
        assert!(Feature::find("libel").is_none());
    }

    #[test]
    fn lines_have_perfs_layout() {
        let line = Feature::find("lzma").map(ToString::to_string);
        let expected =
            "                  lzma: [ on  ]  # modules and debug sections compressed by xz";
        assert_eq!(line.as_deref(), Some(expected));
    }
}
