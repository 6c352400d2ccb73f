//! `--sort`, `--fields` and related options: the columns of a report, and the order of its rows.

use clap::ArgMatches;
use rperf_hist::{CountedItems, Key, NumberField, ReportField, find_field};

use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::filter::words;
use crate::cli::options::{flag, given_value};

/// The parsed options.
pub(crate) struct ColumnOptions {
    /// The sort keys as given or configured; empty for the default keys, which depend on the events.
    sort: Vec<SortWord>,
    /// Whether the key `parent` is appended.
    with_parent: bool,
    /// Whether [`Self::sort`] is appended to the default keys of the events.
    adds_keys: bool,
    fields: Vec<SortWord>,
    /// Whether only [`Self::fields`] and sort keys are shown.
    only_fields: bool,
    /// Number columns enabled by switches.
    numbers: Vec<NumberField>,
    /// Columns filtered to a single value, with that value.
    single_values: Vec<(&'static str, String)>,
}

/// A word of `--sort` or `--fields`.
#[derive(Debug, Clone, PartialEq, Eq)]
enum SortWord {
    Known(ReportField),
    /// Not the name of a built-in field: a tracepoint field, if the recording has it.
    Other(String),
}

impl SortWord {
    /// Parses a list of words, separated by commas or blanks.
    fn list(words: &str) -> Vec<Self> {
        let words = words.split([',', ' ']).filter(|word| !word.is_empty());
        let parse =
            |word| find_field(word).map_or_else(|| Self::Other(str::to_owned(word)), Self::Known);
        words.map(parse).collect()
    }

    fn key(&self) -> Option<&'static Key> {
        match self {
            Self::Known(field) => field.key(),
            Self::Other(_) => None,
        }
    }
}

/// Keys whose columns can be removed when a filter selects a single value, with the filter's option.
const FILTERED: &[(&str, &str)] = &[("comm", "comms"), ("dso", "dsos"), ("symbol", "symbols")];

impl ColumnOptions {
    /// Parses options and the setting `report.sort_order`.
    pub(crate) fn new(matches: &ArgMatches, context: &Context) -> Self {
        Self::with_default_sort(matches, context.config.text("report.sort_order"))
    }

    /// Parses options; `configured` are the sort keys if none are given.
    pub(crate) fn with_default_sort(matches: &ArgMatches, configured: Option<&str>) -> Self {
        let text = |id| given_value::<String>(matches, id).map(String::as_str);
        let sort = text("sort").or(configured);
        let fields = text("fields");
        let (adds_keys, keys) = split_plus(sort.unwrap_or_default());
        let (adds_fields, field_list) = split_plus(fields.unwrap_or_default());
        let is_on = |id| flag(matches, id) == Some(true);
        let numbers: &[(bool, &[NumberField])] = &[
            (
                is_on("show-cpu-utilization") || is_on("showcpuutilization"),
                &[NumberField::Kernel, NumberField::User],
            ),
            (is_on("show-nr-samples"), &[NumberField::Samples]),
            (is_on("show-total-period"), &[NumberField::Period]),
        ];
        let requested = numbers.iter().filter(|(requested, _)| *requested);
        Self {
            sort: SortWord::list(keys),
            with_parent: text("parent").is_some(),
            adds_keys,
            fields: SortWord::list(field_list),
            only_fields: fields.is_some() && !adds_fields,
            numbers: requested
                .flat_map(|(_, numbers)| *numbers)
                .copied()
                .collect(),
            single_values: single_values(matches),
        }
    }

    /// Returns columns and order; `default_keys` are the default sort keys, `default_shares` the default share columns, which
    /// precede the keys. `find` resolves the words that do not name a built-in field.
    pub(crate) fn resolve(
        &self,
        default_keys: &str,
        default_shares: &[NumberField],
        find: FindFields<'_>,
    ) -> Result<ResolvedColumns, CliError> {
        // Without sort keys, the default keys are omitted if `--fields` replaces the default columns.
        let omits_default_keys = match self.sort.is_empty() {
            true => self.only_fields,
            false => !self.adds_keys,
        };
        let mut sort = match omits_default_keys {
            true => Vec::new(),
            false => fields(&SortWord::list(default_keys), "sort", find)?,
        };
        extend(&mut sort, &fields(&self.sort, "sort", find)?);
        if self.with_parent {
            extend(&mut sort, &fields(&SortWord::list("parent"), "sort", find)?);
        }
        let (mut columns, mut order_by) = (Vec::new(), Vec::new());
        if !self.only_fields {
            let numbers: Vec<ReportField> = self
                .numbers
                .iter()
                .copied()
                .map(ReportField::Number)
                .collect();
            let shares = Self::shares(default_shares, &sort);
            extend(&mut columns, &shares);
            extend(&mut columns, &numbers);
            // Rows are sorted first by the shares that are not sort keys themselves.
            let first = shares.iter().filter(|share| !sort.contains(share));
            let first: Vec<ReportField> = first.copied().collect();
            extend(&mut order_by, &first);
        }
        extend(&mut columns, &fields(&self.fields, "fields", find)?);
        extend(&mut columns, &sort);
        extend(&mut order_by, &sort);
        extend(&mut order_by, &columns);
        Ok(self.without_single_values(columns, order_by))
    }

