//! Constants of the kernel that a `print fmt` prints.

use super::parse::{arguments_one_by_one, format_text};
use super::spec::{FormatPart, parts};
use super::tree::{Node, constant};
use crate::Format;

impl Format {
    /// Returns the number that the `print fmt` prints after `name=`, if it is a constant of the kernel: the same for all samples.
    /// `None` if it depends on fields, names an enumerator, or has a `*` in its conversion.
    ///
    /// Arguments are parsed separately, so that an unsupported one doesn't affect the others.
    #[must_use]
    pub fn printed_constant(&self, name: &str) -> Option<i64> {
        let index = argument_after(&self.print_fmt, &format!("{name}="))?;
        let arguments = arguments_one_by_one(&self.print_fmt);
        value(arguments.get(index)?.as_ref()?)
    }
}

/// Returns the index of the argument whose conversion follows `title` directly; `None` if there is none, or the conversion has a
/// `*`.
fn argument_after(print_fmt: &str, title: &str) -> Option<usize> {
    let (mut argument_index, mut before) = (0, Vec::<u8>::new());
    for part in parts(&format_text(print_fmt)?).ok()? {
        match part {
            FormatPart::Literal(text) => before.extend(text),
            FormatPart::Conversion(conversion) => {
                // The title must be a whole word: the title `order=` is not found in `alloc_order=`.
                let start = before.strip_suffix(title.as_bytes());
                if start.is_some_and(|start| matches!(start.last(), None | Some(b' '))) {
                    return (!conversion.takes_star).then_some(argument_index);
                }
                before.clear();
                argument_index += 1 + usize::from(conversion.takes_star);
            }
        }
    }
    None
}

/// Returns the value of an expression of numbers; `None` if it has fields, enumerators, or operators that are not evaluated.
fn value(node: &Node) -> Option<i64> {
    match node {
        // The cast is assumed not to change the value.
        Node::Cast { operand, .. } => value(operand),
        // `constant` does not evaluate `?`, whose right side is the operation `:` of both branches.
        Node::Operation(operation) if operation.operator == "?" => {
            let Node::Operation(branches) = &operation.right else {
                return None;
            };
            match value(&operation.left)? {
                0 => value(&branches.right),
                _ => value(&branches.left),
            }
        }
        // `constant` evaluates enumerators and other names as 0, so it gets only nodes without names.
        _ if has_only_numbers(node) => constant(node),
        _ => None,
    }
}

fn has_only_numbers(node: &Node) -> bool {
    match node {
        Node::Atom(text) => text.starts_with(|letter: char| letter.is_ascii_digit()),
        Node::Cast { operand, .. } => has_only_numbers(operand),
        Node::Operation(operation) => {
            let left = &operation.left;
            // A unary operator has no left side.
            (matches!(left, Node::Null) || has_only_numbers(left))
                && has_only_numbers(&operation.right)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use crate::Format;

    fn printed(print_fmt: &str, name: &str) -> Option<i64> {
        let text = format!("name: x\nID: 1\nformat:\n\nprint fmt: {print_fmt}\n");
        let long_size = 8;
        let format = Format::parse(&text, long_size).expect("a description");
        format.printed_constant(name)
    }

    #[test]
    fn constants_are_evaluated_despite_unsupported_arguments() {
        let text = "\"page=%p alloc_order=%d pageblock_order=%d other=%d\", (((struct page *)vmemmap_base) + (REC->pfn)), \
            REC->alloc_order, (((unsigned int)((21 - 12))) < ((unsigned int)(10)) ? ((unsigned int)((21 - 12))) : \
            ((unsigned int)(10))), HPAGE_ORDER";
        assert_eq!(printed(text, "pageblock_order"), Some(9));
        // Fields and enumerators are not constants; the name must match as a whole.
        assert_eq!(printed(text, "alloc_order"), None);
        assert_eq!(printed(text, "other"), None);
        assert_eq!(printed(text, "order"), None);
        assert_eq!(printed(text, "missing"), None);
        let smaller_limit = text.replace("(10)", "(8)");
        assert_eq!(printed(&smaller_limit, "pageblock_order"), Some(8));
        assert_eq!(printed("\"a=%d b=%d\", REC->a, (11-1)", "b"), Some(10));
        assert_eq!(printed("\"a_b=%d b=%d\", REC->a, (11-1)", "b"), Some(10));
        assert_eq!(printed("", "a"), None);
        assert_eq!(printed("\"a=%d\"", "a"), None);
    }
}
