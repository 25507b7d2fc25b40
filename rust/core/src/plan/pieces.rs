//! Graphs that are too large for one closure are planned piece by piece.
//!
//! # Problem
//! The plan is to be no worse than PyTensor's on every graph, and growth from the sinks
//! ([`super::sinks`]), its order, takes memory with the square of the nodes.
//!
//! # Approach
//! A *piece* is a set of nodes connected by dependencies, whichever way, or by operands that bring
//! siblings together. No kernel has nodes of two pieces, and no path leads from one to the other, so
//! that each can be planned by itself: costs add up, and kernels of two pieces make no cycle. Growth
//! from the sinks of the whole is that of each piece, put together: it asks about nodes of one piece at
//! a time, and compares sets of ancestors, which lie within a piece, by their last difference.
//!
//! Small pieces are planned together, as many as make a closure of little memory: a problem for each
//! would take longer.
//!
//! # Rejected
//! - Growth by strongly connected components of the parts ([`super::parts`]), which are smaller: what is
//!   contracted outside of a component may decide ties within, so that it would not be PyTensor's plan.
//! - Pieces of every graph: most are one, and others are small enough.
//!
//! # Source
//! B. Galler, M. Fischer, "An improved equivalence algorithm", Communications of the ACM 7 (1964).

use super::portfolio::{Entry, Found, PORTFOLIO, Question, best_of};
use super::problem::{FusionProblem, NONE, ProblemArrays, VarId};
use super::{Cost, Partition};
use crate::budget::Budget;
use crate::error::Result;
use crate::graph::NodeId;
use crate::rows::Rows;
use crate::union_find::{find, unite};

/// Pieces are planned together up to so many nodes: two megabytes of closure.
const TOGETHER: usize = 4096;

/// The best plan of the portfolio, found for each piece or some small ones by themselves.
///
/// The strategy of the plan is that of the largest problem that has one.
///
/// # Complexity
/// O(n + m), and that of the portfolio for each piece.
///
/// # Errors
/// Those of [`best_of`].
pub(super) fn best_by_pieces(question: &Question<'_>) -> Result<Found> {
    let batches = batches(question.problem, TOGETHER, question.budget)?;
    if batches.len() < 2 {
        return best_of(&PORTFOLIO, question);
    }
    best_of_batches(&PORTFOLIO, question, &batches)
}

/// What the strategies make of each batch by itself.
fn best_of_batches(portfolio: &[Entry], question: &Question<'_>, batches: &Rows) -> Result<Found> {
    let (problem, budget) = (question.problem, question.budget);
    let mut names = vec![NONE; problem.n_nodes()];
    let (mut cost, mut unfused_cost) = (Cost::default(), Cost::default());
    let (mut strategy, mut largest) = (None, 0);
    let (mut exhausted, mut doubtful) = (Vec::new(), vec![false; problem.n_nodes()]);
    let mut restriction = Restriction::new(problem, budget)?;
    for batch in 0..batches.len() as u32 {
        let nodes = batches.row(batch);
        budget.check(8 * nodes.len())?;
        let part = FusionProblem::new(restriction.of(nodes)?, budget)?;
        let strict: Option<Vec<bool>> =
            question.strict.map(|all| nodes.iter().map(|&node| all[node as usize]).collect());
        let question = Question { problem: &part, strict: strict.as_deref(), budget };
        let found = best_of(portfolio, &question)?;
        for (&node, &is_doubtful) in nodes.iter().zip(&found.doubtful) {
            doubtful[node as usize] = is_doubtful;
        }
        for (&node, &block) in nodes.iter().zip(found.partition.blocks()) {
            names[node as usize] = nodes[block as usize];
        }
        for (sum, more) in [(&mut cost, found.cost), (&mut unfused_cost, found.unfused_cost)] {
            sum.kernels += more.kernels;
            sum.arrays += more.arrays;
        }
        if found.strategy.is_some() && nodes.len() > largest {
            (strategy, largest) = (found.strategy, nodes.len());
        }
        for name in found.exhausted {
            if !exhausted.contains(&name) {
                exhausted.push(name);
            }
        }
    }
    exhausted.sort_by_key(|name| portfolio.iter().position(|entry| entry.strategy == *name));
    Ok(Found {
        partition: Partition::from_names(names),
        cost,
        unfused_cost,
        strategy,
        exhausted,
        doubtful,
        is_optimal: false,
    })
}

