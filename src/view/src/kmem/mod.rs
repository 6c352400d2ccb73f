//! The output of `kmem`: tables of `kmem stat` in the layout of perf 6.1, those of the other subcommands, and JSON.

pub mod comparison;
pub mod distributions;
pub mod fragmentation;
mod gfp;
pub mod json;
pub mod leaks;
pub mod pages;
pub mod slab;
pub mod usage;

use std::io::{self, Write};

/// The length of the rule above and below the rows, in characters.
const RULE: usize = 105;

fn write_rule(out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", "-".repeat(RULE))
}

/// The symbol at an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallSite {
    /// The symbol's name.
    pub symbol: String,
    /// The offset of the address in the symbol, in bytes.
    pub offset: u64,
}

/// A function that returns the symbol at the address of a caller; `None` if it is unknown, or if addresses are shown instead
/// (`--raw-ip`).
pub type CallSiteNames<'n> = dyn Fn(u64) -> Option<CallSite> + 'n;

/// The rows of a table, and the limit of how many of them are shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownRows<R> {
    /// All rows.
    pub rows: Vec<R>,
    /// Maximum number of rows that are shown; all if `None`.
    pub most: Option<usize>,
}

impl<R> ShownRows<R> {
    fn shown(&self) -> impl Iterator<Item = &R> {
        self.rows.iter().take(self.most.unwrap_or(usize::MAX))
    }

    fn is_truncated(&self) -> bool {
        self.most.is_some_and(|most| most < self.rows.len())
    }
}
