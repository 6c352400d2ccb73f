//! Call graphs with names, in the form that was asked for.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::sync::Arc;

use rperf_replay::DsoId;
use rperf_resolve::SymbolId;
use rustc_hash::FxHashMap;

use crate::histogram::Branch;
use crate::keys::{Line, Site};
use crate::names::Names;
use crate::options::{GraphForm, GraphOptions};
use crate::stacks::Layout;
use crate::tree::{Builder, Chain, Least, Node, Siblings};

/// Makes the call graphs of one event.
pub(crate) struct Graphs<'a> {
    layout: &'a Layout,
    names: &'a dyn Names,
    options: &'a GraphOptions,
    /// The event's period, which thresholds refer to.
    whole: u64,
    /// For each site, the first of those that are the same in a graph.
    alike: Vec<u32>,
}

/// What a graph sees of a site.
#[derive(PartialEq, Eq, Hash)]
struct Seen<'a> {
    dso: Option<DsoId>,
    symbol: Option<SymbolId>,
    /// Copies of an inlined function are one, whatever they are inlined into.
    inlined: Option<&'a str>,
    address: u64,
    line: Line,
}

impl<'a> Graphs<'a> {
    pub(crate) fn new(
        layout: &'a Layout,
        names: &'a dyn Names,
        options: &'a GraphOptions,
        whole: u64,
    ) -> Self {
        let mut graphs = Self {
            layout,
            names,
            options,
            whole,
            alike: Vec::new(),
        };
        let mut first: FxHashMap<Seen<'_>, u32> = FxHashMap::default();
        let numbered = (0..).zip(&layout.sites);
        let alike =
            numbered.map(|(number, site)| *first.entry(graphs.seen(site)).or_insert(number));
        graphs.alike = alike.collect();
        graphs
    }

    fn seen(&self, site: &Site) -> Seen<'a> {
        let inlined = site.symbol.filter(|symbol| self.names.is_inlined(*symbol));
        Seen {
            dso: site.dso,
            symbol: site.symbol.filter(|_| inlined.is_none()),
            inlined: inlined.map(|symbol| self.names.symbol(symbol)),
            address: site.address,
            line: match site.line {
                line @ Line::Known(_) if self.options.tells_places() => line,
                _ => Line::None,
            },
        }
    }

    /// Events that a row needs to have a graph.
    pub(crate) fn least_row(&self) -> u64 {
        match self.least() {
            Least::Events(events) => events,
            Least::OfFork(_) => 0,
        }
    }

    /// The graph of `chains`.
    pub(crate) fn make(&self, chains: &[Chain]) -> Vec<Branch> {
        let listed = self.options.form.is_list();
        let builder = Builder {
            layout: self.layout,
            alike: &self.alike,
            least: self.least(),
            siblings: if listed {
                Siblings::ByRank
            } else {
                Siblings::ByWeight
            },
            tells_branches: self.options.tells_branches && !listed,
            rank: |site| self.rank(site),
        };
        let (nodes, _) = builder.split(chains);
        if !listed {
            return nodes.into_iter().map(|node| self.branch(node)).collect();
        }
        let mut list = Vec::new();
        self.flatten(&nodes, &mut Vec::new(), &mut list);
        list.sort_by_key(|chain| Reverse(chain.own.period));
        list
    }

    fn least(&self) -> Least {
        let share = self.options.min_percent / 100.0;
        if self.options.form == GraphForm::Fractal {
            Least::OfFork(share)
        } else {
            Least::Events((self.whole as f64 * share) as u64)
        }
    }

    /// How siblings of equal weight are ordered: by line, the later ones first; else perf goes by the object's place in
    /// its memory, which mostly rises as objects appear in the recording, and then by address, the higher ones first.
    /// Numbers of objects are of the recording, not of the run.
    fn rank(&self, site: u32) -> Reverse<(Option<&str>, Option<DsoId>, u64)> {
        let site = &self.layout.sites[site as usize];
        let line = match site.line {
            Line::Known(line) if self.options.by_line => Some(self.names.line(line)),
            _ => None,
        };
        let symbol = site.symbol.filter(|_| !self.options.by_address);
        let start = symbol.map(|symbol| self.names.range(symbol).0);
        Reverse((line, site.dso, start.unwrap_or(site.address)))
    }

    fn branch(&self, node: Node) -> Branch {
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

    /// Appends the chains that end in `nodes`, longer ones before those that they begin with.
    fn flatten(&self, nodes: &[Node], path: &mut Vec<Arc<str>>, list: &mut Vec<Branch>) {
        for node in nodes {
            let above = path.len();
            path.extend(self.frames(&node.frames));
            self.flatten(&node.nodes, path, list);
            if node.own.period >= self.least_row().max(1) {
                list.push(Branch {
                    frames: path.clone(),
                    all: node.all,
                    own: node.own,
                    branches: Vec::new(),
                });
            }
            path.truncate(above);
        }
    }

    fn frames(&self, sites: &[u32]) -> Vec<Arc<str>> {
        sites.iter().map(|site| self.frame(*site)).collect()
    }

    fn frame(&self, site: u32) -> Arc<str> {
        let site = &self.layout.sites[site as usize];
        match (site.symbol, site.address) {
            (Some(symbol), address) => {
                let mut text = self.names.symbol(symbol).to_owned();
                if let Some(place) = self.place(site, symbol, address) {
                    text.push(' ');
                    text.push_str(&place);
                }
                if self.names.is_inlined(symbol) {
                    text.push_str(" (inlined)");
                }
                text.into()
            }
            // C's `%#x` writes no 0x before a zero.
            (None, 0) => "0".into(),
            (None, address) => format!("{address:#x}").into(),
        }
    }

    /// The line of a frame, or its offset in the function, if graphs tell such things.
    fn place(&self, site: &Site, symbol: SymbolId, address: u64) -> Option<Cow<'a, str>> {
        match site.line {
            Line::Known(line) if self.options.tells_places() => Some(self.names.line(line).into()),
            _ if self.options.by_address => {
                let offset = address.wrapping_sub(self.names.range(symbol).0);
                Some(format!("+{offset}").into())
            }
            _ => None,
        }
    }
}
