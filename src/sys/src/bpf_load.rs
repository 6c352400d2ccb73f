//! Loading BPF programs, and running them at tracepoints and at other programs: bpf(2).

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};

use crate::bpf_info::{PROG_GET_FD_BY_ID, first_function_type_id, open_by_id};
use crate::bpf_map::bpf;
use crate::bpf_program_info;
use crate::bpf_types::{FUNCTION_TYPE_ID, load_types};

/// Commands of linux/bpf.h.
const PROG_LOAD: libc::c_int = 5;
const PROG_TEST_RUN: libc::c_int = 10;
const RAW_TRACEPOINT_OPEN: libc::c_int = 17;
/// Licence of all programs, in a spelling with which the kernel permits all helpers.
const LICENSE: &[u8] = b"Dual MIT/GPL\0";
/// The size of the buffer for the verifier's log, in bytes.
const LOG_SIZE: usize = 1 << 18;
/// The size of a program's name in bytes, with its NUL (`BPF_OBJ_NAME_LEN`).
const NAME_SIZE: usize = 16;

/// The part of `union bpf_attr` that loads a program.
#[repr(C)]
#[derive(Default)]
struct LoadAttr {
    prog_type: u32,
    insn_cnt: u32,
    insns: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log_buf: u64,
    kern_version: u32,
    prog_flags: u32,
    prog_name: [u8; NAME_SIZE],
    prog_ifindex: u32,
    expected_attach_type: u32,
    prog_btf_fd: u32,
    func_info_rec_size: u32,
    func_info: u64,
    func_info_cnt: u32,
    line_info_rec_size: u32,
    line_info: u64,
    line_info_cnt: u32,
    attach_btf_id: u32,
    attach_prog_fd: u32,
    padding: u32,
}

/// The part of `union bpf_attr` for `BPF_RAW_TRACEPOINT_OPEN`.
#[repr(C)]
#[derive(Default)]
struct RawTracepointAttr {
    name: u64,
    prog_fd: u32,
    padding: u32,
}

/// The part of `union bpf_attr` for `BPF_PROG_TEST_RUN`.
#[repr(C)]
#[derive(Default)]
struct TestRunAttr {
    prog_fd: u32,
    retval: u32,
    data_size_in: u32,
    data_size_out: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration: u32,
    ctx_size_in: u32,
    ctx_size_out: u32,
    ctx_in: u64,
    ctx_out: u64,
    flags: u32,
    cpu: u32,
}

/// The type, the name and the attachment of a program.
#[derive(Debug, Default)]
pub(crate) struct LoadOptions<'a> {
    /// `enum bpf_prog_type`.
    pub(crate) kind: u32,
    /// Its name, of which `bpf_prog_info` has the first 15 bytes. If empty, the program has no name and no type information.
    pub(crate) name: &'a str,
    /// `enum bpf_attach_type`.
    pub(crate) attachment: u32,
    /// The program that this one is attached to, and the BTF id of the type of that program's first function.
    pub(crate) target: Option<(BorrowedFd<'a>, u32)>,
}

/// Loads a program from encoded instructions. The verifier writes its log to `log`, unless that is empty.
pub(crate) fn load_program(
    options: &LoadOptions<'_>,
    instructions: &[[u8; 8]],
    log: &mut [u8],
) -> io::Result<OwnedFd> {
    let mut attr = LoadAttr {
        prog_type: options.kind,
        insn_cnt: u32::try_from(instructions.len()).map_err(io::Error::other)?,
        insns: instructions.as_ptr().addr() as u64,
        license: LICENSE.as_ptr().addr() as u64,
        expected_attach_type: options.attachment,
        ..LoadAttr::default()
    };
    // A `struct bpf_func_info` of 8 bytes: an offset in instructions, and the type of the function that begins there.
    let function_info = [0, FUNCTION_TYPE_ID];
    // If the types cannot be loaded, the program is loaded without them.
    let types = match options.name {
        "" => None,
        name => load_types(name).ok(),
    };
    if let Some(types) = &types {
        attr.prog_btf_fd = types.as_raw_fd().cast_unsigned();
        attr.func_info = function_info.as_ptr().addr() as u64;
        attr.func_info_rec_size = 8;
        attr.func_info_cnt = 1;
    }
    for (place, letter) in attr
        .prog_name
        .iter_mut()
        .zip(options.name.bytes().take(NAME_SIZE - 1))
    {
        *place = letter;
    }
    if let Some((program, function)) = options.target {
        attr.attach_prog_fd = program.as_raw_fd().cast_unsigned();
        attr.attach_btf_id = function;
    }
    if !log.is_empty() {
        attr.log_level = 1;
        attr.log_size = u32::try_from(log.len()).map_err(io::Error::other)?;
        attr.log_buf = log.as_mut_ptr().addr() as u64;
    }
    // SAFETY: instructions, the function's type and the licence, which ends with a NUL, live during the call; the log has the
    // size that is passed; the result is a new descriptor without other owner.
    unsafe { Ok(OwnedFd::from_raw_fd(bpf(PROG_LOAD, &mut attr)?)) }
}

