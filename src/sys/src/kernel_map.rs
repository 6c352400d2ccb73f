//! Addresses of the running kernel, its modules and its BPF trampolines.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use crate::Proc;

/// The text of the running kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelText {
    /// `_text` or `_stext`: the symbol at `start`.
    pub symbol: &'static str,
    /// Its address.
    pub start: u64,
    /// Address of `_etext`.
    pub end: u64,
}

/// A loaded module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module {
    /// Its name, with underscores.
    pub name: String,
    /// First address.
    pub start: u64,
    /// Size in bytes.
    pub size: u64,
    /// Its file below `/lib/modules/RELEASE`, if there is one.
    pub file: Option<PathBuf>,
}

/// A symbol of code that the kernel generated to call BPF programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BpfImage {
    /// `bpf_trampoline_…`, `bpf_dispatcher_…`.
    pub name: String,
    /// Its address.
    pub address: u64,
}

impl Proc {
    /// Returns the trampolines and dispatchers of BPF programs in `kallsyms`; none if addresses are hidden.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub fn bpf_images(&self) -> io::Result<Vec<BpfImage>> {
        let file = File::open(self.path("kallsyms"))?;
        Ok(find_bpf_images(BufReader::with_capacity(1 << 16, file)))
    }

    /// Finds the kernel's text in `kallsyms`; `None` if addresses are hidden (`kptr_restrict`) or
    /// the symbols are missing.
    ///
    /// The kernel generates `kallsyms` while it is read, which takes some 40 ms for the whole file.
    /// If `iomem` has the size of the code (on x86-64), reading stops at the first symbol after the
    /// start of the text.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub fn kernel_text(&self) -> io::Result<Option<KernelText>> {
        let size = match cfg!(target_arch = "x86_64") {
            true => self.code_size(),
            false => None,
        };
        let file = File::open(self.path("kallsyms"))?;
        let lines = BufReader::with_capacity(1 << 16, file);
        Ok(find_text(lines, size))
    }

    /// Number of bytes from `_text` to `_etext`: the size of the region `Kernel code` in `iomem` on x86
    /// (`code_resource` in arch/x86/kernel/setup.c); on other architectures the region has another end.
    /// `None` if `iomem` lacks the region or hides addresses.
    fn code_size(&self) -> Option<u64> {
        let text = fs::read_to_string(self.path("iomem")).ok()?;
        let line = text
            .lines()
            .find_map(|line| line.strip_suffix(" : Kernel code"))?;
        let (first, last) = line.trim_start().split_once('-')?;
        let [first, last] = [first, last].map(|digits| u64::from_str_radix(digits, 16).ok());
        let size = last?.checked_sub(first?)?.checked_add(1)?;
        // Hidden addresses are 0.
        (last != Some(0)).then_some(size)
    }

    /// The address of the first symbol of this name in `kallsyms`, of the kernel or a module; `None`
    /// if there is none, or addresses are hidden.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub fn kernel_symbol(&self, name: &str) -> io::Result<Option<u64>> {
        let file = File::open(self.path("kallsyms"))?;
        Ok(find_symbol(BufReader::with_capacity(1 << 16, file), name))
    }

    /// The loaded modules, with their files from `library` (`/lib/modules/RELEASE`). Empty on
    /// kernels without modules and if addresses are hidden.
    ///
    /// # Errors
    /// If `modules` exists but cannot be read.
    pub fn modules(&self, library: &Path) -> io::Result<Vec<Module>> {
        let text = self.modules_text()?;
        let mut modules: Vec<Module> = text.lines().filter_map(module).collect();
        if !modules.is_empty() {
            let mut files = HashMap::new();
            let depth = 0;
            module_files(library, depth, &mut files);
            for module in &mut modules {
                module.file = files.remove(&module.name);
            }
        }
        Ok(modules)
    }
}

