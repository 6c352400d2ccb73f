//! Comparison with bindings generated from perf_event.h: the attr's layout and flags, the bits of its masks, and the numbers of
//! record types, event types, misc bits and callchain markers.

use std::mem::offset_of;

use perf_event_open_sys::bindings as kernel;
use perf_event_open_sys::bindings::perf_event_attr;
use rperf_wire::{
    Attr, AttrFlags, BranchSampleType, Endian, EventType, Misc, ReadFormat, RecordKind, SampleType,
};

/// The offsets of the bytes in which an attr differs from an empty one, except for the field `size`.
fn changed_offsets(attr: &Attr) -> Vec<usize> {
    let bytes = attr.encode(Endian::NATIVE);
    let mut empty = Attr::default().encode(Endian::NATIVE);
    // An attr is encoded in a longer layout if one of its last fields is not 0.
    empty.resize(bytes.len(), 0);
    let size = offset_of!(perf_event_attr, size);
    let changed = (0..bytes.len()).filter(|offset| bytes[*offset] != empty[*offset]);
    // A longer layout also differs in the field `size`.
    changed
        .filter(|offset| !(size..size + 4).contains(offset))
        .collect()
}

macro_rules! assert_field {
    ($($field:ident = $value:expr => $offset:expr, $size:literal;)*) => {$(
        let attr = Attr { $field: $value, ..Attr::default() };
        let expected: Vec<usize> = ($offset..$offset + $size).collect();
        assert_eq!(changed_offsets(&attr), expected, stringify!($field));
    )*};
}

#[test]
fn fields_are_where_the_kernel_has_them() {
    const ALL: u64 = u64::MAX;
    assert_eq!(Attr::SIZE_VER9, size_of::<perf_event_attr>());
    assert_field! {
        kind = EventType(u32::MAX) => offset_of!(perf_event_attr, type_), 4;
        config = ALL => offset_of!(perf_event_attr, config), 8;
        sample_period = ALL => offset_of!(perf_event_attr, __bindgen_anon_1), 8;
        sample_type = SampleType(ALL) => offset_of!(perf_event_attr, sample_type), 8;
        read_format = ReadFormat(ALL) => offset_of!(perf_event_attr, read_format), 8;
        flags = AttrFlags(ALL) => offset_of!(perf_event_attr, _bitfield_1), 8;
        wakeup = u32::MAX => offset_of!(perf_event_attr, __bindgen_anon_2), 4;
        bp_type = u32::MAX => offset_of!(perf_event_attr, bp_type), 4;
        config1 = ALL => offset_of!(perf_event_attr, __bindgen_anon_3), 8;
        config2 = ALL => offset_of!(perf_event_attr, __bindgen_anon_4), 8;
        branch_sample_type = BranchSampleType(ALL) => offset_of!(perf_event_attr, branch_sample_type), 8;
        sample_regs_user = ALL => offset_of!(perf_event_attr, sample_regs_user), 8;
        sample_stack_user = u32::MAX => offset_of!(perf_event_attr, sample_stack_user), 4;
        clockid = -1 => offset_of!(perf_event_attr, clockid), 4;
        sample_regs_intr = ALL => offset_of!(perf_event_attr, sample_regs_intr), 8;
        aux_watermark = u32::MAX => offset_of!(perf_event_attr, aux_watermark), 4;
        sample_max_stack = u16::MAX => offset_of!(perf_event_attr, sample_max_stack), 2;
        aux_sample_size = u32::MAX => offset_of!(perf_event_attr, aux_sample_size), 4;
        aux_action = u32::MAX => offset_of!(perf_event_attr, __bindgen_anon_5), 4;
        sig_data = ALL => offset_of!(perf_event_attr, sig_data), 8;
        config3 = ALL => offset_of!(perf_event_attr, config3), 8;
        config4 = ALL => offset_of!(perf_event_attr, config4), 8;
    }
}

