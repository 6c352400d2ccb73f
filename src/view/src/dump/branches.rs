//! Branch stacks.

use std::io::{self, Write};

use rperf_wire::BranchStack;

use crate::script::branch;

/// The addresses of the callchain in a branch stack that was recorded in call-stack mode: the target
/// of the innermost branch, then the source of each branch.
pub(super) fn callers<'a>(stack: &'a BranchStack<'_>) -> impl Iterator<Item = u64> + 'a {
    let innermost = stack.iter().next().map(|entry| entry.to);
    innermost
        .into_iter()
        .chain(stack.iter().map(|entry| entry.from))
}

/// Writes the branches, newest first.
pub(super) fn write(out: &mut dyn Write, stack: &BranchStack<'_>) -> io::Result<()> {
    writeln!(out, "... branch stack: nr:{}", stack.len())?;
    for (index, entry) in stack.iter().enumerate() {
        let (from, to, flags) = (entry.from, entry.to, entry.flags);
        let letter = |bit: u64, letter: char| if flags & bit != 0 { letter } else { ' ' };
        let mispredicted = letter(branch::MISPREDICTED, 'M');
        let predicted = letter(branch::PREDICTED, 'P');
        let aborted = letter(branch::ABORTED, 'A');
        let in_transaction = letter(branch::IN_TRANSACTION, 'T');
        let cycles = entry.cycles();
        // The bits after the named bit-fields of `struct perf_branch_entry`: perf 6.1 prints them as one number.
        let other_flags = flags >> 33;
        let kind = branch::kind(flags);
        writeln!(
            out,
            "..... {index:2}: {from:016x} -> {to:016x} {cycles} cycles \
             {mispredicted}{predicted}{aborted}{in_transaction} {other_flags:x} {kind}"
        )?;
    }
    Ok(())
}
