//! The given nodes and variables, checked and laid out for the steps.

use rustc_hash::FxHashMap;

use super::steps::{Node, Place, Steps, Variable};
use super::sums::{NONE, Sums};
use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::ids::check_id;
use crate::toposort::toposort;

impl Steps {
    pub(super) fn new(given: &Sums, budget: &Budget) -> Result<Self> {
        let (n_nodes, n_variables) = (given.inputs.len(), given.owners.len());
        let lengths = [
            ("outputs", given.outputs.len(), n_nodes),
            ("is_increment", given.is_increment.len(), n_variables),
            ("readers", given.readers.len(), n_variables),
        ];
        for (left, left_len, right_len) in lengths {
            if left_len != right_len {
                let right = if right_len == n_nodes { "inputs" } else { "owners" };
                return Err(Error::LengthMismatch { left, left_len, right, right_len });
            }
        }
        let node = |id: u32| check_id("node", id, n_nodes);
        let variable = |id: u32| check_id("variable", id, n_variables);
        let mut places = Vec::new();
        let mut nodes = Vec::new();
        for (number, inputs) in (0u32..).zip(&given.inputs) {
            budget.check(8 + 8 * inputs.len())?;
            let output = given.outputs[number as usize];
            if output != NONE {
                variable(output)?;
            }
            nodes.push(Node {
                first: places.len() as u32,
                n_inputs: inputs.len() as u32,
                output,
                repeats: number,
                is_there: true,
                made_at: 0,
                changed_at: 0,
            });
            for (position, &reads) in (0u32..).zip(inputs) {
                variable(reads)?;
                places.push(Place {
                    node: number,
                    position,
                    reads: NONE,
                    before: NONE,
                    after: NONE,
                });
            }
        }
        let mut variables = Vec::new();
        for (&owner, &is_increment) in given.owners.iter().zip(&given.is_increment) {
            if owner != NONE {
                node(owner)?;
            }
            if is_increment && (owner == NONE || given.inputs[owner as usize].is_empty()) {
                return Err(Error::Inconsistent("an increment reads nothing".to_owned()));
            }
            variables.push(Variable {
                owner,
                is_increment,
                note: NONE,
                first: NONE,
                last: NONE,
                n_readers: 0,
            });
        }
        let mut steps = Self {
            n_nodes,
            n_variables,
            nodes,
            variables,
            places,
            notes: Vec::new(),
            spare: FxHashMap::default(),
            now: 0,
        };
        for (number, readers) in (0u32..).zip(&given.readers) {
            budget.check(8 + 8 * readers.len())?;
            for &(reader, position) in readers {
                node(reader)?;
                let inputs = &given.inputs[reader as usize];
                let place = if inputs.is_empty() {
                    let place =
                        Place { node: reader, position, reads: NONE, before: NONE, after: NONE };
                    steps.places.push(place);
                    steps.places.len() as u32 - 1
                } else {
                    if inputs.get(position as usize) != Some(&number) {
                        let message = format!("node {reader} does not read {number} at {position}");
                        return Err(Error::Inconsistent(message));
                    }
                    steps.nodes[reader as usize].first + position
                };
                if steps.places[place as usize].reads != NONE {
                    let message = format!("node {reader} reads {number} at {position} twice");
                    return Err(Error::Inconsistent(message));
                }
                steps.read(place, number);
            }
        }
        require_acyclic(given, budget)?;
        for &sum in &given.sums {
            node(sum)?;
            let node = steps.nodes[sum as usize];
            let places = steps.places_of(node);
            if node.output == NONE || steps.places[places].iter().any(|place| place.reads == NONE) {
                return Err(Error::Inconsistent(format!("node {sum} is not a sum that is known")));
            }
        }
        Ok(steps)
    }
}

/// Rejects cycles, whose sums could go below each other without end.
fn require_acyclic(given: &Sums, budget: &Budget) -> Result<()> {
    let made = (0u32..).zip(&given.outputs).map(|(node, &output)| (node, output));
    let owned = given.owners.iter().copied().zip(0u32..);
    let (mut sources, mut targets) = (Vec::new(), Vec::new());
    for (node, variable) in made.chain(owned).filter(|&pair| pair.0 != NONE && pair.1 != NONE) {
        let readers = &given.readers[variable as usize];
        budget.check(1 + readers.len())?;
        sources.resize(sources.len() + readers.len(), node);
        targets.extend(readers.iter().map(|&(reader, _)| reader));
    }
    let graph = Graph::new(given.inputs.len(), &sources, &targets, budget)?;
    toposort(&graph, None, budget).map(drop)
}