/// Pieces of the problem, small ones put together up to `together` nodes; the nodes of each ascending.
fn batches(problem: &FusionProblem, together: usize, budget: &Budget) -> Result<Rows> {
    let n_nodes = problem.n_nodes();
    let mut parent: Vec<NodeId> = (0..n_nodes as NodeId).collect();
    for (a, b) in problem.graph().edges() {
        budget.check(8)?;
        unite(&mut parent, a, b);
    }
    for variable in 0..problem.n_variables() as VarId {
        let Some(link) = problem.link(variable) else { continue };
        budget.check(8 * (1 + problem.clients(variable).len()))?;
        let mut readers =
            problem.clients(variable).iter().filter(|&&node| problem.group(node) == Some(link));
        if let Some(&first) = readers.next() {
            readers.for_each(|&other| unite(&mut parent, first, other));
        }
    }
    let mut size = vec![0usize; n_nodes];
    let pieces: Vec<NodeId> = (0..n_nodes as NodeId).map(|node| find(&mut parent, node)).collect();
    pieces.iter().for_each(|&piece| size[piece as usize] += 1);
    // Pieces in the order of their first nodes; the small ones fill one batch after the other.
    let mut batch_of = vec![NONE; n_nodes];
    let (mut n_batches, mut filling) = (0, None);
    for &piece in &pieces {
        let size = size[piece as usize];
        if batch_of[piece as usize] != NONE {
            continue;
        }
        batch_of[piece as usize] = match filling {
            Some((batch, used)) if size + used <= together => {
                filling = Some((batch, used + size));
                batch
            }
            _ => {
                if size < together {
                    filling = Some((n_batches, size));
                }
                n_batches += 1;
                n_batches - 1
            }
        };
    }
    let pairs = pieces.iter().zip(0u32..).map(|(&piece, node)| (batch_of[piece as usize], node));
    Rows::grouped(n_batches as usize, pairs, budget)
}

/// Makes problems of some nodes each. Between two, all entries are [`NONE`].
struct Restriction<'a> {
    problem: &'a FusionProblem,
    node: Vec<u32>,
    variable: Vec<u32>,
    group: Vec<u32>,
    /// For each node the nodes that have to come after it though they do not read it.
    later: Rows,
    budget: &'a Budget,
}

impl<'a> Restriction<'a> {
    fn new(problem: &'a FusionProblem, budget: &'a Budget) -> Result<Self> {
        let orderings = problem.arrays().orderings.iter().copied();
        Ok(Self {
            problem,
            node: vec![NONE; problem.n_nodes()],
            variable: vec![NONE; problem.n_variables()],
            group: vec![NONE; problem.n_groups()],
            later: Rows::grouped(problem.n_nodes(), orderings, budget)?,
            budget,
        })
    }

