//! Instructions: the sampled one, and those between branches.

use std::io::Write as _;

use rperf_lines::{
    FlowInstruction, FlowStep, LineField, LineFields, ResolvedAddress, SampledInsn, SymbolOffset,
    TakenBranch,
};

use super::{ScriptBlock, ScriptLayout, branch};
use crate::digits;

/// Fields of the sampled instruction.
const INSN_FIELDS: LineFields =
    LineFields::of(&[LineField::Insn, LineField::Insnlen, LineField::Disasm]);
/// Fields of the code between branches.
const FLOW_FIELDS: LineFields = LineFields::of(&[
    LineField::Brstackinsn,
    LineField::Brstackinsnlen,
    LineField::Brstackdisasm,
]);
/// Minimum width of the bytes or the text of a branch instruction, in columns.
const BRANCH_COLUMNS: usize = 30;
/// The minimum width of other instructions: none, they are not padded.
const UNPADDED: usize = 0;

impl ScriptLayout {
    /// Whether the sampled instruction is shown.
    #[must_use]
    pub fn shows_insn(&self) -> bool {
        self.fields.has_any(INSN_FIELDS)
    }

    /// Whether the code between branches is shown.
    #[must_use]
    pub fn shows_flow(&self) -> bool {
        self.fields.has_any(FLOW_FIELDS)
    }

    /// Whether the code between branches is shown disassembled.
    #[must_use]
    pub fn shows_flow_as_text(&self) -> bool {
        self.fields.has(LineField::Brstackdisasm)
    }

    /// Appends the selected fields of the sampled instruction: its length, its bytes, and its `text`, which is only computed if
    /// it is shown.
    pub fn insn(
        &self,
        insn: Option<&SampledInsn>,
        text: impl FnOnce(&SampledInsn) -> String,
        out: &mut Vec<u8>,
    ) {
        let bytes = insn.map_or(&[][..], |insn| &insn.bytes);
        if self.fields.has(LineField::Insnlen) {
            out.extend_from_slice(b" ilen: ");
            digits::decimal(out, bytes.len() as u64, 0);
        }
        if self.fields.has(LineField::Insn) && !bytes.is_empty() {
            out.extend_from_slice(b" insn:");
            for byte in bytes {
                out.push(b' ');
                digits::hexadecimal_zeros(out, u64::from(*byte), 2);
            }
        }
        if let Some(insn) = insn.filter(|_| self.fields.has(LineField::Disasm)) {
            out.extend_from_slice(b"\t\t");
            out.extend_from_slice(text(insn).as_bytes());
        }
    }

    /// Appends a part of the code between a sample's branches. `tid` is the sample's thread: when the blocks are joined, a source
    /// line that equals the thread's previous one is omitted.
    pub fn step(&self, step: &FlowStep<'_>, tid: u32, block: &mut ScriptBlock) {
        let out = &mut block.text;
        match step {
            FlowStep::Symbol(address) => self.function(address, out),
            FlowStep::Insn(code) => {
                self.code(code, UNPADDED, out);
                if self.fields.has(LineField::Brstackinsnlen) {
                    out.push(b'\t');
                    length(code, out);
                }
                out.push(b'\n');
            }
            FlowStep::Branch(code, taken) => {
                self.code(code, BRANCH_COLUMNS, out);
                out.push(b'\t');
                if self.fields.has(LineField::Brstackinsnlen) {
                    length(code, out);
                    out.push(b'\t');
                }
                branch_details(taken, out);
            }
            FlowStep::Source(text) => block.put_source(text, tid),
            FlowStep::Mismatch => {
                out.extend_from_slice(b"\tmismatch of LBR data and executable\n");
            }
            FlowStep::NotReaching => out.extend_from_slice(b"\t... not reaching sample ...\n"),
        }
    }

    /// Appends `symbol+offset:`, and the source location if selected; nothing if the symbol is unknown.
    fn function(&self, address: &ResolvedAddress<'_>, out: &mut Vec<u8>) {
        let Some(SymbolOffset { name, offset }) = &address.symbol else {
            return;
        };
        out.push(b'\t');
        out.extend_from_slice(name.as_bytes());
        // perf has the offset in an `int`, and prints it with its sign.
        let offset = (*offset as u32).cast_signed();
        if offset != 0 {
            out.extend_from_slice(format!("{offset:+}").as_bytes());
        }
        out.push(b':');
        self.source(address, b"\t", out);
        out.push(b'\n');
    }

