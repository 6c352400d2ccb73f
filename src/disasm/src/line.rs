//! One instruction of a listing.

use std::fmt;

use rperf_insn::Flow;

use crate::Hit;

/// Where the code of an instruction is in the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Site<'r> {
    /// The innermost function, as the source has it.
    pub function: &'r str,
    /// Whether it was inlined into the one that is listed.
    pub is_inlined: bool,
    /// The file's path, as far as the compiler told, and the line from 1.
    pub line: Option<(&'r str, u32)>,
}

/// An address that an instruction speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Named<'r> {
    /// The address in the object.
    pub address: u64,
    /// The symbol there, and how many bytes into it that is.
    pub symbol: Option<(&'r str, u64)>,
}

/// The symbol's name with the distance from its start, `main+0x1f`; nothing where there is none.
impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.symbol {
            None => Ok(()),
            Some((name, 0)) => f.write_str(name),
            Some((name, bytes)) => write!(f, "{name}+0x{bytes:x}"),
        }
    }
}

/// One instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line<'r> {
    /// Its address in the object.
    pub address: u64,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// What it reads as. The number of [`Line::target`] is its end.
    pub text: String,
    /// Where control goes behind it.
    pub flow: Flow,
    /// The place that a jump or a call names.
    pub target: Option<Named<'r>>,
    /// The place that an operand means without naming it.
    pub refers: Option<Named<'r>>,
    /// What fell on it, by event.
    pub hits: Vec<Hit>,
    /// Its place in the source.
    pub site: Option<Site<'r>>,
}

impl Line<'_> {
    /// The text with the names of places, as objdump writes them.
    #[must_use]
    pub fn full_text(&self) -> String {
        let mut text = self.text.clone();
        let name = |named: &Named| match named.symbol {
            Some(_) => format!(" <{named}>"),
            None => String::new(),
        };
        if let Some(target) = &self.target {
            text.push_str(&name(target));
        }
        if let Some(place) = &self.refers {
            text.push_str(&format!("        # {:x}{}", place.address, name(place)));
        }
        text
    }

    /// Whether anything fell on it.
    #[must_use]
    pub fn is_hit(&self) -> bool {
        self.hits.iter().any(|hit| hit.samples > 0)
    }
}
