//! Synthesized records of the initial state.

use rperf_sys::{CgroupFolder, Proc, cgroups, read_pseudo_file_text};
use rperf_wire::{AttrFlags, Cgroup, Misc, Record, RecordKind, SampleIdLayout};

use crate::open::OpenEvent;
use crate::opened::OpenedEvents;
use crate::synthesize::{self, RecordBuffer, SynthesizedMappings, TaskRecordOptions};
use crate::{RecordRequest, SynthesizedRecords, Target, aux};

/// Inputs of the synthesized records.
#[derive(Clone, Copy)]
pub(crate) struct InitialRecords<'a> {
    pub(crate) request: &'a RecordRequest,
    pub(crate) opened: &'a OpenedEvents,
}

impl InitialRecords<'_> {
    /// Returns the size of the trailer of kernel records in bytes.
    pub(crate) fn trailer_size(&self) -> usize {
        SampleIdLayout::new(self.opened.sample_type()).size()
    }

    /// Synthesizes the records at the start of a recording, in perf's order. The tasks of a workload are not included: it does
    /// not run yet.
    pub(crate) fn synthesize(&self, to: &mut RecordBuffer) {
        let Self { request, opened } = *self;
        let events = &opened.events;
        aux::time_conversion(to, opened.conversion);
        synthesize::id_index(to, events);
        aux::trace_info(to, request, events, opened.conversion);
        if let Some(text) = &opened.kernel.text {
            synthesize::kernel_map(to, text);
            synthesize::modules(to, &opened.kernel.modules);
        }
        // Files have the names of events in EVENT_DESC. In a pipe, features are records, and EVENT_DESC may be too large for one.
        let with_names = request.output.stream.is_some();
        synthesize::event_updates(to, events, with_names);
        synthesize::thread_map(to, &opened.cpu_tasks);
        synthesize::cpu_map(to, &opened.cpu_tasks);
        let proc = Proc::new(&request.roots.proc);
        // Without BPF_EVENT records, KSYMBOL records are still written.
        let with_bpf_events = !request.observe.details.side_band.no_bpf;
        synthesize::bpf_programs(to, &proc, with_bpf_events);
        if request.observe.details.side_band.cgroups && request.synthesis.kinds.cgroups {
            self.cgroups(to);
        }
        let Some(task_options) = self.task_options() else {
            return;
        };
        match &request.observe.target {
            Target::Workload => {}
            Target::Processes(_) | Target::Threads(_) | Target::User(_) => {
                synthesize::some_tasks(to, &proc, &self.opened.cpu_tasks.tasks, task_options);
            }
            // Errors are ignored. Without /proc, readers show numbers instead of names; samples are complete.
            Target::Cpus(_) | Target::Everyone => {
                drop(synthesize::all_tasks(to, &proc, task_options))
            }
        }
    }

    /// Synthesizes the records of the current state while recording: those of [`Self::synthesize`], those of the tasks of a
    /// workload, and FINISHED_INIT.
    pub(crate) fn synthesize_running(&self, to: &mut RecordBuffer) {
        self.synthesize(to);
        if let (Target::Workload, Some(task_options)) =
            (&self.request.observe.target, self.task_options())
        {
            let proc = Proc::new(&self.request.roots.proc);
            let tasks = with_descendants(&self.opened.cpu_tasks.tasks, &proc);
            synthesize::some_tasks(to, &proc, &tasks, task_options);
        }
        to.user(RecordKind::FINISHED_INIT, |_| {});
    }

    /// Returns the options of task records; `None` if none are requested.
    fn task_options(&self) -> Option<TaskRecordOptions> {
        let has_data = |event: &OpenEvent| event.event.attr.flags.contains(AttrFlags::MMAP_DATA);
        let SynthesizedRecords {
            tasks, mappings, ..
        } = self.request.synthesis.kinds;
        let mapped = match mappings {
            false => SynthesizedMappings::Nothing,
            true if self.opened.events.iter().any(has_data) => SynthesizedMappings::Data,
            true => SynthesizedMappings::Code,
        };
        tasks.then_some(TaskRecordOptions {
            mappings: mapped,
            maps_timeout: self.request.synthesis.maps_timeout,
            threads: self
                .request
                .synthesis
                .threads
                .unwrap_or_else(rperf_sys::parallelism),
            namespaces: self.request.observe.details.side_band.namespaces,
        })
    }

    /// Appends a CGROUP record for each existing cgroup: the kernel writes records of new cgroups only.
    fn cgroups(&self, to: &mut RecordBuffer) {
        let mounts = self.request.roots.proc.join("self/mounts");
        let mounts = read_pseudo_file_text(mounts).unwrap_or_default();
        let Some(folder) = CgroupFolder::find(&mounts) else {
            return;
        };
        for (id, path) in cgroups(&folder) {
            let path = path.as_os_str().as_encoded_bytes();
            to.kernel(&Record::Cgroup(Cgroup { id, path }), Misc(0));
        }
    }
}

/// Returns the tasks and all their descendants.
fn with_descendants(tasks: &[i32], proc: &Proc) -> Vec<i32> {
    let mut found = tasks.to_vec();
    let mut next = 0;
    while let Some(task) = found.get(next).copied() {
        next += 1;
        for child in proc.children(task.unsigned_abs()) {
            let child = child.cast_signed();
            if !found.contains(&child) {
                found.push(child);
            }
        }
    }
    found
}
