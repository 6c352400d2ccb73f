//! The lines of BPF_PROG_INFO, one per BPF program or function, and of BPF_BTF.

use std::io::{self, Write};

use rperf_perfdata::Features;
use rperf_perfdata::feature::{BpfFunction, BpfSymbol};
use rperf_wire::Endian;

/// Prints the ids of the BTF objects in ascending order.
pub(super) fn write_btf(out: &mut dyn Write, features: &Features<'_>) -> io::Result<()> {
    let btf_objects = features.btf().unwrap_or_default();
    let mut ids: Vec<u32> = btf_objects.iter().map(|btf| btf.id).collect();
    ids.sort_unstable();
    ids.dedup();
    ids.iter()
        .try_for_each(|id| writeln!(out, "# btf info of id {id}"))
}

/// Prints the programs, sorted by id, and the functions of those that have several. Programs whose functions are unknown are
/// skipped.
pub(super) fn write_programs(
    out: &mut dyn Write,
    features: &Features<'_>,
    endian: Endian,
) -> io::Result<()> {
    let btf_objects = features.btf().unwrap_or_default();
    let mut programs = features.bpf_programs().unwrap_or_default();
    programs.sort_by_key(|program| program.id(endian));
    programs.dedup_by_key(|program| program.id(endian));
    for program in &programs {
        let btf = btf_objects
            .iter()
            .find(|btf| btf.id == program.btf_id(endian));
        let Some(symbols) = program.symbols(btf, endian) else {
            continue;
        };
        let is_single = symbols.len() == 1;
        if !is_single {
            writeln!(out, "# bpf_prog_info {}:", program.id(endian))?;
        }
        for (number, BpfSymbol { name, function }) in symbols.iter().enumerate() {
            let BpfFunction { address, size, .. } = function;
            if is_single {
                write!(out, "# bpf_prog_info {}", program.id(endian))?;
            } else {
                write!(out, "# \tsub_prog {number}")?;
            }
            writeln!(out, ": {name} addr {address:#x} size {size}")?;
        }
    }
    Ok(())
}
