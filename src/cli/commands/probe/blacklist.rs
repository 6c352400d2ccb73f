//! Functions of the kernel that it does not let be probed.

use rperf_probe::{Event, KernelSymbols, Target};
use rperf_sys::{kernel_file, kernel_text};

/// The kernel's list, where debugfs is mounted (Documentation/trace/kprobes.rst).
const LIST: &str = "/sys/kernel/debug/kprobes/blacklist";
const LISTING: &str = "/proc/kallsyms";

/// What is wrong with the place of `event`, if it is on the list.
pub(super) fn about(event: &Event) -> Option<String> {
    let Target::Kernel {
        module: None,
        symbol,
        offset,
    } = &event.target
    else {
        return None;
    };
    let listing = kernel_file(LISTING).ok()?;
    let symbols = KernelSymbols::parse(&listing);
    let (function, _) = symbols.resolve(&format!("{symbol}+{offset}"))?;
    let list = kernel_text(LIST).ok()?;
    // Lines are ADDRESS-ADDRESS, a tab and the function.
    let mut names = list.lines().filter_map(|line| line.split_once('\t'));
    let is_listed = names.any(|(_, name)| name == function.name);
    is_listed.then(|| {
        format!(
            "{} is one of the functions that the kernel does not let be probed ({LIST})",
            function.name
        )
    })
}