    /// The problem of `nodes`, which are ascending and a union of pieces. In proportion to what they
    /// read and make.
    fn of(&mut self, nodes: &[NodeId]) -> Result<ProblemArrays> {
        let (problem, arrays) = (self.problem, self.problem.arrays());
        let (mut inputs, mut outputs) = (Rows::empty(), Rows::empty());
        let mut known: Vec<VarId> = Vec::new();
        let mut groups = Vec::with_capacity(nodes.len());
        let mut orderings = Vec::new();
        let mut n_groups = 0;
        let number = |variable: &VarId, known: &mut Vec<VarId>, numbers: &mut [u32]| {
            let slot = &mut numbers[*variable as usize];
            if *slot == NONE {
                *slot = known.len() as u32;
                known.push(*variable);
            }
            *slot
        };
        for (&node, own) in nodes.iter().zip(0u32..) {
            self.node[node as usize] = own;
            self.budget.check(8 + 4 * problem.inputs(node).len())?;
            let numbers = &mut self.variable;
            inputs.push(problem.inputs(node).iter().map(|v| number(v, &mut known, numbers)))?;
            let numbers = &mut self.variable;
            outputs.push(problem.outputs(node).iter().map(|v| number(v, &mut known, numbers)))?;
            groups.push(problem.group(node).map_or(-1, |group| {
                let slot = &mut self.group[group as usize];
                if *slot == NONE {
                    *slot = n_groups;
                    n_groups += 1;
                }
                *slot as i32
            }));
        }
        for (&node, own) in nodes.iter().zip(0u32..) {
            orderings.extend(self.later.row(node).iter().map(|&l| (own, self.node[l as usize])));
        }
        let link = |&variable: &VarId| {
            let group = problem
                .link(variable)
                .map_or(NONE, |link| self.group.get(link as usize).copied().unwrap_or(NONE));
            if group == NONE { -1 } else { group as i32 }
        };
        let made = ProblemArrays {
            n_variables: known.len(),
            inputs,
            outputs,
            groups,
            links: known.iter().map(link).collect(),
            constants: known.iter().map(|&v| problem.is_constant(v)).collect(),
            results: known.iter().map(|&v| problem.is_result(v)).collect(),
            weights: arrays
                .weights
                .as_ref()
                .map(|_| known.iter().map(|&v| problem.weight(v)).collect()),
            orderings,
            max_operands: arrays.max_operands,
        };
        for &node in nodes {
            self.node[node as usize] = NONE;
            if let Some(group) = problem.group(node) {
                self.group[group as usize] = NONE;
            }
        }
        known.iter().for_each(|&variable| self.variable[variable as usize] = NONE);
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::super::adversarial_tests::{Judge, families};
    use super::super::closure;
    use super::super::proof_tests::{Random, SHAPES, random_arrays};
    use super::super::sinks::grow_from_sinks;
    use super::*;

    /// Several random problems as one, their nodes shuffled among each other.
    fn several(random: &mut Random) -> ProblemArrays {
        let parts: Vec<ProblemArrays> = (0..4)
            .map(|_| {
                let (n_nodes, shape) = (1 + random.below(30), SHAPES[random.below(4)]);
                random_arrays(random, n_nodes, shape)
            })
            .collect();
        let mut all = ProblemArrays {
            n_variables: 0,
            inputs: Rows::empty(),
            outputs: Rows::empty(),
            groups: Vec::new(),
            links: Vec::new(),
            constants: Vec::new(),
            results: Vec::new(),
            weights: None,
            orderings: Vec::new(),
            max_operands: 6,
        };
        let mut first = Vec::new();
        for part in &parts {
            first.push(all.n_variables as u32);
            all.n_variables += part.n_variables;
            all.links.extend(&part.links);
            all.constants.extend(&part.constants);
            all.results.extend(&part.results);
        }
        let mut number: Vec<Vec<u32>> = vec![Vec::new(); parts.len()];
        while let Some(i) =
            (0..8).map(|_| random.below(4)).find(|&i| number[i].len() < parts[i].groups.len())
        {
            let node = number[i].len() as u32;
            number[i].push(all.groups.len() as u32);
            all.inputs.push(parts[i].inputs.row(node).iter().map(|v| v + first[i])).unwrap();
            all.outputs.push(parts[i].outputs.row(node).iter().map(|v| v + first[i])).unwrap();
            all.groups.push(parts[i].groups[node as usize]);
        }
        for (part, number) in parts.iter().zip(&number) {
            let node = |node: u32| number.get(node as usize).copied();
            let orderings = part.orderings.iter().filter_map(|&(a, b)| Some((node(a)?, node(b)?)));
            all.orderings.extend(orderings);
        }
        all.groups.iter_mut().for_each(|group| *group = (*group).min(0));
        all.links.iter_mut().for_each(|link| *link = (*link).min(0));
        all
    }

    #[test]
    fn pieces_make_up_the_plan_of_the_whole() {
        let mut random = Random(5);
        let mut n_batches = 0;
        for _ in 0..300 {
            let arrays = several(&mut random);
            let problem = FusionProblem::new(arrays.clone(), &Budget::unlimited()).unwrap();
            let together = [1, 10, 50][random.below(3)];
            let batches = batches(&problem, together, &Budget::unlimited()).unwrap();
            n_batches += batches.len();
            let mut nodes = batches.items().to_vec();
            nodes.sort_unstable();
            assert!(nodes.iter().copied().eq(0..problem.n_nodes() as u32));
            let budget = Budget::unlimited();
            let mut restriction = Restriction::new(&problem, &budget).unwrap();
            let (mut names, mut whole) = (vec![NONE; nodes.len()], 0);
            for batch in 0..batches.len() as u32 {
                let nodes = batches.row(batch);
                let part = FusionProblem::new(restriction.of(nodes).unwrap(), &Budget::unlimited())
                    .unwrap();
                assert_eq!(part.graph().n_edges(), {
                    let edges = problem.graph().edges();
                    edges.filter(|(a, b)| nodes.contains(a) || nodes.contains(b)).count()
                });
                whole += part.arrays().orderings.len();
                let grown = grow_from_sinks(&part, |_| true, &Budget::unlimited()).unwrap();
                for (&node, &block) in nodes.iter().zip(grown.blocks()) {
                    names[node as usize] = nodes[block as usize];
                }
            }
            assert_eq!(whole, arrays.orderings.len());
            assert_eq!(
                Partition::from_names(names),
                grow_from_sinks(&problem, |_| true, &Budget::unlimited()).unwrap()
            );
        }
        assert!(n_batches > 600);
    }

    /// Chains of so many nodes, of one variable each, that nothing connects.
    fn chains(lengths: &[u32]) -> FusionProblem {
        let n_nodes: u32 = lengths.iter().sum();
        let n_variables = 2 * n_nodes as usize;
        let (mut inputs, mut outputs) = (Rows::empty(), Rows::empty());
        let mut node = 0;
        for &length in lengths {
            for position in 0..length {
                // A variable from outside for each node; all but the first read that before as well.
                inputs
                    .push([node].into_iter().chain((position > 0).then(|| n_nodes + node - 1)))
                    .unwrap();
                outputs.push([n_nodes + node]).unwrap();
                node += 1;
            }
        }
        FusionProblem::new(
            ProblemArrays {
                n_variables,
                inputs,
                outputs,
                groups: vec![0; n_nodes as usize],
                links: vec![0; n_variables],
                constants: vec![false; n_variables],
                results: vec![false; n_variables],
                weights: None,
                orderings: Vec::new(),
                max_operands: 1024,
            },
            &Budget::unlimited(),
        )
        .unwrap()
    }

    #[test]
    fn small_pieces_fill_batches_in_their_order() {
        for (lengths, together, expected) in [
            (&[3, 2, 5, 1, 1][..], 5, &[0, 0, 1, 2, 2][..]),
            (&[3, 5, 1, 1, 1], 5, &[0, 1, 0, 0, 2]),
            (&[3, 6, 2, 1], 5, &[0, 1, 0, 2]),
            (&[2, 2, 2], 1, &[0, 1, 2]),
            (&[4, 4], 8, &[0, 0]),
        ] {
            let batches = batches(&chains(lengths), together, &Budget::unlimited()).unwrap();
            let mut batch_of: Vec<(u32, u32)> = Vec::new();
            for batch in 0..batches.len() as u32 {
                batch_of.extend(batches.row(batch).iter().map(|&node| (node, batch)));
            }
            batch_of.sort_unstable();
            let nodes =
                lengths.iter().zip(expected).flat_map(|(&n, &batch)| vec![batch; n as usize]);
            let nodes: Vec<(u32, u32)> = (0..).zip(nodes).collect();
            assert_eq!(batch_of, nodes, "{lengths:?} {together}");
        }
    }

    #[test]
    fn groups_of_a_piece_are_told_apart_as_before() {
        let mut random = Random(9);
        for number in 0..100 {
            let n_nodes = 1 + random.below(20);
            let arrays = random_arrays(&mut random, n_nodes, SHAPES[number % 4]);
            let problem = FusionProblem::new(arrays.clone(), &Budget::unlimited()).unwrap();
            let nodes: Vec<NodeId> = (0..n_nodes as NodeId).collect();
            let budget = Budget::unlimited();
            let part = Restriction::new(&problem, &budget).unwrap().of(&nodes).unwrap();
            for (a, b) in nodes.iter().flat_map(|&a| nodes.iter().map(move |&b| (a, b))) {
                let [before, after] = [&arrays.groups, &part.groups]
                    .map(|groups| (groups[a as usize], groups[b as usize]));
                assert_eq!(before.0 == before.1, after.0 == after.1);
                assert_eq!(before.0 < 0, after.0 < 0);
                // A result links the nodes that it linked.
                let [before, after] = [&arrays, &part].map(|arrays| {
                    let link = arrays.links[arrays.outputs.row(a)[0] as usize];
                    link >= 0 && link == arrays.groups[b as usize]
                });
                assert_eq!(before, after);
            }
        }
    }

    #[test]
    fn what_is_told_of_the_whole_is_that_of_the_largest_and_of_all() {
        use super::super::Strategy::{DepthFromSinks, GrowthFromSinks, LargestSavingFirst};
        // A chain that is fused, and nodes that are not, as many as the chain has or more.
        let problem = chains(&[5, 1, 1, 1, 1, 1, 1]);
        let batches = Rows::grouped(
            2,
            (0..11).map(|node| (u32::from(node >= 5), node)),
            &Budget::unlimited(),
        )
        .unwrap();
        let question = Question { problem: &problem, strict: None, budget: &Budget::unlimited() };
        let limited = |strategy, effort| {
            let known = PORTFOLIO.into_iter().find(|entry| entry.strategy == strategy).unwrap();
            Entry { effort, must_run: true, ..known }
        };
        let portfolio = [limited(GrowthFromSinks, 100), limited(DepthFromSinks, 0)];
        let found = best_of_batches(&portfolio, &question, &batches).unwrap();
        assert_eq!(found.strategy, Some(GrowthFromSinks));
        assert_eq!(found.exhausted, [DepthFromSinks]);
        assert_eq!((found.cost.kernels, found.unfused_cost.kernels), (7, 11));
        let portfolio = [limited(LargestSavingFirst, 0), limited(GrowthFromSinks, 0)];
        let found = best_of_batches(&portfolio, &question, &batches).unwrap();
        assert_eq!(found.exhausted, [LargestSavingFirst, GrowthFromSinks]);
        // Of two that are fused, the larger one tells; of equal ones the first.
        for (lengths, first) in [([5, 2], true), ([2, 5], false)] {
            let problem = chains(&lengths);
            let cut = lengths[0];
            let batches = Rows::grouped(
                2,
                (0..7).map(|node| (u32::from(node >= cut), node)),
                &Budget::unlimited(),
            )
            .unwrap();
            let question =
                Question { problem: &problem, strict: None, budget: &Budget::unlimited() };
            let portfolio = [limited(LargestSavingFirst, 6), limited(GrowthFromSinks, 100)];
            let found = best_of_batches(&portfolio, &question, &batches).unwrap();
            let alone = |row: u32| {
                let budget = Budget::unlimited();
                let mut restriction = Restriction::new(&problem, &budget).unwrap();
                let part = restriction.of(batches.row(row)).unwrap();
                let part = FusionProblem::new(part, &budget).unwrap();
                best_of(
                    &portfolio,
                    &Question { problem: &part, strict: None, budget: &Budget::unlimited() },
                )
                .unwrap()
            };
            let all = [alone(0), alone(1)];
            assert_eq!(found.strategy, all[usize::from(!first)].strategy);
            let expected = [LargestSavingFirst, GrowthFromSinks];
            let expected =
                expected.into_iter().filter(|s| all.iter().any(|f| f.exhausted.contains(s)));
            assert_eq!(found.exhausted, expected.collect::<Vec<_>>());
            assert_eq!(found.cost.kernels, all[0].cost.kernels + all[1].cost.kernels);
        }
    }

    #[test]
    fn plans_by_pieces_are_legal_and_no_worse_than_growth_of_the_whole() {
        let mut random = Random(6);
        for round in 0..100 {
            let arrays = several(&mut random);
            let problem = FusionProblem::new(arrays.clone(), &Budget::unlimited()).unwrap();
            let strict: Vec<bool> = arrays.groups.iter().map(|_| random.percent(80)).collect();
            let strict = (round % 2 == 0).then_some(&strict[..]);
            let question = Question { problem: &problem, strict, budget: &Budget::unlimited() };
            let found = best_by_pieces(&question).unwrap();
            assert_eq!(Judge::new(&arrays).cost(&found.partition), found.cost);
            assert!(found.cost <= best_of(&PORTFOLIO[..1], &question).unwrap().cost);
            let unfused = Partition::singletons(problem.n_nodes());
            assert_eq!(
                super::super::cost::cost(&problem, &unfused, &Budget::unlimited()).unwrap(),
                found.unfused_cost
            );
            assert_eq!(found.strategy.is_none(), found.cost == found.unfused_cost);
        }
    }

    #[test]
    fn large_graphs_of_small_pieces_are_planned_as_well_as_the_pieces() {
        // A small problem on which depth alone is worse.
        let mut random = Random(9);
        let by_depth = |question: &Question<'_>| best_of(&PORTFOLIO[2..4], question).unwrap().cost;
        let small = loop {
            let arrays = random_arrays(&mut random, 40, SHAPES[3]);
            let problem = FusionProblem::new(arrays.clone(), &Budget::unlimited()).unwrap();
            let question =
                Question { problem: &problem, strict: None, budget: &Budget::unlimited() };
            let is_large = arrays.max_operands > 100 && arrays.orderings.is_empty();
            if is_large
                && super::super::plan(&problem, None, &Budget::unlimited()).unwrap().after
                    < by_depth(&question)
            {
                break arrays;
            }
        };
        let alone = super::super::plan(
            &FusionProblem::new(small.clone(), &Budget::unlimited()).unwrap(),
            None,
            &Budget::unlimited(),
        )
        .unwrap();
        let n_copies = 1200;
        let mut all = ProblemArrays { n_variables: n_copies * small.n_variables, ..small.clone() };
        for copy in 1..n_copies {
            let first = (copy * small.n_variables) as u32;
            for node in 0..small.groups.len() as u32 {
                all.inputs.push(small.inputs.row(node).iter().map(|v| v + first)).unwrap();
                all.outputs.push(small.outputs.row(node).iter().map(|v| v + first)).unwrap();
            }
            all.groups.extend(&small.groups);
            all.links.extend(&small.links);
            all.constants.extend(&small.constants);
            all.results.extend(&small.results);
        }
        let problem = FusionProblem::new(all, &Budget::unlimited()).unwrap();
        assert!(!closure::fits(problem.n_nodes(), closure::DENSE_LIMIT));
        let plan = super::super::plan(&problem, None, &Budget::unlimited()).unwrap();
        assert_eq!(plan.after.kernels, n_copies as u64 * alone.after.kernels);
        assert_eq!(plan.after.arrays, n_copies as u64 * alone.after.arrays);
        assert_eq!(plan.before.kernels, n_copies as u64 * alone.before.kernels);
        assert!(plan.strategy.is_some());
    }

    #[test]
    fn a_graph_of_one_piece_is_planned_as_a_whole() {
        for (name, arrays) in families(200, 1024) {
            let problem = FusionProblem::new(arrays, &Budget::unlimited()).unwrap();
            let batches = batches(&problem, 1, &Budget::unlimited()).unwrap();
            assert!(batches.len() < 2 || ["long skips", "orderings", "hubs"].contains(&name));
        }
        let empty =
            FusionProblem::new(families(0, 8).swap_remove(0).1, &Budget::unlimited()).unwrap();
        let found = best_by_pieces(&Question {
            problem: &empty,
            strict: None,
            budget: &Budget::unlimited(),
        })
        .unwrap();
        assert_eq!((found.cost, found.strategy), (Cost::default(), None));
    }
}
