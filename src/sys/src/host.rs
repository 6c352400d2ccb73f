//! Properties of this machine and this process, such as the kernel release, page size, processor identification, user and vdso;
//! duplicates of descriptors, and sync(2).

use std::ffi::CStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::FromRawFd as _;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Some of the names that uname(2) returns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uname {
    /// Host name.
    pub nodename: String,
    /// Kernel release, such as `6.1.0-18-amd64`.
    pub release: String,
    /// Architecture, such as `x86_64`.
    pub machine: String,
}

/// Calls uname(2).
///
/// # Errors
/// What uname(2) reports.
pub fn uname() -> io::Result<Uname> {
    // SAFETY: utsname consists of character arrays, for which zeros are valid.
    let mut names: libc::utsname = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel fills the structure passed to it.
    if unsafe { libc::uname(&raw mut names) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let text = |field: &[libc::c_char]| {
        // SAFETY: the kernel terminates each name with a NUL inside its array.
        let name = unsafe { CStr::from_ptr(field.as_ptr()) };
        name.to_string_lossy().into_owned()
    };
    Ok(Uname {
        nodename: text(&names.nodename),
        release: text(&names.release),
        machine: text(&names.machine),
    })
}

/// Size of a memory page in bytes.
#[must_use]
pub fn page_size() -> usize {
    // SAFETY: sysconf only returns a number.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).unwrap_or(4096)
}

/// Returns the number of threads that can run at once, at least 1: the CPUs that the calling thread may run on, within the quota
/// of its cgroup.
#[must_use]
pub fn parallelism() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Writes modified data and metadata of all file systems to disk (sync(2)).
pub fn sync_disks() {
    // SAFETY: the call takes nothing and cannot fail.
    unsafe { libc::sync() };
}

/// Duplicates an open file descriptor of this process by its number.
///
/// # Errors
/// What fcntl(2) reports: `EBADF` if there is no such descriptor, `EMFILE`.
pub fn duplicate_descriptor(number: i32) -> io::Result<File> {
    /// The new descriptor has at least this number, so that it is none of the standard streams.
    const LOWEST: i32 = 3;
    // SAFETY: the call takes numbers and returns a new descriptor, or fails.
    let fd = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, LOWEST) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, so `fd` is an open descriptor with no other owner.
    Ok(unsafe { File::from_raw_fd(fd) })
}

/// The thousands separator of the environment's locale; empty in the C locale, and if the C library
/// doesn't support locales.
#[must_use]
pub fn thousands_separator() -> String {
    // SAFETY: the name is a NUL-terminated string; the call only changes how the C library formats
    // numbers, which isn't used here.
    unsafe { libc::setlocale(libc::LC_NUMERIC, c"".as_ptr()) };
    // SAFETY: the call fills a static structure of the C library and returns its address.
    let conventions = unsafe { libc::localeconv() };
    if conventions.is_null() {
        return String::new();
    }
    // SAFETY: the structure belongs to the C library, and its strings are NUL-terminated; they are
    // copied at once.
    let separator = unsafe { CStr::from_ptr((*conventions).thousands_sep) };
    separator.to_string_lossy().into_owned()
}

/// The current time in seconds since 1970.
#[must_use]
pub fn unix_time() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |since| since.as_secs())
}

/// The effective user id (geteuid(2)).
#[must_use]
pub fn effective_user() -> u32 {
    // SAFETY: the call takes nothing and cannot fail.
    unsafe { libc::geteuid() }
}

/// The processor identification in perf's format: `vendor,family,model,stepping` on x86-64, the
/// MIDR in hexadecimal on arm64; `None` on other machines or if it can't be read.
#[must_use]
pub fn cpuid(sysfs: &Path) -> Option<String> {
    cpuid_of_this_architecture(sysfs)
}

