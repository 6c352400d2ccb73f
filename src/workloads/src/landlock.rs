//! `landlock`: system calls with arguments whose values `trace` shows by name.

use crate::{Arguments, StackFrame, Workload, WorkloadError};

pub(crate) const WORKLOAD: Workload = Workload {
    name: "landlock",
    arguments: "",
    summary: "landlock_add_rule(2) with arguments that the kernel refuses",
    body,
};

/// The rule of a path: `struct landlock_path_beneath_attr` of linux/landlock.h, which is packed.
#[repr(C, packed)]
struct PathBeneath {
    allowed_access: u64,
    parent_fd: i32,
}

/// The rule of a port: `struct landlock_net_port_attr` of linux/landlock.h.
#[repr(C)]
struct NetPort {
    allowed_access: u64,
    port: u64,
}

/// `LANDLOCK_RULE_PATH_BENEATH`.
const PATH_BENEATH: libc::c_int = 1;
/// `LANDLOCK_RULE_NET_PORT`.
const NET_PORT: libc::c_int = 2;
/// `LANDLOCK_ACCESS_FS_READ_FILE`.
const ACCESS_FS_READ_FILE: u64 = 1 << 2;
/// `LANDLOCK_ACCESS_NET_BIND_TCP`.
const ACCESS_NET_BIND_TCP: u64 = 1 << 0;
/// The descriptor of the ruleset, which need not be open: the kernel checks the flags first.
const RULESET: libc::c_int = 11;
/// Undefined flags, so that the kernel refuses the call. They and the other arbitrary numbers are those of perf's workload.
const FLAGS: libc::c_uint = 45;

fn body(arguments: &mut Arguments<'_>) -> Result<(), WorkloadError> {
    arguments.end()?;
    landlock();
    Ok(())
}

/// Calls landlock_add_rule(2) twice: with the rule of a path, and with the rule of a port.
#[unsafe(no_mangle)]
#[inline(never)]
pub(crate) extern "C" fn landlock() {
    // Gives the function a frame pointer, up to `end`.
    let frame = StackFrame::new();
    // The kernel refuses the flags before it reads the rules, so `parent_fd` and `port` are arbitrary numbers.
    let path = PathBeneath {
        allowed_access: ACCESS_FS_READ_FILE,
        parent_fd: 14,
    };
    let port = NetPort {
        allowed_access: ACCESS_NET_BIND_TCP,
        port: 19,
    };
    // SAFETY: both rules have the layout that the kernel reads for their type, and outlive the calls.
    unsafe {
        libc::syscall(
            libc::SYS_landlock_add_rule,
            RULESET,
            PATH_BENEATH,
            &raw const path,
            FLAGS,
        );
        libc::syscall(
            libc::SYS_landlock_add_rule,
            RULESET,
            NET_PORT,
            &raw const port,
            FLAGS,
        );
    }
    frame.end();
}
