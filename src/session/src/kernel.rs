//! Addresses of the running kernel and its modules, if events sample the kernel.

use std::path::Path;

use rperf_sys::{KernelText, Module, Proc};
use rperf_wire::AttrFlags;

use crate::open::OpenEvent;
use crate::{SessionNotice, SessionObserver};

/// Kernel text and modules; empty if no event samples the kernel, or if the addresses are hidden.
#[derive(Debug, Default)]
pub(crate) struct KernelMaps {
    pub(crate) text: Option<KernelText>,
    pub(crate) modules: Vec<Module>,
}

impl KernelMaps {
    /// Reads the addresses if an event samples the kernel. If those of the kernel itself are hidden or can't be read, reports
    /// that and returns no modules either. If only those of the modules are missing, returns no modules and reports nothing.
    pub(crate) fn of(
        events: &[OpenEvent],
        proc: &Proc,
        observer: &mut dyn SessionObserver,
    ) -> Self {
        let never_samples_kernel = |event: &OpenEvent| {
            let attr = &event.event.attr;
            event.event.spec.is_dummy() || attr.flags.contains(AttrFlags::EXCLUDE_KERNEL)
        };
        if events.iter().all(never_samples_kernel) {
            return Self::default();
        }
        // Without kallsyms, or if it hides addresses, kernel samples have addresses but no symbols.
        let text = proc.kernel_text().ok().flatten();
        if text.is_none() {
            observer.on_event(SessionNotice::KernelAddressesHidden);
        }
        let release = rperf_sys::uname()
            .map(|names| names.release)
            .unwrap_or_default();
        let modules_folder = Path::new("/lib/modules").join(release);
        let modules = text
            .as_ref()
            .and_then(|_| proc.modules(&modules_folder).ok());
        Self {
            text,
            modules: modules.unwrap_or_default(),
        }
    }
}
