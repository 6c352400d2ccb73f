//! What went less than well while symbols were looked for. None of it stops a report.

use std::path::PathBuf;

use crate::build_id::BuildId;

/// One non-fatal observation of [`load`](crate::load()), fit to be shown as it prints.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Finding {
    /// No candidate file exists.
    #[error("{}: not found, and no debug file either", path.display())]
    NotFound {
        /// The object's name in the recording.
        path: PathBuf,
    },
    /// A candidate exists and can't be read.
    #[error("{}: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's words.
        reason: String,
    },
    /// The file is there, and has neither `.symtab` nor `.dynsym`.
    #[error("{}: stripped, it has no symbol table", path.display())]
    Stripped {
        /// The file.
        path: PathBuf,
    },
    /// The file only has the names that it exports.
    #[error("{}: no .symtab, only exported names are known", path.display())]
    OnlyDynamic {
        /// The file.
        path: PathBuf,
    },
    /// The file was replaced after the recording.
    #[error("{}: its build-id is {}, the recording has {wanted}", path.display(), shown(found.as_ref()))]
    BuildIdMismatch {
        /// The file.
        path: PathBuf,
        /// What the file says, if it says anything.
        found: Option<BuildId>,
        /// What the recording says.
        wanted: BuildId,
    },
    /// The file can't be understood.
    #[error("{}: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// kallsyms shows only zeros (`kernel.kptr_restrict`, or too few rights).
    #[error("{}: kernel addresses are hidden (kernel.kptr_restrict, or not root)", path.display())]
    KernelAddressesHidden {
        /// The kallsyms file.
        path: PathBuf,
    },
    /// The recording is of another kernel and the build-id cache has no kallsyms of it.
    #[error("no kallsyms or vmlinux with build-id {build_id} was found")]
    NoKernelSymbols {
        /// The kernel recorded.
        build_id: BuildId,
    },
    /// The symbol that tells how far the kernel was moved isn't in the file.
    #[error("{}: no symbol {symbol}, so it can't be told where the kernel was loaded", path.display())]
    NoRelocationSymbol {
        /// The kallsyms or vmlinux file.
        path: PathBuf,
        /// `_text` or `_stext`.
        symbol: String,
    },
    /// A perf map has lines that aren't `START SIZE NAME`.
    #[error("{}: {count} lines are not 'START SIZE NAME' and were left out", path.display())]
    BadLines {
        /// The perf map.
        path: PathBuf,
        /// How many.
        count: usize,
    },
    /// A perf map that somebody else could have planted.
    #[error("{}: not owned by the current user or root, ignored", path.display())]
    Untrusted {
        /// The perf map.
        path: PathBuf,
    },
    /// Split DWARF whose `.dwo` files are gone.
    #[error("{}: not found, so that lines are known and inlined functions are not, in {count} units", path.display())]
    MissingSplit {
        /// The first of them, as the object names it.
        path: PathBuf,
        /// How many units lack theirs.
        count: usize,
    },
}

fn shown(id: Option<&BuildId>) -> String {
    id.map_or_else(|| "missing".to_owned(), BuildId::to_string)
}