/// The reason for which a program was not loaded or not attached.
#[derive(Debug)]
pub struct BpfLoadError {
    /// What bpf(2) reports: `EPERM`, `ENOSYS`; `EINVAL` or `EACCES` from the verifier; `ENOSPC` if its log is too long.
    pub error: io::Error,
    /// The verifier's log if it refused the program, otherwise empty.
    pub log: String,
}

/// Loads a program; the error has the verifier's log if it refused the program.
fn load_logged(
    options: &LoadOptions<'_>,
    instructions: &[[u8; 8]],
) -> Result<OwnedFd, BpfLoadError> {
    // The log costs time, so only a second attempt after a failure requests it.
    load_program(options, instructions, &mut []).or_else(|error| match error.raw_os_error() {
        Some(libc::EPERM | libc::ENOSYS) => Err(BpfLoadError {
            error,
            log: String::new(),
        }),
        _ => {
            let mut log = vec![0; LOG_SIZE];
            load_program(options, instructions, &mut log).map_err(|error| {
                let text = log.split(|byte| *byte == 0).next().unwrap_or_default();
                let log = String::from_utf8_lossy(text).into_owned();
                BpfLoadError { error, log }
            })
        }
    })
}

/// A loaded program for raw tracepoints.
#[derive(Debug)]
pub struct RawTracepointProgram(OwnedFd);

impl AsFd for RawTracepointProgram {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The attachment of a program, which ends when this is dropped.
#[derive(Debug)]
pub struct BpfLink {
    _fd: OwnedFd,
}

impl RawTracepointProgram {
    /// `BPF_PROG_TYPE_RAW_TRACEPOINT`.
    const TYPE: u32 = 17;

    /// Loads a program of encoded instructions (`struct bpf_insn`). Its name may have letters, digits and `_`; a program without
    /// a name has no type information.
    ///
    /// # Errors
    /// [`BpfLoadError`].
    pub fn load(name: &str, instructions: &[[u8; 8]]) -> Result<Self, BpfLoadError> {
        let options = LoadOptions {
            kind: Self::TYPE,
            name,
            ..LoadOptions::default()
        };
        load_logged(&options, instructions).map(Self)
    }

    /// Runs the program at each hit of a tracepoint (`BPF_RAW_TRACEPOINT_OPEN`).
    ///
    /// # Errors
    /// What bpf(2) reports: `ENOENT` for an unknown tracepoint; [`io::ErrorKind::InvalidInput`] for a name with a NUL.
    pub fn attach(&self, tracepoint: &str) -> io::Result<BpfLink> {
        let name = CString::new(tracepoint)?;
        link(&self.0, name.as_ptr().addr() as u64)
    }

