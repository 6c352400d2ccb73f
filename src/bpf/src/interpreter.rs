//! Runs parts of BPF programs in an interpreter, for tests.

use crate::ProgramBuilder;

/// Runs a part of a program, with the address of `memory` in `R1`.
pub(crate) fn run(part: impl FnOnce(&mut ProgramBuilder), memory: &mut [u8]) {
    let mut b = ProgramBuilder::new();
    part(&mut b);
    b.exit();
    let no_maps = &[];
    let program = b.encode(no_maps).unwrap().concat();
    let machine = rbpf::EbpfVmRaw::new(Some(&program)).unwrap();
    machine.execute_program(memory).unwrap();
}
