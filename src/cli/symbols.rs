//! What the commands that resolve addresses share: the first of the passes over a recording (`replay`), the default search paths
//! for files with symbols, and the vdso.

use std::num::NonZeroUsize;

use rperf_input::DiskFiles;
use rperf_perfdata::{EventDesc, Features, PerfData};
use rperf_replay::Replay;
use rperf_symbol::{FileBytes, SearchPaths};
use rperf_wire::{Attr, AttrFlags, SampleType};

use super::context::Context;
use super::progress::ProgressDisplay;

/// Runs pass 1 over a recording, which builds the World: the processes and mappings at each time. Adds the functions of the
/// recording's JIT dumps to the World. `progress` shows this pass and later ones.
pub(crate) fn replay<'a>(
    data: &'a PerfData<'a>,
    jobs: NonZeroUsize,
    progress: &ProgressDisplay,
) -> Result<Replay<'a>, rperf_replay::Error> {
    let mut replay = Replay::open_watched(data, jobs, progress.bytes_read.clone())?;
    // Most JIT dumps have times of `CLOCK_MONOTONIC`. If the recording has them, too, the times are compared as they are;
    // otherwise the offset between the two clocks is estimated.
    let is_monotonic = is_monotonic(data.events());
    rperf_resolve::add_jit_functions(replay.world_mut(), &DiskFiles, is_monotonic);
    Ok(replay)
}

/// Whether the times of a recording are those of `CLOCK_MONOTONIC`.
pub(crate) fn is_monotonic(events: &[EventDesc]) -> bool {
    let mut attrs = events.iter().map(|event| &event.attr);
    attrs.all(|attr| {
        attr.flags.contains(AttrFlags::USE_CLOCKID) && attr.clockid == libc::CLOCK_MONOTONIC
    })
}

/// Returns the default paths of files with symbols, for a recording with these header features.
pub(crate) fn search_paths(context: &Context, features: &Features<'_>) -> SearchPaths {
    let paths = SearchPaths::new(context.buildid_dir());
    match features.os_release() {
        Some(release) => paths.with_kernel_release(&release),
        None => paths,
    }
}

/// Whether the callchains of an event show inlined functions: as requested by `inlines`, otherwise only if they are unwound from
/// stack copies.
pub(crate) fn shows_inlines(attr: &Attr, inlines: Option<bool>) -> bool {
    let is_unwound = attr
        .sample_type
        .contains(SampleType::STACK_USER | SampleType::REGS_USER);
    inlines.unwrap_or(is_unwound)
}

/// Returns the image of `[vdso]` that the kernel maps into every process, if there is one.
pub(crate) fn own_vdso() -> Option<FileBytes> {
    rperf_sys::vdso_image().ok().map(FileBytes::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vdso_is_an_elf_file_if_there_is_one() {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let image = own_vdso();
        assert_eq!(image.is_some(), maps.contains("[vdso]"));
        assert!(image.is_none_or(|image| image.starts_with(b"\x7fELF")));
    }
}
