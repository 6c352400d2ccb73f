use super::{Kernel, KernelSymbolList};
use crate::definition::parse;
use crate::error::Error;
use crate::search::SearchOptions;
use rperf_btf::Btf;
use rperf_testkit::btf::kernel as types;

/// Symbols as in `/proc/kallsyms`. The types have only one function:
/// `long vfs_read(const struct file *file, size_t count, struct file by_value, int last)`.
const LISTING: &[u8] = b"ffffffff81000000 T _text\nffffffff81000100 T vfs_read\nffffffff81000100 T alias\n\
    ffffffff81000200 T vfs_write\nffffffffc0000000 t start\t[veth]\nffffffffc0000040 t stop\t[veth]\n";

/// Finds the probes of a definition and returns the target and fields of each in the kernel's syntax, one probe per line.
fn resolved(definition: &str, module: Option<&str>, listing: &[u8]) -> Result<String, Error> {
    let symbols = KernelSymbolList::parse(listing);
    let bytes = types().bytes();
    let types = Btf::parse(&bytes).unwrap();
    let kernel = Kernel {
        symbols: &symbols,
        types: Some(&types),
        module,
        machine: "x86_64",
    };
    let points = kernel.find(&parse(definition)?, &SearchOptions::default())?;
    let lines = points.probes.iter().map(|probe| {
        let fields = probe.fields.iter().map(|field| format!(" {field}"));
        let fields: String = fields.collect();
        format!("{}{fields}", kernel.target(probe))
    });
    Ok(lines.collect::<Vec<_>>().join("\n"))
}

#[test]
fn places_and_parameters_are_resolved() {
    for (definition, expected) in [
        ("vfs_read", "_text+256"),
        ("vfs_read+4 %di", "_text+260 %di"),
        ("vfs_*", "_text+256\n_text+512"),
        (
            "vfs_read file->name:string count",
            "_text+256 name=+8(%di):string count=%si:x64",
        ),
        ("vfs_read file->table[2][1]", "_text+256 table=+60(%di):s32"),
        ("vfs_read file->flag", "_text+256 flag=+0(%di):b3@5/32"),
        // Only the parameters whose register is known: not the struct passed by value, and none after it.
        ("vfs_read $params", "_text+256 file=%di:x64 count=%si:x64"),
        ("vfs_read%return $retval", "_text+256 $retval:s64"),
        ("vfs_read%return r=$retval:x32", "_text+256 r=$retval:x32"),
        ("vfs_write $arg1 @jiffies", "_text+512 $arg1 @jiffies"),
        ("0xffffffff81000104", "_text+260"),
    ] {
        let target = resolved(definition, None, LISTING);
        assert_eq!(target.as_deref(), Ok(expected), "{definition}");
    }
    let start = resolved("start+4", Some("veth"), LISTING);
    assert_eq!(start.as_deref(), Ok("veth:start+4"));
}

/// If the kernel hides its addresses (all are 0), probes are relative to the function's name instead of `_text`.
#[test]
fn hidden_addresses_leave_the_names() {
    let hidden = b"0 T _text\n0 T vfs_read\n0 T vfs_write\n";
    let target = resolved("vfs_read count", None, hidden);
    assert_eq!(target.as_deref(), Ok("vfs_read+0 count=%si:x64"));
}

#[test]
fn any_offset_from_the_last_symbol_is_accepted() {
    // The size of the last symbol is unknown. Without `_text`, probes are relative to the function's name.
    let last = b"ffffffff81000000 T vfs_read\nffffffff81000000 T alias\n";
    let target = resolved("vfs_read+0xffffffffffffffff", None, last);
    assert_eq!(target.as_deref(), Ok("vfs_read+18446744073709551615"));
    // Both names have one address, which is probed once.
    let target = resolved("*+0xffffffffffffffff", None, last);
    assert_eq!(target.as_deref(), Ok("vfs_read+18446744073709551615"));
}

#[test]
fn impossible_probes_are_refused_with_the_reason() {
    for (definition, part) in [
        ("vfs_reed", "Probe point 'vfs_reed' not found."),
        ("vfs_read+256", "bigger than the size of vfs_read"),
        ("vfs_read:3", "no image with debug information"),
        ("vfs_read@fs/open.c", "no image with debug information"),
        ("vfs_read nosuch", "'nosuch' variable"),
        ("vfs_read by_value", "'by_value' variable"),
        ("vfs_read last", "'last' variable"),
        ("vfs_read+4 count", "'count' variable"),
        ("vfs_read file->nosuch", "has no member nosuch"),
        ("vfs_read $retval", "FUNCTION%return"),
        ("vfs_read %rdi", "is not a register"),
        ("vfs_write count", "the parameters of 'vfs_write'"),
        ("start", "Probe point 'start' not found."),
        ("0xffffffff81000104%return", "is not the entry"),
    ] {
        let error = resolved(definition, None, LISTING).unwrap_err();
        assert!(error.to_string().contains(part), "{definition}: {error}");
    }
    let error = resolved("start", None, LISTING).unwrap_err();
    let hint = error.hints().concat();
    assert!(hint.starts_with("use -m veth start: "), "{hint}");
}
