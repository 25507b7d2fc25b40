//! The strategies of the planner, and the choice of the winning plan.
//!
//! # Problem
//! For every greedy order of merging nodes, some graph exists on which another order does better.
//!
//! # Approach
//! [`PORTFOLIO`] is a table of strategies. Each strategy that applies gives a partition to start
//! from, which is cut where it breaks the operand limit ([`super::split`]) and improved by further
//! merges ([`super::improve`]) as long as its effort lasts. The cheapest wins, separately in each
//! component of the problem ([`parts`]): strategies differ in their strengths, and a graph has
//! components that suit each of them. At equal cost the earlier in the table wins. Growth from the
//! sinks is PyTensor's own order, so that the plan is never worse than PyTensor's where that fits.
//!
//! On small graphs a bound is found first (`floor`). Depth from the sinks is the quickest strategy;
//! if its start attains the bound, it is the plan, and no other strategy is tried. Merges are
//! skipped where the bound shows that no plan has fewer kernels.
//!
//! Growth from the sinks and depth from the sinks follow different rules. Where they agree on the
//! cost, optional strategies are skipped: on small graphs if no plan can have fewer kernels, on
//! others in any case. On random graphs of 100 nodes where they agree, merging from scratch would
//! improve one plan of ten, by an array or two; on the log-densities and gradients that were tried,
//! none; and it takes a third of the time.
//!
//! # Rejected
//! Two threads for the strategies: on the graphs of models, with a few hundred nodes, the start of
//! a thread takes longer than it saves.
//!
//! # Source
//! B. Huberman, R. Lukose, T. Hogg, "An economics approach to hard computational problems", Science
//! 275 (1997): several methods, none of which is always the best.
//!
//! [`parts`]: crate::plan::problem::parts

use super::closure::{self, DENSE_LIMIT};
use super::improve::improve;
use super::sinks::grow_from_sinks;
use super::split::split_oversized;
use super::typed::{Direction, fuse_by_depth};
use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::graph::NodeId;
use crate::plan::problem::cost::{Cost, Interfaces, cost};
use crate::plan::problem::parts::{Components, parts};
use crate::plan::problem::{FusionProblem, Partition};
use crate::plan::proof::floor::floor;

/// Ways to make a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// `grow_from_sinks`: the order of PyTensor's own fusion.
    GrowthFromSinks,
    /// The same order over the nodes that PyTensor itself would consider.
    StrictGrowthFromSinks,
    /// `fuse_by_depth`, `Direction::FromSinks`.
    DepthFromSinks,
    /// `fuse_by_depth`, `Direction::FromSources`.
    DepthFromSources,
    /// `improve` from scratch: the pair of kernels whose merge saves most arrays comes first.
    LargestSavingFirst,
    /// [`crate::plan::plan_optimally`]: better than all that the others found. It is not in the
    /// portfolio.
    ExactSearch,
}

impl Strategy {
    /// A name for display, which is stable.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::GrowthFromSinks => "growth from sinks",
            Self::StrictGrowthFromSinks => "strict growth from sinks",
            Self::DepthFromSinks => "depth from sinks",
            Self::DepthFromSources => "depth from sources",
            Self::LargestSavingFirst => "largest saving first",
            Self::ExactSearch => "exact search",
        }
    }
}

/// The problem to plan.
#[derive(Clone, Copy)]
pub(in crate::plan) struct Question<'a> {
    pub(in crate::plan) problem: &'a FusionProblem,
    /// The nodes that PyTensor itself would consider, if these are not all.
    pub(in crate::plan) strict: Option<&'a [bool]>,
    /// The budget of the whole search; each strategy has an effort of its own.
    pub(in crate::plan) budget: &'a Budget,
}

impl Question<'_> {
    fn closure_fits(&self) -> bool {
        closure::fits(self.problem.n_nodes(), DENSE_LIMIT)
    }

    fn is_strict(&self, node: u32) -> bool {
        self.strict.is_none_or(|strict| strict[node as usize])
    }
}

