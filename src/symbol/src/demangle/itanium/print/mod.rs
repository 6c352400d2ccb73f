//! Writes a parsed name down: here types, which stand around the name they declare.

mod expression;
mod name;

use std::cell::Cell;

use super::{Id, Node, Tree};

/// How deep printing may go: template parameters can lead round in circles.
const MAX_DEPTH: u32 = 512;
/// The longest name worth showing. Substitutions can make it grow without bound.
const MAX_LEN: usize = 1 << 16;
/// How many nodes are looked at. Those that substitutions share are met again and again, even where they print nothing.
const MAX_STEPS: u32 = 1 << 18;

/// The text of `id`, or `None` where a template parameter refers to nothing or there is too much of it.
pub(super) fn print(tree: &Tree<'_>, id: Id) -> Option<String> {
    let mut printer = Printer {
        tree,
        out: String::new(),
        last: ' ',
        templates: Vec::new(),
        current: None,
        pack_index: 0,
        in_lambda: false,
        depth: 0,
        steps: Cell::new(0),
    };
    printer.whole(id)?;
    Some(printer.out)
}

struct Printer<'t, 'a> {
    tree: &'t Tree<'a>,
    out: String,
    /// The last character written, be it taken back since.
    last: char,
    /// The templates whose arguments parameters refer to, the innermost last.
    templates: Vec<Id>,
    /// The template being printed, for conversion operators.
    current: Option<Id>,
    /// Which value of a pack is being printed.
    pack_index: usize,
    in_lambda: bool,
    depth: u32,
    steps: Cell<u32>,
}

impl<'t, 'a> Printer<'t, 'a> {
    fn push(&mut self, text: &str) {
        self.out.push_str(text);
        if let Some(last) = text.chars().next_back() {
            self.last = last;
        }
    }

    fn whole(&mut self, id: Id) -> Option<()> {
        self.left(id)?;
        self.right(id)
    }

    /// Counts one more node, up to the limit.
    fn step(&self) -> Option<()> {
        self.steps.set(self.steps.get() + 1);
        (self.steps.get() < MAX_STEPS).then_some(())
    }

    /// All that stands before a declared name: everything, for what isn't a type of a function or array.
    fn left(&mut self, id: Id) -> Option<()> {
        self.step()?;
        if self.depth >= MAX_DEPTH || self.out.len() > MAX_LEN {
            return None;
        }
        self.depth += 1;
        let done = self.left_inner(id);
        self.depth -= 1;
        done
    }

    fn left_inner(&mut self, id: Id) -> Option<()> {
        let tree = self.tree;
        match tree.node(id)? {
            Node::Indirect(target, sign) => self.indirect(*target, sign),
            Node::Member(class, member) => {
                self.left(*member)?;
                self.open_declarator(*member);
                if self.last != '(' {
                    self.push(" ");
                }
                self.whole(*class)?;
                self.push("::*");
                Some(())
            }
            Node::Qualified(inner, word) => {
                self.left(*inner)?;
                self.push(word);
                Some(())
            }
            Node::Attributed(inner, word) => {
                self.left(*inner)?;
                self.push(" ");
                self.push(word);
                Some(())
            }
            Node::Function(returned, ..) => {
                if let Some(returned) = *returned {
                    self.left(returned)?;
                    if !self.is_open(returned) {
                        self.push(" ");
                    }
                }
                Some(())
            }
            Node::Array(_, element) => self.left(*element),
            Node::Parameter(number) => self.parameter(*number, Self::left),
            other => self.name(id, other),
        }
    }

    /// What stands behind a declared name: parameters and dimensions.
    fn right(&mut self, id: Id) -> Option<()> {
        self.step()?;
        if self.depth >= MAX_DEPTH {
            return None;
        }
        self.depth += 1;
        let done = self.right_inner(id);
        self.depth -= 1;
        done
    }

