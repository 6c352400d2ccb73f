"""Types of the package perf. Functions and classes are described in docs/python.md."""

from collections.abc import Callable
from os import PathLike
from typing import Any, Final, final

from typing_extensions import Self

__all__: list[str]

TYPE_HARDWARE: Final[int]
TYPE_SOFTWARE: Final[int]
TYPE_TRACEPOINT: Final[int]
TYPE_HW_CACHE: Final[int]
TYPE_RAW: Final[int]
TYPE_BREAKPOINT: Final[int]
COUNT_HW_CPU_CYCLES: Final[int]
COUNT_HW_INSTRUCTIONS: Final[int]
COUNT_HW_CACHE_REFERENCES: Final[int]
COUNT_HW_CACHE_MISSES: Final[int]
COUNT_HW_BRANCH_INSTRUCTIONS: Final[int]
COUNT_HW_BRANCH_MISSES: Final[int]
COUNT_HW_BUS_CYCLES: Final[int]
COUNT_HW_STALLED_CYCLES_FRONTEND: Final[int]
COUNT_HW_STALLED_CYCLES_BACKEND: Final[int]
COUNT_HW_CACHE_L1D: Final[int]
COUNT_HW_CACHE_L1I: Final[int]
COUNT_HW_CACHE_LL: Final[int]
COUNT_HW_CACHE_DTLB: Final[int]
COUNT_HW_CACHE_ITLB: Final[int]
COUNT_HW_CACHE_BPU: Final[int]
COUNT_HW_CACHE_OP_READ: Final[int]
COUNT_HW_CACHE_OP_WRITE: Final[int]
COUNT_HW_CACHE_OP_PREFETCH: Final[int]
COUNT_HW_CACHE_RESULT_ACCESS: Final[int]
COUNT_HW_CACHE_RESULT_MISS: Final[int]
COUNT_SW_CPU_CLOCK: Final[int]
COUNT_SW_TASK_CLOCK: Final[int]
COUNT_SW_PAGE_FAULTS: Final[int]
COUNT_SW_CONTEXT_SWITCHES: Final[int]
COUNT_SW_CPU_MIGRATIONS: Final[int]
COUNT_SW_PAGE_FAULTS_MIN: Final[int]
COUNT_SW_PAGE_FAULTS_MAJ: Final[int]
COUNT_SW_ALIGNMENT_FAULTS: Final[int]
COUNT_SW_EMULATION_FAULTS: Final[int]
COUNT_SW_DUMMY: Final[int]
SAMPLE_IP: Final[int]
SAMPLE_TID: Final[int]
SAMPLE_TIME: Final[int]
SAMPLE_ADDR: Final[int]
SAMPLE_READ: Final[int]
SAMPLE_CALLCHAIN: Final[int]
SAMPLE_ID: Final[int]
SAMPLE_CPU: Final[int]
SAMPLE_PERIOD: Final[int]
SAMPLE_STREAM_ID: Final[int]
SAMPLE_RAW: Final[int]
FORMAT_TOTAL_TIME_ENABLED: Final[int]
FORMAT_TOTAL_TIME_RUNNING: Final[int]
FORMAT_ID: Final[int]
FORMAT_GROUP: Final[int]
FORMAT_LOST: Final[int]
RECORD_MMAP: Final[int]
RECORD_LOST: Final[int]
RECORD_COMM: Final[int]
RECORD_EXIT: Final[int]
RECORD_THROTTLE: Final[int]
RECORD_UNTHROTTLE: Final[int]
RECORD_FORK: Final[int]
RECORD_READ: Final[int]
RECORD_SAMPLE: Final[int]
RECORD_MMAP2: Final[int]
RECORD_AUX: Final[int]
RECORD_ITRACE_START: Final[int]
RECORD_LOST_SAMPLES: Final[int]
RECORD_SWITCH: Final[int]
RECORD_SWITCH_CPU_WIDE: Final[int]
RECORD_MISC_SWITCH_OUT: Final[int]

class event:
    """What all events have. What is not recorded is -1 (ids of tasks and CPUs), 2**64 - 1 (times, ids) or 0."""

    @property
    def type(self) -> int: ...
    @property
    def misc(self) -> int: ...
    @property
    def sample_ip(self) -> int: ...
    @property
    def sample_pid(self) -> int: ...
    @property
    def sample_tid(self) -> int: ...
    @property
    def sample_time(self) -> int: ...
    @property
    def sample_addr(self) -> int: ...
    @property
    def sample_id(self) -> int: ...
    @property
    def sample_stream_id(self) -> int: ...
    @property
    def sample_cpu(self) -> int: ...
    @property
    def sample_period(self) -> int: ...

@final
class mmap_event(event):
    """A mapped file."""

    @property
    def pid(self) -> int: ...
    @property
    def tid(self) -> int: ...
    @property
    def start(self) -> int: ...
    @property
    def len(self) -> int: ...
    @property
    def pgoff(self) -> int: ...
    @property
    def filename(self) -> str: ...

