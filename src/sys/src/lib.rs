//! Safe wrappers of kernel interfaces, such as `perf_event_open(2)`, ring memory, bpf(2), `/proc`,
//! sysfs, tracefs, sysctls, signals, fork and exec of a workload, mapped files; and the allocator of
//! the program.
//!
//! This crate reads and writes files of the kernel and makes system calls; formats with a crate of their own (ELF,
//! tracepoint formats) are parsed in that crate. [`Proc`], [`Sysfs`], [`Tracefs`] and [`Sysctl`] access file
//! systems below a root chosen by the caller, so that tests can provide their own. Nothing requires
//! NSS or dlopen: the crate works in static binaries.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]
#![expect(unsafe_code, reason = "system calls and memory shared with the kernel")]

mod affinity;
mod anonymous_map;
mod aux_map;
#[cfg(any(test, target_env = "musl"))]
mod block_cache;
mod block_memory;
mod bpf;
mod bpf_info;
mod bpf_load;
mod bpf_map;
mod bpf_types;
mod cgroup;
mod children;
mod clock;
mod counter;
mod cpu_list;
mod epoll;
mod futex;
mod host;
mod kernel_map;
mod limits;
mod map_file;
mod mapping;
#[cfg(all(any(test, target_env = "musl"), target_arch = "x86_64"))]
mod memory_functions;
mod memory_policy;
mod mounts;
mod out_of_memory;
mod overwrite_ring;
mod pidfd;
mod pipe;
mod priority;
mod process_memory;
mod procfs;
mod pseudo_files;
mod ring_map;
mod ring_memory;
mod seccomp;
mod shared_memory;
mod signals;
mod syscalls;
mod sysctl;
mod sysfs;
mod terminal;
mod thread_registers;
mod time_zone;
mod tracefs;
mod truncated_files;
mod usleep;
mod vdso32;
mod workload;

pub use affinity::{AffinityGuard, allowed_cpus};
pub use anonymous_map::{AnonymousMap, PageOptions};
pub use aux_map::AuxMap;
pub use block_memory::BlockInstructions;
pub use bpf::{KprobeProgram, bpf_program_ids};
pub use bpf_info::{BpfProgramInfo, bpf_program_info, bpf_type_info};
pub use bpf_load::{
    BpfLink, BpfLoadError, PerfEventProgram, RawTracepointProgram, TracedBpfProgram, TracedPlace,
};
pub use bpf_map::{BpfMap, BpfMapKind, BpfMapShape};
pub use cgroup::{CgroupFolder, OpenCgroup, cgroups};
pub use children::{Children, execute, process_group};
pub use clock::{clock_resolution, clock_time, timestamp_counter};
pub use counter::{
    Counter, CounterValue, ObservedTask, PERF_FLAG_FD_CLOEXEC, PERF_FLAG_PID_CGROUP,
};
pub use cpu_list::{CpuList, CpuListError};
pub use epoll::{Epoll, EpollMode, EventFd};
pub use futex::{FutexScope, lock_memory, set_futex_buckets};
pub use host::{
    Uname, cpuid, duplicate_descriptor, effective_user, kernel_notes, module_notes, page_size,
    parallelism, sync_disks, thousands_separator, uname, unix_time, vdso_image,
};
pub use kernel_map::{BpfImage, KernelText, Module};
pub use limits::{address_space_limit, raise_open_files_limit};
pub use map_file::{MappedFile, map_file, map_open_file};
pub use memory_policy::bind_memory;
pub use out_of_memory::{
    Allocator, OutOfMemoryMessage, TerminalBackup, explain_out_of_memory, forget_pager, note_pager,
};
pub use overwrite_ring::OverwriteRing;
pub use pidfd::Pidfd;
pub use pipe::{keep_open_in_children, set_nonblocking, widen_pipe};
pub use priority::{PriorityBoost, run_in_real_time};
pub use process_memory::read_process_memory;
pub use procfs::{BlockedCall, MapEntry, Proc, TaskStatus, map_entries};
pub use pseudo_files::{link_target, list_pseudo_folder, read_pseudo_file, read_pseudo_file_text};
pub use ring_map::RingMap;
pub use ring_memory::TimeConversion;
pub use seccomp::GetppidListener;
pub use shared_memory::SharedMemory;
pub use signals::{Ready, Signals, exit_by_signal, poll, signal_text};
pub use syscalls::{syscall_names, syscall_number};
pub use sysctl::Sysctl;
pub use sysfs::{CacheLevel, CpuGroups, CpuIds, CpuState, NumaNodeCpus, Sysfs};
pub use terminal::{KeyInput, window_size};
pub use thread_registers::{ThreadRegisters, thread_registers};
pub use time_zone::{unused_path_with_time, utc_offset};
pub use tracefs::Tracefs;
pub use truncated_files::{found_truncated_file, handle_truncated_files};
pub use usleep::{CodePlace, usleep, usleep_place};
pub use vdso32::vdso32_image;
pub use workload::{Program, Usage, WaitStatus, Workload};
