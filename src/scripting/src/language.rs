//! The languages of scripts.

/// The language of a script.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ScriptLanguage {
    /// Python 3.
    #[default]
    Python,
    /// Perl 5.
    Perl,
}
