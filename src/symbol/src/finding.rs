//! Non-fatal problems while loading symbols or looking up source lines.

use std::path::{Path, PathBuf};

use crate::build_id::BuildId;

/// A non-fatal problem found by [`load`](crate::load()) or [`LineIndex`](crate::LineIndex), which can be displayed to the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SymbolFinding {
    /// No candidate file exists, the kallsyms file is missing, or kallsyms does not have the module.
    #[error("{}: not found, and neither is a debug file", path.display())]
    NotFound {
        /// The object's name in the recording, or the missing kallsyms file.
        path: PathBuf,
    },
    /// The object's own file, the kallsyms file, a perf map or a jitdump file exists but can't be read; or the file named by
    /// the user (`-k FILE`) can't be read or does not exist.
    #[error("{}: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error.
        reason: String,
    },
    /// The file has neither `.symtab` nor `.dynsym`. For the kernel and modules: it has no `.symtab`.
    #[error("{}: stripped, it has no symbol table", path.display())]
    Stripped {
        /// The file.
        path: PathBuf,
    },
    /// The file has exported names only.
    #[error("{}: no .symtab, only exported names are known", path.display())]
    OnlyDynamic {
        /// The file.
        path: PathBuf,
    },
    /// The file has no build-id, or one that differs from `wanted`.
    #[error("{}: its build-id is {}, but that of the recording is {wanted}", path.display(), build_id_text(found.as_ref()))]
    BuildIdMismatch {
        /// The file.
        path: PathBuf,
        /// The file's build-id, if it has one.
        found: Option<BuildId>,
        /// The build-id in the recording. If none is recorded for a user object, that of the object's file.
        wanted: BuildId,
    },
    /// The file is invalid, or a kernel image lacks the symbol that determines the relocation of the kernel.
    #[error("{}: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Description.
        reason: String,
    },
    /// All addresses in kallsyms are zero (`kernel.kptr_restrict`, or insufficient privileges).
    #[error("{}: kernel addresses are hidden (kernel.kptr_restrict, or not root)", path.display())]
    KernelAddressesHidden {
        /// The kallsyms file.
        path: PathBuf,
    },
    /// The file is not a symbol listing.
    #[error("{}: no lines of the form 'ADDRESS TYPE NAME', as in /proc/kallsyms", path.display())]
    NoListing {
        /// The file.
        path: PathBuf,
    },
    /// A kernel other than the running one was recorded, and neither a vmlinux nor a kallsyms in the build-id cache belongs
    /// to it.
    #[error("no kallsyms or vmlinux with build-id {build_id} was found")]
    NoKernelSymbols {
        /// Build-id of the recorded kernel.
        build_id: BuildId,
    },
    /// The symbol that determines the relocation of the kernel isn't in kallsyms.
    #[error("{}: no symbol {symbol}, so the load address of the kernel is unknown", path.display())]
    NoRelocationSymbol {
        /// The kallsyms file.
        path: PathBuf,
        /// `_text` or `_stext`.
        symbol: String,
    },
    /// A perf map has lines that aren't `START SIZE NAME`.
    #[error("{}: {count} lines are not of the form 'START SIZE NAME' and were ignored", path.display())]
    BadLines {
        /// The perf map.
        path: PathBuf,
        /// Number of ignored lines.
        count: usize,
    },
    /// A perf map or jitdump file that another user could have created.
    #[error("{}: not owned by the current user or root, ignored", path.display())]
    Untrusted {
        /// The perf map or jitdump file.
        path: PathBuf,
    },
    /// Split DWARF whose `.dwo` files are missing, damaged, or of another build.
    #[error("{}: not found, so inlined functions of {count} units are unknown", path.display())]
    MissingSplit {
        /// Path of the first such file, as named in the object.
        path: PathBuf,
        /// Number of compile units without their `.dwo` file.
        count: usize,
    },
}

impl SymbolFinding {
    /// The file with the problem, or the missing file; `None` if no path is known.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::NotFound { path }
            | Self::Unreadable { path, .. }
            | Self::Stripped { path }
            | Self::OnlyDynamic { path }
            | Self::BuildIdMismatch { path, .. }
            | Self::Damaged { path, .. }
            | Self::KernelAddressesHidden { path }
            | Self::NoListing { path }
            | Self::NoRelocationSymbol { path, .. }
            | Self::BadLines { path, .. }
            | Self::Untrusted { path }
            | Self::MissingSplit { path, .. } => Some(path),
            Self::NoKernelSymbols { .. } => None,
        }
    }
}

fn build_id_text(id: Option<&BuildId>) -> String {
    id.map_or_else(|| "missing".to_owned(), BuildId::to_string)
}
