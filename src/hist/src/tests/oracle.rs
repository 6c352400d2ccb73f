//! perf's algorithm, which counts samples one by one.

use std::cmp::Reverse;
use std::sync::Arc;

use rperf_replay::DsoId;
use rperf_resolve::Level;

use crate::keys::{CodeSite, KeyInput, KeyValue};
use crate::names::RecordingNames;
use crate::options::{GraphForm, HistogramOptions};
use crate::{Branch, ColumnSum, HistogramRow, Weights};

use super::fake::{Fake, Sample};

struct Entry<'n> {
    identity: Vec<KeyValue<'n>>,
    row: HistogramRow,
    tree: Tree,
}

/// A prefix tree with one frame per node.
#[derive(Default)]
struct Tree {
    /// The sum over the callchains that end here.
    own: ColumnSum,
    children: Vec<(CodeSite, Tree)>,
}

/// The rows of `samples`, in the order of their sort keys, not of their weights.
pub(crate) fn rows(
    fake: &Fake,
    options: &HistogramOptions,
    samples: &[Sample],
) -> Vec<HistogramRow> {
    let mut ordered: Vec<&Sample> = samples.iter().collect();
    ordered.sort_by_key(|sample| sample.order);
    let mut entries: Vec<Entry<'_>> = Vec::new();
    for sample in ordered {
        count(fake, options, &mut entries, sample);
    }
    let total: u64 = samples.iter().map(|sample| sample.period).sum();
    if let Some(graph) = &options.graph {
        let share = graph.min_percent / 100.0;
        // As in perf, the minimum is rounded up for `Fractal`, down for the other forms.
        let least = (total as f64 * share) as u64;
        for entry in &mut entries {
            entry.row.graph = match graph.form {
                GraphForm::Graph => {
                    let least_at_any_fork = |_fork: u64| least;
                    entry.tree.branches(fake, &least_at_any_fork)
                }
                GraphForm::Fractal => {
                    let least_at_fork = |fork: u64| (fork as f64 * share).ceil() as u64;
                    entry.tree.branches(fake, &least_at_fork)
                }
                GraphForm::Flat | GraphForm::Folded => entry.tree.list(fake, least),
            };
        }
    }
    entries.sort_by(|left, right| left.identity.cmp(&right.identity));
    entries.into_iter().map(|entry| entry.row).collect()
}

fn count<'n>(
    fake: &'n Fake,
    options: &HistogramOptions,
    entries: &mut Vec<Entry<'n>>,
    sample: &Sample,
) {
    let leaf_entry = find_or_add(fake, options, entries, sample, sample.leaf, sample.level);
    let weights = &mut entries[leaf_entry].row.weights;
    weights.own += sample.period;
    weights.samples += 1;
    weights.total += sample.period;
    // Samples of the tests are in the kernel (index 0) or in user space (index 1).
    weights.modes[usize::from(sample.level == Level::User)] += sample.period;
    entries[leaf_entry]
        .tree
        .append(fake, &sample.frames, sample.period);
    entries[leaf_entry].row.chains += u64::from(!sample.frames.is_empty());
    if !options.children {
        return;
    }
    let mut counted = vec![leaf_entry];
    let mut level = sample.level;
    for (from, site) in sample.frames.iter().enumerate() {
        level = fake.site(*site).level.unwrap_or(level);
        let entry = find_or_add(fake, options, entries, sample, *site, level);
        if counted.contains(&entry) {
            continue;
        }
        counted.push(entry);
        entries[entry].row.weights.total += sample.period;
        entries[entry].row.chains += 1;
        entries[entry]
            .tree
            .append(fake, &sample.frames[from..], sample.period);
    }
}

