//! The names of the threads and files that arguments of system calls refer to by number.

use rperf_syscalls::{ArgumentKind, Syscall, TaskNames};
use rustc_hash::FxHashMap;

use super::fds::FileTables;

/// The names of threads, by thread id.
#[derive(Debug, Default)]
pub(super) struct CommNames(FxHashMap<u32, Vec<u8>>);

impl CommNames {
    pub(super) fn set(&mut self, tid: u32, comm: &[u8]) {
        self.0.insert(tid, comm.to_vec());
    }

    pub(super) fn get(&self, tid: u32) -> Option<&[u8]> {
        self.0.get(&tid).map(Vec::as_slice)
    }

    /// Gives a new thread the name of its parent.
    pub(super) fn fork(&mut self, parent_tid: u32, child_tid: u32) {
        if let Some(comm) = self.0.get(&parent_tid).cloned() {
            self.0.insert(child_tid, comm);
        }
    }
}

/// The names that the descriptors among a system call's arguments had when it began.
#[derive(Debug, Clone, Default)]
pub(super) struct FdNames(Vec<(i32, Vec<u8>)>);

impl FdNames {
    pub(super) fn of_call(
        tables: &FileTables,
        pid: u32,
        syscall: Option<&Syscall>,
        values: &[u64; 6],
    ) -> Self {
        let arguments = syscall.and_then(|call| call.arguments.as_deref());
        let arguments = arguments.unwrap_or_default().iter().zip(values);
        let is_fd = |kind| matches!(kind, ArgumentKind::Fd | ArgumentKind::DirFd);
        let fds = arguments.filter(|(argument, _)| is_fd(argument.kind));
        let named = fds.filter_map(|(_, value)| {
            let fd = *value as i32;
            Some((fd, tables.name(pid, fd)?.to_vec()))
        });
        Self(named.collect())
    }
}

/// The names for the arguments of one system call.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallNames<'a> {
    pub(super) comms: &'a CommNames,
    pub(super) fds: &'a FdNames,
}

impl TaskNames for CallNames<'_> {
    fn fd_path(&self, fd: i32) -> Option<&[u8]> {
        let named = self.fds.0.iter().find(|(known, _)| *known == fd);
        named.map(|(_, name)| name.as_slice())
    }

    fn comm(&self, tid: u32) -> Option<&[u8]> {
        self.comms.get(tid)
    }
}