#[test]
fn flags_are_the_kernels_bits() {
    let bits = |set: fn(&mut perf_event_attr, u64)| {
        let mut attr = perf_event_attr::default();
        set(&mut attr, u64::MAX);
        let (first_bit, bit_count) = (0, 64);
        attr._bitfield_1.get(first_bit, bit_count)
    };
    let flags = [
        (AttrFlags::DISABLED, bits(perf_event_attr::set_disabled)),
        (AttrFlags::INHERIT, bits(perf_event_attr::set_inherit)),
        (AttrFlags::PINNED, bits(perf_event_attr::set_pinned)),
        (AttrFlags::EXCLUSIVE, bits(perf_event_attr::set_exclusive)),
        (
            AttrFlags::EXCLUDE_USER,
            bits(perf_event_attr::set_exclude_user),
        ),
        (
            AttrFlags::EXCLUDE_KERNEL,
            bits(perf_event_attr::set_exclude_kernel),
        ),
        (AttrFlags::EXCLUDE_HV, bits(perf_event_attr::set_exclude_hv)),
        (
            AttrFlags::EXCLUDE_IDLE,
            bits(perf_event_attr::set_exclude_idle),
        ),
        (AttrFlags::MMAP, bits(perf_event_attr::set_mmap)),
        (AttrFlags::COMM, bits(perf_event_attr::set_comm)),
        (AttrFlags::FREQ, bits(perf_event_attr::set_freq)),
        (
            AttrFlags::INHERIT_STAT,
            bits(perf_event_attr::set_inherit_stat),
        ),
        (
            AttrFlags::ENABLE_ON_EXEC,
            bits(perf_event_attr::set_enable_on_exec),
        ),
        (AttrFlags::TASK, bits(perf_event_attr::set_task)),
        (AttrFlags::WATERMARK, bits(perf_event_attr::set_watermark)),
        (
            AttrFlags::PRECISE_LOW | AttrFlags::PRECISE_HIGH,
            bits(perf_event_attr::set_precise_ip),
        ),
        (AttrFlags::MMAP_DATA, bits(perf_event_attr::set_mmap_data)),
        (
            AttrFlags::SAMPLE_ID_ALL,
            bits(perf_event_attr::set_sample_id_all),
        ),
        (
            AttrFlags::EXCLUDE_HOST,
            bits(perf_event_attr::set_exclude_host),
        ),
        (
            AttrFlags::EXCLUDE_GUEST,
            bits(perf_event_attr::set_exclude_guest),
        ),
        (
            AttrFlags::EXCLUDE_CALLCHAIN_KERNEL,
            bits(perf_event_attr::set_exclude_callchain_kernel),
        ),
        (
            AttrFlags::EXCLUDE_CALLCHAIN_USER,
            bits(perf_event_attr::set_exclude_callchain_user),
        ),
        (AttrFlags::MMAP2, bits(perf_event_attr::set_mmap2)),
        (AttrFlags::COMM_EXEC, bits(perf_event_attr::set_comm_exec)),
        (
            AttrFlags::USE_CLOCKID,
            bits(perf_event_attr::set_use_clockid),
        ),
        (
            AttrFlags::CONTEXT_SWITCH,
            bits(perf_event_attr::set_context_switch),
        ),
        (
            AttrFlags::WRITE_BACKWARD,
            bits(perf_event_attr::set_write_backward),
        ),
        (AttrFlags::NAMESPACES, bits(perf_event_attr::set_namespaces)),
        (AttrFlags::KSYMBOL, bits(perf_event_attr::set_ksymbol)),
        (AttrFlags::BPF_EVENT, bits(perf_event_attr::set_bpf_event)),
        (AttrFlags::AUX_OUTPUT, bits(perf_event_attr::set_aux_output)),
        (AttrFlags::CGROUP, bits(perf_event_attr::set_cgroup)),
        (AttrFlags::TEXT_POKE, bits(perf_event_attr::set_text_poke)),
        (AttrFlags::BUILD_ID, bits(perf_event_attr::set_build_id)),
        (
            AttrFlags::INHERIT_THREAD,
            bits(perf_event_attr::set_inherit_thread),
        ),
        (
            AttrFlags::REMOVE_ON_EXEC,
            bits(perf_event_attr::set_remove_on_exec),
        ),
        (AttrFlags::SIGTRAP, bits(perf_event_attr::set_sigtrap)),
        (
            AttrFlags::DEFER_CALLCHAIN,
            bits(perf_event_attr::set_defer_callchain),
        ),
        (
            AttrFlags::DEFER_OUTPUT,
            bits(perf_event_attr::set_defer_output),
        ),
    ];
    for (ours, theirs) in flags {
        assert_eq!(ours.0, theirs, "{ours}");
    }
    let named = AttrFlags::NAMED
        .iter()
        .fold(0, |all, (flag, _)| all | flag.0);
    let compared = flags.iter().fold(0, |all, (flag, _)| all | flag.0);
    assert_eq!(named, compared, "every flag is compared");
}

macro_rules! assert_bits {
    ($set:ident: $($name:ident = $constant:ident,)*) => {
        $(assert_eq!($set::$name.0, u64::from(kernel::$constant), stringify!($constant));)*
        assert_eq!($set::NAMED.len(), [$(stringify!($name)),*].len(), "every bit is compared");
    };
}

