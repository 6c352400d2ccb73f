//! `cgroup` and `cgroup_id`: the path of the control group, and device and inode of the cgroup namespace.

use super::{CellPadding, Key, KeyDependency, KeyValue, Property, label};

pub(super) static CGROUP: Key = Key::plain(
    label("cgroup", "Cgroup"),
    KeyDependency::Property(Property::Cgroup),
    CellPadding::UnlessLast,
    |input, names| KeyValue::Number(names.properties(input).cgroup.cast_signed()),
    |input, names| match names.properties(input).cgroup {
        0 => "N/A".to_owned(),
        id => names.cgroup(id).unwrap_or("unknown").to_owned(),
    },
);

pub(super) static CGROUP_ID: Key = Key::plain(
    label("cgroup_id", "cgroup id (dev/inode)"),
    KeyDependency::Property(Property::CgroupId),
    CellPadding::UnlessLast,
    |input, names| {
        // As in perf, device and inode are sorted in descending order.
        let (dev, inode) = names.properties(input).cgroup_id;
        KeyValue::Pair(!dev, !inode)
    },
    |input, names| {
        let (dev, inode) = names.properties(input).cgroup_id;
        format!("{dev}/{inode:#x}")
    },
);