@final
class comm_event(event):
    """A thread's new name."""

    @property
    def pid(self) -> int: ...
    @property
    def tid(self) -> int: ...
    @property
    def comm(self) -> str: ...

@final
class task_event(event):
    """The start or the end of a thread."""

    @property
    def pid(self) -> int: ...
    @property
    def tid(self) -> int: ...
    @property
    def ppid(self) -> int: ...
    @property
    def ptid(self) -> int: ...
    @property
    def time(self) -> int: ...

@final
class throttle_event(event):
    """The start or the end of throttling."""

    @property
    def time(self) -> int: ...
    @property
    def id(self) -> int: ...
    @property
    def stream_id(self) -> int: ...

@final
class lost_event(event):
    """Lost records or samples."""

    @property
    def id(self) -> int: ...
    @property
    def lost(self) -> int: ...

@final
class read_event(event):
    """A task with an inherited counter ended."""

    @property
    def pid(self) -> int: ...
    @property
    def tid(self) -> int: ...

@final
class switch_event(event):
    """A context switch."""

    @property
    def next_prev_pid(self) -> int: ...
    @property
    def next_prev_tid(self) -> int: ...
    @property
    def switch_out(self) -> bool: ...

@final
class stat_event(event):
    """A count on one CPU or of one thread."""

    @property
    def id(self) -> int: ...
    @property
    def cpu(self) -> int: ...
    @property
    def thread(self) -> int: ...
    @property
    def val(self) -> int: ...
    @property
    def ena(self) -> int: ...
    @property
    def run(self) -> int: ...

@final
class stat_round_event(event):
    """The end of an interval of counts."""

    @property
    def time(self) -> int: ...
    @property
    def stat_round_type(self) -> int: ...

@final
class callchain_node:
    """A frame of a callchain."""

    @property
    def ip(self) -> int: ...
    @property
    def address(self) -> int: ...
    @property
    def symbol(self) -> str | None: ...
    @property
    def sym_offset(self) -> int | None: ...
    @property
    def dso(self) -> str | None: ...

@final
class branch_entry:
    """A taken branch."""

    @property
    def from_ip(self) -> int: ...
    @property
    def to_ip(self) -> int: ...
    @property
    def flags(self) -> int: ...
    @property
    def mispred(self) -> bool: ...
    @property
    def predicted(self) -> bool: ...

@final
class sample_event(event):
    """A sample. The fields of its tracepoint are attributes, too."""

    def __getattr__(self, name: str, /) -> Any: ...
    def fields(self) -> dict[str, Any]: ...
    @property
    def evsel(self) -> _Evsel | None: ...
    @property
    def raw_buf(self) -> bytes | None: ...
    @property
    def callchain(self) -> list[callchain_node] | None: ...
    @property
    def brstack(self) -> list[branch_entry] | None: ...
    @property
    def values(self) -> list[tuple[int, int]]: ...
    @property
    def sample_comm(self) -> str | None: ...
    @property
    def symbol(self) -> str | None: ...
    @property
    def sym_start(self) -> int | None: ...
    @property
    def sym_end(self) -> int | None: ...
    @property
    def sym_offset(self) -> int | None: ...
    @property
    def dso(self) -> str | None: ...
    @property
    def dso_long_name(self) -> str | None: ...
    @property
    def dso_bid(self) -> str | None: ...
    @property
    def addr_symbol(self) -> str | None: ...
    @property
    def addr_sym_offset(self) -> int | None: ...
    @property
    def addr_dso(self) -> str | None: ...
    @property
    def sample_weight(self) -> int: ...
    @property
    def sample_data_src(self) -> int: ...
    @property
    def sample_phys_addr(self) -> int: ...
    @property
    def sample_cgroup(self) -> int: ...
    @property
    def sample_data_page_size(self) -> int: ...
    @property
    def sample_code_page_size(self) -> int: ...
    @property
    def transaction(self) -> int: ...

@final
class cpu_map:
    """CPU numbers; -1 is any CPU."""

    def __new__(cls, cpustr: str | None = None) -> Self: ...
    def __len__(self) -> int: ...
    def __getitem__(self, key: int, /) -> int: ...

@final
class thread_map:
    """Thread ids; -1 is all threads."""

    def __new__(cls, pid: int = ..., tid: int = ..., uid: int | None = None) -> Self: ...
    def __len__(self) -> int: ...
    def __getitem__(self, key: int, /) -> int: ...

@final
class counts_values:
    """The count of an event."""

    @property
    def val(self) -> int: ...
    @property
    def ena(self) -> int: ...
    @property
    def run(self) -> int: ...
    @property
    def id(self) -> int: ...
    @property
    def lost(self) -> int: ...
    @property
    def values(self) -> list[int]: ...

