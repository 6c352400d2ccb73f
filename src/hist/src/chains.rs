//! The callchain of one stack after the other, named.

use rperf_resolve::Resolver;
use rperf_wire::{Endian, U64s};

use crate::fold::Head;
use crate::options::{Direction, Options};
use crate::sites::Finder;
use crate::trail::Trail;

/// Names callchains.
pub(crate) struct Chains {
    endian: Endian,
    max_stack: usize,
    order: Direction,
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
        let chain = U64s::new(chain, self.endian);
        if !Resolver::walk(chain, walked, |mode, ip| trail.push(mode, ip)) {
            trail.begin(head.epoch, head.event);
        }
        let sites = trail.name(|mode, ip, sites| finder.append(mode, ip, sites));
        self.frames.clear();
        self.frames.extend_from_slice(sites);
        match self.order {
            Direction::Caller => self.frames.truncate(self.max_stack),
            Direction::Callee => self.frames.reverse(),
        }
        &mut self.frames
    }
}