/// Finds start and end of the text. If its size is known, reading stops at the first symbol after its start.
fn find_text(mut lines: impl BufRead, size: Option<u64>) -> Option<KernelText> {
    let mut start_symbol: Option<(&'static str, u64)> = None;
    let mut line = Vec::new();
    while read_line(&mut lines, &mut line) {
        // The symbols are sorted by address; the order among equal addresses is undefined, so `_text` may follow `_stext`.
        if let (Some((symbol, start)), Some(size)) = (start_symbol, size)
            && address(&line)? != start
        {
            let end = start.checked_add(size)?;
            return Some(KernelText { symbol, start, end });
        }
        match name(&line) {
            b"_text" => start_symbol = Some(("_text", address(&line)?)),
            b"_stext" if start_symbol.is_none() => start_symbol = Some(("_stext", address(&line)?)),
            b"_etext" => {
                let ((symbol, start), end) = (start_symbol?, address(&line)?);
                return (start < end).then_some(KernelText { symbol, start, end });
            }
            _ => {}
        }
        // Addresses are hidden.
        if start_symbol.is_some_and(|(_, start)| start == 0) {
            return None;
        }
    }
    None
}

/// Reads the next line into `line`; returns whether there is one.
fn read_line(lines: &mut impl BufRead, line: &mut Vec<u8>) -> bool {
    line.clear();
    lines.read_until(b'\n', line).is_ok_and(|count| count > 0)
}

/// The text after the last blank of a line: the symbol's name, followed by a tab and the module if it is a module's symbol.
fn name(line: &[u8]) -> &[u8] {
    let line = line.trim_ascii_end();
    let blank = line.iter().rposition(|byte| *byte == b' ');
    line.get(blank.map_or(0, |at| at + 1)..).unwrap_or_default()
}

/// Finds a symbol. A line is an address, a letter, the name, and for symbols of modules a tab and
/// the module.
fn find_symbol(mut lines: impl BufRead, name: &str) -> Option<u64> {
    let mut line = Vec::new();
    while read_line(&mut lines, &mut line) {
        let mut words = line.split(u8::is_ascii_whitespace);
        if words.nth(2) == Some(name.as_bytes()) {
            return address(&line).filter(|address| *address != 0);
        }
    }
    None
}

/// Finds trampolines and dispatchers of BPF programs. Their lines name the module `[bpf]`, as those of the programs do.
fn find_bpf_images(mut lines: impl BufRead) -> Vec<BpfImage> {
    let (mut images, mut line) = (Vec::new(), Vec::new());
    while read_line(&mut lines, &mut line) {
        if line.trim_ascii_end().ends_with(b"\t[bpf]")
            && let Some(name) = line.split(u8::is_ascii_whitespace).nth(2)
            && (name.starts_with(b"bpf_trampoline_") || name.starts_with(b"bpf_dispatcher_"))
            && let Some(address) = address(&line).filter(|address| *address != 0)
        {
            let name = String::from_utf8_lossy(name).into_owned();
            images.push(BpfImage { name, address });
        }
    }
    images
}

fn address(line: &[u8]) -> Option<u64> {
    let digits = line.split(u8::is_ascii_whitespace).next()?;
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// Parses a line of `/proc/modules`: name, size, references, users, state, address, taints. `None` if the
/// address is hidden, or the line is invalid.
fn module(line: &str) -> Option<Module> {
    let mut words = line.split_whitespace();
    let name = words.next()?.to_owned();
    let size = words.next()?.parse().ok()?;
    let address = words.nth(3)?.strip_prefix("0x")?;
    let start = u64::from_str_radix(address, 16)
        .ok()
        .filter(|start| *start != 0)?;
    Some(Module {
        name,
        start,
        size,
        file: None,
    })
}

/// Collects `NAME.ko`, plain or compressed, by module name. `directory` is `depth` levels below the directory of the first
/// call.
fn module_files(directory: &Path, depth: u32, files: &mut HashMap<String, PathBuf>) {
    // More than enough: the trees under `kernel` are about six levels deep.
    if depth > 12 {
        return;
    }
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        match entry.file_type() {
            // Links to directories (`build`, `source`) are not followed: they have the type of a link.
            Ok(kind) if kind.is_dir() => module_files(&path, depth + 1, files),
            Ok(_) => {
                let name = path
                    .file_name()
                    .and_then(|name| name.to_str())
                    .unwrap_or_default();
                if let Some((name, "" | ".xz" | ".gz" | ".zst")) = name.split_once(".ko") {
                    files.insert(name.replace('-', "_"), path);
                }
            }
            Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_text_is_found_with_and_without_its_size() {
        let text = b"ffffffff81000000 T _stext\nffffffff81000000 T _text\nffffffff81000010 t x_text\nffffffff82000000 T _etext\n";
        let expected = |end| KernelText {
            symbol: "_text",
            start: 0xffff_ffff_8100_0000,
            end,
        };
        let text_of_size = |size| find_text(&text[..], size).unwrap();
        assert_eq!(text_of_size(None), expected(0xffff_ffff_8200_0000));
        assert_eq!(text_of_size(Some(0x1234)), expected(0xffff_ffff_8100_1234));
        let hidden = b"0000000000000000 T _stext\n0000000000000000 T _etext\n";
        for size in [None, Some(1)] {
            assert_eq!(find_text(&hidden[..], size), None);
            assert_eq!(find_text(&b"no such line"[..], size), None);
        }
    }

    #[test]
    fn images_are_distinguished_from_bpf_programs() {
        let text = b"ffffffff81000000 T bpf_trampoline_\n\
            ffffffffc0000000 t bpf_prog_6deef7357e7b4530_sd\t[bpf]\n\
            ffffffffc0001000 t bpf_trampoline_6442536467\t[bpf]\n\
            ffffffffc0002000 t bpf_dispatcher_xdp\t[bpf]\n\
            ffffffffc0003000 t bpf_trampoline_1\t[other]\n";
        let images = find_bpf_images(&text[..]);
        let images = images
            .iter()
            .map(|image| (image.address & 0xffff, &*image.name));
        let expected = [
            (0x1000, "bpf_trampoline_6442536467"),
            (0x2000, "bpf_dispatcher_xdp"),
        ];
        assert_eq!(images.collect::<Vec<_>>(), expected);
        let hidden = b"0000000000000000 t bpf_dispatcher_xdp\t[bpf]\n";
        assert_eq!(find_bpf_images(&hidden[..]), []);
    }

    #[test]
    fn code_sizes_need_an_unhidden_iomem() {
        let root = std::env::temp_dir().join(format!("rperf-iomem-{}", std::process::id()));
        fs::create_dir_all(&root).unwrap();
        let size = |text: &str| {
            fs::write(root.join("iomem"), text).unwrap();
            Proc::new(&root).code_size()
        };
        let iomem = "00100000-bfffffff : System RAM\n  01000000-0220bb07 : Kernel code\n  02400000-02e09fff : Kernel rodata\n";
        assert_eq!(size(iomem), Some(0x0120_bb08));
        assert_eq!(
            size("00000000-00000000 : System RAM\n  00000000-00000000 : Kernel code\n"),
            None
        );
        assert_eq!(size("00000000-ffffffff : System RAM\n"), None);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn the_size_in_iomem_is_that_of_the_symbols() {
        let proc = Proc::new("/proc");
        let lines = || BufReader::new(File::open("/proc/kallsyms").unwrap());
        // Without a size, the end is the address of `_etext`. `None` if addresses are hidden.
        let Some(searched) = find_text(lines(), None) else {
            return;
        };
        assert_eq!(proc.kernel_text().unwrap(), Some(searched));
    }

    #[test]
    fn modules_are_matched_with_their_files() {
        let root = std::env::temp_dir().join(format!("rperf-modules-{}", std::process::id()));
        let library = root.join("lib/kernel/fs");
        fs::create_dir_all(&library).unwrap();
        fs::write(library.join("nls-utf8.ko.xz"), "").unwrap();
        let text = "nls_utf8 16384 1 - Live 0xffffffffc0001000\nhidden 1 0 - Live 0x0000000000000000\nx 4096 0 - Live 0xffffffffc0009000 (O)\n";
        fs::write(root.join("modules"), text).unwrap();
        let modules = Proc::new(&root).modules(&root.join("lib")).unwrap();
        let [utf8, other] = &modules[..] else {
            panic!("{modules:?}")
        };
        assert_eq!(
            (utf8.name.as_str(), utf8.size, utf8.start),
            ("nls_utf8", 16384, 0xffff_ffff_c000_1000)
        );
        assert_eq!(utf8.file, Some(library.join("nls-utf8.ko.xz")));
        assert_eq!((other.name.as_str(), &other.file), ("x", &None));
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn symbols_are_found_by_full_name() {
        let text = b"ffffffff81000000 T _text\nffffffffc0000000 d jiffies_x\t[mod]\nffffffff82000000 D jiffies\n0 D hidden\n";
        let address_of = |name| find_symbol(&text[..], name);
        assert_eq!(address_of("jiffies"), Some(0xffff_ffff_8200_0000));
        assert_eq!(
            [address_of("hidden"), address_of("jiff"), address_of("")],
            [None; 3]
        );
    }
}
