//! Optional fields: data source, weights, cgroup, registers, branches, output of BPF programs, physical address, page sizes.

use rperf_lines::{LineField, LineFields, ResolvedAddress};
use rperf_wire::{BranchEntry, SampleRecord};

use super::{ScriptBlock, ScriptLayout, branch, data_source, registers};
use crate::digits;
use crate::header::features::size_with_unit;

/// Fields before the address of the instruction.
const LEADING_FIELDS: LineFields = LineFields::of(&[
    LineField::DataSrc,
    LineField::Weight,
    LineField::InsLat,
    LineField::RetireLat,
    LineField::Cgroup,
]);
/// Fields after the address of the instruction, except [`BRANCH_FIELDS`].
const TRAILING_FIELDS: LineFields = LineFields::of(&[
    LineField::Iregs,
    LineField::Uregs,
    LineField::BpfOutput,
    LineField::PhysAddr,
    LineField::DataPageSize,
    LineField::CodePageSize,
    LineField::Insn,
    LineField::Insnlen,
    LineField::Brstackinsn,
    LineField::Brstackinsnlen,
    LineField::Disasm,
    LineField::Brstackdisasm,
]);
/// Fields of the branch stack itself, whose addresses must be resolved. The fields `brstackinsn…` and `brstackdisasm` are not
/// among them: they show the code between the branches.
const BRANCH_FIELDS: LineFields = LineFields::of(&[
    LineField::Brstack,
    LineField::Brstacksym,
    LineField::Brstackoff,
]);

/// Bytes per line of a dump.
const BYTES_PER_LINE: usize = 8;

impl ScriptLayout {
    /// Whether [`ScriptLayout::leading_fields`] appends anything.
    #[inline]
    #[must_use]
    pub fn has_leading_fields(&self) -> bool {
        self.fields.has_any(LEADING_FIELDS)
    }

    /// Whether any field follows the address of the instruction.
    #[inline]
    #[must_use]
    pub fn has_trailing_fields(&self) -> bool {
        self.fields.has_any(TRAILING_FIELDS) || self.has_branches()
    }

    /// Whether the entries of the branch stack are shown.
    #[must_use]
    pub fn has_branches(&self) -> bool {
        self.fields.has_any(BRANCH_FIELDS)
    }

    /// Whether the ends of branches are shown as symbols: with `brstacksym`, unless `brstack` is selected, too (as in perf).
    #[must_use]
    pub fn shows_branch_symbols(&self) -> bool {
        self.fields.has(LineField::Brstacksym) && !self.fields.has(LineField::Brstack)
    }

    /// Appends data source, weights and the cgroup's name; the name is `unknown` if `cgroup` is `None`.
    pub fn leading_fields(
        &self,
        sample: &SampleRecord<'_>,
        cgroup: Option<&str>,
        block: &mut ScriptBlock,
    ) {
        if self.fields.has(LineField::DataSrc) {
            let text = data_source::text(sample.data_src.unwrap_or_default());
            // Padded later, when blocks are joined: the column is as wide as its longest text so far.
            block.put_column(text.as_bytes());
        }
        let out = &mut block.text;
        let weight = sample.weight.unwrap_or_default();
        if self.fields.has(LineField::Weight) {
            // The parts (`union perf_sample_weight`): weight in 32 bits, then the instruction and retire latencies in 16 each.
            let shown_weight = if self.weight_parts {
                weight & u64::from(u32::MAX)
            } else {
                weight
            };
            digits::decimal(out, shown_weight, 16);
        }
        // Only events whose weights have parts can have these fields.
        if self.fields.has(LineField::InsLat) {
            digits::decimal(out, weight >> 32 & u64::from(u16::MAX), 16);
        }
        if self.fields.has(LineField::RetireLat) {
            digits::decimal(out, weight >> 48, 16);
        }
        if self.fields.has(LineField::Cgroup) {
            out.push(b' ');
            out.extend_from_slice(cgroup.unwrap_or("unknown").as_bytes());
        }
    }

