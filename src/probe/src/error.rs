//! Errors of the search for probe points, variables and source lines.

use std::path::PathBuf;

use thiserror::Error;

use crate::definition::SyntaxError;

/// Why a search failed. The text is perf's if perf has one; [`Error::details`] returns the lines after its first.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// The definition is invalid.
    #[error("{0}")]
    Definition(#[from] SyntaxError),
    /// The object is not an ELF file, or a damaged one.
    #[error("{}: {reason}", path.display())]
    Object {
        /// The file.
        path: PathBuf,
        /// The cause.
        reason: String,
    },
    /// Nothing matches the probe point: no function, source line, source file or USDT marker.
    #[error("Probe point '{point}' not found.")]
    NoPoint {
        /// The probe point as written.
        point: String,
        /// Similar names, the most similar first.
        nearest: Vec<String>,
    },
    /// No code begins at the line.
    #[error("Probe point '{point}' not found.")]
    NoCodeAtLine {
        /// The probe point as written.
        point: String,
        /// Probe points at nearby lines, by line.
        nearest: Vec<String>,
    },
    /// The object has no debug information, which the definition requires.
    #[error("The {} file has no debug information.", path.display())]
    NoDebugInfo {
        /// The object.
        path: PathBuf,
    },
    /// The code of the line also belongs to another line, which perf prefers for probes.
    #[error("This line is sharing the address with other lines.")]
    SharedLine {
        /// The preferred line.
        instead: String,
    },
    /// More probe points than allowed.
    #[error("Too many( > {limit}) probe point found.")]
    TooMany {
        /// The limit.
        limit: usize,
    },
    /// The offset is beyond the end of the function.
    #[error("Offset {offset} is bigger than the size of {function}")]
    OffsetTooLarge {
        /// The function.
        function: String,
        /// Offset from its entry in bytes.
        offset: u64,
        /// The length of the function in bytes.
        size: u64,
    },
    /// The offset is within an instruction.
    #[error("{function}+{offset} is in the middle of an instruction")]
    NoInstruction {
        /// The function.
        function: String,
        /// Offset from its entry in bytes.
        offset: u64,
        /// Offsets of the instruction boundaries before and after `offset`; of the function's last two if none is after it.
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
    /// An inlined function has no return probe.
    #[error("Failed to find \"{function}%return\",")]
    InlinedReturn {
        /// The function.
        function: String,
    },
    /// A variable is unknown at the address, or has no location.
    #[error("Failed to find the location of the '{name}' variable at this address.")]
    NoVariable {
        /// The variable.
        name: String,
        /// The probe point.
        place: String,
        /// Why it cannot be recorded, if known.
        reason: Option<String>,
        /// Where it is available.
        elsewhere: Vec<String>,
        /// The variables available at the probe point; if they are many, only those of a similar name.
        known: Vec<String>,
    },
    /// A part of the definition is not supported at this probe point: for example an unknown member, a value that the kernel
    /// cannot fetch, or a return probe that is not at the entry of a function.
    #[error("{message}")]
    Unsupported {
        /// The cause.
        message: String,
        /// Names that can be used instead.
        known: Vec<String>,
    },
    /// Unknown register.
    #[error("'{name}' is not a register of this machine")]
    NoRegister {
        /// The name.
        name: String,
        /// The kernel's name for it, if the kernel knows it.
        instead: Option<String>,
    },
    /// Unknown symbol.
    #[error("'{name}' is not a symbol of {}", path.display())]
    NoSymbol {
        /// The symbol.
        name: String,
        /// The object.
        path: PathBuf,
        /// Symbols of a similar name.
        nearest: Vec<String>,
    },
    /// The definition requires debug information of the kernel.
    #[error("Failed to find the path for the kernel: no image with debug information")]
    NoKernelImage,
    /// The kernel's types do not describe the function's parameters, or functions of that name have different ones.
    #[error("the parameters of '{function}' are unknown")]
    NoSignature {
        /// The function.
        function: String,
        /// The number of different prototypes of that name in the kernel's types; 0 if none is known.
        count: usize,
    },
    /// The function is in another module, or in the kernel itself.
    #[error("Probe point '{function}' not found.")]
    OtherModule {
        /// The function.
        function: String,
        /// The module that contains it; `None` for the kernel itself.
        module: Option<String>,
    },
    /// The source file cannot be read.
    #[error("Failed to find source file path of {}", path.display())]
    NoSource {
        /// The path recorded at compile time.
        path: PathBuf,
    },
}

impl Error {
    /// Returns the lines of perf's text after the first, which is printed by
    /// [`Display`](std::fmt::Display).
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

    /// Returns suggestions for the user.
    #[must_use]
    pub fn hints(&self) -> Vec<String> {
        let one = |hint: String| vec![hint];
        match self {
            Self::NoPoint { nearest, .. } | Self::NoSymbol { nearest, .. } => {
                list_of(nearest, "similar names:")
            }
            Self::NoCodeAtLine { nearest, .. } => list_of(nearest, "nearby lines with code:"),
            Self::NoDebugInfo { .. } => vec![
                "rebuild with -g, or install the package with its debug information".to_owned(),
                "without it you can probe functions, their returns and offsets (f, f%return, f+4), registers (%di), memory (+8(%di)) and $retval".to_owned(),
            ],
            Self::SharedLine { instead } => one(format!("Please try to probe at {instead} instead.")),
            Self::TooMany { .. } => one("allow more with --max-probes N".to_owned()),
            Self::OffsetTooLarge { function, size, .. } => one(format!("{function} is {size} bytes long")),
            Self::NoInstruction {
                function, nearest, ..
            } => {
                let places = nearest.iter().map(|offset| format!("{function}+{offset}"));
                let places: Vec<String> = places.collect();
                list_of(&places, "instructions begin at")
            }
            Self::InlinedReturn { function } => one(format!(
                "without %return its inlined copies can be probed; -V {function} lists them"
            )),
            Self::NoVariable {
                name,
                place,
                reason,
                elsewhere,
                known,
            } => {
                let reason = reason.iter().map(|reason| format!("'{name}' at {place}: {reason}"));
                let elsewhere = list_of(elsewhere, &format!("'{name}' has a location at"));
                let known = list_of(known, &format!("variables at {place}:"));
                reason.chain(elsewhere).chain(known).collect()
            }
            Self::Unsupported { known, .. } => list_of(known, "available:"),
            Self::NoRegister { instead, .. } => {
                let suggestions = instead.iter();
                suggestions.map(|name| format!("the kernel calls it {name}")).collect()
            }
            Self::NoKernelImage => vec![
                "name the image with -k VMLINUX (packages linux-image-*-dbg or kernel-debuginfo), or set DEBUGINFOD_URLS".to_owned(),
                "without it you can probe functions with their parameters (BTF), returns and offsets (f arg->member, f%return, f+4), registers (%di), memory (@SYMBOL) and $retval".to_owned(),
            ],
            Self::NoSignature { function, count } => vec![match count {
                0 => format!("the kernel's types (BTF) have no function {function}; registers (%di) and $arg1 can be recorded"),
                count => format!("functions of the kernel with this name have {count} different prototypes; registers (%di) and $arg1 can be recorded"),
            }],
            Self::OtherModule { function, module } => one(match module {
                Some(module) => format!("use -m {module} {function}: it is in this module"),
                None => format!("omit -m: {function} is in the kernel itself"),
            }),
            Self::NoSource { .. } => one("name its directory with --source DIR".to_owned()),
            Self::Definition(_) | Self::Object { .. } | Self::NoCode { .. } => Vec::new(),
        }
    }
}

/// Returns a hint that lists the names after `words`; none without names.
fn list_of(names: &[String], words: &str) -> Vec<String> {
    match names {
        [] => Vec::new(),
        names => vec![format!("{words} {}", names.join(", "))],
    }
}
