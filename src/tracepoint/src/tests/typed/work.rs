//! System calls, idle states and frequencies of CPUs, interrupts, workqueues.
//!
//! `resolve` fails if the tracepoint lacks a required field, and gives `None` if the layout is for tracepoints of another name.

use super::kernels::{
    Content, NO_PRINT_FMT, assert_truncation_is_detected, raw, variants, variants_with,
    variants_without,
};
use crate::typed::{
    CpuFrequencyLayout, CpuIdle, CpuIdleLayout, IrqHandlerEntryLayout, IrqHandlerExitLayout,
    SoftirqEntryLayout, SoftirqExitLayout, SoftirqRaiseLayout, SysEnterIoLayout, SysEnterLayout,
    SysExitIoLayout, SysExitLayout, WorkqueueActivateWorkLayout, WorkqueueExecuteEndLayout,
    WorkqueueExecuteStartLayout, WorkqueueQueueWorkLayout,
};

use Content::{Number, Text, Words};

#[test]
fn args_and_ret_of_system_calls_are_longs_of_the_kernel() {
    for tracepoint in variants("raw_syscalls:sys_enter") {
        let args = [1, 2, 3, 4, 5, 0xffff_fffe];
        let raw = raw(&tracepoint, &[("id", Number(257)), ("args", Words(&args))]);
        let layout = SysEnterLayout::resolve(&tracepoint);
        let layout = layout.expect("its fields").expect("its name");
        let enter = layout.read(&raw).expect("complete");
        assert_eq!(enter.id(), 257);
        assert_eq!(enter.args().iter().collect::<Vec<_>>(), args);
        assert_eq!(
            (enter.args().get(5), enter.args().get(6)),
            (Some(0xffff_fffe), None)
        );
        assert_truncation_is_detected(&raw, "args", &tracepoint, |raw| layout.read(raw).is_some());
    }
    for tracepoint in variants("raw_syscalls:sys_exit") {
        let raw = raw(&tracepoint, &[("id", Number(0)), ("ret", Number(-11))]);
        let layout = SysExitLayout::resolve(&tracepoint);
        let layout = layout.expect("its fields").expect("its name");
        let exit = layout.read(&raw).expect("complete");
        let ret = tracepoint.format.field("ret").expect("a field");
        // A format without `signed:` gives no sign: a number of 4 bytes is zero-extended.
        let expected = match (ret.is_signed, ret.size) {
            (false, 4) => 0xffff_fff5,
            _ => -11,
        };
        assert_eq!((exit.id(), exit.ret()), (0, expected));
    }
}

#[test]
fn io_system_calls_share_one_layout_for_enter_and_one_for_exit() {
    for name in SysEnterIoLayout::TRACEPOINTS {
        for tracepoint in variants(name) {
            let raw = raw(&tracepoint, &[("__syscall_nr", Number(7))]);
            let layout = SysEnterIoLayout::resolve(&tracepoint);
            let layout = layout.expect("its fields").expect("its name");
            let enter = layout.read(&raw).expect("complete");
            assert_eq!((enter.tracepoint(), enter.id()), (*name, Some(7)));
        }
    }
    for name in SysExitIoLayout::TRACEPOINTS {
        for tracepoint in variants(name) {
            let raw = raw(
                &tracepoint,
                &[("__syscall_nr", Number(7)), ("ret", Number(4096))],
            );
            let layout = SysExitIoLayout::resolve(&tracepoint);
            let layout = layout.expect("its fields").expect("its name");
            assert_eq!(layout.read(&raw).expect("complete").ret(), 4096);
            assert_truncation_is_detected(&raw, "ret", &tracepoint, |raw| {
                layout.read(raw).is_some()
            });
        }
    }
}

#[test]
fn cpus_idle_and_change_their_frequency() {
    for tracepoint in variants("power:cpu_idle") {
        let values = [("state", Number(0xffff_ffff)), ("cpu_id", Number(3))];
        let raw = raw(&tracepoint, &values);
        let layout = CpuIdleLayout::resolve(&tracepoint);
        let layout = layout.expect("its fields").expect("its name");
        let idle = layout.read(&raw).expect("complete");
        assert_eq!((idle.state(), idle.cpu_id()), (CpuIdle::EXIT, 3));
    }
    for tracepoint in variants("power:cpu_frequency") {
        let values = [("state", Number(2_400_000)), ("cpu_id", Number(1))];
        let raw = raw(&tracepoint, &values);
        let layout = CpuFrequencyLayout::resolve(&tracepoint);
        let layout = layout.expect("its fields").expect("its name");
        let changed = layout.read(&raw).expect("complete");
        assert_eq!((changed.state(), changed.cpu_id()), (2_400_000, 1));
    }
}

