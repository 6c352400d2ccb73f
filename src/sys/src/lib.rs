//! What the kernel offers, as safe functions: `perf_event_open(2)`, ring memory, `/proc`, sysfs, tracefs,
//! sysctls, signals, a workload's fork and exec, mapped files.
//!
//! This crate reads and calls; formats that have a home elsewhere (ELF, kallsyms, tracepoint formats)
//! are parsed there. File systems stand under a root the caller names, so that tests bring their own.
//! Nothing here needs NSS or dlopen: it works in static binaries.
#![expect(unsafe_code, reason = "system calls and memory shared with the kernel")]

mod affinity;
mod aux_map;
mod cgroup;
mod clock;
mod counter;
mod cpu_list;
mod cut_files;
mod flight_ring;
mod host;
mod kernel_file;
mod kernel_map;
mod limits;
mod map_file;
mod mapping;
mod out_of_memory;
mod pipe;
mod priority;
mod procfs;
mod ring_map;
mod ring_memory;
mod signals;
mod sysctl;
mod sysfs;
mod task_end;
mod terminal;
mod time_zone;
mod tracefs;
mod vdso32;
mod workload;

pub use affinity::Bound;
pub use aux_map::AuxMap;
pub use cgroup::{Cgroup, CgroupFolder, cgroups};
pub use clock::{clock_resolution, clock_time, timestamp_counter};
pub use counter::{Counter, Observed, PERF_FLAG_FD_CLOEXEC, PERF_FLAG_PID_CGROUP, Reading};
pub use cpu_list::{CpuList, CpuListError};
pub use cut_files::{found_cut_file, survive_cut_files};
pub use flight_ring::FlightRing;
pub use host::{
    Uname, cpuid, duplicate, effective_user, kernel_notes, module_notes, page_size, parallelism,
    sync_disks, thousands_separator, uname, unix_time, vdso_image,
};
pub use kernel_file::{kernel_file, kernel_text};
pub use kernel_map::{KernelText, Module};
pub use limits::{address_space_limit, raise_open_files};
pub use map_file::{MappedFile, map, map_file};
pub use out_of_memory::{
    Allocator, OutOfMemoryMessage, TerminalBackup, explain_out_of_memory, forget_pager, note_pager,
};
pub use pipe::widen_pipe;
pub use priority::{Urgent, run_in_real_time};
pub use procfs::{MapEntry, Proc, Status, map_entries};
pub use ring_map::RingMap;
pub use ring_memory::TimeConversion;
pub use signals::{Ready, Signals, die_by, poll, signal_text};
pub use sysctl::Sysctl;
pub use sysfs::{CacheLevel, CpuGroups, CpuPlace, CpuState, Node, Sysfs};
pub use task_end::TaskEnd;
pub use terminal::{KeyInput, window_size};
pub use time_zone::{unused_name, utc_offset};
pub use tracefs::Tracefs;
pub use vdso32::vdso32_image;
pub use workload::{Ended, Program, Usage, Workload};
