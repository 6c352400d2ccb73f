//! Printing of expressions and literals.

use super::Printer;
use crate::demangle::itanium::tables::LITERAL_SUFFIXES;
use crate::demangle::itanium::{Id, Node};

impl<'t, 'a> Printer<'t, 'a> {
    /// Prints an expression; `None` if it is invalid or another kind of node.
    pub(super) fn expression(&mut self, node: &'t Node<'a>) -> Option<()> {
        match node {
            Node::FunctionParameter(number) => self.push(&format!("{{parm#{number}}}")),
            Node::Literal(kind, digits, negative) => return self.literal(*kind, digits, *negative),
            Node::Decltype(expression) => {
                self.push("decltype (");
                self.print(*expression)?;
                self.push(")");
            }
            Node::Unary(symbol, operand) => {
                self.push(symbol);
                self.subexpression(self.without_parameters(symbol, *operand))?;
            }
            Node::Postfix(symbol, operand) => {
                self.subexpression(*operand)?;
                self.push(symbol);
            }
            Node::Binary(symbol, left, right) => return self.binary(symbol, *left, *right),
            Node::Conditional(condition, yes, no) => {
                return self.conditional(*condition, *yes, *no);
            }
            Node::Call(function, arguments) => {
                // Only the name: parameter types are not printed before the arguments.
                let function = match self.tree.node(*function)? {
                    Node::Typed(name, _) => name,
                    _ => function,
                };
                self.subexpression(*function)?;
                self.in_parentheses(arguments)?;
            }
            Node::Cast(target, values) => {
                self.push("(");
                self.print(*target)?;
                self.push(")");
                self.in_parentheses(values)?;
            }
            Node::Braced(class, values) => {
                if let Some(class) = *class {
                    self.print(class)?;
                }
                self.push("{");
                self.list(values)?;
                self.push("}");
            }
            Node::Keyword(word, operand) => {
                self.push(word);
                self.in_parentheses(&[*operand])?;
            }
            Node::PackSize(pack) => {
                let depth = 0;
                let size = self.pack_size(*pack, depth)?;
                self.push(&size.to_string());
            }
            _ => return None,
        }
        Some(())
    }

    /// Prints `a?b : c`, with the spaces of c++filt.
    fn conditional(&mut self, condition: Id, yes: Id, no: Id) -> Option<()> {
        self.subexpression(condition)?;
        self.push("?");
        self.subexpression(yes)?;
        self.push(" : ");
        self.subexpression(no)
    }

    fn binary(&mut self, symbol: &str, left: Id, right: Id) -> Option<()> {
        if symbol == "[]" {
            self.subexpression(left)?;
            self.push("[");
            self.print(right)?;
            self.push("]");
            return Some(());
        }
        // Without parentheses, > would end the template arguments. As in c++filt, other operators that begin with > get none.
        let (open, close) = if symbol == ">" { ("(", ")") } else { ("", "") };
        self.push(open);
        self.subexpression(left)?;
        self.push(symbol);
        self.subexpression(right)?;
        self.push(close);
        Some(())
    }

    /// Returns the node to print for the operand of a unary operator. If the operator takes the address of a function in a scope,
    /// and the function has no qualifiers (`const`), this is only the name; otherwise it is `operand`.
    fn without_parameters(&self, symbol: &str, operand: Id) -> Id {
        let Some(&Node::Typed(name, function)) = self.tree.node(operand) else {
            return operand;
        };
        let scoped = matches!(self.tree.node(name), Some(Node::Scoped(..)));
        let plain = matches!(self.tree.node(function), Some(Node::Function(_, _, qualifiers)) if qualifiers.is_empty());
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

    /// Prints an operand, in parentheses unless it is a name without template arguments, a function parameter or braced.
    pub(super) fn subexpression(&mut self, id: Id) -> Option<()> {
        let simple = matches!(
            self.tree.node(id)?,
            Node::Text(_) | Node::Scoped(..) | Node::Braced(..) | Node::FunctionParameter(_)
        );
        if simple {
            self.print(id)
        } else {
            self.in_parentheses(&[id])
        }
    }

    /// Prints a literal of the type `kind`: `true`, `false`, digits with a suffix, or digits after a cast. The digits of a
    /// floating-point number are its bytes in hexadecimal, printed in brackets.
    fn literal(&mut self, kind: Id, digits: &str, negative: bool) -> Option<()> {
        let tree = self.tree;
        let sign = if negative { "-" } else { "" };
        if let Some(Node::Text(type_name)) = tree.node(kind) {
            match (*type_name, digits) {
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
            if let Some((_, suffix)) = LITERAL_SUFFIXES
                .into_iter()
                .find(|entry| entry.0 == *type_name)
            {
                self.push(&format!("{sign}{digits}{suffix}"));
                return Some(());
            }
        }
        self.push("(");
        self.print(kind)?;
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
