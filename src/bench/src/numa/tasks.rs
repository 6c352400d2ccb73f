//! The processes and threads of `numa mem`.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rperf_sys::{AffinityGuard, Children, SharedMemory, bind_memory};

use super::access::fill_randomly;
use super::{NumaMem, NumaResult, TaskWork};
use crate::BenchError;

/// Interval at which the shared state is polled.
const POLL_INTERVAL: Duration = Duration::from_micros(100);
/// `EIO`, reported for an error without a number.
const IO_ERROR: u64 = 5;

/// Words that the processes share: the [`Header`], then two words for the result of each task: its bytes and its nanoseconds.
struct SharedState<'m>(&'m [AtomicU64]);

/// Words of the header, by their index.
#[derive(Clone, Copy)]
enum Header {
    /// Number of tasks that are ready.
    Ready,
    /// 1 once tasks may start, 0 before.
    Start,
    /// The error number of a task that has failed; 0 if there is none.
    Failed,
}

impl SharedState<'_> {
    /// Number of words of the header.
    const HEADER_WORDS: usize = 3;

    /// Returns the size for this number of tasks, in bytes.
    fn bytes(tasks: usize) -> usize {
        (Self::HEADER_WORDS + 2 * tasks) * size_of::<u64>()
    }

    fn get(&self, index: usize) -> u64 {
        let word = self.0.get(index);
        word.map_or(0, |word| word.load(Ordering::Acquire))
    }

    fn set(&self, index: usize, value: u64) {
        if let Some(word) = self.0.get(index) {
            word.store(value, Ordering::Release);
        }
    }

    fn add_ready(&self) {
        if let Some(word) = self.0.get(Header::Ready as usize) {
            word.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Stores the error with which a task has failed.
    fn fail(&self, error: &io::Error) {
        let number = error
            .raw_os_error()
            .and_then(|code| u64::try_from(code).ok());
        self.set(Header::Failed as usize, number.unwrap_or(IO_ERROR));
    }

    /// Returns the error of the task that failed last, if any.
    fn error(&self) -> Option<io::Error> {
        match self.get(Header::Failed as usize) {
            0 => None,
            code => Some(io::Error::from_raw_os_error(i32::try_from(code).ok()?)),
        }
    }

    fn work(&self, task: usize) -> TaskWork {
        let index = Self::HEADER_WORDS + 2 * task;
        TaskWork {
            bytes: self.get(index),
            time: Duration::from_nanos(self.get(index + 1)),
        }
    }

    fn set_work(&self, task: usize, work: TaskWork) {
        let index = Self::HEADER_WORDS + 2 * task;
        let nanos = u64::try_from(work.time.as_nanos()).unwrap_or(u64::MAX);
        self.set(index, work.bytes);
        self.set(index + 1, nanos);
    }

    /// Waits for the start; fails with `Interrupted` if any task fails before the start.
    fn wait_for_start(&self) -> io::Result<()> {
        while self.get(Header::Start as usize) == 0 {
            if self.get(Header::Failed as usize) != 0 {
                return Err(io::ErrorKind::Interrupted.into());
            }
            thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }
}

/// Forks the processes, lets their tasks start when all are ready, and returns the measurements of the tasks.
pub(super) fn run(bench: &NumaMem) -> Result<NumaResult, BenchError> {
    let cannot_map = "cannot map the memory";
    let state_memory = SharedMemory::new(SharedState::bytes(bench.task_count()));
    let state_memory = state_memory.map_err(BenchError::of(cannot_map))?;
    let state = SharedState(state_memory.words());
    let begin = Instant::now();
    let global = {
        let _on_cpu0 = initial_cpu(bench).map_err(BenchError::of("CPU 0"))?;
        map(bench, bench.sizes.global).map_err(BenchError::of(cannot_map))?
    };
    let mut children = Children::default();
    for number in 0..bench.processes as usize {
        // The exit status. The error itself is in `state`, unless a thread panicked.
        let work = || match run_process(bench, number, &global, &state) {
            Ok(()) => 0,
            Err(_) => 1,
        };
        children.fork(work).map_err(BenchError::of("fork"))?;
    }
    let (status, startup) = thread::scope(|scope| {
        let waiter = thread::Builder::new()
            .spawn_scoped(scope, || children.wait())
            .map_err(BenchError::of("cannot start a thread"))?;
        // Before the start, the waiter ends only if a process has failed.
        while state.get(Header::Ready as usize) < bench.task_count() as u64 && !waiter.is_finished()
        {
            thread::sleep(POLL_INTERVAL);
        }
        let startup = begin.elapsed();
        state.set(Header::Start as usize, 1);
        Ok::<_, BenchError>((waiter.join(), startup))
    })?;
    let status = status.map_err(|_| BenchError::Thread)?;
    let status = status.map_err(BenchError::of("wait"))?;
    if let Some(error) = state.error() {
        return Err(BenchError::of("a task of the benchmark failed")(error));
    }
    // The status of the first process that failed; `None` if all succeeded.
    match status {
        Some(status) => Err(BenchError::Child(status)),
        None => Ok(NumaResult {
            startup,
            tasks: (0..bench.task_count())
                .map(|task| state.work(task))
                .collect(),
        }),
    }
}

/// Data that the threads of a process share.
struct Process<'a> {
    bench: &'a NumaMem,
    global: &'a SharedMemory,
    /// The memory of the process.
    memory: SharedMemory,
    /// Held by the thread that accesses the locked part of the process's memory.
    lock: Mutex<()>,
    state: &'a SharedState<'a>,
}

/// In the forked process `number`: maps its memory and runs its threads.
fn run_process(
    bench: &NumaMem,
    number: usize,
    global: &SharedMemory,
    state: &SharedState<'_>,
) -> io::Result<()> {
    let first_task = number * bench.threads as usize;
    let map_memory = || {
        // While this thread maps the memory, it is bound to the CPU of the process's first task, or to CPU 0 if CPU 0 initializes
        // all memory. The memory is allocated on the first task's node.
        let _affinity = bind(bench, first_task)?;
        let _on_cpu0 = initial_cpu(bench)?;
        map(bench, bench.sizes.process)
    };
    let memory = map_memory().inspect_err(|error| state.fail(error))?;
    let process = Process {
        bench,
        global,
        memory,
        lock: Mutex::new(()),
        state,
    };
    thread::scope(|scope| {
        let start = |task| {
            let thread = thread::Builder::new();
            let process = &process;
            let started = thread.spawn_scoped(scope, move || process.run_thread(task));
            started.inspect_err(|error| state.fail(error))
        };
        let tasks = first_task..first_task + bench.threads as usize;
        let threads = tasks.map(start).collect::<io::Result<Vec<_>>>()?;
        threads.into_iter().try_for_each(|thread| {
            let result = thread.join();
            result.map_err(|_| io::Error::other("a thread panicked"))?
        })
    })
}

impl Process<'_> {
    fn run_thread(&self, task: usize) -> io::Result<()> {
        let work = self.measure(task);
        let work = work.inspect_err(|error| {
            // A task that waits for the start when another one fails ends with `Interrupted`: only the other's error is stored.
            if error.kind() != io::ErrorKind::Interrupted {
                self.state.fail(error);
            }
        })?;
        self.state.set_work(task, work);
        Ok(())
    }

    /// Maps the memory of a task, waits for the start, then passes over memory until the number of loops or the time is reached.
    fn measure(&self, task: usize) -> io::Result<TaskWork> {
        let NumaMem {
            sizes,
            access,
            loops,
            duration,
            pause,
            ..
        } = self.bench;
        let _affinity = bind(self.bench, task)?;
        let task_memory = {
            let _on_cpu0 = initial_cpu(self.bench)?;
            map(self.bench, sizes.thread)?
        };
        let process = self.memory.words();
        let locked = process.get(..sizes.locked / size_of::<u64>());
        let locked = locked.unwrap_or(process);
        self.state.add_ready();
        self.state.wait_for_start()?;
        let memories = [self.global.words(), process, task_memory.words()];
        let word_count = memories.iter().map(|words| words.len()).sum::<usize>() + locked.len();
        let (begin, mut round) = (Instant::now(), 0);
        while loops.is_none_or(|loops| round < loops) && (round == 0 || begin.elapsed() < *duration)
        {
            memories.iter().for_each(|words| access.pass(words, round));
            if !locked.is_empty() {
                let _held = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
                access.pass(locked, round);
            }
            round += 1;
            if !pause.is_zero() {
                thread::sleep(*pause);
            }
        }
        Ok(TaskWork {
            bytes: round * (word_count * size_of::<u64>()) as u64,
            time: begin.elapsed(),
        })
    }
}

