//! Kernel images, symbols and memory.

use rperf_testkit::Bytes;

use super::handmade::Process;
use crate::case::{Case, CaseInputs};
use crate::{elf, mutate};

/// The link address of the kernel of tests/hostile/kernel.c.
const KERNEL: u64 = 0xffff_ffff_8100_0000;

/// Command lines for a kernel image; `|` is a blank within an argument.
const WITH_IMAGE: &[&str] = &[
    "probe -k vmlinux -F",
    "probe -k vmlinux -L vfs_read",
    "probe -k vmlinux -V vfs_read --range --externs",
    "probe -k vmlinux -V ksys_read+8",
    "probe -k vmlinux -D vfs_read|file->name[1]|file->mode|count",
    "probe -k vmlinux -D vfs_read:3|$vars",
    "probe -k vmlinux -D ksys_read%return|$retval",
    "probe -k vmlinux -D kernel.c:25|some --bootconfig",
    "report --stdio -k vmlinux -s sym,srcline,symoff -i perf.data",
    "report --stdio -k vmlinux --inline -g -v -i perf.data",
    "annotate --stdio -k vmlinux -l -i perf.data",
    "script -k vmlinux -F ip,sym,srcline,insn,disasm -i perf.data",
    "buildid-cache -v -a vmlinux",
];

/// Command lines that read a listing of the kernel's symbols, or the kernel's memory.
const WITH_LISTING: &[&str] = &[
    "report --stdio --kallsyms kallsyms -s sym,symoff,dso -i perf.data",
    "report --stdio --kallsyms kallsyms -v -g -i perf.data",
    "script --kallsyms kallsyms -F ip,sym,symoff,dso -i perf.data",
    "annotate --stdio --kallsyms kallsyms -i perf.data",
    "flamegraph --kallsyms kallsyms --folded -o out.folded -i perf.data",
    "buildid-cache -v -k proc/kcore",
];

/// A recording with samples in the kernel and in modules.
fn samples() -> Vec<u8> {
    let addresses: Vec<u64> = (0..40).map(|number| KERNEL + number * 13).collect();
    let module = 0xffff_ffff_c000_0000;
    let process = Process {
        pid: 77,
        maps: &[
            (KERNEL, 0x100_0000, "[kernel.kallsyms]_text"),
            (module, 0x4000, "[hostile]"),
            (
                module + 0x4000,
                0x4000,
                "/lib/modules/6.1.0/kernel/fs/module.ko",
            ),
        ],
        addresses: &[
            &addresses[..],
            &[module + 16, module + 0x4010, u64::MAX - 4096],
        ]
        .concat(),
    };
    process.recording()
}

/// Symbols in the format of `/proc/kallsyms`.
fn symbols() -> Vec<u8> {
    let mut text = String::new();
    for number in 0..60 {
        let kind = ["T", "t", "W", "d", "A"][number % 5];
        let address = KERNEL + number as u64 * 16;
        let names = [
            "_text",
            "_stext",
            "startup_64",
            "vfs_read",
            "__SCT__x",
            "_sinittext",
        ];
        let name = names
            .get(number)
            .map_or(format!("function_{number}"), |name| (*name).to_owned());
        text += &format!("{address:016x} {kind} {name}\n");
    }
    text += "ffffffffc0000000 t in_module\t[hostile]\nffffffffc0000100 T other\t[hostile]\nffffffffc0004000 t more\t[bpf]\n";
    text.into_bytes()
}

