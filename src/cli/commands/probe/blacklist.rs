//! The kernel's kprobe blacklist.

use rperf_probe::{KernelSymbolList, ProbeEvent, ProbeTarget};
use rperf_sys::{read_pseudo_file, read_pseudo_file_text};

/// The blacklist in debugfs (Documentation/trace/kprobes.rst).
const LIST: &str = "/sys/kernel/debug/kprobes/blacklist";
const KALLSYMS: &str = "/proc/kallsyms";

/// Returns an explanation if the kernel function of `event` is blacklisted; otherwise `None`. Also `None` for functions of
/// modules and programs, which are not looked up, and if the blacklist or kallsyms cannot be read.
pub(super) fn hint(event: &ProbeEvent) -> Option<String> {
    let ProbeTarget::Kernel {
        module: None,
        symbol,
        offset,
    } = &event.target
    else {
        return None;
    };
    let listing = read_pseudo_file(KALLSYMS).ok()?;
    let symbols = KernelSymbolList::parse(&listing);
    let (function, _) = symbols.resolve(&format!("{symbol}+{offset}"))?;
    let list = read_pseudo_file_text(LIST).ok()?;
    // Lines are ADDRESS-ADDRESS, a tab and the function.
    let mut names = list.lines().filter_map(|line| line.split_once('\t'));
    let is_listed = names.any(|(_, name)| name == function.name);
    is_listed.then(|| {
        format!(
            "{} is in the kernel's list of functions that cannot be probed ({LIST})",
            function.name
        )
    })
}
