//! The running kernel and its modules.

use std::io::Write as _;
use std::path::Path;

use rperf_buildid_cache::KERNEL_OBJECT;
use rperf_symbol::{BuildId, Endianness, build_id_of_notes};
use rperf_sys::{Module, Proc, kernel_notes, module_notes, uname};

use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::live::limits::kernel_addresses_hint;

const SYSFS: &str = "/sys";
const PROC: &str = "/proc";

/// Prints the kernel's build-id.
pub(super) fn print_id(context: &Context) -> Result<(), CliError> {
    let notes = kernel_notes(Path::new(SYSFS))
        .map_err(|error| CliError::from(anyhow::Error::new(error).context("/sys/kernel/notes")))?;
    let id = id_of(&notes)
        .ok_or_else(|| CliError::message(255, "/sys/kernel/notes: the kernel has no build-id"))?;
    writeln!(context.stdout(), "{id}")?;
    Ok(())
}

/// Prints build-id (if known), start and end address, and name of the kernel and each module, sorted by start address.
pub(super) fn print_maps(context: &Context) -> Result<(), CliError> {
    let proc = Proc::new(PROC);
    let text = proc
        .kernel_text()
        .map_err(|error| CliError::from(anyhow::Error::new(error).context("/proc/kallsyms")))?;
    let text = text.ok_or_else(|| {
        CliError::message(255, "/proc/kallsyms does not show kernel addresses")
            .hint(kernel_addresses_hint())
    })?;
    let module_folder = format!("/lib/modules/{}", uname()?.release);
    let modules = proc
        .modules(Path::new(&module_folder))
        .map_err(|error| CliError::from(anyhow::Error::new(error).context("/proc/modules")))?;
    let kernel = KernelMapRow {
        id: kernel_notes(Path::new(SYSFS))
            .ok()
            .and_then(|notes| id_of(&notes)),
        start: text.start,
        end: text.end,
        name: KERNEL_OBJECT.to_owned(),
    };
    let mut rows: Vec<KernelMapRow> = modules.iter().map(KernelMapRow::of_module).collect();
    rows.push(kernel);
    rows.sort_by_key(|row| row.start);
    let mut out = context.stdout();
    for row in rows {
        let id = row.id.map(|id| id.to_string()).unwrap_or_default();
        writeln!(out, "{id} {:16x} {:16x} {}", row.start, row.end, row.name)?;
    }
    Ok(())
}

/// A line of `--kernel-maps`.
struct KernelMapRow {
    id: Option<BuildId>,
    start: u64,
    end: u64,
    name: String,
}

impl KernelMapRow {
    fn of_module(module: &Module) -> Self {
        let notes = module_notes(Path::new(SYSFS), &module.name);
        let name = match &module.file {
            Some(path) => path.to_string_lossy().into_owned(),
            None => format!("[{}]", module.name),
        };
        Self {
            id: notes.ok().and_then(|notes| id_of(&notes)),
            start: module.start,
            end: module.start.saturating_add(module.size),
            name,
        }
    }
}

fn id_of(notes: &[u8]) -> Option<BuildId> {
    let endian = if cfg!(target_endian = "big") {
        Endianness::Big
    } else {
        Endianness::Little
    };
    build_id_of_notes(notes, endian)
}
