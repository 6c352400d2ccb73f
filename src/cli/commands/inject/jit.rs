//! Writes an object file next to each jitdump (`jit-PID.dump`).

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use rperf_names::counted;
use rperf_rewrite::{DumpConverter, DumpedCode, DumpedObject};
use rperf_safefs::write_atomic;
use rperf_symbol::jit_dump::{JitDump, parse};
use rperf_symbol::{FileBytes, Files as _};

use crate::cli::context::Context;
use rperf_input::DiskFiles;

/// Reads jitdumps and writes their objects.
pub(super) struct JitDumpFiles<'c> {
    pub(super) context: &'c Context,
    pub(super) is_verbose: bool,
}

impl JitDumpFiles<'_> {
    fn read(&self, path: &Path) -> Result<JitDump, String> {
        let bytes: Option<FileBytes> = DiskFiles
            .read_trusted(path)
            .map_err(|error| error.to_string())?;
        let bytes = bytes.ok_or("the file belongs to another user")?;
        parse(&bytes).ok_or_else(|| "not a jitdump".to_owned())
    }

    /// Writes the object file of `dump`, the jitdump at `path`.
    fn write(&self, path: &Path, dump: &JitDump) -> io::Result<DumpedObject> {
        let object = dump.object_file();
        let target = object_path(path);
        write_atomic(&target, |out| out.write_all(&object.bytes))?;
        let functions = dump.functions().iter().zip(&object.offsets);
        let functions = functions.filter_map(|(function, offset)| {
            // Functions whose code is not in the dump have no offset: they are skipped.
            Some(DumpedCode {
                time: function.time,
                start: function.start,
                len: function.end - function.start,
                offset: (*offset)?,
            })
        });
        let functions: Vec<DumpedCode> = functions.collect();
        if self.is_verbose {
            self.context.note(format_args!(
                "{}: {} in {}",
                path.display(),
                counted(functions.len() as u64, "function"),
                target.display()
            ));
        }
        Ok(DumpedObject {
            path: target,
            started: dump.started,
            functions,
        })
    }
}

impl DumpConverter for JitDumpFiles<'_> {
    fn object(&mut self, path: &Path) -> Option<DumpedObject> {
        let name = path.display();
        let dump = match self.read(path) {
            Ok(dump) => dump,
            Err(cause) => {
                self.context
                    .warn(format_args!("{name}: {cause}; its functions are missing"));
                return None;
            }
        };
        if dump.truncated {
            self.context.warn(format_args!(
                "{name}: the last record is incomplete; the functions before it are used"
            ));
        }
        // The dump's times are values of a CPU counter, not of `CLOCK_MONOTONIC`.
        if dump.has_counter_times {
            self.unrelated_clock(path);
            return None;
        }
        match self.write(path, &dump) {
            Ok(object) => Some(object),
            Err(error) => {
                let target = object_path(path);
                self.context.warn(format_args!(
                    "failed to write {}: {error}; the functions of {name} are missing",
                    target.display()
                ));
                None
            }
        }
    }

    /// Warns of a dump whose clock can't be related to the recording's.
    fn unrelated_clock(&mut self, path: &Path) {
        self.context.warn(format_args!(
            "{}: its times come from another clock than the recording's; its functions are missing",
            path.display()
        ));
        self.context
            .note("hint: record with -k CLOCK_MONOTONIC, from the start of the program");
    }
}

/// Returns the path of the object next to a dump: `jitted-PID.so`.
fn object_path(dump: &Path) -> PathBuf {
    let name = dump.file_stem().unwrap_or_default().to_string_lossy();
    let pid = name.strip_prefix("jit-").unwrap_or(&name);
    dump.with_file_name(format!("jitted-{pid}.so"))
}