/// The index of the entry for a site of a sample. If there is no entry, adds one.
fn find_or_add<'n>(
    fake: &'n Fake,
    options: &HistogramOptions,
    entries: &mut Vec<Entry<'n>>,
    sample: &Sample,
    site: u32,
    level: Level,
) -> usize {
    let site = fake.site(site);
    let input = KeyInput {
        context: &sample.context,
        site: &site,
        level,
        // Both without effect: keys multiply `samples` only by sample weights, which are 0 in these tests; `field_number` is only
        // for keys that are tracepoint fields, which the tests do not have.
        samples: 0,
        field_number: 0,
    };
    let keys = options.keys();
    let keys = || keys.iter();
    let identity: Vec<KeyValue<'_>> = keys().map(|key| (key.identity)(&input, fake)).collect();
    if let Some(known) = entries.iter().position(|entry| entry.identity == identity) {
        return known;
    }
    entries.push(Entry {
        identity,
        row: HistogramRow {
            weights: Weights::default(),
            others: Vec::new(),
            cells: keys().map(|key| (key.text)(&input, fake)).collect(),
            unresolved: site.symbol.is_none(),
            chains: 0,
            graph: Vec::new(),
        },
        tree: Tree::default(),
    });
    entries.len() - 1
}

impl Tree {
    fn append(&mut self, fake: &Fake, frames: &[u32], period: u64) {
        let Some((first, rest)) = frames.split_first() else {
            self.own.add(ColumnSum {
                period,
                samples: 1,
                latency: 0,
            });
            return;
        };
        let site = fake.site(*first);
        let known = self.children.iter().position(|(child, _)| *child == site);
        let index = known.unwrap_or_else(|| {
            self.children.push((site, Tree::default()));
            self.children.len() - 1
        });
        self.children[index].1.append(fake, rest, period);
    }

    /// The period of all callchains that pass through this node or end here.
    fn period(&self) -> u64 {
        self.sum().period
    }

    fn sum(&self) -> ColumnSum {
        let mut sum = self.own;
        for (_, child) in &self.children {
            sum.add(child.sum());
        }
        sum
    }

    /// The branches at this node. `least` returns the minimum period of a branch; its argument is the period of all branches at
    /// the same fork.
    fn branches(&self, fake: &Fake, least: &impl Fn(u64) -> u64) -> Vec<Branch> {
        let least_here = least(self.period() - self.own.period);
        let heavy = |child: &&(CodeSite, Tree)| child.1.period() >= least_here;
        let mut children: Vec<&(CodeSite, Tree)> = self.children.iter().filter(heavy).collect();
        children.sort_by_key(|(site, child)| (Reverse(child.period()), rank(fake, site)));
        let branch = |(site, child): &(CodeSite, Tree)| child.branch(fake, site, least);
        children.into_iter().map(branch).collect()
    }

    fn branch(&self, fake: &Fake, site: &CodeSite, least: &impl Fn(u64) -> u64) -> Branch {
        let mut frames = vec![text(fake, site)];
        let mut tree = self;
        while let ([(site, only)], 0) = (&tree.children[..], tree.own.samples) {
            frames.push(text(fake, site));
            tree = only;
        }
        Branch {
            frames,
            all: self.sum(),
            own: tree.own,
            branches: tree.branches(fake, least),
        }
    }

    /// All callchains with a period above 0 and at least `least`, the heaviest first.
    fn list(&self, fake: &Fake, least: u64) -> Vec<Branch> {
        let mut list = Vec::new();
        self.collect(fake, &mut Vec::new(), &mut list);
        list.retain(|chain| chain.own.period > 0 && chain.own.period >= least);
        list.sort_by_key(|chain| Reverse(chain.own.period));
        list
    }

    /// Appends a branch for each node below this one, even if no callchain ends there.
    fn collect(&self, fake: &Fake, path: &mut Vec<Arc<str>>, list: &mut Vec<Branch>) {
        let mut children: Vec<&(CodeSite, Tree)> = self.children.iter().collect();
        children.sort_by_key(|(site, _)| rank(fake, site));
        for (site, child) in children {
            path.push(text(fake, site));
            child.collect(fake, path, list);
            list.push(Branch {
                frames: path.clone(),
                all: child.sum(),
                own: child.own,
                branches: Vec::new(),
            });
            path.pop();
        }
    }
}

/// The order of branches with equal periods: by object, then by address, each descending.
fn rank(fake: &Fake, site: &CodeSite) -> Reverse<(Option<DsoId>, u64)> {
    let start = site.symbol.map(|symbol| fake.range(symbol).0);
    Reverse((site.dso, start.unwrap_or(site.address)))
}

fn text(fake: &Fake, site: &CodeSite) -> Arc<str> {
    match site.symbol {
        Some(symbol) => fake.symbol(symbol).into(),
        None if site.address == 0 => "0".into(),
        None => format!("0x{:x}", site.address).into(),
    }
}
