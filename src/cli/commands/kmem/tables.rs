//! The tables that `kmem stat` shows, with the number and the order of their rows.

use clap::ArgMatches;
use rperf_analysis::kmem::{PageSortKey, SlabSortKey};

use super::Allocators;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::options::flag;

/// The number and the order of the rows of the table by caller or by address. Each selected allocator has its own table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ShownTable {
    /// The maximum number of rows (`-l`); all if `None`.
    pub(super) most: Option<usize>,
    /// The keys of `-s` for the table of the slab allocator, or the default ones.
    pub(super) slab_keys: Vec<SlabSortKey>,
    /// The same for the table of the page allocator.
    pub(super) page_keys: Vec<PageSortKey>,
}

/// The tables by caller and by address; `None` if not requested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ShownTables {
    pub(super) caller: Option<ShownTable>,
    pub(super) alloc: Option<ShownTable>,
}

const SLAB_DEFAULT: [SlabSortKey; 3] = [
    SlabSortKey::Fragmentation,
    SlabSortKey::Hits,
    SlabSortKey::Bytes,
];
const PAGE_DEFAULT: [PageSortKey; 2] = [PageSortKey::Bytes, PageSortKey::Hits];

impl ShownTables {
    /// Parses `--caller`, `--alloc`, `-l` and `-s`. `-l` and `-s` apply to the table that precedes them; before both tables, they
    /// apply to both.
    ///
    /// # Errors
    ///
    /// Status 129: an unknown key.
    pub(super) fn given(matches: &ArgMatches, allocators: Allocators) -> Result<Self, CliError> {
        Ok(Self {
            caller: table("caller", matches, allocators)?,
            alloc: table("alloc", matches, allocators)?,
        })
    }

    /// Warns about options that only apply to tables, if no table is requested.
    pub(super) fn warn_of_unused(&self, matches: &ArgMatches, context: &Context) {
        if self.caller.is_some() || self.alloc.is_some() {
            return;
        }
        let is_on = |id: &str| flag(matches, id) == Some(true);
        let given = [
            ("-l", matches.contains_id("line")),
            ("-s", matches.contains_id("sort")),
            ("--live", is_on("live")),
            ("--raw-ip", is_on("raw-ip")),
        ];
        for (option, _) in given.into_iter().filter(|(_, is_given)| *is_given) {
            context.warn(format_args!(
                "{option} applies to tables: it has no effect without --caller and --alloc"
            ));
        }
    }
}

/// Returns the table that option `id` requests; `None` if the option is not given. The keys of `-s` are checked in either case.
/// If both allocators are selected and some keys of the list are keys of only one of them, the list applies only to the table of
/// that allocator; the other table is sorted by its default keys.
fn table(
    id: &str,
    matches: &ArgMatches,
    allocators: Allocators,
) -> Result<Option<ShownTable>, CliError> {
    let most = last_for::<u64>(id, "line", matches).copied();
    let sort = last_for::<String>(id, "sort", matches);
    let mut table = ShownTable {
        most: most.map(|most| usize::try_from(most).unwrap_or(usize::MAX)),
        slab_keys: SLAB_DEFAULT.into(),
        page_keys: PAGE_DEFAULT.into(),
    };
    if let Some(list) = sort {
        let slab = keys(list, SlabSortKey::named);
        let page = keys(list, PageSortKey::named);
        match (&slab, &page) {
            (Err(unknown), _) if !allocators.page => return Err(unknown_key("slab", unknown)),
            (_, Err(unknown)) if !allocators.slab => return Err(unknown_key("page", unknown)),
            (Err(unknown), Err(_)) => return Err(unknown_key("slab", unknown)),
            _ => {}
        }
        table.slab_keys = slab.unwrap_or(table.slab_keys);
        table.page_keys = page.unwrap_or(table.page_keys);
    }
    Ok((flag(matches, id) == Some(true)).then_some(table))
}

/// Parses a comma-separated list of keys; `named` returns the key of a name. The error is the first unknown word.
fn keys<K>(list: &str, named: impl Fn(&str) -> Option<K>) -> Result<Vec<K>, String> {
    let words = list.split(',').map(str::trim);
    words
        .map(|word| named(word).ok_or_else(|| word.to_owned()))
        .collect()
}

fn unknown_key(allocator: &str, word: &str) -> CliError {
    let known = match allocator {
        "slab" => "ptr, callsite, bytes, hit, pingpong and frag",
        _ => "page, callsite, bytes, hit, order, migtype and gfp",
    };
    CliError::usage(format!("Unknown {allocator} --sort key: '{word}'"))
        .hint(format!("the keys of --{allocator} are {known}"))
}

/// Returns the last value of `option` that applies to table `id`. A value applies to the table whose option precedes it most
/// closely; to both tables if neither precedes it.
fn last_for<'m, T>(id: &str, option: &str, matches: &'m ArgMatches) -> Option<&'m T>
where
    T: Clone + Send + Sync + 'static,
{
    let place = |id: &str| {
        let is_on = flag(matches, id) == Some(true);
        let places = matches.indices_of(id).into_iter().flatten();
        places.last().filter(|_| is_on)
    };
    let other_id = if id == "caller" { "alloc" } else { "caller" };
    let (table_place, other_place) = (place(id), place(other_id));
    let places = matches.indices_of(option).into_iter().flatten();
    let values = matches.get_many::<T>(option).unwrap_or_default();
    let applying = places.zip(values).filter(|(at, _)| {
        // `None` if the table's option follows the value or is not given; `None` is less than every place.
        let before_value = |place: Option<usize>| place.filter(|place| place < at);
        // Equal only if both are `None`: the value applies to both tables.
        before_value(table_place) >= before_value(other_place)
    });
    applying.last().map(|(_, value)| value)
}