#[cfg(target_arch = "x86_64")]
fn cpuid_of_this_architecture(_sysfs: &Path) -> Option<String> {
    use std::arch::x86_64::__cpuid;

    let identity = __cpuid(0);
    let mut vendor = Vec::with_capacity(12);
    for word in [identity.ebx, identity.edx, identity.ecx] {
        vendor.extend_from_slice(&word.to_le_bytes());
    }
    let vendor = String::from_utf8(vendor).ok()?;
    let version = __cpuid(1).eax;
    let (mut family, mut model) = (version >> 8 & 0xf, version >> 4 & 0xf);
    // CPUID leaf 1: the extended family is added in family 15 only, the extended model from family 6 on, as in Linux and perf.
    if family == 0xf {
        family += version >> 20 & 0xff;
    }
    if family >= 6 {
        model += (version >> 16 & 0xf) << 4;
    }
    Some(format!("{vendor},{family},{model},{}", version & 0xf))
}

#[cfg(target_arch = "aarch64")]
fn cpuid_of_this_architecture(sysfs: &Path) -> Option<String> {
    let cpus = fs::read_dir(sysfs.join("devices/system/cpu")).ok()?;
    let mut midrs: Vec<_> = cpus
        .flatten()
        .map(|cpu| cpu.path().join("regs/identification/midr_el1"))
        .filter(|path| path.exists())
        .collect();
    midrs.sort();
    let text = fs::read_to_string(midrs.first()?).ok()?;
    let midr = u64::from_str_radix(text.trim().trim_start_matches("0x"), 16).ok()?;
    // Variant and revision differ between steppings of one design; perf 6.1 clears them, too.
    Some(format!("0x{:016x}", midr & !0x00f0_000f))
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn cpuid_of_this_architecture(_sysfs: &Path) -> Option<String> {
    None
}

/// The ELF notes of the running kernel (`/sys/kernel/notes`), including its build-id.
///
/// # Errors
/// What opening and reading the file report.
pub fn kernel_notes(sysfs: &Path) -> io::Result<Vec<u8>> {
    fs::read(sysfs.join("kernel/notes"))
}

/// The ELF notes with the build-id of the loaded module `name`.
///
/// # Errors
/// What reading the file reports: [`io::ErrorKind::NotFound`] for a module without a build-id.
pub fn module_notes(sysfs: &Path, name: &str) -> io::Result<Vec<u8>> {
    fs::read(sysfs.join(format!("module/{name}/notes/.note.gnu.build-id")))
}

/// Returns the content of the vdso in this process.
///
/// # Errors
/// [`io::ErrorKind::NotFound`] without a vdso; what reading `maps` and `mem` of this process in `/proc` reports.
pub fn vdso_image() -> io::Result<Vec<u8>> {
    let maps = fs::read("/proc/self/maps")?;
    let entry = crate::map_entries(&maps).find(|entry| entry.name == b"[vdso]");
    let entry = entry.ok_or(io::ErrorKind::NotFound)?;
    let size = usize::try_from(entry.end.saturating_sub(entry.start));
    let mut image = vec![0; size.map_err(|_| io::ErrorKind::InvalidData)?];
    File::open("/proc/self/mem")?.read_exact_at(&mut image, entry.start)?;
    Ok(image)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_release_and_the_page_size_are_read() {
        let uname = uname().unwrap();
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
        assert_eq!(uname.release, release.trim());
        assert!(page_size().is_power_of_two());
    }

    #[test]
    fn descriptors_are_duplicated_if_they_are_open() {
        assert!(duplicate_descriptor(2).is_ok());
        assert_eq!(
            duplicate_descriptor(-1).unwrap_err().raw_os_error(),
            Some(libc::EBADF)
        );
    }

    #[test]
    fn the_vdso_is_an_elf_image() {
        assert_eq!(vdso_image().unwrap().first_chunk(), Some(b"\x7fELF"));
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn cpuid_agrees_with_proc_cpuinfo() {
        let id = cpuid(Path::new("/sys")).unwrap();
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap();
        let field = |name: &str| {
            let line = cpuinfo
                .lines()
                .find(|line| line.split(':').next().is_some_and(|key| key.trim() == name))?;
            Some(line.split(':').nth(1)?.trim().to_owned())
        };
        let expected =
            ["vendor_id", "cpu family", "model", "stepping"].map(|name| field(name).unwrap());
        assert_eq!(id, expected.join(","));
    }
}