class evsel:
    """An event that can be counted or sampled. Classes may be derived from it."""

    def __new__(cls, *settings: Any, **keywords: Any) -> Self: ...
    def __init__(
        self,
        type: int = ...,
        config: int = ...,
        sample_freq: int = ...,
        sample_period: int = ...,
        sample_type: int = ...,
        read_format: int = ...,
        disabled: int = ...,
        inherit: int = ...,
        pinned: int = ...,
        exclusive: int = ...,
        exclude_user: int = ...,
        exclude_kernel: int = ...,
        exclude_hv: int = ...,
        exclude_idle: int = ...,
        mmap: int = ...,
        context_switch: int = ...,
        comm: int = ...,
        freq: int = ...,
        inherit_stat: int = ...,
        enable_on_exec: int = ...,
        task: int = ...,
        watermark: int = ...,
        precise_ip: int = ...,
        mmap_data: int = ...,
        sample_id_all: int = ...,
        wakeup_events: int = ...,
        bp_type: int = ...,
        bp_addr: int = ...,
        bp_len: int = ...,
    ) -> None: ...
    type: int
    config: int
    read_format: int
    sample_period: int
    sample_type: int
    wakeup_events: int
    tracking: bool
    @property
    def name(self) -> str: ...
    @property
    def size(self) -> int: ...
    def open(
        self, cpus: cpu_map | None = None, threads: thread_map | None = None, group: int = 0, inherit: int = 0
    ) -> None: ...
    def read(self, cpu: int, thread: int) -> counts_values: ...
    def cpus(self) -> cpu_map: ...
    def threads(self) -> thread_map: ...

@final
class evlist:
    """Events that are opened, mapped and read together."""

    def __new__(cls, cpus: cpu_map, threads: thread_map) -> Self: ...
    def add(self, evsel: _Evsel) -> int: ...
    def open(self, group: int = 0) -> None: ...
    def close(self) -> None: ...
    def mmap(self, pages: int = ..., overwrite: int = 0) -> None: ...
    def poll(self, timeout: int = ...) -> int: ...
    def get_pollfd(self) -> list[Any]: ...
    def read_on_cpu(self, cpu: int, sample_id_all: int = 1) -> event | None: ...
    def enable(self) -> None: ...
    def disable(self) -> None: ...
    def config(self) -> None: ...
    def all_cpus(self) -> cpu_map: ...
    def __len__(self) -> int: ...
    def __getitem__(self, key: int, /) -> evsel: ...

def parse_events(event_string: str, cpus: cpu_map | None = None, threads: thread_map | None = None) -> evlist: ...
def tracepoint(sys: str, name: str) -> int: ...

@final
class pmu:
    """A source of events: a PMU of the processor, software, tracepoints."""

    def name(self) -> str: ...
    def events(self) -> list[dict[str, str]]: ...

def pmus() -> list[pmu]: ...
def metrics() -> list[dict[str, Any]]: ...

@final
class data:
    """A recording: a file, a directory or a pipe."""

    def __new__(cls, path: str | PathLike[str] | None = None, *, force: bool = False) -> Self: ...
    @property
    def path(self) -> PathLike[str]: ...
    @property
    def header(self) -> dict[str, Any]: ...

@final
class thread:
    """A thread of a recording."""

    @property
    def pid(self) -> int: ...
    @property
    def tid(self) -> int: ...
    def comm(self) -> str: ...

@final
class table:
    """Samples as columns: memoryviews that NumPy takes without copying."""

    def __len__(self) -> int: ...
    @property
    def columns(self) -> list[str]: ...
    def __getitem__(self, key: str, /) -> memoryview: ...
    def __contains__(self, key: object, /) -> bool: ...
    def categories(self, name: str) -> list[str] | None: ...
    def to_pandas(self) -> Any: ...

@final
class session:
    """A recording with the functions that process_events() calls."""

    def __new__(
        cls,
        data: _Data,
        sample: Callable[[sample_event], object] | None = None,
        *,
        mmap: Callable[[mmap_event], object] | None = None,
        comm: Callable[[comm_event], object] | None = None,
        task: Callable[[task_event], object] | None = None,
        lost: Callable[[lost_event], object] | None = None,
        throttle: Callable[[throttle_event], object] | None = None,
        read: Callable[[read_event], object] | None = None,
        context_switch: Callable[[switch_event], object] | None = None,
        stat: Callable[[stat_event | stat_round_event, str | None], object] | None = None,
        vmlinux: str | PathLike[str] | None = None,
        kallsyms: str | PathLike[str] | None = None,
        symfs: str | PathLike[str] | None = None,
        jobs: int | None = None,
        itrace: str | None = None,
    ) -> Self: ...
    @property
    def evsels(self) -> list[evsel]: ...
    def process_events(self) -> None: ...
    def find_thread(self, pid: int, tid: int | None = None) -> thread | None: ...
    def table(self, columns: list[str] | None = None, event: str | None = None) -> _Table: ...
    def process_tables(
        self,
        function: Callable[[_Table], object],
        columns: list[str] | None = None,
        event: str | None = None,
        *,
        rows: int = ...,
    ) -> None: ...

_Data = data
_Evsel = evsel
_Table = table