    fn right_inner(&mut self, id: Id) -> Option<()> {
        let tree = self.tree;
        match tree.node(id)? {
            Node::Indirect(target, _) => self.close_declarator(*target),
            Node::Member(_, member) => self.close_declarator(*member),
            Node::Qualified(inner, _) | Node::Attributed(inner, _) => self.right(*inner),
            Node::Function(returned, parameters, words) => {
                self.push("(");
                self.list(parameters)?;
                self.push(")");
                words.iter().for_each(|word| self.push(word));
                returned.map_or(Some(()), |returned| self.right(returned))
            }
            Node::Array(dimension, element) => {
                if self.last != ']' {
                    self.push(" ");
                }
                self.push("[");
                if let Some(dimension) = *dimension {
                    self.whole(dimension)?;
                }
                self.push("]");
                self.right(*element)
            }
            Node::Parameter(number) if !self.in_lambda => self.parameter(*number, Self::right),
            _ => Some(()),
        }
    }

    fn indirect(&mut self, target: Id, sign: &str) -> Option<()> {
        self.left(target)?;
        self.open_declarator(target);
        if self.repeats_reference(target) && sign.starts_with('&') {
            // `T&` of a `T` that is a reference: one sign is enough, and & beats &&.
            if sign == "&" && self.out.ends_with("&&") {
                self.out.pop();
            }
            return Some(());
        }
        self.push(sign);
        Some(())
    }

    fn is_parameter(&self, id: Id) -> bool {
        matches!(self.tree.node(id), Some(Node::Parameter(_)))
    }

    fn repeats_reference(&self, target: Id) -> bool {
        self.is_parameter(target)
            && !self.in_lambda
            && matches!(self.resolved(target), Some(Node::Indirect(_, sign)) if sign.starts_with('&'))
    }

    /// `(` before the sign of a pointer to a function or an array.
    fn open_declarator(&mut self, target: Id) {
        if self.is_compound(target) {
            let is_function = matches!(self.resolved(target), Some(Node::Function(..)));
            let joined = match self.last {
                ' ' | '(' => true,
                last => is_function && last == '*',
            };
            if !joined {
                self.push(" ");
            }
            self.push("(");
        }
    }

    /// Whether `left` of this type ended inside a parenthesis.
    fn is_open(&self, id: Id) -> bool {
        match self.resolved(id) {
            Some(&Node::Indirect(target, _)) => self.is_compound(target) || self.is_open(target),
            Some(&Node::Member(_, member)) => self.is_compound(member),
            _ => false,
        }
    }

    fn close_declarator(&mut self, target: Id) -> Option<()> {
        if self.is_compound(target) {
            self.push(")");
        }
        self.right(target)
    }

    fn is_compound(&self, id: Id) -> bool {
        match self.resolved(id) {
            Some(Node::Function(..) | Node::Array(..)) => true,
            Some(&Node::Qualified(inner, _)) => self.is_compound(inner),
            _ => false,
        }
    }

    /// The node itself, or the one that the parameter stands for.
    fn resolved(&self, id: Id) -> Option<&'t Node<'a>> {
        match self.tree.node(id)? {
            Node::Parameter(_) if self.in_lambda => None,
            Node::Parameter(number) => self.tree.node(self.argument(*number)?),
            node => Some(node),
        }
    }

    /// What template parameter `number` stands for.
    fn argument(&self, number: usize) -> Option<Id> {
        let Node::Template(_, arguments) = self.tree.node(*self.templates.last()?)? else {
            return None;
        };
        let argument = *arguments.get(number)?;
        match self.tree.node(argument)? {
            Node::Pack(values) => values.get(self.pack_index).copied(),
            _ => Some(argument),
        }
    }

    fn parameter(&mut self, number: usize, print: fn(&mut Self, Id) -> Option<()>) -> Option<()> {
        if self.in_lambda {
            self.push(&format!("auto:{}", number + 1));
            return Some(());
        }
        let argument = self.argument(number)?;
        // The argument was written outside of the template.
        let template = self.templates.pop();
        let done = print(self, argument);
        self.templates.extend(template);
        done
    }

    /// Values with commas between. A tail that prints nothing takes its comma back.
    fn list(&mut self, values: &[Id]) -> Option<()> {
        let Some((&first, rest)) = values.split_first() else {
            return Some(());
        };
        self.whole(first)?;
        if rest.is_empty() {
            return Some(());
        }
        let before = self.out.len();
        self.push(", ");
        let after = self.out.len();
        self.list(rest)?;
        if self.out.len() == after {
            self.out.truncate(before);
        }
        Some(())
    }
}