    /// Returns the share columns (percentages of a total), which precede the keys. As in perf, these are the defaults, or, if
    /// `sort` names a latency and the defaults do not begin with one, the shares that `sort` names.
    fn shares(default: &[NumberField], sort: &[ReportField]) -> Vec<ReportField> {
        let named = sort.iter().filter_map(|field| field.number());
        let names_latency = named.clone().any(NumberField::is_latency);
        let latency_is_first = default.first().is_some_and(|number| number.is_latency());
        let shares: Vec<NumberField> = match names_latency && !latency_is_first {
            true => named.filter(|number| number.is_share()).collect(),
            false => default.to_vec(),
        };
        shares.into_iter().map(ReportField::Number).collect()
    }

    /// Removes the columns that are filtered to a single value, unless only numbers would remain. The order keeps them.
    fn without_single_values(
        &self,
        columns: Vec<ReportField>,
        order_by: Vec<ReportField>,
    ) -> ResolvedColumns {
        let keys = columns.iter().filter_map(|field| field.key());
        let value_of = |name| self.single_values.iter().find(|(known, _)| *known == name);
        let single_values: Vec<(&'static str, String)> = keys
            .clone()
            .filter_map(|key| value_of(key.name))
            .cloned()
            .collect();
        let some_left = keys.clone().any(|key| value_of(key.name).is_none());
        let stays = |field: &ReportField| {
            !some_left || field.key().is_none_or(|key| value_of(key.name).is_none())
        };
        ResolvedColumns {
            columns: columns
                .iter()
                .filter(|field| stays(field))
                .copied()
                .collect(),
            order_by,
            single_values,
        }
    }

    /// Whether a single sort key was given or configured.
    pub(crate) fn has_single_key(&self) -> bool {
        self.sort.len() == 1
    }

    /// Whether `--fields` replaces the default columns.
    pub(crate) fn replaces_columns(&self) -> bool {
        self.only_fields
    }

    /// Whether the given sort keys replace the default ones and begin with `symbol`.
    pub(crate) fn begins_with_symbol(&self) -> bool {
        let first = self.sort.first().and_then(SortWord::key);
        !self.adds_keys && first.is_some_and(|key| key.name == "symbol")
    }
}

/// Columns and order for one recording.
pub(crate) struct ResolvedColumns {
    pub(crate) columns: Vec<ReportField>,
    pub(crate) order_by: Vec<ReportField>,
    /// Columns filtered to a single value, removed or not, with that value.
    pub(crate) single_values: Vec<(&'static str, String)>,
}

/// Returns the fields that a word of `--sort` or `--fields` names, if it does not name a built-in field. The arguments are the
/// option's name without dashes, for messages, and the word.
pub(crate) type FindFields<'f> =
    &'f mut dyn FnMut(&str, &str) -> Result<Vec<ReportField>, CliError>;

/// Returns the fields of a list of words.
fn fields(
    words: &[SortWord],
    option: &str,
    find: FindFields<'_>,
) -> Result<Vec<ReportField>, CliError> {
    let mut fields = Vec::new();
    for word in words {
        match word {
            SortWord::Known(field) => extend(&mut fields, &[*field]),
            SortWord::Other(word) => extend(&mut fields, &find(option, word)?),
        }
    }
    Ok(fields)
}

/// Appends those of `more` that are not in `fields` yet: each field stays at its first place.
fn extend(fields: &mut Vec<ReportField>, more: &[ReportField]) {
    for field in more {
        if !fields.contains(field) {
            fields.push(*field);
        }
    }
}

/// Whether a list starts with `+`, and the list without it.
fn split_plus(list: &str) -> (bool, &str) {
    let rest = list.strip_prefix('+');
    (rest.is_some(), rest.unwrap_or(list))
}

fn single_values(matches: &ArgMatches) -> Vec<(&'static str, String)> {
    let single_value = |(key, option): &(&'static str, &str)| match &words(matches, option)?[..] {
        [only] => Some((*key, only.clone())),
        _ => None,
    };
    FILTERED.iter().filter_map(single_value).collect()
}

/// Rejects keys that need other items (branches, memory accesses) than `counted`, the items that rows count.
pub(crate) fn check<'f>(
    fields: impl IntoIterator<Item = &'f ReportField>,
    counted: CountedItems,
) -> Result<(), CliError> {
    let mut keys = fields.into_iter().filter_map(|field| field.key());
    let unsuitable = keys.find(|key| key.required_items().is_some_and(|needed| needed != counted));
    let Some(key) = unsuitable else {
        return Ok(());
    };
    let error = CliError::usage(format!("Invalid --sort key: `{}'", key.name));
    Err(error.hint(match key.required_items() {
        Some(CountedItems::Branches) => {
            "the key needs branch stacks: 'record -b', then 'report -b'"
        }
        _ => "the key needs --mem-mode",
    }))
}

#[cfg(test)]
mod tests {
    use rperf_hist::parse_fields;

