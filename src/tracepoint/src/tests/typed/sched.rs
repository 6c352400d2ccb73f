//! The scheduler's events.

use super::descriptions::SWITCH;
use super::kernels::{
    Content, NO_PRINT_FMT, assert_truncation_is_detected, raw, variants, variants_with,
    variants_without,
};
use crate::Error;
use crate::typed::{
    EventLayout, SchedMigrateTaskLayout, SchedProcessExecLayout, SchedProcessExitLayout,
    SchedProcessForkLayout, SchedStatRuntimeLayout, SchedSwitchLayout, SchedWakeupLayout,
    TypedEvent,
};

use Content::{Number, Text};

#[test]
fn sched_switch_has_both_tasks() {
    for tracepoint in variants("sched:sched_switch") {
        let raw = raw(
            &tracepoint,
            &[
                ("prev_comm", Text("make")),
                ("prev_pid", Number(70_000)),
                ("prev_prio", Number(120)),
                ("prev_state", Number(2)),
                ("next_comm", Text("migration/1")),
                ("next_pid", Number(18)),
                ("next_prio", Number(0)),
            ],
        );
        let layout = SchedSwitchLayout::resolve(&tracepoint);
        // An error: a field is missing; `None`: the format has another name.
        let layout = layout.expect("its fields").expect("its name");
        let switch = layout.read(&raw).expect("complete");
        assert_eq!(switch.tracepoint(), "sched:sched_switch");
        assert_eq!(switch.prev_comm(), b"make");
        assert_eq!((switch.prev_pid(), switch.prev_prio()), (70_000, 120));
        let state = switch.prev_state();
        assert_eq!((state.bits(), state.to_string().as_str()), (2, "D"));
        assert!(!state.is_runnable() && !state.is_preempted());
        assert_eq!(switch.next_comm(), b"migration/1");
        assert_eq!((switch.next_pid(), switch.next_prio()), (18, 0));
        assert_truncation_is_detected(&raw, "next_prio", &tracepoint, |raw| {
            layout.read(raw).is_some()
        });
    }
}