    /// Appends the registers of the interrupted code and those of user space, as far as they are selected and recorded.
    pub fn registers(&self, sample: &SampleRecord<'_>, out: &mut Vec<u8>) {
        for (field, dumped) in [
            (LineField::Iregs, &sample.regs_intr),
            (LineField::Uregs, &sample.regs_user),
        ] {
            if let Some(dumped) = dumped
                && self.fields.has(field)
            {
                registers::write(dumped, self.style.architecture, out);
            }
        }
    }

    /// Appends a branch from one location to another.
    pub fn branch(
        &self,
        from: &ResolvedAddress<'_>,
        to: &ResolvedAddress<'_>,
        entry: &BranchEntry,
        out: &mut Vec<u8>,
    ) {
        let fields = self.fields;
        let named = self.shows_branch_symbols();
        // perf writes no blank before a branch whose ends are named.
        let before_from: &[u8] = if named { b"" } else { b" " };
        for (end, separator) in [(from, before_from), (to, b"/")] {
            out.extend_from_slice(separator);
            if named {
                let with_offset = true;
                Self::symbol(end, with_offset, out);
            } else {
                out.extend_from_slice(b"0x");
                // Without `brstack` and names, the field is `brstackoff`: user addresses are shown as offsets in their objects.
                let is_runtime_address = fields.has(LineField::Brstack);
                let address = if is_runtime_address {
                    end.ip
                } else {
                    end.shown_address
                };
                digits::hexadecimal(out, address, 0);
            }
            if fields.has(LineField::Dso) {
                self.object(end, out);
            }
        }
        branch::flags(entry.flags, out);
    }

    /// Appends the raw data, if they are the output of a BPF program and the field is shown.
    pub fn bpf_output(&self, sample: &SampleRecord<'_>, out: &mut Vec<u8>) {
        // `self.bpf_output`: the event is one that BPF programs write to.
        if self.bpf_output && self.fields.has(LineField::BpfOutput) {
            bpf_output(sample.raw.unwrap_or_default(), out);
        }
    }

    /// Appends the physical address and the page sizes.
    pub fn page_fields(&self, sample: &SampleRecord<'_>, out: &mut Vec<u8>) {
        let has = |field| self.fields.has(field);
        if has(LineField::PhysAddr) {
            digits::hexadecimal(out, sample.phys_addr.unwrap_or_default(), 16);
        }
        for (field, size) in [
            (LineField::DataPageSize, sample.data_page_size),
            (LineField::CodePageSize, sample.code_page_size),
        ] {
            if has(field) {
                out.push(b' ');
                let size = size.filter(|size| *size != 0);
                let size = size.map_or_else(|| "N/A".to_owned(), size_with_unit);
                out.extend_from_slice(size.as_bytes());
            }
        }
    }
}

/// Appends lines of eight bytes, and the text if the bytes are a printable string with its NUL.
fn bpf_output(raw: &[u8], out: &mut Vec<u8>) {
    out.push(b'\n');
    for (index, bytes) in raw.chunks(BYTES_PER_LINE).enumerate() {
        let head = if index == 0 { "BPF output:" } else { "" };
        out.extend_from_slice(format!("{head:>17} {:04x}:", index * BYTES_PER_LINE).as_bytes());
        for byte in bytes {
            out.extend_from_slice(format!(" {byte:02x}").as_bytes());
        }
        let missing = BYTES_PER_LINE - bytes.len();
        digits::blanks(out, 3 * missing + 2);
        out.extend(bytes.iter().map(|byte| match byte {
            b' '..=b'~' => *byte,
            _ => b'.',
        }));
        digits::blanks(out, missing);
        out.push(b'\n');
    }
    if let Some(text) = terminated_text(raw) {
        out.extend_from_slice(format!("{:>17} \"", "BPF string:").as_bytes());
        out.extend_from_slice(text);
        out.extend_from_slice(b"\"\n");
    }
}

/// Returns the text before the first NUL, if it is printable and only NULs follow.
fn terminated_text(raw: &[u8]) -> Option<&[u8]> {
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
