//! `--user-regs`, `-I`, `-b` and `-j`: sets of names.

use clap::ArgMatches;
use rperf_events::USER_REGISTERS;
use rperf_wire::BranchSampleType;

use crate::cli::error::CliError;
use crate::cli::options::flag;

/// Names of registers by their number (`uapi/asm/perf_regs.h`), gaps left empty.
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

/// The mask of registers that option `id` names, all of them where it names none; 0 without the option.
pub(super) fn registers(matches: &ArgMatches, id: &str) -> Result<u64, CliError> {
    let Some(names) = matches.get_one::<String>(id) else {
        return Ok(0);
    };
    let Some(all) = USER_REGISTERS.filter(|_| !REGISTERS.is_empty()) else {
        let message = format!("--{id}: the registers of this architecture are not known yet");
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
        let number = number.filter(|_| !name.is_empty());
        mask |= 1 << number.ok_or_else(|| unknown_register(name, id))?;
    }
    Ok(mask)
}

fn unknown_register(name: &str, id: &str) -> CliError {
    let known = REGISTERS.iter().copied().filter(|name| !name.is_empty());
    let known: Vec<&str> = known.collect();
    let message = format!("--{id}: there is no register '{name}'");
    CliError::usage(message).hint(format!("choose from {}", known.join(" ").to_lowercase()))
}

/// What `-j` calls the kinds of branches.
const BRANCHES: [(&str, BranchSampleType); 17] = [
    ("u", BranchSampleType::USER),
    ("k", BranchSampleType::KERNEL),
    ("hv", BranchSampleType::HV),
    ("any", BranchSampleType::ANY),
    ("any_call", BranchSampleType::ANY_CALL),
    ("any_ret", BranchSampleType::ANY_RETURN),
    ("ind_call", BranchSampleType::IND_CALL),
    ("abort_tx", BranchSampleType::ABORT_TX),
    ("in_tx", BranchSampleType::IN_TX),
    ("no_tx", BranchSampleType::NO_TX),
    ("cond", BranchSampleType::COND),
    ("stack", BranchSampleType::CALL_STACK),
    ("ind_jmp", BranchSampleType::IND_JUMP),
    ("call", BranchSampleType::CALL),
    ("save_type", BranchSampleType::TYPE_SAVE),
    ("hw_index", BranchSampleType::HW_INDEX),
    ("priv", BranchSampleType::PRIV_SAVE),
];
/// Those that only say whose branches.
const LEVELS: u64 = BranchSampleType::USER.0 | BranchSampleType::KERNEL.0 | BranchSampleType::HV.0;

/// The branches that samples are to hold.
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
        return Err(CliError::usage("-b means '-j any': give one of them"));
    }
    let mut mask = BranchSampleType::default();
    for name in names.split(',') {
        let known = BRANCHES.iter().find(|(known, _)| *known == name);
        let (_, bit) = known.ok_or_else(|| {
            let names: Vec<&str> = BRANCHES.iter().map(|(name, _)| *name).collect();
            CliError::usage(format!("unknown branch filter {name}"))
                .hint(format!("choose from {}", names.join(",")))
        })?;
        mask |= *bit;
    }
    Ok(if mask.0 & !LEVELS == 0 {
        mask | BranchSampleType::ANY
    } else {
        mask
    })
}
