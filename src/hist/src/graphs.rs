//! Call graphs in the selected form, with names.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::sync::Arc;

use rperf_replay::DsoId;
use rperf_resolve::SymbolId;
use rustc_hash::FxHashMap;

use crate::histogram::Branch;
use crate::keys::{CodeSite, INLINED, LocationText, hexadecimal};
use crate::names::RecordingNames;
use crate::options::{GraphForm, GraphOptions};
use crate::stacks::MergedStacks;
use crate::streams::{Stream, StreamFrame};
use crate::tree::{ChainTail, MinBranchWeight, SiblingOrder, TreeBuilder, TreeNode};

/// Builds the call graphs of one event.
pub(crate) struct GraphBuilder<'a> {
    merged: &'a MergedStacks,
    names: &'a dyn RecordingNames,
    options: &'a GraphOptions,
    /// The event's total period, for thresholds.
    total: u64,
    /// For each site, the index of the first site that call graphs do not distinguish from it.
    representatives: Vec<u32>,
}

/// The properties by which call graphs distinguish sites.
#[derive(PartialEq, Eq, Hash)]
struct SiteProperties<'a> {
    dso: Option<DsoId>,
    /// `None` if the function is inlined or unknown.
    symbol: Option<SymbolId>,
    /// The name of an inlined function: its copies are equal wherever they are inlined.
    inlined: Option<&'a str>,
    /// [`CodeSite::address`]: 0 for a function unless call graphs distinguish addresses.
    address: u64,
    line: LocationText,
}

impl<'a> GraphBuilder<'a> {
    pub(crate) fn new(
        merged: &'a MergedStacks,
        names: &'a dyn RecordingNames,
        options: &'a GraphOptions,
        total: u64,
    ) -> Self {
        let mut graphs = Self {
            merged,
            names,
            options,
            total,
            representatives: Vec::new(),
        };
        let mut first_alike: FxHashMap<SiteProperties<'_>, u32> = FxHashMap::default();
        let numbered = (0..).zip(&merged.sites);
        let representatives = numbered.map(|(number, site)| {
            let properties = graphs.site_properties(site);
            *first_alike.entry(properties).or_insert(number)
        });
        graphs.representatives = representatives.collect();
        graphs
    }

