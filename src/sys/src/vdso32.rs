//! The vdso of 32-bit x86 processes. A 64-bit kernel maps it only into 32-bit processes. Therefore
//! a small 32-bit program is run that writes its own vdso to a pipe.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd as _, FromRawFd as _};
use std::process::{Command, Stdio};

/// The number of bytes that the program passes to write(2): at least the size of any vdso. The call ends at the first unmapped
/// page after the vdso.
const MAX_SIZE: u32 = 0x4000;
/// Usual load address of 32-bit programs.
const BASE: u32 = 0x0804_8000;
/// The size of `Elf32_Ehdr` in bytes.
const FILE_HEADER: u32 = 52;
/// The size of `Elf32_Phdr` in bytes.
const PROGRAM_HEADER: u32 = 32;
/// `MFD_EXEC` of linux/memfd.h, unknown to Linux before 6.3.
const MFD_EXEC: libc::c_uint = 0x10;

/// A program that finds the vdso of its process in the auxiliary vector (getauxval(3)) and writes
/// it to standard output. The comment on an instruction follows its last byte.
const CODE: [u8; 50] = [
    0x8b,
    0x0c,
    0x24, // mov (%esp),%ecx: the number of arguments
    0x8d,
    0x74,
    0x8c,
    0x08, // lea 8(%esp,%ecx,4),%esi: the environment
    0xfc, // cld
    0xad, // 1: lods
    0x85,
    0xc0, // test %eax,%eax
    0x75,
    0xfb, // jne 1b
    0xad, // 2: lods: a key of the vector
    0x91, // xchg %eax,%ecx
    0xad, // lods: its value
    0xe3,
    0x17, // jecxz 3f: AT_NULL, the end of the vector
    0x83,
    0xf9,
    0x21, // cmp $AT_SYSINFO_EHDR,%ecx
    0x75,
    0xf6, // jne 2b
    0x91, // xchg %eax,%ecx
    0xba,
    MAX_SIZE as u8,
    (MAX_SIZE >> 8) as u8,
    0,
    0, // mov $MAX_SIZE,%edx
    0xbb,
    1,
    0,
    0,
    0, // mov $1,%ebx
    0xb8,
    4,
    0,
    0,
    0, // mov $4,%eax: write(2)
    0xcd,
    0x80, // int $0x80
    0xb8,
    1,
    0,
    0,
    0, // 3: mov $1,%eax: exit(2)
    0x31,
    0xdb, // xor %ebx,%ebx
    0xcd,
    0x80, // int $0x80
];

/// Returns the content of the vdso that this machine's kernel maps into 32-bit processes.
///
/// # Errors
/// [`io::ErrorKind::Unsupported`] on machines other than x86-64; the error of creating or starting a
/// 32-bit program, which not every kernel supports; [`io::ErrorKind::NotFound`] if the program has no
/// vdso.
pub fn vdso32_image() -> io::Result<Vec<u8>> {
    if !cfg!(target_arch = "x86_64") {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let mut file = memory_file()?;
    file.write_all(&program())?;
    let mut command = Command::new(format!("/proc/self/fd/{}", file.as_raw_fd()));
    command
        .env_clear()
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    let image = command.output()?.stdout;
    if !image.starts_with(b"\x7fELF") {
        return Err(io::ErrorKind::NotFound.into());
    }
    Ok(image)
}

/// Builds an ELF file with one segment: its headers and the code.
fn program() -> Vec<u8> {
    let size = FILE_HEADER + PROGRAM_HEADER + CODE.len() as u32;
    // `e_ident`: ELFCLASS32, ELFDATA2LSB, EV_CURRENT.
    let mut file = b"\x7fELF\x01\x01\x01".to_vec();
    file.resize(16, 0);
    let halves = |file: &mut Vec<u8>, numbers: &[u16]| {
        file.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    };
    let words = |file: &mut Vec<u8>, numbers: &[u32]| {
        file.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    };
    // The rest of `Elf32_Ehdr` of elf(5): ET_EXEC, EM_386.
    halves(&mut file, &[2, 3]);
    let entry = BASE + FILE_HEADER + PROGRAM_HEADER;
    // `e_version`, `e_entry`, `e_phoff`, `e_shoff` and `e_flags`.
    words(&mut file, &[1, entry, FILE_HEADER, 0, 0]);
    // `e_ehsize`, `e_phentsize`, `e_phnum`; no section headers.
    let sizes = [FILE_HEADER as u16, PROGRAM_HEADER as u16, 1, 0, 0, 0];
    halves(&mut file, &sizes);
    // `Elf32_Phdr`: PT_LOAD, readable and executable.
    words(&mut file, &[1, 0, BASE, BASE, size, size, 5, 0x1000]);
    file.extend(CODE);
    file
}

fn memory_file() -> io::Result<File> {
    let create = |flags| {
        // SAFETY: the name is a C string that outlives the call.
        let descriptor = unsafe { libc::memfd_create(c"vdso32".as_ptr(), flags) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just created and has no other owner.
        Ok(unsafe { File::from_raw_fd(descriptor) })
    };
    create(libc::MFD_CLOEXEC | MFD_EXEC).or_else(|_| create(libc::MFD_CLOEXEC))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_image_is_a_32_bit_elf_file() {
        let Ok(image) = vdso32_image() else {
            // This kernel doesn't run 32-bit programs.
            return;
        };
        assert_eq!(image[4], 1, "ELFCLASS32");
        assert_eq!(image[18], 3, "EM_386");
        assert_eq!(image.len() % 4096, 0);
    }
}