    /// Appends the address, and the instruction as `insn: BYTES` or text, padded to `columns`; `<bad>` if invalid or missing.
    fn code(&self, code: &FlowInstruction<'_>, columns: usize, out: &mut Vec<u8>) {
        out.push(b'\t');
        digits::hexadecimal_zeros(out, code.ip, 16);
        out.push(b'\t');
        let start = out.len();
        match (code.bytes, code.text) {
            (None, _) => out.extend_from_slice(b"<bad>"),
            (Some(_), Some(text)) => out.extend_from_slice(text.as_bytes()),
            (Some(bytes), None) => {
                out.extend_from_slice(b"insn: ");
                for byte in bytes {
                    digits::hexadecimal_zeros(out, u64::from(*byte), 2);
                    out.push(b' ');
                }
            }
        }
        digits::blanks(out, columns.saturating_sub(out.len() - start));
    }
}

/// Appends `ilen:` and the length of an instruction; 0 if it is invalid or missing.
fn length(code: &FlowInstruction<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"ilen: ");
    let length = code.bytes.map_or(0, <[u8]>::len);
    digits::decimal(out, length as u64, 0);
}

/// Appends the flags and counts of a branch, and a newline.
fn branch_details(taken: &TakenBranch, out: &mut Vec<u8>) {
    out.push(b'#');
    for (bit, word) in [
        (branch::PREDICTED, " PRED"),
        (branch::MISPREDICTED, " MISPRED"),
        (branch::IN_TRANSACTION, " INTX"),
        (branch::ABORTED, " ABORT"),
    ] {
        if taken.flags & bit != 0 {
            out.extend_from_slice(word.as_bytes());
        }
    }
    if taken.cycles != 0 {
        let (cycles, total) = (taken.cycles, taken.total_cycles);
        // Writing to a vector cannot fail.
        let _ = write!(out, " {cycles} cycles [{total}]");
        if taken.instructions != 0 {
            let rate = taken.instructions as f32 / cycles as f32;
            let _ = write!(out, " {rate:.2} IPC");
        }
    }
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use rperf_lines::{SourceLine, SourceLocation};

    use super::*;
    use crate::script::{ScriptEvent, tests::STYLE};

    fn written(fields: &[LineField], steps: &[FlowStep<'_>]) -> String {
        let event = ScriptEvent {
            name: "cycles",
            fields: LineFields::of(fields),
            shows_callchains: false,
            weight_parts: false,
            bpf_output: false,
        };
        let layout = ScriptLayout::new(&event, STYLE);
        let mut block = ScriptBlock::default();
        let tid = 7;
        for step in steps {
            layout.step(step, tid, &mut block);
        }
        String::from_utf8(block.text).unwrap()
    }

    #[test]
    fn code_between_branches() {
        let code = |ip, bytes| FlowInstruction {
            ip,
            bytes,
            text: None,
        };
        let place = SourceLine {
            path: "/src/load.c",
            line: 12,
        };
        let address = ResolvedAddress {
            symbol: Some(SymbolOffset {
                name: "leaf",
                offset: 4,
            }),
            source: SourceLocation::Line(place),
            ..ResolvedAddress::unknown(0x1004)
        };
        let taken = |flags, instructions| TakenBranch {
            flags,
            cycles: flags >> 4 & 0xffff,
            total_cycles: 30,
            instructions,
        };
        let three_cycles: u64 = 3 << 4;
        let aborted = branch::MISPREDICTED | branch::IN_TRANSACTION | branch::ABORTED;
        let steps = [
            FlowStep::Symbol(address),
            FlowStep::Insn(code(0x1004, Some(&[0x89, 0xc8]))),
            FlowStep::Branch(
                code(0x1006, Some(&[0xc3])),
                taken(branch::PREDICTED | three_cycles, 2),
            ),
            FlowStep::Insn(code(0x2000, None)),
            FlowStep::Mismatch,
            FlowStep::Branch(code(0x2001, Some(&[0xc3])), taken(aborted, 0)),
            FlowStep::NotReaching,
        ];
        assert_eq!(
            written(&[LineField::Brstackinsn, LineField::Srcline], &steps),
            "\tleaf+4:\tload.c:12\n\
             \t0000000000001004\tinsn: 89 c8 \n\
             \t0000000000001006\tinsn: c3                      \t# PRED 3 cycles [30] 0.67 IPC\n\
             \t0000000000002000\t<bad>\n\
             \tmismatch of LBR data and executable\n\
             \t0000000000002001\tinsn: c3                      \t# MISPRED INTX ABORT\n\
             \t... not reaching sample ...\n"
        );
        let text = written(&[LineField::Brstackinsnlen], &steps);
        for part in [
            "\tleaf+4:\n",
            "\tinsn: 89 c8 \tilen: 2\n",
            "\tilen: 1\t# PRED",
            "\t<bad>\tilen: 0\n",
        ] {
            assert!(text.contains(part), "{text}");
        }
    }
}