#[test]
fn bits_are_the_kernels() {
    assert_bits! { SampleType:
        IP = PERF_SAMPLE_IP,
        TID = PERF_SAMPLE_TID,
        TIME = PERF_SAMPLE_TIME,
        ADDR = PERF_SAMPLE_ADDR,
        READ = PERF_SAMPLE_READ,
        CALLCHAIN = PERF_SAMPLE_CALLCHAIN,
        ID = PERF_SAMPLE_ID,
        CPU = PERF_SAMPLE_CPU,
        PERIOD = PERF_SAMPLE_PERIOD,
        STREAM_ID = PERF_SAMPLE_STREAM_ID,
        RAW = PERF_SAMPLE_RAW,
        BRANCH_STACK = PERF_SAMPLE_BRANCH_STACK,
        REGS_USER = PERF_SAMPLE_REGS_USER,
        STACK_USER = PERF_SAMPLE_STACK_USER,
        WEIGHT = PERF_SAMPLE_WEIGHT,
        DATA_SRC = PERF_SAMPLE_DATA_SRC,
        IDENTIFIER = PERF_SAMPLE_IDENTIFIER,
        TRANSACTION = PERF_SAMPLE_TRANSACTION,
        REGS_INTR = PERF_SAMPLE_REGS_INTR,
        PHYS_ADDR = PERF_SAMPLE_PHYS_ADDR,
        AUX = PERF_SAMPLE_AUX,
        CGROUP = PERF_SAMPLE_CGROUP,
        DATA_PAGE_SIZE = PERF_SAMPLE_DATA_PAGE_SIZE,
        CODE_PAGE_SIZE = PERF_SAMPLE_CODE_PAGE_SIZE,
        WEIGHT_STRUCT = PERF_SAMPLE_WEIGHT_STRUCT,
    }
    assert_bits! { ReadFormat:
        TOTAL_TIME_ENABLED = PERF_FORMAT_TOTAL_TIME_ENABLED,
        TOTAL_TIME_RUNNING = PERF_FORMAT_TOTAL_TIME_RUNNING,
        ID = PERF_FORMAT_ID,
        GROUP = PERF_FORMAT_GROUP,
        LOST = PERF_FORMAT_LOST,
    }
    assert_bits! { BranchSampleType:
        USER = PERF_SAMPLE_BRANCH_USER,
        KERNEL = PERF_SAMPLE_BRANCH_KERNEL,
        HV = PERF_SAMPLE_BRANCH_HV,
        ANY = PERF_SAMPLE_BRANCH_ANY,
        ANY_CALL = PERF_SAMPLE_BRANCH_ANY_CALL,
        ANY_RETURN = PERF_SAMPLE_BRANCH_ANY_RETURN,
        IND_CALL = PERF_SAMPLE_BRANCH_IND_CALL,
        ABORT_TX = PERF_SAMPLE_BRANCH_ABORT_TX,
        IN_TX = PERF_SAMPLE_BRANCH_IN_TX,
        NO_TX = PERF_SAMPLE_BRANCH_NO_TX,
        COND = PERF_SAMPLE_BRANCH_COND,
        CALL_STACK = PERF_SAMPLE_BRANCH_CALL_STACK,
        IND_JUMP = PERF_SAMPLE_BRANCH_IND_JUMP,
        CALL = PERF_SAMPLE_BRANCH_CALL,
        NO_FLAGS = PERF_SAMPLE_BRANCH_NO_FLAGS,
        NO_CYCLES = PERF_SAMPLE_BRANCH_NO_CYCLES,
        TYPE_SAVE = PERF_SAMPLE_BRANCH_TYPE_SAVE,
        HW_INDEX = PERF_SAMPLE_BRANCH_HW_INDEX,
        PRIV_SAVE = PERF_SAMPLE_BRANCH_PRIV_SAVE,
        COUNTERS = PERF_SAMPLE_BRANCH_COUNTERS,
    }
}

