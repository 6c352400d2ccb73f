//! Offsets of the members of the running kernel's structures, for BPF programs.

use std::path::Path;

use rperf_bpf::{Error, LockLayout, NamespaceLayout, OwnerLayout, PidLayout, SlabLayout};
use rperf_btf::Btf;

use crate::cli::pmus::SYSFS;

/// Returns the kernel's type information (BTF); `None` if there is none, or if it cannot be read.
pub(crate) fn kernel_btf() -> Option<Vec<u8>> {
    rperf_sys::read_pseudo_file(Path::new(SYSFS).join("kernel/btf/vmlinux")).ok()
}

/// Passes the kernel's type information to `find`.
fn with_types<T>(find: impl FnOnce(&Btf<'_>) -> Result<T, Error>) -> Result<T, Error> {
    let bytes = kernel_btf().ok_or(Error::NoBtf)?;
    let types = Btf::parse(&bytes).map_err(|_| Error::NoBtf)?;
    find(&types)
}

fn member_offset(types: &Btf<'_>, structure: &str, member: &str) -> Result<u16, Error> {
    let offset = types.member_offset(structure, member);
    let offset = offset.and_then(|offset| u16::try_from(offset).ok());
    offset.ok_or(Error::NoBtf)
}

/// Returns the offset in bytes of each (structure, member).
///
/// # Errors
///
/// [`Error::NoBtf`]: the kernel's type information cannot be read or lacks one of the members, or an offset exceeds 65,535.
pub(crate) fn member_offsets<const N: usize>(
    members: [(&str, &str); N],
) -> Result<[u16; N], Error> {
    with_types(|types| {
        let mut offsets = [0; N];
        for (offset, (structure, member)) in offsets.iter_mut().zip(members) {
            *offset = member_offset(types, structure, member)?;
        }
        Ok(offsets)
    })
}

/// Returns the offset in bytes of `task_struct::pid`, by which programs find the ids of tasks other than the current one.
///
/// # Errors
///
/// [`Error::NoBtf`], for the reasons listed at [`member_offsets`].
pub(crate) fn task_pid_offset() -> Result<u16, Error> {
    let [offset] = member_offsets([("task_struct", "pid")])?;
    Ok(offset)
}

/// Returns the offsets by which the id of a thread in its own PID namespace is found.
///
/// # Errors
///
/// [`Error::NoBtf`], for the reasons listed at [`member_offsets`].
pub(crate) fn pid_layout() -> Result<PidLayout, Error> {
    with_types(pid_members)
}

fn pid_members(types: &Btf<'_>) -> Result<PidLayout, Error> {
    Ok(PidLayout {
        thread_pid: member_offset(types, "task_struct", "thread_pid")?,
        level: member_offset(types, "pid", "level")?,
        numbers: member_offset(types, "pid", "numbers")?,
    })
}

/// Returns the offsets by which the PID namespace of a thread is found.
///
/// # Errors
///
/// [`Error::NoBtf`], for the reasons listed at [`member_offsets`].
pub(crate) fn namespace_layout() -> Result<NamespaceLayout, Error> {
    with_types(|types| {
        let common = member_offset(types, "pid_namespace", "ns")?;
        let number = common.checked_add(member_offset(types, "ns_common", "inum")?);
        Ok(NamespaceLayout {
            pids: pid_members(types)?,
            task_pid: member_offset(types, "task_struct", "pid")?,
            upid_namespace: member_offset(types, "upid", "ns")?,
            number: number.ok_or(Error::NoBtf)?,
        })
    })
}

/// Returns the offsets by which the owners of the running kernel's locks are found.
///
/// # Errors
///
/// [`Error::NoBtf`], for the reasons listed at [`member_offsets`].
pub(crate) fn lock_owner_layout() -> Result<OwnerLayout, Error> {
    let [mutex, rwsem, task_pid] = member_offsets([
        ("mutex", "owner"),
        ("rw_semaphore", "owner"),
        ("task_struct", "pid"),
    ])?;
    Ok(OwnerLayout {
        mutex,
        rwsem,
        task_pid,
    })
}

/// Returns the offsets by which the running kernel's locks are recognized; `None` if its type information cannot be read or lacks
/// a member on the way from `task_struct` to `mmap_lock` or `siglock`.
pub(crate) fn lock_layout() -> Option<LockLayout> {
    with_types(|types| find_lock_layout(types).ok_or(Error::NoBtf)).ok()
}

fn find_lock_layout(types: &Btf<'_>) -> Option<LockLayout> {
    let offset = |structure: &str, member: &str| member_offset(types, structure, member).ok();
    let run_queue = || {
        let queue = offset("task_struct", "se")?.checked_add(offset("sched_entity", "cfs_rq")?)?;
        Some([queue, offset("cfs_rq", "rq")?, offset("rq", "__lock")?])
    };
    let slab = || {
        Some(SlabLayout {
            function: types.function("bpf_get_kmem_cache")?,
            name: offset("kmem_cache", "name")?,
        })
    };
    Some(LockLayout {
        mmap_lock: [
            offset("task_struct", "mm")?,
            offset("mm_struct", "mmap_lock")?,
        ],
        siglock: [
            offset("task_struct", "sighand")?,
            offset("sighand_struct", "siglock")?,
        ],
        run_queue: run_queue(),
        slab: slab(),
    })
}
