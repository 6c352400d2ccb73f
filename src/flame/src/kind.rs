//! What code a frame is of.

/// What code a frame is of. The letters are those that folded text marks frames with: `do_syscall_64_[k]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Kind {
    /// User space, or not known.
    #[default]
    User,
    /// The kernel and its modules: `k`.
    Kernel,
    /// A function that its caller contains: `i`.
    Inlined,
    /// Compiled at run time: `j`.
    Jit,
}

impl Kind {
    /// All that are marked.
    const MARKED: [Self; 3] = [Self::Kernel, Self::Inlined, Self::Jit];

    /// What folded text puts behind the name.
    #[must_use]
    pub fn mark(self) -> &'static str {
        match self {
            Self::User => "",
            Self::Kernel => "_[k]",
            Self::Inlined => "_[i]",
            Self::Jit => "_[j]",
        }
    }

    /// Takes the mark off a name.
    #[must_use]
    pub fn split(text: &str) -> (&str, Self) {
        let marked = |kind: &Self| Some((text.strip_suffix(kind.mark())?, *kind));
        let found = Self::MARKED.iter().find_map(marked);
        found.unwrap_or((text, Self::User))
    }
}