#[test]
fn interrupts_begin_and_end() {
    for tracepoint in variants("irq:irq_handler_entry") {
        let raw = raw(&tracepoint, &[("irq", Number(24)), ("name", Text("eth0"))]);
        let layout = IrqHandlerEntryLayout::resolve(&tracepoint);
        let layout = layout.expect("its fields").expect("its name");
        let entry = layout.read(&raw).expect("complete");
        assert_eq!((entry.irq(), entry.name()), (24, &b"eth0"[..]));
    }
    for tracepoint in variants("irq:irq_handler_exit") {
        let raw = raw(&tracepoint, &[("irq", Number(24)), ("ret", Number(1))]);
        let layout = IrqHandlerExitLayout::resolve(&tracepoint);
        let layout = layout.expect("its fields").expect("its name");
        let exit = layout.read(&raw).expect("complete");
        assert_eq!((exit.irq(), exit.ret()), (24, 1));
    }
}

#[test]
fn software_interrupts_have_names() {
    for tracepoint in variants("irq:softirq_entry") {
        let layout = SoftirqEntryLayout::resolve(&tracepoint);
        let layout = layout.expect("its fields").expect("its name");
        for (number, name) in [(0, "HI"), (1, "TIMER"), (77, "0x4d")] {
            let raw = raw(&tracepoint, &[("vec", Number(number))]);
            let vec = layout.read(&raw).expect("complete").vec();
            assert_eq!(vec.value, number.cast_unsigned());
            assert_eq!(vec.to_string(), name);
        }
    }
    for tracepoint in variants("irq:softirq_exit") {
        let raw = raw(&tracepoint, &[("vec", Number(1))]);
        let layout = SoftirqExitLayout::resolve(&tracepoint);
        let layout = layout.expect("its fields").expect("its name");
        assert_eq!(layout.read(&raw).expect("complete").vec().value, 1);
    }
    for tracepoint in variants("irq:softirq_raise") {
        let raw = raw(&tracepoint, &[("vec", Number(1))]);
        let layout = SoftirqRaiseLayout::resolve(&tracepoint);
        let layout = layout.expect("its fields").expect("its name");
        assert_eq!(layout.read(&raw).expect("complete").vec().value, 1);
    }
}

const WORK: [(&str, Content<'static>); 2] =
    [("work", Number(0x7654_3210)), ("function", Number(0xfedc))];

#[test]
fn queue_work_events_name_the_workqueue_except_old_ones() {
    let name = "workqueue:workqueue_queue_work";
    // Old kernels have the workqueue's address in place of its name. Here it is a number of 4 bytes: `variants_with` keeps the
    // size of the usual field, a `__data_loc` word.
    let replaced = [("__data_loc char[] workqueue", "unsigned int workqueue")];
    let old = variants_with(name, &replaced, NO_PRINT_FMT);
    for tracepoint in variants(name).into_iter().chain(old) {
        let is_text = tracepoint
            .format
            .field("workqueue")
            .is_some_and(|field| field.is_string);
        let queue = if is_text {
            Text("events")
        } else {
            Number(0x1234)
        };
        let mut values = WORK.to_vec();
        values.extend([
            ("workqueue", queue),
            ("req_cpu", Number(64)),
            ("cpu", Number(2)),
        ]);
        let raw = raw(&tracepoint, &values);
        let layout = WorkqueueQueueWorkLayout::resolve(&tracepoint);
        let layout = layout.expect("its fields").expect("its name");
        let queued = layout.read(&raw).expect("complete");
        assert_eq!((queued.work(), queued.function()), (0x7654_3210, 0xfedc));
        assert_eq!(queued.workqueue(), is_text.then_some(&b"events"[..]));
        assert_eq!((queued.req_cpu(), queued.cpu()), (Some(64), Some(2)));
    }
}

#[test]
fn work_begins_and_ends() {
    let name = "workqueue:workqueue_activate_work";
    for tracepoint in variants(name)
        .into_iter()
        .chain(variants_without(name, &["function"]))
    {
        let raw = raw(&tracepoint, &WORK);
        let layout = WorkqueueActivateWorkLayout::resolve(&tracepoint);
        let layout = layout.expect("its fields").expect("its name");
        let activated = layout.read(&raw).expect("complete");
        assert_eq!(activated.work(), 0x7654_3210);
        let has_function = tracepoint.format.field("function").is_some();
        assert_eq!(activated.function(), has_function.then_some(0xfedc));
    }
    for tracepoint in variants("workqueue:workqueue_execute_start") {
        let raw = raw(&tracepoint, &WORK);
        let layout = WorkqueueExecuteStartLayout::resolve(&tracepoint);
        let layout = layout.expect("its fields").expect("its name");
        let begun = layout.read(&raw).expect("complete");
        assert_eq!((begun.work(), begun.function()), (0x7654_3210, 0xfedc));
        assert_truncation_is_detected(&raw, "function", &tracepoint, |raw| {
            layout.read(raw).is_some()
        });
    }
    let name = "workqueue:workqueue_execute_end";
    for tracepoint in variants(name)
        .into_iter()
        .chain(variants_without(name, &["function"]))
    {
        let raw = raw(&tracepoint, &WORK);
        let layout = WorkqueueExecuteEndLayout::resolve(&tracepoint);
        let layout = layout.expect("its fields").expect("its name");
        let ended = layout.read(&raw).expect("complete");
        let has_function = tracepoint.format.field("function").is_some();
        assert_eq!(
            (ended.work(), ended.function()),
            (0x7654_3210, has_function.then_some(0xfedc))
        );
    }
}
