//! Disassembly compared with objdump.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use rperf_insn::{Isa, Printer, Syntax};
use rperf_testkit::skip;

use super::recordings::{Recording, Target};
use super::workloads::Workloads;
use super::{Tool, Tools};

/// Number of instructions in a thousand that may be printed differently: see docs/compatibility.md.
const ACCEPTED_PER_THOUSAND: usize = 1;

/// One instruction as printed by objdump.
#[derive(Debug)]
struct ObjdumpInsn {
    address: u64,
    bytes: Vec<u8>,
    text: String,
}

/// Parses hexadecimal bytes, or on arm64 one word.
fn bytes(isa: Isa, text: &str) -> Option<Vec<u8>> {
    if isa == Isa::Arm64 {
        let word = u32::from_str_radix(text.trim(), 16).ok()?;
        return Some(word.to_le_bytes().to_vec());
    }
    let digits = text.split_whitespace();
    digits
        .map(|byte| u8::from_str_radix(byte, 16).ok())
        .collect()
}

/// The text of an instruction without symbols and comments. The tab after the name, printed on arm64, becomes spaces, as on x86.
fn plain(text: &str) -> String {
    let text = text.split("\t//").next().unwrap_or_default();
    let text = text.split("        # ").next().unwrap_or_default();
    let text = text.split(" <").next().unwrap_or_default();
    let text = text.trim_end();
    match text.split_once('\t') {
        Some((name, operands)) => format!("{name:<6} {operands}"),
        None => text.to_owned(),
    }
}

/// Adds the instruction of a line `address:`, tab, bytes, tab, instruction. The bytes of a line without an instruction belong to
/// the previous instruction. Ignores other lines.
fn add_line(insns: &mut Vec<ObjdumpInsn>, isa: Isa, line: &str) {
    let mut parts = line.splitn(3, '\t');
    let address = parts.next().and_then(|text| text.trim().strip_suffix(':'));
    let address = address.and_then(|text| u64::from_str_radix(text, 16).ok());
    let (Some(address), Some(bytes)) = (address, parts.next().and_then(|text| bytes(isa, text)))
    else {
        return;
    };
    match (parts.next(), insns.last_mut()) {
        (Some(text), _) => insns.push(ObjdumpInsn {
            address,
            bytes,
            text: plain(text),
        }),
        (None, Some(last)) => last.bytes.extend(bytes),
        (None, None) => {}
    }
}

/// Runs objdump on an object; `None` if there is no such program.
fn objdump(program: &str, words: &[&str], isa: Isa, object: &Path) -> Option<Vec<ObjdumpInsn>> {
    let mut command = Command::new(program);
    command.args(words).arg("-d").arg(object);
    let mut child = command.stdout(Stdio::piped()).spawn().ok()?;
    let mut insns = Vec::new();
    for line in BufReader::new(child.stdout.take()?).lines() {
        add_line(&mut insns, isa, &line.expect("text"));
    }
    assert!(child.wait().expect("a child").success(), "{words:?}");
    Some(insns)
}

/// Asserts that at most [`ACCEPTED_PER_THOUSAND`] of a thousand instructions differ from those of the objdump `program` with the
/// options `words`. Skips `test` if there is no such program.
pub(crate) fn compare(test: &str, program: &str, words: &[&str], isa: Isa, object: &Path) {
    let Some(expected) = objdump(program, words, isa, object) else {
        return skip(test, &format!("there is no {program}"));
    };
    assert!(expected.len() > 1000, "{}", object.display());
    let syntax = match words {
        ["-M", "intel"] => Syntax::Intel,
        _ => Syntax::Att,
    };
    let mut printer = Printer::new(isa, syntax);
    // By name of the instruction: the number of those that differ, and the text of the last one.
    let mut differing: BTreeMap<String, (usize, String)> = BTreeMap::new();
    for insn in &expected {
        let mut text = String::new();
        let printed = printer.print(insn.address, &insn.bytes, &mut text);
        if text != insn.text || printed.is_none_or(|printed| printed.len != insn.bytes.len()) {
            let name = insn.text.split(' ').next().unwrap_or_default();
            let entry = differing.entry(name.to_owned()).or_default();
            *entry = (entry.0 + 1, format!("{insn:x?}: {text}"));
        }
    }
    let count: usize = differing.values().map(|(count, _)| count).sum();
    assert!(
        count * 1000 <= expected.len() * ACCEPTED_PER_THOUSAND,
        "{}: {count} of {}: {differing:#?}",
        object.display(),
        expected.len()
    );
}

#[test]
fn instructions_read_as_in_objdump() {
    const NAME: &str = "instructions_read_as_in_objdump";
    if cfg!(not(target_arch = "x86_64")) {
        return skip(NAME, "this machine's objects are not of x86-64");
    }
    let folder = Path::new("/usr/lib/x86_64-linux-gnu");
    let objects = ["libc.so.6", "libm.so.6"].map(|name| folder.join(name));
    if !objects.iter().any(|object| object.exists()) {
        return skip(NAME, "there are no libraries in /usr/lib/x86_64-linux-gnu");
    }
    for object in objects.iter().filter(|object| object.exists()) {
        for words in [&[][..], &["-M", "intel"]] {
            compare(NAME, "objdump", words, Isa::X86_64, object);
        }
    }
}

#[test]
fn sampled_instructions_read_as_in_objdump() {
    const NAME: &str = "sampled_instructions_read_as_in_objdump";
    let Some(tools) = Tools::find() else {
        return skip(NAME, "there is no perf");
    };
    if !cfg!(target_arch = "x86_64") {
        return skip(NAME, "this machine's objects are not of x86-64");
    }
    let workloads = Workloads::build(tools.path());
    let recording = Recording {
        name: "sampled",
        options: &["-e", "cpu-clock:u", "-c", "50000"],
        // The program runs for 150 ms.
        target: Target::Command(&["frames", "150"]),
    };
    let file = recording.make(&tools, &workloads, Tool::Perf);
    let file = file.expect("perf records a program");
    let object = tools.path().join("frames");
    let Some(expected) = objdump("objdump", &[], Isa::X86_64, &object) else {
        return skip(NAME, "there is no objdump");
    };
    let texts: BTreeMap<u64, &str> = expected
        .iter()
        .map(|insn| (insn.address, insn.text.as_str()))
        .collect();
    let words = [
        "script",
        "-i",
        &file,
        "-F",
        "ip,dso,dsoff,disasm",
        "--dsos",
        "frames",
    ];
    let text = tools.outcome(Tool::Rperf, &words).stdout;
    let mut compared = 0;
    for line in text.lines() {
        let (place, insn) = line.split_once(")\t\t").unwrap_or_else(|| panic!("{line}"));
        let (_, offset) = place.rsplit_once("+0x").expect("an offset in the object");
        // In this program, code has the same offset in the file as its address in objdump.
        let address = u64::from_str_radix(offset, 16).expect("a number");
        let known = texts.get(&address).unwrap_or_else(|| panic!("{line}"));
        match insn.split_once(" <") {
            // The target of a jump or call is printed as an address in the process, which objdump doesn't know.
            Some((branch, _)) => assert_eq!(branch.split(' ').next(), known.split(' ').next()),
            None => assert_eq!(insn, *known),
        }
        compared += 1;
    }
    // With a sample each 50 us, there are far more, even if most are in libraries.
    assert!(compared > 20, "{text}");
}
