//! Disassembly by an objdump that the user selects.

use std::collections::BTreeMap;

/// Instructions in the output of objdump: size in bytes and text, by address.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ObjdumpListing(BTreeMap<u64, (usize, String)>);

impl ObjdumpListing {
    /// Parses the output of `objdump -d` of GNU or LLVM: address and colon, bytes, a tab, the
    /// instruction. A line without an instruction has further bytes of the previous instruction.
    #[must_use]
    pub fn parse(output: &str) -> Self {
        let mut instructions: BTreeMap<u64, (usize, String)> = BTreeMap::new();
        // The address of the last line with an instruction.
        let mut last = None;
        for line in output.lines() {
            let Some((address, rest)) = line.split_once(':') else {
                continue;
            };
            let Ok(address) = u64::from_str_radix(address.trim(), 16) else {
                continue;
            };
            let (bytes, text) = match rest.trim_start().split_once('\t') {
                Some((bytes, text)) => (bytes, text.trim()),
                None => (rest, ""),
            };
            let digits = bytes.bytes().filter(u8::is_ascii_hexdigit).count();
            match last.and_then(|last| instructions.get_mut(&last)) {
                Some((size, _)) if text.is_empty() => *size += digits / 2,
                _ => {
                    let text = text.replace('\t', " ");
                    instructions.insert(address, (digits / 2, text));
                    last = Some(address);
                }
            }
        }
        Self(instructions)
    }

    /// The instruction at an address: its size in bytes and its text.
    pub(crate) fn at(&self, address: u64) -> Option<(usize, &str)> {
        let (size, text) = self.0.get(&address)?;
        // Before the first instruction, `parse` also keeps other lines that begin with hexadecimal digits and a colon, such as a
        // label `add:`. They usually have no bytes.
        (*size > 0).then_some((*size, text.as_str()))
    }

    /// Whether the output has no instruction, nor a line that looks like one.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_of_gnu_and_llvm_is_read() {
        let gnu = "\n0000000000001139 <leaf>:\n    1139:\t55                   \tpush   %rbp\n    \
            113d:\t48 c7 45 f8 00 00 00 \tmovq   $0x0,-0x8(%rbp)\n    1144:\t00 \n";
        let objdump = ObjdumpListing::parse(gnu);
        assert_eq!(objdump.at(0x1139), Some((1, "push   %rbp")));
        assert_eq!(objdump.at(0x113d), Some((8, "movq   $0x0,-0x8(%rbp)")));
        assert_eq!(objdump.at(0x1144), None);
        let llvm = "    1139: 55                           \tpushq\t%rbp\n";
        assert_eq!(
            ObjdumpListing::parse(llvm).at(0x1139),
            Some((1, "pushq %rbp"))
        );
        assert!(ObjdumpListing::parse("no code here: none\n").is_empty());
    }
}
