//! Types of code.

/// Type of a frame's code. In folded text, names have a suffix with the letter given below for their type: `do_syscall_64_[k]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum FrameKind {
    /// User space, or unknown.
    #[default]
    User,
    /// The kernel and its modules: `k`.
    Kernel,
    /// An inlined function: `i`.
    Inlined,
    /// JIT-compiled code: `j`.
    Jit,
}

impl FrameKind {
    /// The types with a suffix.
    const MARKED: [Self; 3] = [Self::Kernel, Self::Inlined, Self::Jit];

    /// The suffix in folded text.
    #[must_use]
    pub fn mark(self) -> &'static str {
        match self {
            Self::User => "",
            Self::Kernel => "_[k]",
            Self::Inlined => "_[i]",
            Self::Jit => "_[j]",
        }
    }

    /// Splits the suffix off a name; a name without a suffix is [`Self::User`].
    #[must_use]
    pub fn split(text: &str) -> (&str, Self) {
        let marked = |kind: &Self| Some((text.strip_suffix(kind.mark())?, *kind));
        let found = Self::MARKED.iter().find_map(marked);
        found.unwrap_or((text, Self::User))
    }
}
