//! Names, templates and packs.

use super::{MAX_DEPTH, Printer};
use crate::demangle::itanium::{Id, Node};

impl<'t, 'a> Printer<'t, 'a> {
    pub(super) fn name(&mut self, id: Id, node: &'t Node<'a>) -> Option<()> {
        match node {
            Node::Text(text) => self.push(text),
            Node::Scoped(scope, name) | Node::Local(scope, name) => {
                self.print(*scope)?;
                self.push("::");
                self.print(*name)?;
            }
            Node::Template(name, arguments) => return self.template(id, *name, arguments),
            Node::Typed(name, function) => return self.typed(*name, *function),
            Node::Constructor(class) => self.print(*class)?,
            Node::Destructor(class) => {
                self.push("~");
                self.print(*class)?;
            }
            Node::Conversion(target) => return self.conversion(*target),
            Node::Special(words, subject) => {
                self.push(words);
                self.print(*subject)?;
            }
            Node::ConstructionTable(first, second) => {
                self.push("construction vtable for ");
                self.print(*first)?;
                self.push("-in-");
                self.print(*second)?;
            }
            Node::Temporary(number, name) => {
                self.push(&format!("reference temporary #{number} for "));
                self.print(*name)?;
            }
            Node::Tagged(name, tag) => {
                self.print(*name)?;
                self.push(&format!("[abi:{tag}]"));
            }
            Node::Lambda(parameters, number) => return self.lambda(parameters, *number),
            Node::Unnamed(number) => self.push(&format!("{{unnamed type#{number}}}")),
            Node::DefaultArgument(number, name) => {
                self.push(&format!("{{default arg#{number}}}::"));
                self.print(*name)?;
            }
            Node::Vector(dimension, element) => {
                self.print(*element)?;
                self.push(" __vector(");
                self.print(*dimension)?;
                self.push(")");
            }
            Node::Pack(values) => self.list(values)?,
            Node::Expansion(pattern) => return self.expansion(*pattern),
            _ => return self.expression(node),
        }
        Some(())
    }

    /// Prints a lambda. Template parameters in the types of its parameters are printed as `auto:N`.
    fn lambda(&mut self, parameters: &[Id], number: usize) -> Option<()> {
        self.push("{lambda(");
        let outer = std::mem::replace(&mut self.in_lambda, true);
        self.list(parameters)?;
        self.in_lambda = outer;
        self.push(&format!(")#{number}}}"));
        Some(())
    }

    fn template(&mut self, template: Id, name: Id, arguments: &[Id]) -> Option<()> {
        let outer = self.current.replace(template);
        self.print(name)?;
        // As in `operator< <int>`.
        if self.last == '<' {
            self.push(" ");
        }
        self.push("<");
        self.list(arguments)?;
        // As in `A<B<int> >`.
        if self.last == '>' {
            self.push(" ");
        }
        self.push(">");
        self.current = outer;
        Some(())
    }

    /// Prints a function with its parameters. Template parameters in it refer to its own template arguments.
    fn typed(&mut self, name: Id, function: Id) -> Option<()> {
        // For a function inside another function, only the inner one's template arguments count.
        let mut inner = name;
        if let Some(&Node::Local(_, entity)) = self.tree.node(inner) {
            inner = entity;
            if let Some(&Node::DefaultArgument(_, name)) = self.tree.node(inner) {
                inner = name;
            }
        }
        let template = matches!(self.tree.node(inner), Some(Node::Template(..))).then_some(inner);
        let outer = std::mem::replace(&mut self.in_lambda, false);
        self.templates.extend(template);
        self.left(function)?;
        self.print(name)?;
        self.right(function)?;
        if template.is_some() {
            self.templates.pop();
        }
        self.in_lambda = outer;
        Some(())
    }

    /// Prints a conversion operator. Template parameters in its target type refer to the arguments of the template whose name is
    /// being printed.
    fn conversion(&mut self, target: Id) -> Option<()> {
        self.push("operator ");
        let template = self.current;
        self.templates.extend(template);
        self.print(target)?;
        if template.is_some() {
            self.templates.pop();
        }
        Some(())
    }

    fn expansion(&mut self, pattern: Id) -> Option<()> {
        let Some(count) = self.pack_size(pattern, 0) else {
            self.subexpression(pattern)?;
            self.push("...");
            return Some(());
        };
        let outer = self.pack_index;
        for index in 0..count {
            if index > 0 {
                self.push(", ");
            }
            self.pack_index = index;
            self.print(pattern)?;
        }
        self.pack_index = outer;
        Some(())
    }

    /// Returns the number of values of the first pack in `pattern`; `None` if there is no pack, if a limit is exceeded, or while
    /// the parameters of a lambda are printed.
    pub(super) fn pack_size(&self, pattern: Id, depth: u32) -> Option<usize> {
        self.step()?;
        if depth > MAX_DEPTH || self.in_lambda {
            return None;
        }
        let find = |id: &Id| self.pack_size(*id, depth + 1);
        match self.tree.node(pattern)? {
            Node::Parameter(number) => {
                let Node::Template(_, arguments) = self.tree.node(*self.templates.last()?)? else {
                    return None;
                };
                match self.tree.node(*arguments.get(*number)?)? {
                    Node::Pack(values) => Some(values.len()),
                    _ => None,
                }
            }
            Node::Template(name, list) | Node::Call(name, list) | Node::Cast(name, list) => {
                find(name).or_else(|| list.iter().find_map(find))
            }
            Node::Function(first, list, _) | Node::Braced(first, list) => first
                .as_ref()
                .and_then(find)
                .or_else(|| list.iter().find_map(find)),
            Node::Pack(list) => list.iter().find_map(find),
            Node::Scoped(a, b)
            | Node::Member(a, b)
            | Node::Vector(a, b)
            | Node::Binary(_, a, b) => find(a).or_else(|| find(b)),
            Node::Array(a, b) => find(b).or_else(|| a.as_ref().and_then(find)),
            Node::Conditional(a, b, c) => find(a).or_else(|| find(b)).or_else(|| find(c)),
            Node::Indirect(a, _)
            | Node::Qualified(a, _)
            | Node::Attributed(a, _)
            | Node::Decltype(a)
            | Node::Unary(_, a)
            | Node::Postfix(_, a)
            | Node::Keyword(_, a) => find(a),
            _ => None,
        }
    }
}