#[test]
fn numbers_are_the_kernels() {
    let kinds = [
        (RecordKind::MMAP, kernel::PERF_RECORD_MMAP),
        (RecordKind::LOST, kernel::PERF_RECORD_LOST),
        (RecordKind::COMM, kernel::PERF_RECORD_COMM),
        (RecordKind::EXIT, kernel::PERF_RECORD_EXIT),
        (RecordKind::THROTTLE, kernel::PERF_RECORD_THROTTLE),
        (RecordKind::UNTHROTTLE, kernel::PERF_RECORD_UNTHROTTLE),
        (RecordKind::FORK, kernel::PERF_RECORD_FORK),
        (RecordKind::READ, kernel::PERF_RECORD_READ),
        (RecordKind::SAMPLE, kernel::PERF_RECORD_SAMPLE),
        (RecordKind::MMAP2, kernel::PERF_RECORD_MMAP2),
        (RecordKind::AUX, kernel::PERF_RECORD_AUX),
        (RecordKind::ITRACE_START, kernel::PERF_RECORD_ITRACE_START),
        (RecordKind::LOST_SAMPLES, kernel::PERF_RECORD_LOST_SAMPLES),
        (RecordKind::SWITCH, kernel::PERF_RECORD_SWITCH),
        (
            RecordKind::SWITCH_CPU_WIDE,
            kernel::PERF_RECORD_SWITCH_CPU_WIDE,
        ),
        (RecordKind::NAMESPACES, kernel::PERF_RECORD_NAMESPACES),
        (RecordKind::KSYMBOL, kernel::PERF_RECORD_KSYMBOL),
        (RecordKind::BPF_EVENT, kernel::PERF_RECORD_BPF_EVENT),
        (RecordKind::CGROUP, kernel::PERF_RECORD_CGROUP),
        (RecordKind::TEXT_POKE, kernel::PERF_RECORD_TEXT_POKE),
        (
            RecordKind::AUX_OUTPUT_HW_ID,
            kernel::PERF_RECORD_AUX_OUTPUT_HW_ID,
        ),
        (
            RecordKind::CALLCHAIN_DEFERRED,
            kernel::PERF_RECORD_CALLCHAIN_DEFERRED,
        ),
    ];
    for (ours, theirs) in kinds {
        assert_eq!(ours.0, theirs, "{ours}");
    }
    let types = [
        (EventType::HARDWARE, kernel::PERF_TYPE_HARDWARE),
        (EventType::SOFTWARE, kernel::PERF_TYPE_SOFTWARE),
        (EventType::TRACEPOINT, kernel::PERF_TYPE_TRACEPOINT),
        (EventType::HW_CACHE, kernel::PERF_TYPE_HW_CACHE),
        (EventType::RAW, kernel::PERF_TYPE_RAW),
        (EventType::BREAKPOINT, kernel::PERF_TYPE_BREAKPOINT),
    ];
    for (ours, theirs) in types {
        assert_eq!(ours.0, theirs);
    }
    let misc = [
        (Misc::MMAP_DATA, kernel::PERF_RECORD_MISC_MMAP_DATA),
        (
            Misc::PROC_MAP_PARSE_TIMEOUT,
            kernel::PERF_RECORD_MISC_PROC_MAP_PARSE_TIMEOUT,
        ),
        (Misc::COMM_EXEC, kernel::PERF_RECORD_MISC_COMM_EXEC),
        (Misc::FORK_EXEC, kernel::PERF_RECORD_MISC_FORK_EXEC),
        (Misc::SWITCH_OUT, kernel::PERF_RECORD_MISC_SWITCH_OUT),
        (Misc::EXACT_IP, kernel::PERF_RECORD_MISC_EXACT_IP),
        (
            Misc::SWITCH_OUT_PREEMPT,
            kernel::PERF_RECORD_MISC_SWITCH_OUT_PREEMPT,
        ),
        (Misc::MMAP_BUILD_ID, kernel::PERF_RECORD_MISC_MMAP_BUILD_ID),
    ];
    for (ours, theirs) in misc {
        assert_eq!(u32::from(ours.0), theirs);
    }
    let markers = [
        (rperf_wire::PERF_CONTEXT_HV, kernel::PERF_CONTEXT_HV),
        (rperf_wire::PERF_CONTEXT_KERNEL, kernel::PERF_CONTEXT_KERNEL),
        (rperf_wire::PERF_CONTEXT_USER, kernel::PERF_CONTEXT_USER),
        (
            rperf_wire::PERF_CONTEXT_USER_DEFERRED,
            kernel::PERF_CONTEXT_USER_DEFERRED,
        ),
        (rperf_wire::PERF_CONTEXT_GUEST, kernel::PERF_CONTEXT_GUEST),
        (
            rperf_wire::PERF_CONTEXT_GUEST_KERNEL,
            kernel::PERF_CONTEXT_GUEST_KERNEL,
        ),
        (
            rperf_wire::PERF_CONTEXT_GUEST_USER,
            kernel::PERF_CONTEXT_GUEST_USER,
        ),
        (rperf_wire::PERF_CONTEXT_MAX, kernel::PERF_CONTEXT_MAX),
    ];
    for (ours, theirs) in markers {
        assert_eq!(ours, theirs);
    }
}