/// A row of the portfolio.
pub(in crate::plan) struct Entry {
    pub(in crate::plan) strategy: Strategy,
    /// Whether the strategy can do something that no other does, and its memory suffices.
    pub(in crate::plan) applies: fn(&Question<'_>) -> bool,
    /// The partition to improve.
    pub(in crate::plan) start: fn(&Question<'_>) -> Result<Partition>,
    /// Units of work for each node that the improvement may take, as [`improve`] counts them.
    pub(in crate::plan) effort: u64,
    /// Whether the strategy always runs, and counts even if its effort did not suffice. Others are
    /// skipped where those before them agree, and count only if they were finished.
    pub(in crate::plan) must_run: bool,
}

/// Ordinary graphs take about ten units of work for each node. Where a variable has thousands of
/// readers, every merge of these changes the savings of all others.
pub(in crate::plan) const AMPLE: u64 = 500;

/// The effort of optional strategies: enough for graphs of about ten nodes as intricate as those of
/// the corpus in `benchmarks`.
const MODEST: u64 = 48;

/// The strategies in the order in which they are tried.
pub(in crate::plan) const PORTFOLIO: [Entry; 5] = [
    Entry {
        strategy: Strategy::GrowthFromSinks,
        applies: |question| question.closure_fits(),
        start: |question| grow_from_sinks(question.problem, |_| true, question.budget),
        effort: AMPLE,
        must_run: true,
    },
    Entry {
        strategy: Strategy::StrictGrowthFromSinks,
        applies: |question| question.closure_fits() && question.strict.is_some(),
        start: |question| {
            grow_from_sinks(question.problem, |node| question.is_strict(node), question.budget)
        },
        effort: AMPLE,
        must_run: true,
    },
    Entry {
        strategy: Strategy::DepthFromSinks,
        applies: |_| true,
        start: |question| fuse_by_depth(question.problem, Direction::FromSinks, question.budget),
        effort: AMPLE,
        must_run: true,
    },
    // Replaces growth from the sinks.
    Entry {
        strategy: Strategy::DepthFromSources,
        applies: |question| !question.closure_fits(),
        start: |question| fuse_by_depth(question.problem, Direction::FromSources, question.budget),
        effort: MODEST,
        must_run: false,
    },
    // On larger graphs this takes longest of all, and has never been seen to win.
    Entry {
        strategy: Strategy::LargestSavingFirst,
        applies: |question| question.closure_fits(),
        start: |question| Ok(Partition::singletons(question.problem.n_nodes())),
        effort: MODEST,
        must_run: false,
    },
];

/// The strategy that is tried before all others where a bound may show that its start is optimal.
const QUICKEST: Strategy = Strategy::DepthFromSinks;

/// A legal partition, and how it was found.
pub(in crate::plan) struct Found {
    pub(in crate::plan) partition: Partition,
    pub(in crate::plan) cost: Cost,
    /// Cost of every node with a group alone.
    pub(in crate::plan) unfused_cost: Cost,
    /// The strategy whose plan of the whole graph is the cheapest. None if no strategy found a plan
    /// that is cheaper than no fusion.
    pub(in crate::plan) strategy: Option<Strategy>,
    pub(in crate::plan) exhausted: Vec<Strategy>,
    /// Nodes of parts that strategies plan at different costs: the result of each is a matter of
    /// luck there. Empty if there are none.
    pub(in crate::plan) doubtful: Vec<bool>,
    /// Whether a bound shows that no plan is cheaper.
    pub(in crate::plan) is_optimal: bool,
}

/// The plan that a bound proves to be optimal before all strategies are tried, or else the cheapest
/// partition that they make up together: each component comes from the strategy that is cheapest
/// there, at equal cost from the earlier one.
///
/// It costs no more than the partition of any single strategy. Costs compare kernels before arrays:
/// if the components of one strategy have as many kernels in all as the cheapest ones, each has as
/// many as the cheapest one, and therefore no fewer arrays.
///
/// # Complexity
/// That of the strategies that apply, and of their improvement, which is at most in proportion to
/// their efforts and the nodes.
///
/// # Errors
/// [`crate::Error::Cycle`] never for a checked problem: it would mean that a strategy is wrong;
/// [`crate::Error::Interrupted`].
pub(in crate::plan) fn best(question: &Question<'_>) -> Result<Found> {
    let (problem, budget) = (question.problem, question.budget);
    let mut found = Found::unfused(question)?;
    let mut known = Known { floor: floor(problem, budget)?, ..Known::default() };
    let Some(floor) = known.floor else { return compared(&PORTFOLIO, question, found, known) };
    if found.cost == floor {
        return Ok(Found { is_optimal: true, ..found });
    }
    let entry = PORTFOLIO.iter().find(|entry| entry.strategy == QUICKEST);
    let start = entry.map(|entry| entry.legal_start(question)).transpose()?.flatten();
    if let Some(partition) = &start
        && cost(problem, partition, budget)? == floor
    {
        found.partition.clone_from(partition);
        return Ok(Found { cost: floor, strategy: Some(QUICKEST), is_optimal: true, ..found });
    }
    known.quick = start;
    compared(&PORTFOLIO, question, found, known)
}

/// The cheapest partition that the strategies in `portfolio` make up together, without a bound,
/// which would skip some of them.
#[cfg(test)]
pub(in crate::plan) fn best_of(portfolio: &[Entry], question: &Question<'_>) -> Result<Found> {
    compared(portfolio, question, Found::unfused(question)?, Known::default())
}

/// The cheapest partition that the strategies in `portfolio` make up together, given the unfused
/// plan, `best`, and other facts, `known`.
fn compared(
    portfolio: &[Entry],
    question: &Question<'_>,
    mut best: Found,
    mut known: Known,
) -> Result<Found> {
    let problem = question.problem;
    // The cost of the whole plan of the strategy of `best`.
    let mut whole = best.cost;
    let mut pieces: Option<Pieces> = None;
    let mut is_settled = false;
    for entry in portfolio {
        if is_settled && !entry.must_run {
            continue;
        }
        let Some(next) = entry.candidate(question, &mut known)? else { continue };
        if !next.is_complete {
            best.exhausted.push(entry.strategy);
        }
        if !next.is_complete && !entry.must_run {
            continue;
        }
        is_settled |=
            agree(question, known.floor, (best.strategy, whole), (entry.strategy, &next))?;
        // In no component is the unfused plan better than the first candidate.
        let is_first = best.strategy.is_none();
        if next.cost < whole {
            whole = next.cost;
            best.strategy = Some(entry.strategy);
        }
        if is_first {
            if next.cost < best.cost {
                (best.cost, best.partition) = (next.cost, next.partition);
            }
        } else if next.partition != best.partition {
            let pieces = match &mut pieces {
                Some(pieces) => pieces,
                none => none.insert(Pieces::new(question)?),
            };
            take_what_is_cheaper(question, pieces, &mut best, &next.partition)?;
        }
        if known.floor == Some(best.cost) {
            best.is_optimal = true;
            return Ok(best);
        }
    }
    if let Some(Pieces { parts, doubtful, .. }) =
        pieces.filter(|pieces| !pieces.doubtful.is_empty())
    {
        best.doubtful = vec![false; problem.n_nodes()];
        for part in doubtful {
            parts.members(part).iter().for_each(|&node| best.doubtful[node as usize] = true);
        }
    }
    Ok(best)
}

/// The parts of the problem, and its components, which are computed when they are needed.
struct Pieces {
    parts: Partition,
    components: Option<Components>,
    /// The parts, by name, that do not cost the same in all candidates.
    doubtful: Vec<NodeId>,
}

impl Pieces {
    fn new(question: &Question<'_>) -> Result<Self> {
        let parts = parts(question.problem, question.budget)?;
        Ok(Self { parts, components: None, doubtful: Vec::new() })
    }
}

/// Takes from `next` the components that cost less there than in `best`.
fn take_what_is_cheaper(
    question: &Question<'_>,
    pieces: &mut Pieces,
    best: &mut Found,
    next: &Partition,
) -> Result<()> {
    let (problem, budget) = (question.problem, question.budget);
    // The kernels and arrays of each part in `best`, less those in `next`; only blocks that differ
    // count.
    let mut more = vec![(0i64, 0i64); problem.n_nodes()];
    let mut interfaces = Interfaces::new(problem, budget);
    for (partition, other, sign) in [(&best.partition, next, 1), (next, &best.partition, -1)] {
        for block in partition.names().filter(|&name| problem.group(name).is_some()) {
            let members = partition.members(block);
            if members != other.members(block) {
                let more = &mut more[pieces.parts.block(block) as usize];
                more.0 += sign;
                more.1 += sign * interfaces.cost_of(members)?.arrays as i64;
            }
        }
    }
    let differ = (0u32..).zip(&more).filter(|&(_, &more)| more != (0, 0));
    pieces.doubtful.extend(differ.map(|(part, _)| part));
    // If no part costs less, no component does: this is the most common case.
    if more.iter().all(|&more| more <= (0, 0)) {
        return Ok(());
    }
    let components = match &mut pieces.components {
        Some(components) => components,
        none => none.insert(Components::new(problem, &pieces.parts, budget)?),
    };
    let mut sums = vec![(0i64, 0i64); components.len()];
    for (part, more) in (0u32..).zip(more) {
        let sum = &mut sums[components.of(part) as usize];
        *sum = (sum.0 + more.0, sum.1 + more.1);
    }
    let taken = || sums.iter().filter(|&&sum| sum > (0, 0));
    if taken().next().is_none() {
        return Ok(());
    }
    for &(kernels, arrays) in taken() {
        best.cost.kernels = best.cost.kernels.saturating_add_signed(-kernels);
        best.cost.arrays = best.cost.arrays.saturating_add_signed(-arrays);
    }
    let blocks = (0..problem.n_nodes() as u32).map(|node| {
        let is_cheaper = sums[components.of(node) as usize] > (0, 0);
        if is_cheaper { next.block(node) } else { best.partition.block(node) }
    });
    best.partition = Partition::from_names(blocks.collect());
    Ok(())
}

impl Found {
    /// Every node alone.
    fn unfused(question: &Question<'_>) -> Result<Self> {
        let partition = Partition::singletons(question.problem.n_nodes());
        let cost = cost(question.problem, &partition, question.budget)?;
        Ok(Self {
            partition,
            cost,
            unfused_cost: cost,
            strategy: None,
            exhausted: Vec::new(),
            doubtful: Vec::new(),
            is_optimal: false,
        })
    }
}

/// Facts that are known before a strategy runs.
#[derive(Default)]
struct Known {
    /// A lower bound on the cost of every plan, if it is quick to find.
    floor: Option<Cost>,
    /// The start of [`QUICKEST`], if it has been computed already.
    quick: Option<Partition>,
    /// The first strategy's start, effort and result.
    first: Option<(Partition, u64, Candidate)>,
}

/// The result of a strategy.
#[derive(Clone)]
struct Candidate {
    partition: Partition,
    cost: Cost,
    /// Whether the effort sufficed.
    is_complete: bool,
}

impl Entry {
    /// The partition that the strategy starts from, within the operand limit, if it applies.
    fn legal_start(&self, question: &Question<'_>) -> Result<Option<Partition>> {
        if !(self.applies)(question) {
            return Ok(None);
        }
        let (problem, budget) = (question.problem, question.budget);
        budget.check(problem.n_nodes())?;
        let start = (self.start)(question)?;
        budget.check(problem.n_nodes())?;
        // PyTensor's tests of independence ignore orderings beyond the data flow.
        if problem.has_orderings() {
            match start.quotient_order(problem, budget) {
                Err(Error::Cycle { .. }) => return Ok(None),
                order => drop(order?),
            }
        }
        let start = split_oversized(problem, start, budget)?;
        budget.check(problem.n_nodes())?;
        Ok(Some(start))
    }

    /// The result of the strategy, if it applies. If it starts from the same partition as the first
    /// strategy, with the same effort, as on many small graphs, it has the same result.
    fn candidate(&self, question: &Question<'_>, known: &mut Known) -> Result<Option<Candidate>> {
        let quick = known.quick.take_if(|_| self.strategy == QUICKEST);
        let start = if quick.is_some() { quick } else { self.legal_start(question)? };
        let Some(start) = start else { return Ok(None) };
        if let Some((first, effort, candidate)) = &known.first
            && *effort == self.effort
            && *first == start
        {
            return Ok(Some(candidate.clone()));
        }
        let (problem, budget) = (question.problem, question.budget);
        let first = known.first.is_none().then(|| start.clone());
        let effort = self.effort * (1 + problem.n_nodes() as u64);
        // Each merge removes one kernel.
        let cannot_merge =
            known.floor.is_some_and(|floor| floor.kernels == start.n_kernels(problem));
        let (partition, is_complete) = if cannot_merge {
            (start, true)
        } else {
            improve(problem, start, &budget.with_effort(effort))?
        };
        let cost = cost(problem, &partition, budget)?;
        let candidate = Candidate { cost, partition, is_complete };
        if let Some(start) = first {
            known.first = Some((start, self.effort, candidate.clone()));
        }
        Ok(Some(candidate))
    }
}

/// On graphs of more nodes than this, two strategies that agree are trusted without proof.
const SMALL: usize = 128;

/// Whether growth and depth from the sinks agree, as the module describes.
fn agree(
    question: &Question<'_>,
    known_floor: Option<Cost>,
    (best, best_cost): (Option<Strategy>, Cost),
    (next, candidate): (Strategy, &Candidate),
) -> Result<bool> {
    let problem = question.problem;
    if (best, next) != (Some(Strategy::GrowthFromSinks), Strategy::DepthFromSinks)
        || candidate.cost != best_cost
    {
        return Ok(false);
    }
    if problem.n_nodes() > SMALL {
        return Ok(true);
    }
    let floor = if known_floor.is_some() { known_floor } else { floor(problem, question.budget)? };
    Ok(floor.is_some_and(|floor| floor.kernels == best_cost.kernels))
}
