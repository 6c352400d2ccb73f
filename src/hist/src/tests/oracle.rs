//! What perf does, sample by sample and without a thought for speed.

use std::cmp::Reverse;
use std::sync::Arc;

use crate::keys::{Part, Site, Subject};
use crate::names::Names;
use crate::options::Options;
use crate::{Branch, Row};

use super::fake::{Fake, Sample};

struct Entry<'n> {
    identity: Vec<Part<'n>>,
    row: Row,
    tree: Tree,
}

/// A prefix tree with one frame to a node.
#[derive(Default)]
struct Tree {
    /// Chains that end here, and their events.
    ends: u64,
    hit: u64,
    children: Vec<(Site, Tree)>,
}

/// The rows of `samples` ordered by what the keys tell apart, not by weight.
pub(crate) fn rows(fake: &Fake, options: &Options, samples: &[Sample]) -> Vec<Row> {
    let mut ordered: Vec<&Sample> = samples.iter().collect();
    ordered.sort_by_key(|sample| sample.order);
    let mut entries: Vec<Entry<'_>> = Vec::new();
    for sample in ordered {
        count(fake, options, &mut entries, sample);
    }
    let whole: u64 = samples.iter().map(|sample| sample.period).sum();
    if let Some(graph) = &options.graph {
        let least = (whole as f64 * (graph.min_percent / 100.0)) as u64;
        for entry in &mut entries {
            entry.row.graph = entry.tree.branches(fake, least);
        }
    }
    entries.sort_by(|left, right| left.identity.cmp(&right.identity));
    entries.into_iter().map(|entry| entry.row).collect()
}

fn count<'n>(fake: &'n Fake, options: &Options, entries: &mut Vec<Entry<'n>>, sample: &Sample) {
    let leaf = find(fake, options, entries, sample, (sample.leaf, sample.level));
    entries[leaf].row.own += sample.period;
    entries[leaf].row.samples += 1;
    entries[leaf].row.total += sample.period;
    entries[leaf]
        .tree
        .append(fake, &sample.frames, sample.period);
    if !options.children {
        return;
    }
    let mut cache = vec![leaf];
    let mut level = sample.level;
    for (from, site) in sample.frames.iter().enumerate() {
        level = fake.site(*site).level.unwrap_or(level);
        let entry = find(fake, options, entries, sample, (*site, level));
        if cache.contains(&entry) {
            continue;
        }
        cache.push(entry);
        entries[entry].row.total += sample.period;
        entries[entry]
            .tree
            .append(fake, &sample.frames[from..], sample.period);
    }
}

fn find<'n>(
    fake: &'n Fake,
    options: &Options,
    entries: &mut Vec<Entry<'n>>,
    sample: &Sample,
    (site, level): (u32, rperf_resolve::Level),
) -> usize {
    let site = fake.site(site);
    let subject = Subject {
        context: &sample.context,
        site: &site,
        level,
    };
    let keys = || options.keys.iter();
    let identity: Vec<Part<'_>> = keys().map(|key| (key.identity)(&subject, fake)).collect();
    if let Some(known) = entries.iter().position(|entry| entry.identity == identity) {
        return known;
    }
    entries.push(Entry {
        identity,
        row: Row {
            own: 0,
            total: 0,
            samples: 0,
            cells: keys().map(|key| (key.text)(&subject, fake)).collect(),
            unresolved: site.symbol.is_none(),
            graph: Vec::new(),
        },
        tree: Tree::default(),
    });
    entries.len() - 1
}

impl Tree {
    fn append(&mut self, fake: &Fake, frames: &[u32], period: u64) {
        let Some((first, rest)) = frames.split_first() else {
            self.ends += 1;
            self.hit += period;
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

    fn period(&self) -> u64 {
        self.hit
            + self
                .children
                .iter()
                .map(|(_, child)| child.period())
                .sum::<u64>()
    }

    fn branches(&self, fake: &Fake, least: u64) -> Vec<Branch> {
        let heavy = |child: &&(Site, Tree)| child.1.period() >= least;
        let mut children: Vec<&(Site, Tree)> = self.children.iter().filter(heavy).collect();
        children.sort_by_key(|(site, child)| {
            let start = site
                .symbol
                .map_or(site.address, |symbol| fake.range(symbol).0);
            (Reverse(child.period()), Reverse((site.dso, start)))
        });
        let branch = |(site, child): &(Site, Tree)| child.branch(fake, site, least);
        children.into_iter().map(branch).collect()
    }

    fn branch(&self, fake: &Fake, site: &Site, least: u64) -> Branch {
        let mut frames = vec![text(fake, site)];
        let mut tree = self;
        while let ([(site, only)], 0) = (&tree.children[..], tree.ends) {
            frames.push(text(fake, site));
            tree = only;
        }
        Branch {
            frames,
            period: self.period(),
            branches: tree.branches(fake, least),
        }
    }
}

fn text(fake: &Fake, site: &Site) -> Arc<str> {
    match site.symbol {
        Some(symbol) => fake.symbol(symbol).into(),
        None if site.address == 0 => "0".into(),
        None => format!("0x{:x}", site.address).into(),
    }
}