    /// Runs the program once on a CPU (`BPF_PROG_TEST_RUN`); it must not read arguments.
    ///
    /// # Errors
    /// What bpf(2) reports: `ENXIO` for an offline CPU; `EINVAL` before Linux 5.10.
    pub fn run_on(&self, cpu: u32) -> io::Result<()> {
        /// `BPF_F_TEST_RUN_ON_CPU`.
        const ON_CPU: u32 = 1;
        let mut attr = TestRunAttr {
            prog_fd: self.0.as_raw_fd().cast_unsigned(),
            flags: ON_CPU,
            cpu,
            ..TestRunAttr::default()
        };
        // SAFETY: the command reads and writes numbers of the structure only, since all addresses in it (data, context) are 0.
        unsafe { bpf(PROG_TEST_RUN, &mut attr) }.map(drop)
    }
}

/// A loaded program for perf events (`struct bpf_perf_event_data`), which returns whether a sample is written.
#[derive(Debug)]
pub struct PerfEventProgram(OwnedFd);

impl PerfEventProgram {
    /// Loads a program of encoded instructions, as [`RawTracepointProgram::load`].
    ///
    /// # Errors
    /// [`BpfLoadError`].
    pub fn load(name: &str, instructions: &[[u8; 8]]) -> Result<Self, BpfLoadError> {
        let options = LoadOptions {
            // BPF_PROG_TYPE_PERF_EVENT.
            kind: 7,
            name,
            ..LoadOptions::default()
        };
        load_logged(&options, instructions).map(Self)
    }
}

impl AsFd for PerfEventProgram {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Attaches a program to the tracepoint whose name is at the address `name`, or, if the address is 0, to the target that the
/// program was loaded for.
fn link(program: &OwnedFd, name: u64) -> io::Result<BpfLink> {
    let mut attr = RawTracepointAttr {
        name,
        prog_fd: program.as_raw_fd().cast_unsigned(),
        padding: 0,
    };
    // SAFETY: a name ends with a NUL and lives during the call; the result is a new descriptor without other
    // owner.
    let _fd = unsafe { OwnedFd::from_raw_fd(bpf(RAW_TRACEPOINT_OPEN, &mut attr)?) };
    Ok(BpfLink { _fd })
}

/// A loaded program to which other programs can be attached.
#[derive(Debug)]
pub struct TracedBpfProgram {
    fd: OwnedFd,
    /// The BTF id of the type of its first function.
    function: u32,
}

/// The place in the traced program at which an attached program runs (`BPF_TRACE_FENTRY`, `BPF_TRACE_FEXIT`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TracedPlace {
    /// Before the first instruction of the traced program.
    Entry,
    /// When the traced program returns.
    Exit,
}

impl TracedBpfProgram {
    /// Opens a program by its id; `None` if there is none.
    ///
    /// # Errors
    /// What [`bpf_program_info`] reports; [`io::ErrorKind::Unsupported`] for a program without type information (BTF).
    pub fn open(id: u32) -> io::Result<Option<Self>> {
        let (Some(fd), Some(info)) = (open_by_id(PROG_GET_FD_BY_ID, id)?, bpf_program_info(id)?)
        else {
            return Ok(None);
        };
        let function = first_function_type_id(&info).ok_or(io::ErrorKind::Unsupported)?;
        Ok(Some(Self { fd, function }))
    }

    /// Loads a program of encoded instructions, and runs it at each entry or exit of this one, depending on `place`.
    ///
    /// # Errors
    /// [`BpfLoadError`], also if the program is loaded but cannot be attached, as in kernels without BPF trampolines.
    pub fn attach(
        &self,
        place: TracedPlace,
        name: &str,
        instructions: &[[u8; 8]],
    ) -> Result<BpfLink, BpfLoadError> {
        /// `BPF_PROG_TYPE_TRACING`.
        const TRACING: u32 = 26;
        /// `BPF_TRACE_FENTRY`.
        const FENTRY: u32 = 24;
        /// `BPF_TRACE_FEXIT`.
        const FEXIT: u32 = 25;
        let options = LoadOptions {
            kind: TRACING,
            name,
            attachment: match place {
                TracedPlace::Entry => FENTRY,
                TracedPlace::Exit => FEXIT,
            },
            target: Some((self.fd.as_fd(), self.function)),
        };
        let program = load_logged(&options, instructions)?;
        let no_tracepoint = 0;
        link(&program, no_tracepoint).map_err(|error| BpfLoadError {
            error,
            log: String::new(),
        })
    }
}
