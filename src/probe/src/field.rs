//! One value in the text that creates a probe (Documentation/trace/kprobetrace.rst, "Synopsis of kprobe_events").

use std::fmt;

/// Memory that is read on the way to a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Read {
    /// Added before it is read.
    pub offset: i64,
    /// Whether it is the user's memory, seen from the kernel.
    pub is_user: bool,
}

/// A field of a probe event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Its name; the kernel numbers those without.
    pub name: Option<String>,
    /// What is fetched first: a register, memory at an address, a number.
    pub base: String,
    /// What is read from there, the first first.
    pub reads: Vec<Read>,
    /// How it is shown.
    pub kind: Option<String>,
}

impl fmt::Display for Field {
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
            // The kernel takes the sign in front of the u.
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
        let read = |offset, is_user| Read { offset, is_user };
        let field = Field {
            name: Some("name".to_owned()),
            base: "%di".to_owned(),
            reads: vec![read(-8, false), read(0, true)],
            kind: Some("string".to_owned()),
        };
        assert_eq!(field.to_string(), "name=+u0(-8(%di)):string");
        let plain = Field {
            name: None,
            reads: Vec::new(),
            kind: None,
            ..field
        };
        assert_eq!(plain.to_string(), "%di");
    }
}
