//! The colours of boxes.

/// The number of colours of idle states, by depth from 0. The last colour shows all deeper states, too.
pub const IDLE_PAINTS: u8 = 7;

/// The colour of a box, by what it shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Paint {
    /// An idle state by its depth (0: the CPU polls). A depth of [`IDLE_PAINTS`] or more is shown as the last colour.
    Idle(u8),
    /// A task sleeps.
    Sleeping,
    /// A task waits uninterruptibly, usually for a device.
    Blocked,
    /// A task waits for a CPU.
    Waiting,
    /// In the row of a task: the task runs. In the row of a CPU: tasks run, each run too short for its own box
    /// ([`ChartBox::is_merged`](super::ChartBox::is_merged)).
    Running,
    /// In the row of a CPU: one task runs; the number selects one of [`Paint::TASK_COLORS`] colours.
    Task(u8),
    /// A task runs, and is highlighted.
    Highlighted,
    /// A call waits for events.
    Poll,
    /// A call reads a file.
    Read,
    /// A call writes a file.
    Write,
    /// A call receives from a socket.
    Receive,
    /// A call sends to a socket.
    Send,
    /// A call writes cached data to a device.
    Sync,
    /// A call fails.
    Failed,
}

impl Paint {
    /// The number of colours of tasks on CPUs.
    pub const TASK_COLORS: u8 = 8;

    /// Returns the classes in the style sheet, separated by blanks. The first is the class of [`Paint::legend`].
    pub(super) fn class(self) -> String {
        match self {
            Self::Idle(depth) => format!("i{}", depth.min(IDLE_PAINTS - 1)),
            Self::Sleeping => "sl".to_owned(),
            Self::Blocked => "bl".to_owned(),
            Self::Waiting => "wa".to_owned(),
            Self::Running => "ru".to_owned(),
            Self::Task(number) => format!("ru t{}", number % Self::TASK_COLORS),
            Self::Highlighted => "hi".to_owned(),
            Self::Poll => "po".to_owned(),
            Self::Read => "rd".to_owned(),
            Self::Write => "wr".to_owned(),
            Self::Receive => "rx".to_owned(),
            Self::Send => "tx".to_owned(),
            Self::Sync => "sy".to_owned(),
            Self::Failed => "er".to_owned(),
        }
    }

    /// Returns the meaning of the colour, as text.
    pub(super) fn name(self) -> String {
        match self {
            Self::Idle(0) => "idle, polling".to_owned(),
            Self::Idle(depth) if depth >= IDLE_PAINTS - 1 => {
                format!("idle state {} or deeper", IDLE_PAINTS - 1)
            }
            Self::Idle(depth) => format!("idle state {depth}"),
            Self::Sleeping => "sleeping".to_owned(),
            Self::Blocked => "blocked (uninterruptible)".to_owned(),
            Self::Waiting => "waiting for a CPU".to_owned(),
            Self::Running | Self::Task(_) => "running".to_owned(),
            Self::Highlighted => "running, highlighted".to_owned(),
            Self::Poll => "poll".to_owned(),
            Self::Read => "read".to_owned(),
            Self::Write => "write".to_owned(),
            Self::Receive => "receive".to_owned(),
            Self::Send => "send".to_owned(),
            Self::Sync => "sync".to_owned(),
            Self::Failed => "failed call".to_owned(),
        }
    }

    /// Returns the paint that represents this paint in the legend.
    pub(super) fn legend(self) -> Self {
        match self {
            Self::Task(_) => Self::Running,
            other => other,
        }
    }
}