/// A mutated kernel image.
pub(crate) fn image(inputs: &mut CaseInputs<'_>) -> Case {
    let (seeds, sandbox) = (inputs.seeds, inputs.sandbox);
    let random = &mut *inputs.random;
    let (Some(seed), Some(other)) = (seeds.images.first(), random.try_pick(&seeds.objects)) else {
        return listing(inputs);
    };
    let line = *random.pick(WITH_IMAGE);
    let mut case = Case::new("kernel image", line);
    for word in &mut case.words {
        *word = word.replace('|', " ");
    }
    case.may_be_silent = line.starts_with("buildid-cache");
    let mut bytes = elf::mutate(&seed.bytes, &other.bytes, random);
    if random.one_in(15) {
        bytes = seed.bytes.clone();
        bytes[random.below(4)] ^= 1 << random.below(8);
        case.must_report_error = Some("another magic number");
    }
    sandbox.write("vmlinux", bytes);
    sandbox.write("perf.data", samples());
    // The path of the source file in the debug information.
    sandbox.write("tests/hostile/kernel.c", include_bytes!("../kernel.c"));
    case
}

/// A mutated symbol listing, sometimes with kernel memory and a list of modules. Both of these may be mutated, too.
pub(crate) fn listing(inputs: &mut CaseInputs<'_>) -> Case {
    let random = &mut *inputs.random;
    let line = *random.pick(WITH_LISTING);
    let mut case = Case::new("kernel symbols", line);
    case.may_be_silent = line.starts_with("buildid-cache");
    case.outputs
        .extend(line.contains("out.folded").then(|| "out.folded".to_owned()));
    let mut text = symbols();
    for _ in 0..1 + random.below(4) {
        mutate::text(&mut text, &symbols(), random);
    }
    if random.one_in(15) {
        text = b"There are no\nsymbols here.\n".to_vec();
        case.must_report_error = Some("a list without symbols");
    }
    inputs.sandbox.write("kallsyms", &text);
    inputs.sandbox.write("perf.data", samples());
    if line.contains("kcore") || random.one_in(3) {
        let mut memory = memory();
        // The ELF header after `e_ident`, and the program headers, as numbers of one random width.
        let fields: Vec<_> =
            mutate::Field::all(16, 64 + 3 * 56, *random.pick(&[2, 4, 8])).collect();
        for _ in 0..random.below(4) {
            random.pick(&fields).corrupt(&mut memory, random);
        }
        if random.one_in(5) {
            mutate::truncate(&mut memory, random);
        }
        inputs.sandbox.write("proc/kcore", memory);
        inputs.sandbox.write("proc/kallsyms", &text);
        inputs.sandbox.write("sys/kernel/notes", build_id_note());
        let mut modules = b"hostile 16384 0 - Live 0xffffffffc0000000\nother 8192 1 hostile, Live 0xffffffffc0008000\n".to_vec();
        if random.one_in(2) {
            mutate::text(&mut modules, &symbols(), random);
        }
        inputs.sandbox.write("proc/modules", modules);
    }
    case
}

/// The ELF note with the build-id of the kernel.
fn build_id_note() -> Vec<u8> {
    let sizes_and_type = Bytes::new().u32(4).u32(20).u32(3);
    sizes_and_type.raw(b"GNU\0").raw([7; 20]).done()
}

/// Kernel memory in the format of `/proc/kcore`: an ELF header, three program headers, the note, and two pages of memory.
fn memory() -> Vec<u8> {
    const PAGE: u64 = 0x1000;
    let note = build_id_note();
    let header = Bytes::new().raw(b"\x7fELF\x02\x01\x01").raw([0; 9]);
    let header = header.u16(4).u16(62).u32(1).u64(0).u64(64).u64(0).u32(0);
    let mut header = header.u16(64).u16(56).u16(3).u16(0).u16(0).u16(0);
    let size = note.len() as u64;
    // PT_NOTE: the note follows the program headers.
    header = header
        .u32(4)
        .u32(4)
        .u64(232)
        .u64(0)
        .u64(0)
        .u64(size)
        .u64(size)
        .u64(4);
    // PT_LOAD: a page of the kernel, and one of the modules.
    for (number, address) in (1..).zip([KERNEL, 0xffff_ffff_c000_0000]) {
        header = header.u32(1).u32(7).u64(number * PAGE).u64(address).u64(0);
        header = header.u64(PAGE).u64(PAGE).u64(PAGE);
    }
    let mut file = header.raw(note).done();
    file.resize(3 * PAGE as usize, 0x90);
    file
}
