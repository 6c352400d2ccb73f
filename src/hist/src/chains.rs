//! The callchain of one stack after the other, named.

use rperf_resolve::Resolver;
use rperf_wire::{Endian, U64s};

use crate::branch_chain::{self, Step};
use crate::fold::Head;
use crate::options::{Direction, Options};
use crate::sites::Finder;
use crate::trail::Trail;

/// Names callchains.
pub(crate) struct Chains {
    endian: Endian,
    max_stack: usize,
    order: Direction,
    /// Whether branches stand before them.
    branches: bool,
    trail: Trail,
    frames: Vec<u32>,
}

impl Chains {
    /// Those of a recording of this byte order.
    pub(crate) fn new(options: &Options, endian: Endian) -> Self {
        Self {
            endian,
            max_stack: options.max_stack,
            order: options.order,
            branches: options.leads_with_branches(),
            trail: Trail::default(),
            frames: Vec::new(),
        }
    }

    /// Numbers of the sites of `chain`, in the order of the call graph; none where it is damaged.
    pub(crate) fn name(
        &mut self,
        head: &Head,
        chain: &[u8],
        finder: &mut Finder<'_, '_, '_>,
    ) -> &mut Vec<u32> {
        let trail = &mut self.trail;
        trail.begin(head.epoch, head.event);
        // Where chains begin with the outermost caller, perf counts from there.
        let walked = match self.order {
            Direction::Caller => usize::MAX,
            Direction::Callee => self.max_stack,
        };
        let (branches, chain) = match self.branches {
            true => branch_chain::split(chain),
            false => (Vec::new(), chain),
        };
        let chain = U64s::new(chain, self.endian);
        let mut covered = match self.order {
            Direction::Callee => branch_chain::overlap(&branches, self.max_stack, chain),
            Direction::Caller => 0,
        };
        let walked = walked.saturating_add(covered);
        let push = |mode, ip| match covered {
            0 => trail.push(mode, ip),
            _ => covered -= 1,
        };
        if !Resolver::walk(chain, walked, push) {
            trail.begin(head.epoch, head.event);
        }
        let sites = trail.name(|mode, ip, sites| finder.append(mode, ip, sites));
        self.frames.clear();
        self.frames.extend_from_slice(sites);
        match self.order {
            Direction::Caller => self.frames.truncate(self.max_stack),
            Direction::Callee => self.frames.reverse(),
        }
        if !branches.is_empty() {
            let steps = branch_chain::steps(&branches, self.order, self.max_stack);
            let ends = steps.iter().flat_map(Step::frames);
            let ends = ends.filter_map(|(ip, mark)| finder.end(ip, mark));
            self.frames.splice(..0, ends.collect::<Vec<_>>());
        }
        &mut self.frames
    }
}
