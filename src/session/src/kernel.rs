//! The running kernel, as far as events see it.

use std::path::Path;

use rperf_sys::{KernelText, Module, Proc};
use rperf_wire::AttrFlags;

use crate::open::OpenEvent;
use crate::{Happened, Watch};

/// What the recording knows of the kernel; nothing where no event sees it.
#[derive(Debug, Default)]
pub(crate) struct Kernel {
    pub(crate) text: Option<KernelText>,
    pub(crate) modules: Vec<Module>,
}

impl Kernel {
    pub(crate) fn of(events: &[OpenEvent], proc: &Proc, watch: &mut dyn Watch) -> Self {
        let excluded = |event: &OpenEvent| {
            let attr = &event.event.attr;
            event.event.spec.is_dummy() || attr.flags.contains(AttrFlags::EXCLUDE_KERNEL)
        };
        if events.iter().all(excluded) {
            return Self::default();
        }
        // Without kallsyms or without its addresses samples keep their addresses and have no names.
        let text = proc.kernel_text().ok().flatten();
        if text.is_none() {
            watch.tell(Happened::KernelAddressesHidden);
        }
        let release = rperf_sys::uname()
            .map(|names| names.release)
            .unwrap_or_default();
        let library = Path::new("/lib/modules").join(release);
        let modules = text.as_ref().and_then(|_| proc.modules(&library).ok());
        Self {
            text,
            modules: modules.unwrap_or_default(),
        }
    }
}
