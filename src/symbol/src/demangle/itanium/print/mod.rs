//! Printing of parsed names. This file prints types, which surround the name they declare.

mod expression;
mod name;

use std::cell::Cell;

use super::{Id, Node, Tree};

/// Maximum recursion depth: template parameters can be cyclic.
const MAX_DEPTH: u32 = 512;
/// Length in bytes of the printed name beyond which printing fails. Substitutions can make it grow exponentially.
const MAX_LEN: usize = 1 << 16;
/// Maximum number of visited nodes. Nodes shared by substitutions are visited repeatedly, even if
/// they print nothing.
const MAX_STEPS: u32 = 1 << 18;

/// The text of `id`, or `None` if it is invalid or a limit is exceeded.
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
    printer.print(id)?;
    Some(printer.out)
}

struct Printer<'t, 'a> {
    tree: &'t Tree<'a>,
    out: String,
    /// The last character written, even if removed since.
    last: char,
    /// The templates to whose arguments template parameters refer, innermost last.
    templates: Vec<Id>,
    /// The template being printed, for conversion operators.
    current: Option<Id>,
    /// Index of the pack value being printed.
    pack_index: usize,
    /// Whether the parameters of a lambda are being printed.
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

    fn print(&mut self, id: Id) -> Option<()> {
        self.left(id)?;
        self.right(id)
    }

    /// Counts a visited node; `None` at the limit.
    fn step(&self) -> Option<()> {
        self.steps.set(self.steps.get() + 1);
        (self.steps.get() < MAX_STEPS).then_some(())
    }

    /// Prints a name, an expression, or the part of a type before the name that it declares. A type without functions and arrays
    /// has no part after the name.
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
                self.print(*class)?;
                self.push("::*");
                Some(())
            }
            // The text of a qualifier begins with a blank, that of an attribute does not.
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

    /// Prints the part of a type after the name that it declares: parameters and dimensions.
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
            Node::Function(returned, parameters, qualifiers) => {
                self.push("(");
                self.list(parameters)?;
                self.push(")");
                qualifiers.iter().for_each(|word| self.push(word));
                returned.map_or(Some(()), |returned| self.right(returned))
            }
            Node::Array(dimension, element) => {
                if self.last != ']' {
                    self.push(" ");
                }
                self.push("[");
                if let Some(dimension) = *dimension {
                    self.print(dimension)?;
                }
                self.push("]");
                self.right(*element)
            }
            // Among a lambda's parameters, [`Self::left`] has printed it completely: `auto:N`.
            Node::Parameter(number) if !self.in_lambda => self.parameter(*number, Self::right),
            _ => Some(()),
        }
    }

    fn indirect(&mut self, target: Id, sign: &str) -> Option<()> {
        self.left(target)?;
        self.open_declarator(target);
        if self.repeats_reference(target) && sign.starts_with('&') {
            // Reference collapsing: `T&` of a reference `T` has one sign, and & takes precedence
            // over &&.
            if sign == "&" && self.out.ends_with("&&") {
                self.out.pop();
            }
            return Some(());
        }
        self.push(sign);
        Some(())
    }

    /// Whether a node is a template parameter. (The parameters of functions are nodes of types.)
    fn is_parameter(&self, id: Id) -> bool {
        matches!(self.tree.node(id), Some(Node::Parameter(_)))
    }

    /// Whether `target` is a template parameter whose argument is a reference; `false` among a lambda's parameters.
    fn repeats_reference(&self, target: Id) -> bool {
        self.is_parameter(target)
            && !self.in_lambda
            && matches!(self.resolved(target), Some(Node::Indirect(_, sign)) if sign.starts_with('&'))
    }

    /// Prints `(` before the sign of a pointer or reference whose target is a function or an array. A blank precedes the `(`,
    /// except after a blank, `(`, or, for a function, `*`.
    fn open_declarator(&mut self, target: Id) {
        if self.is_function_or_array(target) {
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
            Some(&Node::Indirect(target, _)) => {
                self.is_function_or_array(target) || self.is_open(target)
            }
            Some(&Node::Member(_, member)) => self.is_function_or_array(member),
            _ => false,
        }
    }

    fn close_declarator(&mut self, target: Id) -> Option<()> {
        if self.is_function_or_array(target) {
            self.push(")");
        }
        self.right(target)
    }

    fn is_function_or_array(&self, id: Id) -> bool {
        match self.resolved(id) {
            Some(Node::Function(..) | Node::Array(..)) => true,
            Some(&Node::Qualified(inner, _)) => self.is_function_or_array(inner),
            _ => false,
        }
    }

    /// The node `id`; if it is a template parameter, its argument, or `None` among a lambda's parameters.
    fn resolved(&self, id: Id) -> Option<&'t Node<'a>> {
        match self.tree.node(id)? {
            Node::Parameter(_) if self.in_lambda => None,
            Node::Parameter(number) => self.tree.node(self.argument(*number)?),
            node => Some(node),
        }
    }

    /// The argument of template parameter `number`; of a pack, the value being printed.
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

    /// Prints the argument of template parameter `number` with `print`, which is [`Self::left`] or [`Self::right`]; among a
    /// lambda's parameters, prints `auto:N`.
    fn parameter(&mut self, number: usize, print: fn(&mut Self, Id) -> Option<()>) -> Option<()> {
        if self.in_lambda {
            self.push(&format!("auto:{}", number + 1));
            return Some(());
        }
        let argument = self.argument(number)?;
        // Template parameters in the argument refer to the template outside this one.
        let template = self.templates.pop();
        let done = print(self, argument);
        self.templates.extend(template);
        done
    }

    /// Prints a comma-separated list, without the commas before trailing values that print nothing.
    fn list(&mut self, values: &[Id]) -> Option<()> {
        let mut end = self.out.len();
        for (position, value) in values.iter().enumerate() {
            if position > 0 {
                self.push(", ");
            }
            let start = self.out.len();
            self.print(*value)?;
            if self.out.len() > start {
                end = self.out.len();
            }
        }
        self.out.truncate(end);
        Some(())
    }
}
