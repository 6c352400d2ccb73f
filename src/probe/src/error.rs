//! Why there is no probe.

use std::path::PathBuf;

use thiserror::Error;

use crate::definition::Fault;

/// Why a definition leads to no probe. Texts are those of perf where it has one; [`Error::hints`] says more.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// The definition is not understood.
    #[error("{0}")]
    Definition(#[from] Fault),
    /// The object is no ELF file, or a damaged one.
    #[error("{}: {reason}", path.display())]
    Object {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// No function, line or file of that name.
    #[error("Probe point '{point}' not found.")]
    NoPoint {
        /// The place that was asked for.
        point: String,
        /// Names or lines that there are instead, the nearest first.
        nearest: Vec<String>,
    },
    /// What was asked for stands only in debug information.
    #[error("The {} file has no debug information.", path.display())]
    NoDebugInfo {
        /// The object.
        path: PathBuf,
    },
    /// The code of this line belongs to another one as well, which stands for it.
    #[error("This line is sharing the address with other lines.")]
    SharedLine {
        /// The place that is the better one.
        instead: String,
    },
    /// More places than are allowed.
    #[error("Too many( > {limit}) probe point found.")]
    TooMany {
        /// How many are allowed.
        limit: usize,
    },
    /// Behind the end of the function.
    #[error("Offset {offset} is bigger than the size of {function}")]
    BehindEnd {
        /// The function.
        function: String,
        /// Bytes behind its entry.
        offset: u64,
        /// Its length in bytes.
        size: u64,
    },
    /// Within an instruction.
    #[error("{function}+{offset} is in the middle of an instruction")]
    NoInstruction {
        /// The function.
        function: String,
        /// Bytes behind its entry.
        offset: u64,
        /// Where instructions begin before and behind it.
        nearest: Vec<u64>,
    },
    /// The address is not in the object's code.
    #[error("{address:#x} is not in the code of {}", path.display())]
    NoCode {
        /// The address.
        address: u64,
        /// The object.
        path: PathBuf,
    },
    /// A copy that was inlined never returns.
    #[error("Failed to find \"{function}%return\",")]
    InlinedReturn {
        /// The function.
        function: String,
    },
    /// A variable of that name is not known at the place, or is nowhere.
    #[error("Failed to find the location of the '{name}' variable at this address.")]
    NoVariable {
        /// The variable.
        name: String,
        /// Where the probe goes.
        place: String,
        /// Why it cannot be recorded, if it is known.
        reason: Option<String>,
        /// Where it can be.
        elsewhere: Vec<String>,
        /// The variables that are there instead.
        known: Vec<String>,
    },
    /// The way to a member leads nowhere.
    #[error("{message}")]
    Member {
        /// What is wrong.
        message: String,
        /// What could be meant.
        known: Vec<String>,
    },
    /// A register of that name is not known.
    #[error("'{name}' is not a register of this machine")]
    NoRegister {
        /// The name.
        name: String,
        /// The name by which the kernel knows it.
        instead: Option<String>,
    },
    /// A symbol of that name is not known.
    #[error("'{name}' is not a symbol of {}", path.display())]
    NoSymbol {
        /// The symbol.
        name: String,
        /// The object.
        path: PathBuf,
        /// Symbols of a similar name.
        nearest: Vec<String>,
    },
    /// Only debug information of the kernel tells what was asked for.
    #[error("Failed to find the path for the kernel: no image with debug information")]
    NoKernelImage,
    /// The kernel does not tell the parameters of a function, or there are several of that name.
    #[error("the parameters of '{function}' are not known")]
    NoSignature {
        /// The function.
        function: String,
        /// How many of that name the kernel's types know.
        count: usize,
    },
    /// The function is somewhere else in the kernel.
    #[error("Probe point '{function}' not found.")]
    OtherModule {
        /// The function.
        function: String,
        /// The module that has it; `None` for the kernel itself.
        module: Option<String>,
    },
    /// The kernel's types are damaged.
    #[error("the kernel's types (BTF) are damaged at byte {offset}")]
    Btf {
        /// Where.
        offset: usize,
    },
    /// The source file cannot be read.
    #[error("Failed to find source file path of {}", path.display())]
    NoSource {
        /// The path as it was when the object was compiled.
        path: PathBuf,
    },
}

impl Error {
    /// The lines of perf's text behind the first, which is what [`Display`](std::fmt::Display) prints.
    #[must_use]
    pub fn details(&self) -> Vec<String> {
        match self {
            Self::InlinedReturn { function } => vec![format!(
                " because {function} is an inlined function and has no return point."
            )],
            Self::NoVariable { name, .. } => vec![
                " Perhaps it has been optimized out.".to_owned(),
                format!(" Use -V with the --range option to show '{name}' location range."),
            ],
            _ => Vec::new(),
        }
    }

    /// What the user could do.
    #[must_use]
    pub fn hints(&self) -> Vec<String> {
        let one = |hint: String| vec![hint];
        let of = |names: &[String], words: &str| match names {
            [] => Vec::new(),
            names => vec![format!("{words} {}", names.join(", "))],
        };
        match self {
            Self::NoPoint { nearest, .. } => of(nearest, "nearest to it:"),
            Self::NoDebugInfo { .. } => vec![
                "rebuild with -g, or install the package with its debug information".to_owned(),
                "without it there are functions, their returns and offsets (f, f%return, f+4), registers (%di), memory (+8(%di)) and $retval".to_owned(),
            ],
            Self::SharedLine { instead } => one(format!("Please try to probe at {instead} instead.")),
            Self::TooMany { .. } => one("--max-probes N allows more".to_owned()),
            Self::BehindEnd { function, size, .. } => one(format!("{function} is {size} bytes long")),
            Self::NoInstruction {
                function, nearest, ..
            } => {
                let places = nearest.iter().map(|offset| format!("{function}+{offset}"));
                let places: Vec<String> = places.collect();
                of(&places, "instructions begin at")
            }
            Self::InlinedReturn { function } => one(format!(
                "without %return its inlined copies can be probed; -V {function} tells where they are"
            )),
            Self::NoVariable {
                name,
                place,
                reason,
                elsewhere,
                known,
            } => {
                let reason = reason.iter().map(|reason| format!("'{name}' at {place}: {reason}"));
                let elsewhere = of(elsewhere, &format!("'{name}' is somewhere at"));
                let known = of(known, &format!("variables at {place}:"));
                reason.chain(elsewhere).chain(known).collect()
            }
            Self::Member { known, .. } => of(known, "there are:"),
            Self::NoRegister { instead, .. } => {
                let said = instead.iter();
                said.map(|name| format!("the kernel calls it {name}")).collect()
            }
            Self::NoSymbol { nearest, .. } => of(nearest, "nearest to it:"),
            Self::NoKernelImage => vec![
                "-k VMLINUX names the image; packages have it as linux-image-*-dbg or kernel-debuginfo, and DEBUGINFOD_URLS may lead to it".to_owned(),
                "without it there are functions, their parameters at the entry (BTF), returns and offsets (f arg->member, f%return, f+4), registers (%di), memory (@SYMBOL) and $retval".to_owned(),
            ],
            Self::NoSignature { function, count } => vec![match count {
                0 => format!("the kernel's types (BTF) have no function {function}; registers (%di) and $arg1 can be recorded"),
                count => format!("{count} functions of the kernel have this name; registers (%di) and $arg1 can be recorded"),
            }],
            Self::OtherModule { function, module } => one(match module {
                Some(module) => format!("-m {module} {function}: it is in this module"),
                None => format!("without -m: {function} is in the kernel itself"),
            }),
            Self::NoSource { .. } => one("--source DIR names the folder that it is under".to_owned()),
            Self::Definition(_) | Self::Object { .. } | Self::NoCode { .. } | Self::Btf { .. } => Vec::new(),
        }
    }
}
