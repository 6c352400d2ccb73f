//! The fields of simpleperf's own record types, which perf does not know.

use std::fmt::Write as _;

use rperf_wire::{Simpleperf, SimpleperfChain, UnwindingResult};

/// The text after the record's name.
pub(super) fn text(record: &Simpleperf<'_>) -> String {
    match record {
        Simpleperf::KernelSymbols { kallsyms: bytes }
        | Simpleperf::Split(bytes)
        | Simpleperf::TracingData(bytes) => format!(" {} bytes\n", bytes.len()),
        Simpleperf::Dso {
            kind,
            id,
            min_vaddr,
            name,
        } => {
            let name = String::from_utf8_lossy(name);
            format!(" id: {id}  type: {kind}  min_vaddr: {min_vaddr:#x}: {name}\n")
        }
        Simpleperf::Symbol {
            address,
            len,
            dso,
            name,
        } => {
            let name = String::from_utf8_lossy(name);
            format!(" dso: {dso}  addr: {address:#x}  len: {len:#x}: {name}\n")
        }
        Simpleperf::EventIds(ids) => {
            let mut text = format!(" nr: {}\n", ids.len());
            for (attr, id) in ids {
                // Writing to a String cannot fail.
                let _ = writeln!(text, " ... attr: {attr}  id: {id}");
            }
            text
        }
        Simpleperf::Callchain {
            pid,
            tid,
            kind,
            time,
            chain,
        } => {
            let frames = frames(chain);
            format!(" {pid}/{tid}: time: {time}  type: {kind}{frames}")
        }
        Simpleperf::UnwindingResult(result) => unwinding_result(result),
        Simpleperf::Debug { time, text } => {
            let text = String::from_utf8_lossy(text);
            format!(" time: {time}: {text}\n")
        }
        Simpleperf::SplitEnd => "\n".to_owned(),
    }
}

fn unwinding_result(result: &UnwindingResult<'_>) -> String {
    let (time, took) = (result.time, result.used_time);
    let (code, at) = (result.error_code, result.error_addr);
    let (start, end) = (result.stack_start, result.stack_end);
    let head = format!(
        " time: {time}  took: {took}  error: {code} at {at:#x}  stack: {start:#x}-{end:#x}"
    );
    let chain = result.details.and_then(|details| details.chain);
    head + &chain.map_or("\n".to_owned(), |chain| frames(&chain))
}

/// The number of frames, which completes the record's first line, then a line for each frame: its address and stack pointer. The
/// lines are laid out as those of a sample's callchain.
fn frames(chain: &SimpleperfChain<'_>) -> String {
    let mut text = format!("  nr: {}\n", chain.ips.len());
    for (number, (ip, sp)) in chain.ips.iter().zip(chain.sps.iter()).enumerate() {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "..... {number:2}: {ip:016x} sp {sp:016x}");
    }
    text
}
