//! What only some recordings have: memory accesses, registers, branches, the output of BPF programs.

use rperf_lines::{Field, Fields, Spot};
use rperf_wire::{BranchEntry, Sample};

use super::{Block, Layout, branch, data_source, number, registers};
use crate::header::features::unit_size;

/// Shown before the address.
const BEFORE: Fields = Fields::of(&[
    Field::DataSrc,
    Field::Weight,
    Field::InsLat,
    Field::RetireLat,
    Field::Cgroup,
]);
/// Shown behind it, but for branches, whose addresses must be looked up.
const AFTER: Fields = Fields::of(&[
    Field::Iregs,
    Field::Uregs,
    Field::BpfOutput,
    Field::PhysAddr,
    Field::DataPageSize,
    Field::CodePageSize,
    Field::Insn,
    Field::Insnlen,
    Field::Brstackinsn,
    Field::Brstackinsnlen,
    Field::Disasm,
    Field::Brstackdisasm,
]);
const BRANCHES: Fields = Fields::of(&[Field::Brstack, Field::Brstacksym, Field::Brstackoff]);

/// Bytes in a line of a dump.
const DUMPED: usize = 8;

impl Layout {
    /// Whether [`Layout::before`] has anything to show.
    #[inline]
    #[must_use]
    pub fn has_before(&self) -> bool {
        self.fields.has_any(BEFORE)
    }

    /// Whether there is anything behind the address: [`Layout::registers`], [`Layout::branch`], [`Layout::after`].
    #[inline]
    #[must_use]
    pub fn has_after(&self) -> bool {
        self.fields.has_any(AFTER) || self.has_branches()
    }

    /// Whether branches are shown.
    #[must_use]
    pub fn has_branches(&self) -> bool {
        self.fields.has_any(BRANCHES)
    }

    /// Whether branches are shown by the names of their ends.
    #[must_use]
    pub fn names_branches(&self) -> bool {
        self.fields.has(Field::Brstacksym) && !self.fields.has(Field::Brstack)
    }

    /// Appends where data came from, what it cost and the cgroup, if its name is known.
    pub fn before(&self, sample: &Sample<'_>, cgroup: Option<&str>, block: &mut Block) {
        if self.fields.has(Field::DataSrc) {
            let text = data_source::text(sample.data_src.unwrap_or_default());
            block.put_column(text.as_bytes());
        }
        let out = &mut block.text;
        let weight = sample.weight.unwrap_or_default();
        if self.fields.has(Field::Weight) {
            let whole = if self.weight_parts {
                weight & u64::from(u32::MAX)
            } else {
                weight
            };
            number::decimal(out, whole, 16);
        }
        if self.fields.has(Field::InsLat) {
            number::decimal(out, weight >> 32 & u64::from(u16::MAX), 16);
        }
        if self.fields.has(Field::RetireLat) {
            number::decimal(out, weight >> 48, 16);
        }
        if self.fields.has(Field::Cgroup) {
            out.push(b' ');
            out.extend_from_slice(cgroup.unwrap_or("unknown").as_bytes());
        }
    }

    /// Appends the registers.
    pub fn registers(&self, sample: &Sample<'_>, out: &mut Vec<u8>) {
        for (field, dumped) in [
            (Field::Iregs, &sample.regs_intr),
            (Field::Uregs, &sample.regs_user),
        ] {
            if let Some(dumped) = dumped
                && self.fields.has(field)
            {
                registers::write(dumped, self.style.architecture, out);
            }
        }
    }

    /// Appends one branch between two places.
    pub fn branch(&self, from: &Spot<'_>, to: &Spot<'_>, entry: &BranchEntry, out: &mut Vec<u8>) {
        let fields = self.fields;
        let named = self.names_branches();
        for (spot, sign) in [(from, &b" "[..]), (to, b"/")] {
            if named {
                // perf parts the ends of named branches, not the branches.
                out.extend_from_slice(if sign == b"/" { sign } else { b"" });
                Self::symbol(spot, true, out);
            } else {
                out.extend_from_slice(sign);
                out.extend_from_slice(b"0x");
                let offset = !fields.has(Field::Brstack);
                let address = if offset { spot.in_stack } else { spot.ip };
                number::hexadecimal(out, address, 0);
            }
            if fields.has(Field::Dso) {
                self.object(spot, out);
            }
        }
        branch::flags(entry.flags, out);
    }

    /// Appends what a BPF program put out.
    pub fn output(&self, sample: &Sample<'_>, out: &mut Vec<u8>) {
        if self.bpf_output && self.fields.has(Field::BpfOutput) {
            bpf_output(sample.raw.unwrap_or_default(), out);
        }
    }

    /// Appends what stands at the end.
    pub fn after(&self, sample: &Sample<'_>, out: &mut Vec<u8>) {
        let has = |field| self.fields.has(field);
        if has(Field::PhysAddr) {
            number::hexadecimal(out, sample.phys_addr.unwrap_or_default(), 16);
        }
        for (field, size) in [
            (Field::DataPageSize, sample.data_page_size),
            (Field::CodePageSize, sample.code_page_size),
        ] {
            if has(field) {
                out.push(b' ');
                let size = size.filter(|size| *size != 0);
                let size = size.map_or_else(|| "N/A".to_owned(), unit_size);
                out.extend_from_slice(size.as_bytes());
            }
        }
    }
}

/// Appends lines of eight bytes, and the text where they are one.
fn bpf_output(raw: &[u8], out: &mut Vec<u8>) {
    out.push(b'\n');
    for (index, bytes) in raw.chunks(DUMPED).enumerate() {
        let head = if index == 0 { "BPF output:" } else { "" };
        out.extend_from_slice(format!("{head:>17} {:04x}:", index * DUMPED).as_bytes());
        for byte in bytes {
            out.extend_from_slice(format!(" {byte:02x}").as_bytes());
        }
        let missing = DUMPED - bytes.len();
        number::blanks(out, 3 * missing + 2);
        out.extend(bytes.iter().map(|byte| match byte {
            b' '..=b'~' => *byte,
            _ => b'.',
        }));
        number::blanks(out, missing);
        out.push(b'\n');
    }
    if let Some(text) = terminated(raw) {
        out.extend_from_slice(format!("{:>17} \"", "BPF string:").as_bytes());
        out.extend_from_slice(text);
        out.extend_from_slice(b"\"\n");
    }
}

/// The printable text up to the NUL that ends it, with nothing but such behind it.
fn terminated(raw: &[u8]) -> Option<&[u8]> {
    let end = raw.iter().position(|byte| *byte == 0)?;
    let (text, rest) = raw.split_at(end);
    let printable = text.iter().all(|byte| matches!(byte, b' '..=b'~'));
    (printable && rest.iter().all(|byte| *byte == 0)).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dumps_have_eight_bytes_in_a_line_and_the_text_at_the_end() {
        let text = |raw: &[u8]| {
            let mut out = Vec::new();
            bpf_output(raw, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(text(b""), "\n");
        assert_eq!(
            text(b"ready to go\0"),
            "\n      BPF output: 0000: 72 65 61 64 79 20 74 6f  ready to\n\
             \x20                 0008: 20 67 6f 00               go.    \n\
             \x20     BPF string: \"ready to go\"\n"
        );
        assert!(!text(b"a\0b\0").contains("string"));
        assert!(!text(b"\x01\0\0\0").contains("string"));
        assert!(!text(b"no end").contains("string"));
    }
}