    use super::*;

    const OWN: &[NumberField] = &[NumberField::Own];
    const CHILDREN: &[NumberField] = &[NumberField::Total, NumberField::Own];

    /// Finds no fields: a test's words all name built-in fields.
    fn reject(_: &str, word: &str) -> Result<Vec<ReportField>, CliError> {
        Err(CliError::usage(word))
    }

    /// The options `--sort`, `--fields` and `--show-nr-samples`, which adds the column `sample`.
    fn columns(sort: &str, fields: Option<&str>) -> ColumnOptions {
        let (adds_keys, keys) = split_plus(sort);
        let (adds_fields, field_list) = split_plus(fields.unwrap_or_default());
        ColumnOptions {
            sort: SortWord::list(keys),
            with_parent: false,
            adds_keys,
            fields: SortWord::list(field_list),
            only_fields: fields.is_some() && !adds_fields,
            numbers: vec![NumberField::Samples],
            single_values: Vec::new(),
        }
    }

    fn same(fields: &[ReportField], words: &str) {
        assert_eq!(fields, parse_fields(words).expect("known words"));
    }

    #[test]
    fn fields_replace_the_default_columns_and_keys_follow() {
        let resolved = columns("", Some("comm,overhead")).resolve("dso", CHILDREN, &mut reject);
        let resolved = resolved.expect("known words");
        same(&resolved.columns, "comm,overhead");
        same(&resolved.order_by, "comm,overhead");
        let resolved = columns("dso", Some("comm,overhead")).resolve("sym", CHILDREN, &mut reject);
        let resolved = resolved.expect("known words");
        same(&resolved.columns, "comm,overhead,dso");
        same(&resolved.order_by, "dso,comm,overhead");
    }

    #[test]
    fn a_plus_adds_to_the_defaults() {
        let resolved = columns("+cpu", Some("+period")).resolve("comm,dso", CHILDREN, &mut reject);
        let resolved = resolved.expect("known words");
        same(
            &resolved.columns,
            "overhead_children,overhead,sample,period,comm,dso,cpu",
        );
        same(
            &resolved.order_by,
            "overhead_children,overhead,comm,dso,cpu,sample,period",
        );
    }

    #[test]
    fn a_named_share_sorts_at_its_place_in_the_list() {
        let resolved = |sort, shares| {
            let resolved = columns(sort, None).resolve("sym", shares, &mut reject);
            resolved.expect("known words")
        };
        let named = resolved("comm,overhead", CHILDREN);
        same(&named.columns, "overhead_children,overhead,sample,comm");
        same(&named.order_by, "overhead_children,comm,overhead,sample");
        // Default shares that do not begin with a latency are replaced if a sort key is one.
        let both = &[NumberField::Own, NumberField::Latency];
        let latency = resolved("latency,parallelism,comm", both);
        same(&latency.columns, "latency,sample,parallelism,comm");
        same(&latency.order_by, "latency,parallelism,comm,sample");
        // Those that begin with a latency stay.
        let first = resolved("comm,latency", &[NumberField::Latency, NumberField::Own]);
        same(&first.columns, "latency,overhead,sample,comm");
        same(&first.order_by, "overhead,comm,latency,sample");
    }

    #[test]
    fn columns_with_one_filtered_value_are_removed_unless_all_keys_have_one() {
        let mut columns = columns("comm,dso", None);
        columns.single_values.push(("comm", "calc".to_owned()));
        let resolved = columns
            .resolve("sym", OWN, &mut reject)
            .expect("known words");
        same(&resolved.columns, "overhead,sample,dso");
        same(&resolved.order_by, "overhead,comm,dso,sample");
        assert_eq!(resolved.single_values, [("comm", "calc".to_owned())]);
        columns.single_values.push(("dso", "libc.so.6".to_owned()));
        let resolved = columns
            .resolve("sym", OWN, &mut reject)
            .expect("known words");
        same(&resolved.columns, "overhead,sample,comm,dso");
        assert_eq!(resolved.single_values.len(), 2);
    }
}
