//! Typed tracepoint events: a table of events with their fields, which are resolved into offsets once
//! per tracepoint of a recording.
//!
//! ```text
//! Arc<Tracepoint> --EventLayout::resolve--> EventLayout --read(raw)--> TypedEvent::SchedSwitch(event) --> event.prev_pid()
//!       once per tracepoint                                 per sample: one length comparison, then loads
//! ```
//!
//! Each event is declared with `typed_event!` in one of the modules here, and its type is listed
//! below. Required fields are checked when the event is resolved; fields that only some kernels
//! have are an `Option`. Byte order, sizes of numbers and names of values ([`NamedValue`]) are those of
//! the recording.

mod block;
mod event;
mod field_type;
mod irq;
mod kmem;
mod lock;
mod named;
mod power;
mod sched;
mod syscalls;
mod workqueue;

pub use block::{BlockRqComplete, BlockRqCompleteLayout, BlockRqIssue, BlockRqIssueLayout};
pub use field_type::{FieldType, NumberArray, RequiredField, TextField};
pub use irq::{
    IrqHandlerEntry, IrqHandlerEntryLayout, IrqHandlerExit, IrqHandlerExitLayout, SoftirqEntry,
    SoftirqEntryLayout, SoftirqExit, SoftirqExitLayout, SoftirqRaise, SoftirqRaiseLayout,
};
pub use kmem::{
    Kfree, KfreeLayout, Kmalloc, KmallocLayout, KmemCacheAlloc, KmemCacheAllocLayout,
    KmemCacheFree, KmemCacheFreeLayout, MmPageAlloc, MmPageAllocExtfrag, MmPageAllocExtfragLayout,
    MmPageAllocLayout, MmPageFree, MmPageFreeLayout,
};
pub use lock::{
    ContentionBegin, ContentionBeginLayout, ContentionEnd, ContentionEndLayout, LockAcquire,
    LockAcquireLayout, LockAcquired, LockAcquiredLayout, LockContended, LockContendedLayout,
    LockRelease, LockReleaseLayout,
};
pub use named::{NamedNumber, NamedReader, NamedValue, TaskState, TaskStateField};
pub use power::{CpuFrequency, CpuFrequencyLayout, CpuIdle, CpuIdleLayout};
pub use sched::{
    SchedMigrateTask, SchedMigrateTaskLayout, SchedProcessExec, SchedProcessExecLayout,
    SchedProcessExit, SchedProcessExitLayout, SchedProcessFork, SchedProcessForkLayout,
    SchedStatRuntime, SchedStatRuntimeLayout, SchedSwitch, SchedSwitchLayout, SchedWakeup,
    SchedWakeupLayout,
};
pub use syscalls::{
    SysEnter, SysEnterFutex, SysEnterFutexLayout, SysEnterIo, SysEnterIoLayout, SysEnterLayout,
    SysExit, SysExitFutex, SysExitFutexLayout, SysExitIo, SysExitIoLayout, SysExitLayout,
};
pub use workqueue::{
    WorkqueueActivateWork, WorkqueueActivateWorkLayout, WorkqueueExecuteEnd,
    WorkqueueExecuteEndLayout, WorkqueueExecuteStart, WorkqueueExecuteStartLayout,
    WorkqueueQueueWork, WorkqueueQueueWorkLayout,
};

event::typed_events! {
    SchedSwitch(SchedSwitchLayout),
    SchedWakeup(SchedWakeupLayout),
    SchedMigrateTask(SchedMigrateTaskLayout),
    SchedProcessFork(SchedProcessForkLayout),
    SchedProcessExit(SchedProcessExitLayout),
    SchedProcessExec(SchedProcessExecLayout),
    SchedStatRuntime(SchedStatRuntimeLayout),
    SysEnter(SysEnterLayout),
    SysExit(SysExitLayout),
    SysEnterIo(SysEnterIoLayout),
    SysExitIo(SysExitIoLayout),
    SysEnterFutex(SysEnterFutexLayout),
    SysExitFutex(SysExitFutexLayout),
    CpuIdle(CpuIdleLayout),
    CpuFrequency(CpuFrequencyLayout),
    IrqHandlerEntry(IrqHandlerEntryLayout),
    IrqHandlerExit(IrqHandlerExitLayout),
    SoftirqEntry(SoftirqEntryLayout),
    SoftirqExit(SoftirqExitLayout),
    SoftirqRaise(SoftirqRaiseLayout),
    WorkqueueQueueWork(WorkqueueQueueWorkLayout),
    WorkqueueActivateWork(WorkqueueActivateWorkLayout),
    WorkqueueExecuteStart(WorkqueueExecuteStartLayout),
    WorkqueueExecuteEnd(WorkqueueExecuteEndLayout),
    Kmalloc(KmallocLayout),
    Kfree(KfreeLayout),
    KmemCacheAlloc(KmemCacheAllocLayout),
    KmemCacheFree(KmemCacheFreeLayout),
    MmPageAlloc(MmPageAllocLayout),
    MmPageFree(MmPageFreeLayout),
    MmPageAllocExtfrag(MmPageAllocExtfragLayout),
    ContentionBegin(ContentionBeginLayout),
    ContentionEnd(ContentionEndLayout),
    LockAcquire(LockAcquireLayout),
    LockAcquired(LockAcquiredLayout),
    LockContended(LockContendedLayout),
    LockRelease(LockReleaseLayout),
    BlockRqIssue(BlockRqIssueLayout),
    BlockRqComplete(BlockRqCompleteLayout),
}