    fn site_properties(&self, site: &CodeSite) -> SiteProperties<'a> {
        let inlined = site.symbol.filter(|symbol| self.names.is_inlined(*symbol));
        SiteProperties {
            dso: site.dso,
            symbol: site.symbol.filter(|_| inlined.is_none()),
            inlined: inlined.map(|symbol| self.names.symbol(symbol)),
            address: site.address,
            // `by_address` without `by_line` shows lines, too: calls whose lines differ are then distinguished as well.
            line: match site.line {
                line @ LocationText::Known(_) if self.options.shows_positions() => line,
                _ => LocationText::None,
            },
        }
    }

    /// Minimum period of a row that has a call graph, and of the chains in list forms.
    pub(crate) fn min_row_period(&self) -> u64 {
        match self.min_branch_weight() {
            MinBranchWeight::Period(period) => period,
            MinBranchWeight::OfFork(_) => 0,
        }
    }

    /// Builds the graph of `chains`: its branches, or in list forms one branch per chain.
    pub(crate) fn make(&self, chains: &[ChainTail]) -> Vec<Branch> {
        let is_list = self.options.form.is_list();
        let builder = TreeBuilder {
            merged: self.merged,
            representatives: &self.representatives,
            min_weight: self.min_branch_weight(),
            siblings: if is_list {
                SiblingOrder::ByRank
            } else {
                SiblingOrder::ByWeight
            },
            // The sampled branches (branch stacks), not those of the graph.
            annotates_branches: self.options.annotates_branches && !is_list,
            rank: |site| self.rank(site),
        };
        let (nodes, _without_frames) = builder.split(chains);
        if !is_list {
            return nodes.into_iter().map(|node| self.branch(node)).collect();
        }
        let mut list = Vec::new();
        self.flatten(&nodes, &mut Vec::new(), &mut list);
        list.sort_by_key(|chain| Reverse(chain.own.period));
        list
    }

    /// The heaviest streams of `chains`, at most `limit` of them, and the total period of all streams. A stream is a node of the
    /// tree in which chains end (`diff --stream`).
    pub(crate) fn streams(&self, chains: &[ChainTail], limit: usize) -> (Vec<Stream>, u64) {
        let builder = TreeBuilder {
            merged: self.merged,
            representatives: &self.representatives,
            min_weight: MinBranchWeight::Period(0),
            siblings: SiblingOrder::ByRank,
            annotates_branches: true,
            rank: |site| self.rank(site),
        };
        let (nodes, _without_frames) = builder.split(chains);
        let mut list = Vec::new();
        list_ends(&nodes, &mut list);
        let periods = list.iter().map(|node| node.own.period);
        let total = periods.fold(0, u64::saturating_add);
        list.sort_by_key(|node| Reverse(node.own.period));
        let streams = list.into_iter().take(limit);
        (streams.map(|node| self.stream(node)).collect(), total)
    }

    fn stream(&self, node: &TreeNode) -> Stream {
        let frames = node.frames.iter().map(|number| {
            let site = &self.merged.sites[*number as usize];
            let line = match (site.symbol, site.line) {
                (Some(_), LocationText::Known(line)) => Some(self.names.line(line).into()),
                _ => None,
            };
            StreamFrame {
                text: self.frame(*number),
                line,
            }
        });
        let frames: Vec<StreamFrame> = frames.collect();
        let marked = frames.iter().zip(&node.marks);
        // As in perf, frames without a source line do not count for the cycles.
        let with_line = marked.filter(|(frame, _)| frame.line.is_some());
        Stream {
            cycles: with_line.map(|(_, marks)| marks.average_cycles()).sum(),
            frames,
            period: node.own.period,
        }
    }

    fn min_branch_weight(&self) -> MinBranchWeight {
        let share = self.options.min_percent / 100.0;
        if self.options.form == GraphForm::Fractal {
            MinBranchWeight::OfFork(share)
        } else {
            MinBranchWeight::Period((self.total as f64 * share) as u64)
        }
    }

    /// The order of siblings of equal weight; in list forms and for streams, of all siblings. All parts are descending:
    /// 1. the line, if calls from different lines are separate branches;
    /// 2. the object. perf compares the addresses of its own data structures, which mostly increase in order of appearance in the
    ///    recording. Ids of objects have the same order, and are the same in every run;
    /// 3. the start of the function; the site's address if there is no function, or if calls from different addresses are
    ///    separate branches.
    fn rank(&self, site: u32) -> Reverse<(Option<&str>, Option<DsoId>, u64)> {
        let site = &self.merged.sites[site as usize];
        let line = match site.line {
            LocationText::Known(line) if self.options.by_line => Some(self.names.line(line)),
            _ => None,
        };
        let symbol = site.symbol.filter(|_| !self.options.by_address);
        let start = symbol.map(|symbol| self.names.range(symbol).0);
        Reverse((line, site.dso, start.unwrap_or(site.address)))
    }

    fn branch(&self, node: TreeNode) -> Branch {
        let mut frames = self.frames(&node.frames);
        for (frame, marks) in frames.iter_mut().zip(&node.marks) {
            *frame = format!("{frame}{}", marks.text()).into();
        }
        Branch {
            frames,
            all: node.all,
            own: node.own,
            branches: node
                .nodes
                .into_iter()
                .map(|node| self.branch(node))
                .collect(),
        }
    }

    /// Appends the chains that reach the minimum period and end in `nodes` or their descendants, longer chains before their
    /// prefixes.
    fn flatten(&self, nodes: &[TreeNode], path: &mut Vec<Arc<str>>, list: &mut Vec<Branch>) {
        for node in nodes {
            let parent_length = path.len();
            path.extend(self.frames(&node.frames));
            self.flatten(&node.nodes, path, list);
            // `own` is the weight of the chains that end here: 0 if none does.
            if node.own.period >= self.min_row_period().max(1) {
                list.push(Branch {
                    frames: path.clone(),
                    all: node.all,
                    own: node.own,
                    branches: Vec::new(),
                });
            }
            path.truncate(parent_length);
        }
    }

    /// The texts of frames, which are given as indices of their sites.
    fn frames(&self, sites: &[u32]) -> Vec<Arc<str>> {
        sites.iter().map(|site| self.frame(*site)).collect()
    }

    /// The text of a frame.
    fn frame(&self, site: u32) -> Arc<str> {
        let site = &self.merged.sites[site as usize];
        let Some(symbol) = site.symbol else {
            return hexadecimal(site.address).into();
        };
        let mut text = self.names.symbol(symbol).to_owned();
        if let Some(location) = self.location(site, symbol) {
            text.push(' ');
            text.push_str(&location);
        }
        if self.names.is_inlined(symbol) {
            text.push_str(INLINED);
        }
        text.into()
    }

    /// The line of a frame, or its offset in the function, if shown in graphs.
    fn location(&self, site: &CodeSite, symbol: SymbolId) -> Option<Cow<'a, str>> {
        match site.line {
            LocationText::Known(line) if self.options.shows_positions() => {
                Some(self.names.line(line).into())
            }
            _ if self.options.by_address => {
                let offset = site.address.wrapping_sub(self.names.range(symbol).0);
                Some(format!("+{offset}").into())
            }
            _ => None,
        }
    }
}

/// Appends the nodes in which chains end: the node of a chain before the nodes of its prefixes.
fn list_ends<'n>(nodes: &'n [TreeNode], list: &mut Vec<&'n TreeNode>) {
    for node in nodes {
        list_ends(&node.nodes, list);
        if node.own.period > 0 {
            list.push(node);
        }
    }
}
