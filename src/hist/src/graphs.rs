//! Call graphs with names, in the form that was asked for.

use std::cmp::Reverse;
use std::sync::Arc;

use rperf_replay::DsoId;

use crate::histogram::Branch;
use crate::names::Names;
use crate::options::{GraphForm, GraphOptions};
use crate::stacks::Layout;
use crate::tree::{Builder, Chain, Least, Node, Siblings};

/// Makes the call graphs of one event.
pub(crate) struct Graphs<'a> {
    pub(crate) layout: &'a Layout,
    pub(crate) names: &'a dyn Names,
    pub(crate) options: &'a GraphOptions,
    /// The event's period, which thresholds refer to.
    pub(crate) whole: u64,
}

impl Graphs<'_> {
    /// Events that a row needs to have a graph.
    pub(crate) fn least_row(&self) -> u64 {
        match self.least() {
            Least::Events(events) => events,
            Least::OfFork(_) => 0,
        }
    }

    /// The graph of `chains`.
    pub(crate) fn make(&self, mut chains: Vec<Chain>) -> Vec<Branch> {
        let listed = self.options.form.is_list();
        let builder = Builder {
            layout: self.layout,
            least: self.least(),
            siblings: if listed {
                Siblings::ByRank
            } else {
                Siblings::ByWeight
            },
            rank: |site| self.rank(site),
        };
        let nodes = builder.split(&mut chains);
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

    /// How siblings of equal weight are ordered: perf goes by the object's place in its memory, which mostly rises as
    /// objects appear in the recording, and then by address, the higher ones first. Numbers of objects are of the
    /// recording, not of the run.
    fn rank(&self, site: u32) -> Reverse<(Option<DsoId>, u64)> {
        let site = &self.layout.sites[site as usize];
        let symbol = site.symbol.filter(|_| !self.options.by_address);
        let start = symbol.map(|symbol| self.names.range(symbol).0);
        Reverse((site.dso, start.unwrap_or(site.address)))
    }

    fn branch(&self, node: Node) -> Branch {
        Branch {
            frames: self.frames(&node.frames),
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
            (Some(symbol), address) if self.options.by_address => {
                let offset = address.wrapping_sub(self.names.range(symbol).0);
                format!("{} +{offset}", self.names.symbol(symbol)).into()
            }
            (Some(symbol), _) => self.names.symbol(symbol).into(),
            // C's `%#x` writes no 0x before a zero.
            (None, 0) => "0".into(),
            (None, address) => format!("{address:#x}").into(),
        }
    }
}