/// A task state: its bits, its letters, whether the task is runnable, whether it was preempted.
type StateCase = (i64, &'static str, bool, bool);

fn assert_states(print_fmt: &str, states: &[StateCase]) {
    let no_replacement = [];
    for tracepoint in variants_with("sched:sched_switch", &no_replacement, print_fmt) {
        let layout = SchedSwitchLayout::resolve(&tracepoint);
        let layout = layout.expect("its fields").expect("its name");
        for (bits, text, is_runnable, is_preempted) in states {
            let raw = raw(&tracepoint, &[("prev_state", Number(*bits))]);
            let state = layout.read(&raw).expect("complete").prev_state();
            assert_eq!(state.to_string(), *text, "{bits:#x}");
            assert_eq!(state.is_runnable(), *is_runnable, "{bits:#x}");
            assert_eq!(state.is_preempted(), *is_preempted, "{bits:#x}");
        }
    }
}

#[test]
fn state_letters_match_the_kernel() {
    let current = [
        (0, "R", true, false),
        (0x100, "R+", true, true),
        (1, "S", false, false),
        (0x20, "Z", false, false),
        (0x82, "D|I", false, false),
        (0x102, "D+", false, true),
    ];
    assert_states(SWITCH, &current);
    let table = "\"|\", { 1, \"S\"} , { 2, \"D\" }, { 16, \"Z\" }, { 32, \"X\" }, { 64, \"x\" }";
    // Linux 3.x and early 4.x have other bits; the oldest kernels have no mask.
    let older = format!(
        "\"%s%s\", REC->prev_state & (1024-1) ? __print_flags(REC->prev_state & (1024-1), {table}) : \"R\", \
         REC->prev_state & 1024 ? \"+\" : \"\""
    );
    let states = [
        (0, "R", true, false),
        (1024, "R+", true, true),
        (32, "X", false, false),
        (16 | 64, "Z|x", false, false),
        (256 | 1, "S|0x100", false, false),
    ];
    assert_states(&older, &states);
    let oldest =
        format!("\"%s\", REC->prev_state ? __print_flags(REC->prev_state, {table}) : \"R\"");
    let states = [
        (0, "R", true, false),
        (2, "D", false, false),
        (1024, "0x400", false, false),
    ];
    assert_states(&oldest, &states);
    let without_letters = [(0, "0x0", true, false), (2, "0x2", false, false)];
    assert_states("\"%d\", REC->prev_state", &without_letters);
}

#[test]
fn sched_waking_and_sched_wakeup_have_one_type() {
    for name in SchedWakeupLayout::TRACEPOINTS {
        let current = variants(name);
        let replaced = [("int target_cpu", "int cpu")];
        let old = variants_with(name, &replaced, NO_PRINT_FMT);
        let lacking = variants_without(name, &["success", "target_cpu"]);
        for tracepoint in current.into_iter().chain(old).chain(lacking) {
            // Each format has at most one of `target_cpu` and `cpu`; `raw` skips the value of a field that it lacks.
            let values = [
                ("comm", Text("sh")),
                ("pid", Number(7)),
                ("prio", Number(49)),
                ("success", Number(1)),
                ("target_cpu", Number(3)),
                ("cpu", Number(3)),
            ];
            let raw = raw(&tracepoint, &values);
            let layout = SchedWakeupLayout::resolve(&tracepoint);
            let layout = layout.expect("its fields").expect("its name");
            let wakeup = layout.read(&raw).expect("complete");
            assert_eq!(wakeup.tracepoint(), *name);
            assert_eq!((wakeup.comm(), wakeup.pid()), (&b"sh"[..], 7));
            assert_eq!(wakeup.prio(), 49);
            let has = |field: &str| tracepoint.format.field(field).is_some();
            assert_eq!(wakeup.success(), has("success").then_some(true));
            // `common_flags` is not given, so it is 0.
            assert!(!wakeup.is_by_interrupt());
            let cpu = (has("target_cpu") || has("cpu")).then_some(3);
            assert_eq!(wakeup.target_cpu(), cpu);
            // The last required field.
            assert_truncation_is_detected(&raw, "prio", &tracepoint, |raw| {
                layout.read(raw).is_some()
            });
            if cpu.is_some() {
                // The CPU is the last field, and optional.
                let short = layout.read(&raw[..raw.len() - 1]);
                assert_eq!(short.expect("required fields").target_cpu(), None);
            }
        }
    }
}

/// The events of migration, fork, exit and exec.
#[test]
fn tasks_move_begin_and_end() {
    for tracepoint in variants("sched:sched_migrate_task") {
        let values = [
            ("comm", Text("cc1")),
            ("pid", Number(5)),
            ("prio", Number(120)),
            ("orig_cpu", Number(1)),
            ("dest_cpu", Number(-1)),
        ];
        let raw = raw(&tracepoint, &values);
        let layout = SchedMigrateTaskLayout::resolve(&tracepoint);
        let layout = layout.expect("its fields").expect("its name");
        let moved = layout.read(&raw).expect("complete");
        assert_eq!(
            (moved.comm(), moved.pid(), moved.prio()),
            (&b"cc1"[..], 5, 120)
        );
        assert_eq!((moved.orig_cpu(), moved.dest_cpu()), (1, -1));
    }
    for tracepoint in variants("sched:sched_process_fork") {
        let values = [
            ("parent_comm", Text("make")),
            ("parent_pid", Number(8)),
            ("child_comm", Text("sh")),
            ("child_pid", Number(9)),
        ];
        let raw = raw(&tracepoint, &values);
        let layout = SchedProcessForkLayout::resolve(&tracepoint);
        let layout = layout.expect("its fields").expect("its name");
        let fork = layout.read(&raw).expect("complete");
        assert_eq!((fork.parent_comm(), fork.parent_pid()), (&b"make"[..], 8));
        assert_eq!((fork.child_comm(), fork.child_pid()), (&b"sh"[..], 9));
        // The name of the child is at the end of the sample; a string that is not completely in the sample is empty.
        let short = layout.read(&raw[..raw.len() - 1]).expect("its fields");
        assert_eq!((short.child_comm(), short.child_pid()), (&b""[..], 9));
    }
    let exits = variants("sched:sched_process_exit").into_iter();
    for tracepoint in exits.chain(variants_without(
        "sched:sched_process_exit",
        &["group_dead"],
    )) {
        let values = [
            ("comm", Text("sh")),
            ("pid", Number(9)),
            ("prio", Number(120)),
            ("group_dead", Number(1)),
        ];
        let raw = raw(&tracepoint, &values);
        let layout = SchedProcessExitLayout::resolve(&tracepoint);
        let layout = layout.expect("its fields").expect("its name");
        let exit = layout.read(&raw).expect("complete");
        assert_eq!((exit.comm(), exit.pid(), exit.prio()), (&b"sh"[..], 9, 120));
        let has_group_dead = tracepoint.format.field("group_dead").is_some();
        assert_eq!(exit.group_dead(), has_group_dead.then_some(true));
    }
    for tracepoint in variants("sched:sched_process_exec") {
        let values = [
            ("filename", Text("/bin/true")),
            ("pid", Number(10)),
            ("old_pid", Number(11)),
        ];
        let raw = raw(&tracepoint, &values);
        let layout = SchedProcessExecLayout::resolve(&tracepoint);
        let layout = layout.expect("its fields").expect("its name");
        let exec = layout.read(&raw).expect("complete");
        assert_eq!(exec.filename(), b"/bin/true");
        assert_eq!((exec.pid(), exec.old_pid()), (10, 11));
    }
}

#[test]
fn sched_stat_runtime_has_64_bit_times() {
    let current = variants("sched:sched_stat_runtime").into_iter();
    for tracepoint in current.chain(variants_without("sched:sched_stat_runtime", &["vruntime"])) {
        let values = [
            ("comm", Text("sh")),
            ("pid", Number(9)),
            ("runtime", Number(0x12_3456_789a)),
            ("vruntime", Number(-1)),
        ];
        let raw = raw(&tracepoint, &values);
        let layout = SchedStatRuntimeLayout::resolve(&tracepoint);
        let layout = layout.expect("its fields").expect("its name");
        let run = layout.read(&raw).expect("complete");
        assert_eq!((run.comm(), run.pid()), (&b"sh"[..], 9));
        assert_eq!(run.runtime(), 0x12_3456_789a);
        let has_vruntime = tracepoint.format.field("vruntime").is_some();
        assert_eq!(run.vruntime(), has_vruntime.then_some(u64::MAX));
    }
}

#[test]
fn missing_required_fields_are_named() {
    for tracepoint in variants_without("sched:sched_switch", &["next_pid"]) {
        let error = EventLayout::resolve(&tracepoint).expect_err("no next_pid");
        assert_eq!(
            error.to_string(),
            "sched:sched_switch has no field next_pid"
        );
        assert!(matches!(error, Error::NoField { .. }));
    }
    // A field of another type is named, too.
    let retyped = [("pid_t prev_pid", "struct pid[4] prev_pid")];
    for tracepoint in variants_with("sched:sched_switch", &retyped, NO_PRINT_FMT) {
        let error = EventLayout::resolve(&tracepoint).expect_err("no number");
        let text = "the field prev_pid of sched:sched_switch is `struct pid[4]`, not a number";
        assert_eq!(error.to_string(), text);
    }
}

#[test]
fn the_format_name_determines_the_typed_event() {
    for tracepoint in variants("sched:sched_wakeup") {
        let layout = EventLayout::resolve(&tracepoint).expect("its fields");
        let layout = layout.expect("a typed event");
        let raw = raw(&tracepoint, &[("pid", Number(3))]);
        match layout.read(&raw) {
            Some(TypedEvent::SchedWakeup(wakeup)) => assert_eq!(wakeup.pid(), 3),
            other => panic!("{other:?}"),
        }
        // Only the common fields.
        assert!(layout.read(&raw[..8]).is_none());
        assert!(
            SchedSwitchLayout::resolve(&tracepoint)
                .expect("no error")
                .is_none()
        );
    }
}
