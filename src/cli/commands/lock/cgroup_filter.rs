//! `lock contention -G`: the cgroups whose waits are shown.

use std::path::Path;

use super::analysis::LockQuery;
use crate::cli::error::CliError;

/// Returns the ids of the cgroups that `-G` names; `None` without this option. `known` are the id and the path of each cgroup.
/// Several cgroups may have the same path: each was removed before the next was created.
///
/// # Errors
///
/// Status 129: one of the names is not the path of a known cgroup.
pub(super) fn ids<'k>(
    query: &LockQuery,
    known: impl Iterator<Item = (u64, &'k Path)> + Clone,
) -> Result<Option<Vec<u64>>, CliError> {
    let Some(names) = &query.cgroups else {
        return Ok(None);
    };
    let mut ids = Vec::new();
    for name in names {
        let path = Path::new("/").join(name.trim_matches('/'));
        let before = ids.len();
        let named = known.clone().filter(|(_, known_path)| *known_path == path);
        ids.extend(named.map(|(id, _)| id));
        if ids.len() == before {
            return Err(
                CliError::usage(format!("-G: there is no cgroup '{name}'")).hint(
                    "the names are paths below the mount point, such as system.slice/cron.service",
                ),
            );
        }
    }
    Ok(Some(ids))
}
