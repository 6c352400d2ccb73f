//! The lines of BPF_PROG_INFO, one per BPF program or function, and of BPF_BTF.

use std::fmt::Write as _;
use std::io::{self, Write};

use rperf_perfdata::Features;
use rperf_perfdata::feature::{BpfBtf, BpfFunction, BpfProgram};
use rperf_wire::Endian;

/// Prints the ids of the BTF objects in ascending order.
pub(super) fn write_types(out: &mut dyn Write, features: &Features<'_>) -> io::Result<()> {
    let sets = features.btf().unwrap_or_default();
    let mut ids: Vec<u32> = sets.iter().map(|set| set.id).collect();
    ids.sort_unstable();
    ids.dedup();
    ids.iter()
        .try_for_each(|id| writeln!(out, "# btf info of id {id}"))
}

/// Prints the programs, sorted by id, and the functions of those that have several.
pub(super) fn write_programs(
    out: &mut dyn Write,
    features: &Features<'_>,
    endian: Endian,
) -> io::Result<()> {
    let types = features.btf().unwrap_or_default();
    let mut programs = features.bpf_programs().unwrap_or_default();
    programs.sort_by_key(|program| program.id(endian));
    programs.dedup_by_key(|program| program.id(endian));
    for program in &programs {
        let Some(functions) = program.functions(endian) else {
            continue;
        };
        let types = types.iter().find(|set| set.id == program.btf_id(endian));
        let names = FunctionNames {
            program,
            types,
            endian,
            is_single: functions.len() == 1,
        };
        if !names.is_single {
            writeln!(out, "# bpf_prog_info {}:", program.id(endian))?;
        }
        for (number, function) in functions.iter().enumerate() {
            let (name, address, size) = (names.name(function), function.address, function.size);
            if names.is_single {
                write!(out, "# bpf_prog_info {}", program.id(endian))?;
            } else {
                write!(out, "# \tsub_prog {number}")?;
            }
            writeln!(out, ": {name} addr {address:#x} size {size}")?;
        }
    }
    Ok(())
}

/// Data that the names of a program's functions depend on.
struct FunctionNames<'a> {
    program: &'a BpfProgram,
    types: Option<&'a BpfBtf>,
    endian: Endian,
    /// Whether the program has only one function.
    is_single: bool,
}

impl FunctionNames<'_> {
    /// Returns `bpf_prog_TAG_NAME`, as in /proc/kallsyms. NAME comes from BTF. Without BTF it is the name of the
    /// program if that has a single function, otherwise `F`.
    fn name(&self, function: &BpfFunction) -> String {
        let mut name = "bpf_prog_".to_owned();
        for byte in function.tag {
            let _cannot_fail = write!(name, "{byte:02x}");
        }
        let own = self.program.name();
        let short = match self.types {
            Some(types) => types.type_name(function.type_id, self.endian),
            None if self.is_single => Some(own.as_str()).filter(|own| !own.is_empty()),
            None => Some("F"),
        };
        if let Some(short) = short {
            name.push('_');
            name.push_str(short);
        }
        name
    }
}
