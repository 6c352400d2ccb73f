//! `--sort`, `--fields` and what stands beside them: the columns of a report, and the order of its rows.

use clap::ArgMatches;
use rperf_hist::{Counted, Field, Key, Number, find_field};

use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::filter::words;
use crate::cli::options::flag;

/// What the options ask for.
pub(in crate::cli::commands) struct Columns {
    /// Empty where the kinds of events decide.
    sort: Vec<Word>,
    /// Whether the key `parent` stands behind the others.
    with_parent: bool,
    /// Whether [`Self::sort`] stands behind what the kinds of events decide.
    adds_keys: bool,
    fields: Vec<Word>,
    /// Whether [`Self::fields`] and sort keys are all there is.
    only_fields: bool,
    /// Numbers that switches ask for.
    numbers: Vec<Number>,
    /// Columns whose one value was chosen, with that value.
    chosen: Vec<(&'static str, String)>,
    /// Whether `--sort` was given.
    pub(super) sorted: bool,
}

/// A word of `--sort` or `--fields`.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Word {
    Known(Field),
    /// A field of a tracepoint, if the recording has it.
    Other(String),
}

impl Word {
    /// The words of a list.
    fn list(words: &str) -> Vec<Self> {
        let words = words.split([',', ' ']).filter(|word| !word.is_empty());
        let word =
            |word| find_field(word).map_or_else(|| Self::Other(str::to_owned(word)), Self::Known);
        words.map(word).collect()
    }

    fn key(&self) -> Option<&'static Key> {
        match self {
            Self::Known(field) => field.key(),
            Self::Other(_) => None,
        }
    }
}

/// The keys whose columns go when a filter leaves them one value, and the options that do it.
const FILTERED: &[(&str, &str)] = &[("comm", "comms"), ("dso", "dsos"), ("symbol", "symbols")];

impl Columns {
    /// Reads options and configuration.
    pub(super) fn new(matches: &ArgMatches, context: &Context) -> Self {
        Self::or(matches, context.config.text("report.sort_order"))
    }

    /// Reads options; `configured` are the sort keys where none are given.
    pub(in crate::cli::commands) fn or(matches: &ArgMatches, configured: Option<&str>) -> Self {
        let text = |id| {
            let given = matches.try_get_one::<String>(id).ok().flatten();
            given.map(String::as_str)
        };
        let sort = text("sort").or(configured);
        let fields = text("fields");
        let (adds_keys, keys) = added(sort.unwrap_or_default());
        let (adds_fields, shown) = added(fields.unwrap_or_default());
        let is_on = |id| flag(matches, id) == Some(true);
        let numbers: &[(bool, &[Number])] = &[
            (
                is_on("show-cpu-utilization") || is_on("showcpuutilization"),
                &[Number::Kernel, Number::User],
            ),
            (is_on("show-nr-samples"), &[Number::Samples]),
            (is_on("show-total-period"), &[Number::Period]),
        ];
        let asked = numbers.iter().filter(|(asked, _)| *asked);
        Self {
            sort: Word::list(keys),
            with_parent: text("parent").is_some(),
            adds_keys,
            fields: Word::list(shown),
            only_fields: fields.is_some() && !adds_fields,
            numbers: asked.flat_map(|(_, numbers)| *numbers).copied().collect(),
            chosen: chosen(matches),
            sorted: sort.is_some(),
        }
    }

    /// Columns and order; `usual` are the sort keys where none are given, `shares` the numbers before them.
    /// `find` knows the words that are no keys by themselves.
    pub(in crate::cli::commands) fn resolve(
        &self,
        usual: &str,
        shares: &[Number],
        find: Find<'_>,
    ) -> Result<Resolved, CliError> {
        let given = !self.sort.is_empty() && !self.adds_keys;
        let mut sort = match given || (self.only_fields && self.sort.is_empty()) {
            true => Vec::new(),
            false => fields(&Word::list(usual), "sort", find)?,
        };
        extend(&mut sort, &fields(&self.sort, "sort", find)?);
        if self.with_parent {
            extend(&mut sort, &fields(&Word::list("parent"), "sort", find)?);
        }
        let shares: Vec<Field> = shares.iter().copied().map(Field::Number).collect();
        let (mut columns, mut order_by) = (Vec::new(), Vec::new());
        if !self.only_fields {
            let numbers: Vec<Field> = self.numbers.iter().copied().map(Field::Number).collect();
            extend(&mut columns, &shares);
            extend(&mut columns, &numbers);
            extend(&mut order_by, &shares);
        }
        extend(&mut columns, &fields(&self.fields, "fields", find)?);
        extend(&mut columns, &sort);
        extend(&mut order_by, &sort);
        extend(&mut order_by, &columns);
        Ok(self.without_chosen(columns, order_by))
    }

