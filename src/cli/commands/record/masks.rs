//! `--user-regs`, `-I`, `-b` and `-j`: sets of registers and branch filters.

use clap::ArgMatches;
use rperf_events::{USER_REGISTERS, branch_filter, branch_names};
use rperf_wire::BranchSampleType;

use crate::cli::error::CliError;
use crate::cli::options::flag;

/// Names of registers by number (`uapi/asm/perf_regs.h`); empty for those that cannot be sampled.
#[cfg(target_arch = "x86_64")]
const REGISTERS: &[&str] = &[
    "AX", "BX", "CX", "DX", "SI", "DI", "BP", "SP", "IP", "FLAGS", "CS", "SS", "", "", "", "",
    "R8", "R9", "R10", "R11", "R12", "R13", "R14", "R15",
];
#[cfg(target_arch = "aarch64")]
const REGISTERS: &[&str] = &[
    "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14",
    "x15", "x16", "x17", "x18", "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27",
    "x28", "x29", "lr", "sp", "pc",
];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const REGISTERS: &[&str] = &[];

/// Returns the mask of the registers given with option `id`: of all registers if none is named, 0 without the option.
pub(super) fn registers(matches: &ArgMatches, id: &str) -> Result<u64, CliError> {
    let Some(names) = matches.get_one::<String>(id) else {
        return Ok(0);
    };
    let Some(all) = USER_REGISTERS.filter(|_| !REGISTERS.is_empty()) else {
        let message = format!("--{id}: registers of this architecture are not supported");
        return Err(CliError::usage(message));
    };
    if names.is_empty() {
        return Ok(all);
    }
    let mut mask = 0;
    for name in names.split(',') {
        let number = REGISTERS
            .iter()
            .position(|known| known.eq_ignore_ascii_case(name));
        // An empty name would match the registers that cannot be sampled.
        let number = number.filter(|_| !name.is_empty());
        mask |= 1 << number.ok_or_else(|| unknown_register(name, id))?;
    }
    Ok(mask)
}

fn unknown_register(name: &str, id: &str) -> CliError {
    let known = REGISTERS.iter().copied().filter(|name| !name.is_empty());
    let known: Vec<&str> = known.collect();
    let message = format!("--{id}: unknown register '{name}'");
    CliError::usage(message).hint(format!("choose from {}", known.join(" ").to_lowercase()))
}

/// The branch filter of `-b` and `-j`; empty if neither is given.
pub(super) fn branches(matches: &ArgMatches) -> Result<BranchSampleType, CliError> {
    let any = flag(matches, "branch-any") == Some(true);
    let given = matches.get_one::<String>("branch-filter");
    let Some(names) = given else {
        return Ok(if any {
            BranchSampleType::ANY
        } else {
            BranchSampleType::default()
        });
    };
    if any {
        return Err(CliError::usage(
            "-b and -j exclude each other: -b is '-j any'",
        ));
    }
    branch_filter(names).map_err(|unknown| {
        let names: Vec<&str> = branch_names().collect();
        CliError::usage(unknown.to_string()).hint(format!("choose from {}", names.join(",")))
    })
}
