//! `cgroup` and `cgroup_id`: the control group by its path, or the namespace that stands for it.

use super::{Fact, Key, Pads, Part, Reads};

pub(super) static CGROUP: Key = Key::plain(
    ("cgroup", "Cgroup"),
    Reads::Fact(Fact::Cgroup),
    Pads::Never,
    |subject, names| Part::Number(names.facts(subject).cgroup.cast_signed()),
    |subject, names| match names.facts(subject).cgroup {
        0 => "N/A".to_owned(),
        id => names.cgroup(id).unwrap_or("unknown").to_owned(),
    },
);

pub(super) static CGROUP_ID: Key = Key::plain(
    ("cgroup_id", "cgroup id (dev/inode)"),
    Reads::Fact(Fact::CgroupId),
    Pads::Never,
    |subject, names| {
        // The larger first, in both.
        let (dev, inode) = names.facts(subject).cgroup_id;
        Part::Pair(!dev, !inode)
    },
    |subject, names| {
        let (dev, inode) = names.facts(subject).cgroup_id;
        format!("{dev}/{inode:#x}")
    },
);
