//! The records that a file begins with: what was there before it.

use rperf_sys::{CgroupFolder, Proc, cgroups, kernel_text};
use rperf_wire::{AttrFlags, Cgroup, Misc, Record, RecordKind, SampleIdLayout};

use crate::open::OpenEvent;
use crate::opened::Opened;
use crate::synthesize::{self, Mapped, Records, Told};
use crate::{Request, Synthesized, Target, aux};

/// What the first records tell of.
#[derive(Clone, Copy)]
pub(crate) struct Start<'a> {
    pub(crate) request: &'a Request,
    pub(crate) opened: &'a Opened,
}

impl Start<'_> {
    /// Bytes behind records of kernel kinds.
    pub(crate) fn trailer(&self) -> usize {
        SampleIdLayout::new(self.opened.sample_type()).size()
    }

    /// The records of a recording's start, in perf's order.
    pub(crate) fn synthesize(&self, to: &mut Records) {
        let Self { request, opened } = *self;
        let events = &opened.events;
        aux::time_conversion(to, opened.conversion);
        synthesize::id_index(to, events);
        aux::trace_info(to, request, events, opened.conversion);
        if let Some(text) = &opened.kernel.text {
            synthesize::kernel_map(to, text);
            synthesize::modules(to, &opened.kernel.modules);
        }
        synthesize::event_updates(to, events, request.stream.is_some());
        synthesize::thread_map(to, &opened.places);
        synthesize::cpu_map(to, &opened.places);
        if request.details.cgroups && request.synthesized.cgroups {
            self.cgroups(to);
        }
        let Some(told) = self.told() else { return };
        let proc = Proc::new(&request.proc);
        match &request.target {
            Target::Workload => {}
            Target::Processes(_) | Target::Threads(_) | Target::User(_) => {
                synthesize::some_tasks(to, &proc, &self.opened.places.tasks, told);
            }
            // Without /proc readers show numbers instead of names; samples are complete all the same.
            Target::Cpus(_) | Target::Everyone => drop(synthesize::all_tasks(to, &proc, told)),
        }
    }

    /// The same for a file that begins while the recording runs: what the observed tasks became meanwhile.
    pub(crate) fn running(&self, to: &mut Records) {
        self.synthesize(to);
        if let (Target::Workload, Some(told)) = (&self.request.target, self.told()) {
            let proc = Proc::new(&self.request.proc);
            let tasks = with_children(&self.opened.places.tasks, &proc);
            synthesize::some_tasks(to, &proc, &tasks, told);
        }
        to.user(RecordKind::FINISHED_INIT, |_| {});
    }

    /// What is told of tasks; nothing where the user wants nothing.
    fn told(&self) -> Option<Told> {
        let has_data = |event: &OpenEvent| event.event.attr.flags.contains(AttrFlags::MMAP_DATA);
        let Synthesized {
            tasks, mappings, ..
        } = self.request.synthesized;
        let mapped = match mappings {
            false => Mapped::Nothing,
            true if self.opened.events.iter().any(has_data) => Mapped::Data,
            true => Mapped::Code,
        };
        tasks.then_some(Told {
            mapped,
            within: self.request.maps_within,
            threads: self.request.told_by.unwrap_or_else(rperf_sys::parallelism),
            namespaces: self.request.details.namespaces,
        })
    }

    /// CGROUP for each that there is: the kernel tells of new ones alone.
    fn cgroups(&self, to: &mut Records) {
        let mounts = self.request.proc.join("self/mounts");
        let mounts = kernel_text(mounts).unwrap_or_default();
        let Some(folder) = CgroupFolder::find(&mounts) else {
            return;
        };
        for (id, path) in cgroups(&folder) {
            let path = path.as_os_str().as_encoded_bytes();
            to.kernel(&Record::Cgroup(Cgroup { id, path }), Misc(0));
        }
    }
}

/// Tasks and all that descend from them.
fn with_children(tasks: &[i32], proc: &Proc) -> Vec<i32> {
    let mut all = tasks.to_vec();
    let mut next = 0;
    while let Some(task) = all.get(next).copied() {
        next += 1;
        for child in proc.children(task.unsigned_abs()) {
            let child = child.cast_signed();
            if !all.contains(&child) {
                all.push(child);
            }
        }
    }
    all
}