/// Binds the calling thread to the task's CPU as long as the guard lives, and memory that the thread allocates from now on to the
/// task's node. Returns `None` if the task has no CPU of its own.
fn bind(bench: &NumaMem, task: usize) -> io::Result<Option<AffinityGuard>> {
    bind_memory(bench.nodes.get(task).copied()).or_else(|error| {
        // Without a node, the call only undoes an inherited binding. Its error is then ignored: kernels without NUMA do not have
        // the call.
        let has_node = task < bench.nodes.len();
        if has_node { Err(error) } else { Ok(()) }
    })?;
    let cpu = bench.cpus.get(task);
    cpu.map(|cpu| AffinityGuard::to(&std::iter::once(*cpu).collect()))
        .transpose()
}

/// Binds the calling thread to CPU 0 as long as the guard lives, if memory is to be initialized there; otherwise returns `None`.
fn initial_cpu(bench: &NumaMem) -> io::Result<Option<AffinityGuard>> {
    let on_cpu0 = bench.initial.on_cpu0;
    on_cpu0
        .then(|| AffinityGuard::to(&std::iter::once(0).collect()))
        .transpose()
}

/// Maps memory and initializes it.
fn map(bench: &NumaMem, bytes: usize) -> io::Result<SharedMemory> {
    let memory = SharedMemory::new(bytes)?;
    if let Some(enabled) = bench.huge_pages {
        memory.use_huge_pages(enabled)?;
    }
    if bench.initial.random {
        fill_randomly(memory.words());
    } else if bench.initial.zero {
        let words = memory.words().iter();
        words.for_each(|word| word.store(0, Ordering::Relaxed));
    }
    Ok(memory)
}