    /// Takes out the columns whose value is known, unless nothing but numbers would be left.
    fn without_chosen(&self, columns: Vec<Field>, order_by: Vec<Field>) -> Resolved {
        let keys = columns.iter().filter_map(|field| field.key());
        let value_of = |name| self.chosen.iter().find(|(known, _)| *known == name);
        let values: Vec<(&'static str, String)> = keys
            .clone()
            .filter_map(|key| value_of(key.name))
            .cloned()
            .collect();
        let some_left = keys.clone().any(|key| value_of(key.name).is_none());
        let stays = |field: &Field| {
            !some_left || field.key().is_none_or(|key| value_of(key.name).is_none())
        };
        Resolved {
            columns: columns
                .iter()
                .filter(|field| stays(field))
                .copied()
                .collect(),
            order_by,
            values,
        }
    }

    /// Whether one key makes the rows.
    pub(super) fn is_overview(&self) -> bool {
        self.sort.len() == 1
    }

    /// Whether the columns are those of `--fields` alone.
    pub(in crate::cli::commands) fn is_exact(&self) -> bool {
        self.only_fields
    }

    /// Whether rows are sorted by the function first.
    pub(in crate::cli::commands) fn begins_with_symbol(&self) -> bool {
        let first = self.sort.first().and_then(Word::key);
        self.sorted && !self.adds_keys && first.is_some_and(|key| key.name == "symbol")
    }
}

/// What columns and order come to for one recording.
pub(in crate::cli::commands) struct Resolved {
    pub(in crate::cli::commands) columns: Vec<Field>,
    pub(in crate::cli::commands) order_by: Vec<Field>,
    /// Columns that are left out because they have one value, and that value.
    pub(in crate::cli::commands) values: Vec<(&'static str, String)>,
}

/// The fields that a word given with an option names, where it is no key.
pub(in crate::cli::commands) type Find<'f> =
    &'f mut dyn FnMut(&str, &str) -> Result<Vec<Field>, CliError>;

/// The fields that words name.
fn fields(words: &[Word], option: &str, find: Find<'_>) -> Result<Vec<Field>, CliError> {
    let mut fields = Vec::new();
    for word in words {
        match word {
            Word::Known(field) => extend(&mut fields, &[*field]),
            Word::Other(word) => extend(&mut fields, &find(option, word)?),
        }
    }
    Ok(fields)
}

fn extend(fields: &mut Vec<Field>, more: &[Field]) {
    for field in more {
        if !fields.contains(field) {
            fields.push(*field);
        }
    }
}

/// Whether a list begins with `+`, and the list.
fn added(list: &str) -> (bool, &str) {
    let rest = list.strip_prefix('+');
    (rest.is_some(), rest.unwrap_or(list))
}

fn chosen(matches: &ArgMatches) -> Vec<(&'static str, String)> {
    let one = |(key, option): &(&'static str, &str)| match &words(matches, option)?[..] {
        [only] => Some((*key, only.clone())),
        _ => None,
    };
    FILTERED.iter().filter_map(one).collect()
}

/// Refuses keys of what is not counted.
pub(super) fn check<'f>(
    fields: impl IntoIterator<Item = &'f Field>,
    counted: Counted,
) -> Result<(), CliError> {
    let mut keys = fields.into_iter().filter_map(|field| field.key());
    let strange = keys.find(|key| key.needs().is_some_and(|needed| needed != counted));
    let Some(key) = strange else {
        return Ok(());
    };
    let error = CliError::usage(format!("Invalid --sort key: `{}'", key.name));
    Err(error.hint(match key.needs() {
        Some(Counted::Branches) => "it is of branches, which 'record -b' records and -b shows",
        _ => "it is of memory accesses, which --mem-mode shows",
    }))
}

#[cfg(test)]
mod tests {
    use rperf_hist::parse_fields;

    use super::*;

    const OWN: &[Number] = &[Number::Own];
    const CHILDREN: &[Number] = &[Number::Total, Number::Own];

    fn none(_: &str, word: &str) -> Result<Vec<Field>, CliError> {
        Err(CliError::usage(word))
    }

    fn columns(sort: &str, fields: Option<&str>) -> Columns {
        let (adds_keys, keys) = added(sort);
        let (adds_fields, shown) = added(fields.unwrap_or_default());
        Columns {
            sort: Word::list(keys),
            with_parent: false,
            adds_keys,
            fields: Word::list(shown),
            only_fields: fields.is_some() && !adds_fields,
            numbers: vec![Number::Samples],
            chosen: Vec::new(),
            sorted: !sort.is_empty(),
        }
    }

    fn same(fields: &[Field], words: &str) {
        assert_eq!(fields, parse_fields(words).expect("known words"));
    }

    #[test]
    fn fields_alone_are_all_there_is_and_keys_come_behind_them() {
        let resolved = columns("", Some("comm,overhead")).resolve("dso", CHILDREN, &mut none);
        let resolved = resolved.expect("known words");
        same(&resolved.columns, "comm,overhead");
        same(&resolved.order_by, "comm,overhead");
        let resolved = columns("dso", Some("comm,overhead")).resolve("sym", CHILDREN, &mut none);
        let resolved = resolved.expect("known words");
        same(&resolved.columns, "comm,overhead,dso");
        same(&resolved.order_by, "dso,comm,overhead");
    }

    #[test]
    fn a_plus_adds_to_what_is_usual() {
        let resolved = columns("+cpu", Some("+period")).resolve("comm,dso", CHILDREN, &mut none);
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
    fn columns_of_one_chosen_value_go_unless_no_other_is_left() {
        let mut columns = columns("comm,dso", None);
        columns.chosen.push(("comm", "calc".to_owned()));
        let resolved = columns.resolve("sym", OWN, &mut none).expect("known words");
        same(&resolved.columns, "overhead,sample,dso");
        same(&resolved.order_by, "overhead,comm,dso,sample");
        assert_eq!(resolved.values, [("comm", "calc".to_owned())]);
        columns.chosen.push(("dso", "libc.so.6".to_owned()));
        let resolved = columns.resolve("sym", OWN, &mut none).expect("known words");
        same(&resolved.columns, "overhead,sample,comm,dso");
        assert_eq!(resolved.values.len(), 2);
    }
}
