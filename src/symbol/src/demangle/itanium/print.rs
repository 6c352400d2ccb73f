//! Writes a parsed name down.

use super::tables::LITERAL_SUFFIXES;
use super::{Id, Node, Tree};

/// How deep printing may go: template parameters can lead round in circles.
const MAX_DEPTH: u32 = 512;
/// The longest name worth showing. Substitutions can make it grow without bound.
const MAX_LEN: usize = 1 << 16;

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

    /// All that stands before a declared name: everything, for what isn't a type of a function or array.
    fn left(&mut self, id: Id) -> Option<()> {
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
                    self.push(" ");
                }
                Some(())
            }
            Node::Array(_, element) => self.left(*element),
            Node::Parameter(number) => self.parameter(*number, Self::left),
            other => self.name(other),
        }
    }

    /// What stands behind a declared name: parameters and dimensions.
    fn right(&mut self, id: Id) -> Option<()> {
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

    fn name(&mut self, node: &'t Node<'a>) -> Option<()> {
        match node {
            Node::Text(text) => self.push(text),
            Node::Scoped(scope, name) | Node::Local(scope, name) => {
                self.whole(*scope)?;
                self.push("::");
                self.whole(*name)?;
            }
            Node::Template(..) => return self.template(node),
            Node::Typed(name, function) => return self.typed(*name, *function),
            Node::Constructor(class) => self.whole(*class)?,
            Node::Destructor(class) => {
                self.push("~");
                self.whole(*class)?;
            }
            Node::Conversion(target) => return self.conversion(*target),
            Node::Special(words, subject) => {
                self.push(words);
                self.whole(*subject)?;
            }
            Node::ConstructionTable(first, second) => {
                self.push("construction vtable for ");
                self.whole(*first)?;
                self.push("-in-");
                self.whole(*second)?;
            }
            Node::Temporary(number, name) => {
                self.push(&format!("reference temporary #{number} for "));
                self.whole(*name)?;
            }
            Node::Tagged(name, tag) => {
                self.whole(*name)?;
                self.push(&format!("[abi:{tag}]"));
            }
            Node::Lambda(parameters, number) => {
                self.push("{lambda(");
                let outer = std::mem::replace(&mut self.in_lambda, true);
                self.list(parameters)?;
                self.in_lambda = outer;
                self.push(&format!(")#{number}}}"));
            }
            Node::Unnamed(number) => self.push(&format!("{{unnamed type#{number}}}")),
            Node::DefaultArgument(number, name) => {
                self.push(&format!("{{default arg#{}}}::", number + 1));
                self.whole(*name)?;
            }
            Node::Vector(dimension, element) => {
                self.whole(*element)?;
                self.push(" __vector(");
                self.whole(*dimension)?;
                self.push(")");
            }
            Node::Pack(values) => self.list(values)?,
            Node::Expansion(pattern) => return self.expansion(*pattern),
            _ => return self.expression(node),
        }
        Some(())
    }

    fn template(&mut self, node: &'t Node<'a>) -> Option<()> {
        let Node::Template(name, arguments) = node else {
            return None;
        };
        let position = self
            .tree
            .nodes
            .iter()
            .position(|other| std::ptr::eq(other, node));
        let outer = std::mem::replace(&mut self.current, position);
        self.whole(*name)?;
        if self.last == '<' {
            self.push(" ");
        }
        self.push("<");
        self.list(arguments)?;
        if self.last == '>' {
            self.push(" ");
        }
        self.push(">");
        self.current = outer;
        Some(())
    }

    /// A function with its parameters, in whose types template parameters are its own.
    fn typed(&mut self, name: Id, function: Id) -> Option<()> {
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
        self.whole(name)?;
        self.right(function)?;
        if template.is_some() {
            self.templates.pop();
        }
        self.in_lambda = outer;
        Some(())
    }

    fn conversion(&mut self, target: Id) -> Option<()> {
        self.push("operator ");
        let template = self.current;
        self.templates.extend(template);
        self.whole(target)?;
        if template.is_some() {
            self.templates.pop();
        }
        Some(())
    }

    fn expansion(&mut self, pattern: Id) -> Option<()> {
        let Some(values) = self.find_pack(pattern, 0) else {
            self.subexpression(pattern)?;
            self.push("...");
            return Some(());
        };
        let outer = self.pack_index;
        for index in 0..values {
            if index > 0 {
                self.push(", ");
            }
            self.pack_index = index;
            self.whole(pattern)?;
        }
        self.pack_index = outer;
        Some(())
    }

    /// The number of values of the first pack that `pattern` names.
    fn find_pack(&self, pattern: Id, depth: u32) -> Option<usize> {
        if depth > MAX_DEPTH || self.in_lambda {
            return None;
        }
        let find = |id: &Id| self.find_pack(*id, depth + 1);
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
            Node::Function(returned, list, _) | Node::Braced(returned, list) => returned
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
            | Node::Wordy(_, a) => find(a),
            _ => None,
        }
    }

    fn expression(&mut self, node: &'t Node<'a>) -> Option<()> {
        match node {
            Node::FunctionParameter(number) => self.push(&format!("{{parm#{number}}}")),
            Node::Literal(kind, digits, negative) => return self.literal(*kind, digits, *negative),
            Node::Decltype(expression) => {
                self.push("decltype (");
                self.whole(*expression)?;
                self.push(")");
            }
            Node::Unary(symbol, operand) => {
                self.push(symbol);
                self.subexpression(self.without_parameters(symbol, *operand))?;
            }
            Node::Binary("[]", left, right) => {
                self.subexpression(*left)?;
                self.push("[");
                self.whole(*right)?;
                self.push("]");
            }
            Node::Binary(symbol, left, right) => {
                // A bare > would look like the end of the arguments.
                self.push(if *symbol == ">" { "(" } else { "" });
                self.subexpression(*left)?;
                self.push(symbol);
                self.subexpression(*right)?;
                self.push(if *symbol == ">" { ")" } else { "" });
            }
            Node::Conditional(condition, yes, no) => {
                self.subexpression(*condition)?;
                self.push("?");
                self.subexpression(*yes)?;
                self.push(" : ");
                self.subexpression(*no)?;
            }
            Node::Call(function, arguments) => {
                let function = match self.tree.node(*function)? {
                    Node::Typed(name, _) => name,
                    _ => function,
                };
                self.subexpression(*function)?;
                self.in_parentheses(arguments)?;
            }
            Node::Cast(target, values) => {
                self.push("(");
                self.whole(*target)?;
                self.push(")");
                self.in_parentheses(values)?;
            }
            Node::Braced(class, values) => {
                if let Some(class) = *class {
                    self.whole(class)?;
                }
                self.push("{");
                self.list(values)?;
                self.push("}");
            }
            Node::Wordy(word, operand) => {
                self.push(word);
                self.in_parentheses(&[*operand])?;
            }
            Node::PackSize(pack) => {
                let size = self.find_pack(*pack, 0)?;
                self.push(&size.to_string());
            }
            _ => return None,
        }
        Some(())
    }

    /// The address of a function in a scope goes by its name alone, unless it is a const member.
    fn without_parameters(&self, symbol: &str, operand: Id) -> Id {
        let Some(&Node::Typed(name, function)) = self.tree.node(operand) else {
            return operand;
        };
        let scoped = matches!(self.tree.node(name), Some(Node::Scoped(..)));
        let plain = matches!(self.tree.node(function), Some(Node::Function(_, _, words)) if words.is_empty());
        if symbol == "&" && scoped && plain {
            name
        } else {
            operand
        }
    }

    fn in_parentheses(&mut self, values: &[Id]) -> Option<()> {
        self.push("(");
        self.list(values)?;
        self.push(")");
        Some(())
    }

    fn subexpression(&mut self, id: Id) -> Option<()> {
        let simple = matches!(
            self.tree.node(id)?,
            Node::Text(_) | Node::Scoped(..) | Node::Braced(..) | Node::FunctionParameter(_)
        );
        if simple {
            self.whole(id)
        } else {
            self.in_parentheses(&[id])
        }
    }

    fn literal(&mut self, kind: Id, digits: &str, negative: bool) -> Option<()> {
        let tree = self.tree;
        let sign = if negative { "-" } else { "" };
        if let Some(Node::Text(words)) = tree.node(kind) {
            match (*words, digits) {
                ("bool", "0") if !negative => {
                    self.push("false");
                    return Some(());
                }
                ("bool", "1") if !negative => {
                    self.push("true");
                    return Some(());
                }
                _ => {}
            }
            if let Some((_, suffix)) = LITERAL_SUFFIXES.into_iter().find(|entry| entry.0 == *words)
            {
                self.push(&format!("{sign}{digits}{suffix}"));
                return Some(());
            }
        }
        self.push("(");
        self.whole(kind)?;
        self.push(")");
        self.push(sign);
        let is_float = matches!(
            tree.node(kind),
            Some(Node::Text(
                "float" | "double" | "long double" | "__float128"
            ))
        );
        if is_float {
            self.push(&format!("[{digits}]"));
        } else {
            self.push(digits);
        }
        Some(())
    }
}
