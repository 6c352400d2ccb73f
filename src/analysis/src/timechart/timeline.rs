//! The states of one row of a chart over time, merged to a resolution.

/// Time divided into cells of equal length. Adjacent states that begin in one cell and are shorter than it are merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeGrid {
    origin: u64,
    /// The length of a cell, in nanoseconds.
    cell: u64,
    /// The requested number of cells; there are at most twice as many.
    cells: u64,
}

impl TimeGrid {
    /// The initial length of a cell, in nanoseconds: a power of two, doubled as the grid is extended.
    const SHORTEST: u64 = 1 << 8;

    /// Creates a grid that begins at `origin`, in nanoseconds. It always has at most twice `cells` cells.
    #[must_use]
    pub fn new(origin: u64, cells: u64) -> Self {
        Self {
            origin,
            cell: Self::SHORTEST,
            cells: cells.max(1),
        }
    }

    /// Extends the grid to `time`. Returns whether cells have become longer: then all timelines must be
    /// [coarsened](Timeline::coarsen).
    pub fn extend(&mut self, time: u64) -> bool {
        let before = self.cell;
        while self.cell_of(time) >= self.cells.saturating_mul(2) {
            self.cell = self.cell.saturating_mul(2);
        }
        self.cell != before
    }

    /// Returns the length of a cell, in nanoseconds.
    #[must_use]
    pub fn cell(&self) -> u64 {
        self.cell
    }

    /// Returns the number of the cell at `time`. Times before the grid are in its first cell.
    #[must_use]
    pub fn cell_of(&self, time: u64) -> u64 {
        time.saturating_sub(self.origin) / self.cell
    }
}

/// States over time, in order and without overlap; gaps are times without a known state. Merged pieces can have gaps inside.
///
/// A state that lasts at least a cell is a piece of its own. Shorter states that begin in the same cell are merged into one piece
/// with the time of each state, so that at most two pieces begin in a cell, whatever the number of states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timeline<const STATES: usize, D> {
    pieces: Vec<TimelinePiece<STATES, D>>,
}

/// A part of a timeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimelinePiece<const STATES: usize, D> {
    /// The start time in nanoseconds.
    pub from: u64,
    /// The end time in nanoseconds.
    pub to: u64,
    /// The states.
    pub content: PieceContent<STATES, D>,
}

/// The content of a piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PieceContent<const STATES: usize, D> {
    /// One state, with its data.
    One {
        /// The state's number, below `STATES`.
        state: usize,
        /// The data of the state.
        data: D,
    },
    /// Several states that are shorter than a cell.
    Merged(Box<MergedStates<STATES>>),
}

/// The sums of merged states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergedStates<const STATES: usize> {
    /// Nanoseconds in each state. Their sum is less than the length of the piece if the piece has gaps.
    pub nanos: [u64; STATES],
    /// The number of merged states.
    pub count: u64,
}

impl<const STATES: usize, D> Default for Timeline<STATES, D> {
    fn default() -> Self {
        Self { pieces: Vec::new() }
    }
}

impl<const STATES: usize, D> Timeline<STATES, D> {
    /// Returns the pieces, in order of time.
    #[must_use]
    pub fn pieces(&self) -> &[TimelinePiece<STATES, D>] {
        &self.pieces
    }

    /// Appends a piece after the last one. The part that overlaps the last piece is removed; empty pieces are ignored.
    pub fn push(&mut self, grid: &TimeGrid, mut piece: TimelinePiece<STATES, D>) {
        let end = self.pieces.last().map_or(0, |last| last.to);
        piece.from = piece.from.max(end);
        if piece.from >= piece.to {
            return;
        }
        match self.pieces.last_mut() {
            Some(last) if last.merges_with(&piece, grid) => last.merge(&piece),
            _ => self.pieces.push(piece),
        }
    }

    /// Merges the pieces to the cells of `grid`, after these have become longer.
    pub fn coarsen(&mut self, grid: &TimeGrid) {
        for piece in std::mem::take(&mut self.pieces) {
            self.push(grid, piece);
        }
    }
}

impl<const STATES: usize, D> TimelinePiece<STATES, D> {
    /// Creates a piece with one state.
    pub fn one(from: u64, to: u64, state: usize, data: D) -> Self {
        let content = PieceContent::One { state, data };
        Self { from, to, content }
    }

    /// Whether `next`, which follows this piece, is merged with it.
    fn merges_with(&self, next: &Self, grid: &TimeGrid) -> bool {
        grid.cell_of(self.from) == grid.cell_of(next.from)
            && self.is_short(grid)
            && next.is_short(grid)
    }

    /// Whether the piece consists of states shorter than a cell.
    fn is_short(&self, grid: &TimeGrid) -> bool {
        match self.content {
            PieceContent::One { .. } => self.to - self.from < grid.cell(),
            PieceContent::Merged(_) => true,
        }
    }

