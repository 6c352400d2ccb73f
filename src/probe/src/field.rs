//! A fetch argument of a probe event (Documentation/trace/kprobetrace.rst, "Synopsis of
//! kprobe_events").

use std::fmt;

/// A dereference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dereference {
    /// Offset added before the read.
    pub offset: i64,
    /// Whether a kernel probe reads user memory (`+u0(...)`).
    pub is_user: bool,
}

/// A field of a probe event: a fetch argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeField {
    /// Its name. The kernel names fields without one by their position: `arg1`, `arg2`, ….
    pub name: Option<String>,
    /// The innermost part, such as a register or an address. If the user gave the argument in the kernel's syntax
    /// (`a=+8(%si):u64`), all of it except name and type (`+8(%si)`); then [`Self::reads`] is empty.
    pub base: String,
    /// The dereferences of the base, innermost first.
    pub reads: Vec<Dereference>,
    /// The type; `None` for the kernel's default.
    pub kind: Option<String>,
}

impl fmt::Display for ProbeField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = &self.name {
            write!(f, "{name}=")?;
        }
        for read in self.reads.iter().rev() {
            let user = if read.is_user { "u" } else { "" };
            let (sign, distance) = match read.offset < 0 {
                true => ('-', read.offset.unsigned_abs()),
                false => ('+', read.offset.unsigned_abs()),
            };
            // The kernel requires the sign before the u.
            write!(f, "{sign}{user}{distance}(")?;
        }
        f.write_str(&self.base)?;
        for _ in &self.reads {
            f.write_str(")")?;
        }
        match &self.kind {
            Some(kind) => write!(f, ":{kind}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_read_is_the_innermost() {
        let read = |offset, is_user| Dereference { offset, is_user };
        let field = ProbeField {
            name: Some("name".to_owned()),
            base: "%di".to_owned(),
            reads: vec![read(-8, false), read(0, true)],
            kind: Some("string".to_owned()),
        };
        assert_eq!(field.to_string(), "name=+u0(-8(%di)):string");
        let plain = ProbeField {
            name: None,
            reads: Vec::new(),
            kind: None,
            ..field
        };
        assert_eq!(plain.to_string(), "%di");
    }
}