    fn merge(&mut self, next: &Self) {
        let mut merged = self.sums();
        let other = next.sums();
        for (sum, more) in merged.nanos.iter_mut().zip(other.nanos) {
            *sum = sum.saturating_add(more);
        }
        merged.count += other.count;
        self.to = self.to.max(next.to);
        match &mut self.content {
            PieceContent::Merged(sums) => **sums = merged,
            PieceContent::One { .. } => self.content = PieceContent::Merged(Box::new(merged)),
        }
    }

    /// Returns the time in each state, and the number of states.
    #[must_use]
    pub fn sums(&self) -> MergedStates<STATES> {
        match &self.content {
            PieceContent::Merged(sums) => (**sums).clone(),
            PieceContent::One { state, .. } => {
                let mut nanos = [0; STATES];
                if let Some(own) = nanos.get_mut(*state) {
                    *own = self.to - self.from;
                }
                MergedStates { nanos, count: 1 }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Line = Timeline<3, usize>;

    /// States in order and without overlap: start, end and number of each.
    fn states() -> impl Strategy<Value = Vec<(u64, u64, usize)>> {
        let length = prop_oneof![1..50_u64, 1..3_000_u64, 1..500_000_u64];
        let steps = proptest::collection::vec((0..2_000_u64, length, 0..3_usize), 1..300);
        steps.prop_map(|steps| {
            let mut time = 1_000_000;
            let states = steps.into_iter().map(|(gap, length, state)| {
                let from = time + gap;
                time = from + length;
                (from, time, state)
            });
            states.collect()
        })
    }

    /// A timeline to which all states are pushed with the same grid.
    fn pushed(states: &[(u64, u64, usize)], grid: &TimeGrid) -> Line {
        let mut line = Line::default();
        for (index, (from, to, state)) in states.iter().enumerate() {
            line.push(grid, TimelinePiece::one(*from, *to, *state, index));
        }
        line
    }

    /// The start, end and nanoseconds in each state of the expected pieces: one for each long state, and one for each sequence of
    /// short states that begin in the same cell.
    fn oracle(states: &[(u64, u64, usize)], grid: &TimeGrid) -> Vec<(u64, u64, [u64; 3])> {
        let is_long = |state: &(u64, u64, usize)| state.1 - state.0 >= grid.cell();
        let mut pieces = Vec::new();
        let mut at = 0;
        while at < states.len() {
            let first = &states[at];
            let same = |state: &&(u64, u64, usize)| {
                !is_long(first) && !is_long(state) && grid.cell_of(state.0) == grid.cell_of(first.0)
            };
            let run = states[at..].iter().take_while(same).count().max(1);
            let mut nanos = [0; 3];
            for (from, to, state) in &states[at..at + run] {
                nanos[*state] += to - from;
            }
            pieces.push((first.0, states[at + run - 1].1, nanos));
            at += run;
        }
        pieces
    }

    proptest! {
        #[test]
        fn merging_step_by_step_is_merging_at_once(states in states(), cells in 1..200_u64) {
            let mut grid = TimeGrid::new(1_000_000, cells);
            let mut line = Line::default();
            for (index, (from, to, state)) in states.iter().enumerate() {
                if grid.extend(*to) {
                    line.coarsen(&grid);
                }
                line.push(&grid, TimelinePiece::one(*from, *to, *state, index));
            }
            let pieces: Vec<_> =
                line.pieces().iter().map(|piece| (piece.from, piece.to, piece.sums().nanos)).collect();
            prop_assert_eq!(&pieces, &oracle(&states, &grid));
            prop_assert_eq!(&line, &pushed(&states, &grid));
            // At most one long piece and one piece of short states begin in each of at most `2 * cells` cells.
            prop_assert!(pieces.len() as u64 <= 4 * cells, "{} of {}", pieces.len(), cells);
            let last = states.last().unwrap().1;
            prop_assert!(grid.cell_of(last) < 2 * cells);
        }
    }

    #[test]
    fn short_states_of_any_number_have_bounded_pieces() {
        let mut grid = TimeGrid::new(0, 100);
        let mut line = Line::default();
        for at in 0..1_000_000_u64 {
            if grid.extend(at * 10 + 5) {
                line.coarsen(&grid);
            }
            line.push(
                &grid,
                TimelinePiece::one(at * 10, at * 10 + 5, at as usize % 2, 0),
            );
        }
        // All states are short, so each of at most 2 * 100 cells has one piece.
        assert!(line.pieces().len() <= 200, "{}", line.pieces().len());
        let sum: u64 = line.pieces().iter().map(|piece| piece.sums().count).sum();
        assert_eq!(sum, 1_000_000);
    }

    #[test]
    fn the_last_time_of_a_clock_is_in_the_grid() {
        let mut grid = TimeGrid::new(0, 100);
        assert!(grid.extend(u64::MAX));
        assert!(grid.cell_of(u64::MAX) < 200);
        // And a time before the grid is in its first cell.
        assert_eq!(TimeGrid::new(5, 1).cell_of(0), 0);
    }
}
