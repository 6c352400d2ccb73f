//! Formulas and metrics. Generated formulas are compared with an oracle that evaluates the trees they were generated from.

use std::collections::HashMap;

use proptest::prelude::*;

use super::{Expr, MachineProperties, MetricCounts, MetricError, MetricPlan};
use crate::vendor::{BuiltIn, MetricGrouping, UnitScale, VendorMetric, VendorTables, load};

/// Counts by name. `two` is the sum of two counters, every other count is that of one counter.
struct FixedCounts(HashMap<&'static str, f64>);

impl FixedCounts {
    fn new(values: &[(&'static str, f64)]) -> Self {
        Self(values.iter().copied().collect())
    }
}

impl MetricCounts for FixedCounts {
    fn value(&self, name: &str) -> Option<f64> {
        self.0.get(name).copied()
    }

    fn source_count(&self, name: &str) -> Option<u32> {
        let sources = if name == "two" { 2 } else { 1 };
        self.0.contains_key(name).then_some(sources)
    }
}

/// A machine with (`true`) or without SMT.
struct Machine(bool);

const WITH_SMT: Machine = Machine(true);
const WITHOUT_SMT: Machine = Machine(false);

impl MachineProperties for Machine {
    fn literal(&self, name: &str) -> Option<f64> {
        match name {
            "smt_on" => Some(f64::from(u8::from(self.0))),
            "num_cpus" => Some(8.0),
            _ => None,
        }
    }

    fn has_event(&self, event: &str) -> bool {
        event == "slots"
    }

    fn is_processor(&self, pattern: &str) -> bool {
        pattern == "0x410fd0c0"
    }
}

fn value(formula: &str) -> f64 {
    let counts = FixedCounts::new(&[
        ("a", 6.0),
        ("b", 4.0),
        ("zero", 0.0),
        ("two", 3.0),
        ("cpu/x,y=1/", 9.0),
    ]);
    let mut missing = Vec::new();
    let value = Expr::parse(formula)
        .unwrap_or_else(|error| panic!("{error}"))
        .simplified_for(&WITH_SMT)
        .value(&counts, &mut missing);
    assert_eq!(missing, [""; 0], "{formula}");
    value
}

#[test]
fn operators_have_their_precedence_and_value() {
    for (formula, expected) in [
        ("1 + 2 * 3", 7.0),
        ("a - b - 1", 1.0),
        ("a / b / 2", 0.75),
        ("7 % 4 * 2", 6.0),
        ("-a + b", -2.0),
        ("a - -b", 10.0),
        ("6 & 3 | 8", 10.0),
        ("6 ^ 3", 5.0),
        ("1 + 1 < 3", 1.0),
        ("a > b", 1.0),
        ("min(a, b) + max(a, b)", 10.0),
        ("d_ratio(a, b)", 1.5),
        ("d_ratio(a, zero)", 0.0),
        ("1 if a > b else 2", 1.0),
        ("1 if a < b else 2 if b else 3", 2.0),
        ("(a + b) if #SMT_on else nosuch", 10.0),
        ("nosuch if #smt_on - 1 else a", 6.0),
        ("2 * #num_cpus", 16.0),
        ("source_count(two)", 2.0),
        ("1 if has_event(slots) else nosuch", 1.0),
        ("strcmp_cpuid_str(0x410fd0c0)", 1.0),
        (r"cpu@x\,y\=1@ / 3", 3.0),
        ("1e3 + .5 + 2.5E-1", 1000.75),
    ] {
        assert_eq!(value(formula), expected, "{formula}");
    }
    for undefined in [
        "a / zero",
        "a % zero",
        "min(a / zero, 1)",
        "(a / zero) if zero else (0 % zero)",
    ] {
        assert!(value(undefined).is_nan(), "{undefined}");
    }
}

/// Also: a simplified formula has no names of the branch that is not chosen.
#[test]
fn names_are_unescaped() {
    let formula = r"(topdown\-retiring + cpu_core@MEM_LOAD\,cmask\=0x1@:u) / 3dnow if INST_RETIRED.ANY else 0x";
    let expr = Expr::parse(formula).unwrap();
    let names = [
        "topdown-retiring",
        "cpu_core/MEM_LOAD,cmask=0x1/:u",
        "3dnow",
        "INST_RETIRED.ANY",
        "0x",
    ];
    assert_eq!(expr.names(), names);
    let chosen = Expr::parse("a if #smt_on else b")
        .unwrap()
        .simplified_for(&WITHOUT_SMT);
    assert_eq!(chosen.names(), ["b"]);
}

#[test]
fn syntax_errors_have_positions_and_sizes_are_limited() {
    for (formula, position, reason) in [
        ("a +", 3..3, "expected a number, an event or a metric"),
        ("a b", 2..3, "expected an operator"),
        ("(a", 2..2, "expected `)'"),
        ("min(a)", 5..6, "expected `,'"),
        ("a if b", 6..6, "expected `else'"),
        ("a $ b", 2..3, "`$' is not valid in a formula"),
        ("a + # b", 4..5, "`#' is not valid in a formula"),
        ("sqrt(a)", 0..4, "unknown function `sqrt'"),
        ("source_count(1)", 13..14, "expected a name"),
        ("", 0..0, "expected a number, an event or a metric"),
    ] {
        let MetricError::Syntax {
            position: at,
            reason: found,
            ..
        } = Expr::parse(formula).unwrap_err()
        else {
            panic!("no syntax error in {formula}");
        };
        assert_eq!((at, found.as_str()), (position, reason), "{formula}");
    }
    let nested = format!("{}1{}", "(".repeat(200), ")".repeat(200));
    assert!(
        Expr::parse(&nested)
            .unwrap_err()
            .to_string()
            .contains("too many brackets")
    );
    assert!(Expr::parse(&format!("{}1", "-".repeat(5000))).is_err());
    let sum = |terms: usize| vec!["1"; terms].join("+");
    assert_eq!(value(&sum(500)), 500.0);
    assert!(
        Expr::parse(&sum(100_000))
            .unwrap_err()
            .to_string()
            .contains("the formula is too long")
    );
}

/// Tables of metrics, given by name and formula. All are in percent, in the group `all`, and have the threshold `ipc > 1`.
fn tables(metrics: &[(&str, &str)]) -> VendorTables {
    let metrics = metrics.iter().map(|(name, formula)| VendorMetric {
        name: (*name).to_owned(),
        formula: (*formula).to_owned(),
        groups: vec!["all".to_owned()],
        pmu: None,
        brief: None,
        long: None,
        scale: Some(UnitScale::parse("100%")),
        threshold: Some("ipc > 1".to_owned()),
        grouping: MetricGrouping::Together,
        topic: "test".to_owned(),
    });
    VendorTables::new(Vec::new(), metrics.collect())
}

#[test]
fn metrics_are_computed_from_each_other() {
    let tables = tables(&[
        ("ipc", "insn / cycles"),
        ("cpi", "1 / ipc"),
        ("both", "ipc + cpi + cycles * 0 + TSC * 0"),
        ("lacking", "both + nosuch"),
    ]);
    let plan = |name| MetricPlan::new(tables.metric(name).unwrap(), &tables, &WITH_SMT).unwrap();
    let both = plan("both");
    assert_eq!(both.events, ["insn", "cycles", "msr/tsc/"]);
    let counts = FixedCounts::new(&[("insn", 400.0), ("cycles", 200.0), ("msr/tsc/", 1.0)]);
    let outcome = both.evaluate(&counts);
    assert_eq!(
        (outcome.value, outcome.meets_threshold),
        (250.0, Some(true))
    );
    assert_eq!(outcome.missing, [""; 0]);
    let outcome =
        plan("lacking").evaluate(&FixedCounts::new(&[("cycles", 1.0), ("msr/tsc/", 1.0)]));
    assert!(outcome.value.is_nan());
    assert_eq!(outcome.missing, ["insn", "nosuch"]);
    assert_eq!(
        MetricPlan::for_word("ALL", &tables, &WITH_SMT)
            .unwrap()
            .len(),
        4
    );
    let error = MetricPlan::for_word("cpo", &tables, &WITH_SMT).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Cannot find metric or group `cpo', did you mean `cpi'?"
    );
}

#[test]
fn circular_and_malformed_metrics_are_rejected() {
    let tables = tables(&[
        ("a", "b + 1"),
        ("b", "c"),
        ("c", "b"),
        ("d", "d / 2"),
        ("e", "1 +"),
    ]);
    let plan = |name| MetricPlan::new(tables.metric(name).unwrap(), &tables, &WITH_SMT);
    let circle = plan("a").unwrap_err().to_string();
    assert_eq!(circle, "metrics refer to each other: b -> c -> b");
    assert_eq!(
        plan("d").unwrap().events,
        ["d"],
        "an event of the same name"
    );
    let wrong = plan("e").unwrap_err().to_string();
    assert!(
        wrong.starts_with("syntax error in metric e: '1 +'\n"),
        "{wrong}"
    );
}

#[test]
fn built_in_metrics_can_be_planned() {
    for cpuid in [
        "GenuineIntel-6-55-4",
        "AuthenticAMD-25-1-1",
        "0x00000000410fd0c0",
    ] {
        let tables = load(&BuiltIn, cpuid).tables;
        for metric in tables.metrics() {
            for smt in [true, false] {
                let plan = MetricPlan::new(metric, &tables, &Machine(smt)).unwrap();
                for event in &plan.events {
                    assert_eq!(
                        tables.events_named(event).len(),
                        1,
                        "{}: {event}",
                        metric.name
                    );
                }
            }
        }
    }
}

#[test]
fn built_in_top_down_metrics_are_computed_from_their_events() {
    let tables = load(&BuiltIn, "GenuineIntel-6-55-4").tables;
    let top = MetricPlan::for_word("TopdownL1", &tables, &WITHOUT_SMT).unwrap();
    let counts = FixedCounts::new(&[
        ("CPU_CLK_UNHALTED.THREAD", 100.0),
        ("IDQ_UOPS_NOT_DELIVERED.CORE", 40.0),
        ("UOPS_ISSUED.ANY", 220.0),
        ("UOPS_RETIRED.RETIRE_SLOTS", 200.0),
        ("INT_MISC.RECOVERY_CYCLES", 5.0),
    ]);
    let shares: Vec<(String, f64)> = top
        .iter()
        .map(|plan| (plan.name.clone(), plan.evaluate(&counts).value))
        .collect();
    let expected = [
        ("tma_backend_bound", 30.0),
        ("tma_bad_speculation", 10.0),
        ("tma_frontend_bound", 10.0),
        ("tma_retiring", 50.0),
    ];
    assert_eq!(shares.len(), expected.len());
    for ((name, share), (known, value)) in shares.iter().zip(expected) {
        assert!(
            name == known && (share - value).abs() < 1e-9,
            "{name} {share}"
        );
    }
}

/// A formula as a tree.
#[derive(Debug, Clone)]
enum Tree {
    Number(u32),
    Event(&'static str),
    Negate(Box<Tree>),
    /// A binary operator, or a function of two arguments such as `min`.
    Binary(&'static str, Box<Tree>, Box<Tree>),
    /// `A if CONDITION else B`, in this order.
    If(Box<Tree>, Box<Tree>, Box<Tree>),
}

const EVENTS: [(&str, f64); 4] = [("ev", 5.0), ("cpu/x-y/", 12.0), ("zero", 0.0), ("E.1", 2.5)];

fn tree() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![
        (0_u32..9).prop_map(Tree::Number),
        prop::sample::select(EVENTS.map(|(name, _)| name).to_vec()).prop_map(Tree::Event),
    ];
    leaf.prop_recursive(5, 40, 3, |inner| {
        let boxed = inner.prop_map(Box::new);
        let operators = vec![
            "|", "^", "&", "<", ">", "+", "-", "*", "/", "%", "min", "max", "d_ratio",
        ];
        prop_oneof![
            boxed.clone().prop_map(Tree::Negate),
            (
                prop::sample::select(operators),
                boxed.clone(),
                boxed.clone()
            )
                .prop_map(|(operator, left, right)| Tree::Binary(operator, left, right)),
            (boxed.clone(), boxed.clone(), boxed)
                .prop_map(|(then, condition, other)| Tree::If(then, condition, other)),
        ]
    })
}

impl Tree {
    /// Precedence: 0 for conditionals, 1 to 6 for binary operators, 7 for negation; 8 for numbers, events and functions, which
    /// need no brackets.
    fn level(&self) -> usize {
        match self {
            Self::If(..) => 0,
            Self::Binary("|", ..) => 1,
            Self::Binary("^", ..) => 2,
            Self::Binary("&", ..) => 3,
            Self::Binary("<" | ">", ..) => 4,
            Self::Binary("+" | "-", ..) => 5,
            Self::Binary("*" | "/" | "%", ..) => 6,
            Self::Negate(_) => 7,
            _ => 8,
        }
    }

    /// The text with as few brackets as possible; it is itself in brackets if its precedence is below `least`.
    fn text(&self, least: usize) -> String {
        let level = self.level();
        let inside = match self {
            Self::Number(value) => value.to_string(),
            Self::Event(name) => name.replace('/', "@").replace('-', "\\-"),
            Self::Negate(inner) => format!("-{}", inner.text(level)),
            Self::Binary(function, left, right) if level == 8 => {
                format!("{function}({}, {})", left.text(0), right.text(0))
            }
            Self::Binary(operator, left, right) => {
                format!("{} {operator} {}", left.text(level), right.text(level + 1))
            }
            Self::If(then, condition, other) => {
                format!(
                    "{} if {} else {}",
                    then.text(1),
                    condition.text(1),
                    other.text(0)
                )
            }
        };
        match level < least {
            true => format!("({inside})"),
            false => inside,
        }
    }

    /// The value of the expression by definition; `None` if undefined.
    fn oracle(&self) -> Option<f64> {
        Some(match self {
            Self::Number(value) => f64::from(*value),
            Self::Event(name) => EVENTS.iter().find(|(known, _)| known == name)?.1,
            Self::Negate(inner) => -inner.oracle()?,
            Self::If(then, condition, other) => match condition.oracle()? == 0.0 {
                true => other.oracle()?,
                false => then.oracle()?,
            },
            Self::Binary(operator, left, right) => {
                let (left, right) = (left.oracle()?, right.oracle()?);
                // Saturates to 64 bits; the result has 128, so that the remainder of `i64::MIN` and -1 does not overflow.
                let truncated = |value: f64| i128::from(value as i64);
                match *operator {
                    "|" => (truncated(left) | truncated(right)) as f64,
                    "^" => (truncated(left) ^ truncated(right)) as f64,
                    "&" => (truncated(left) & truncated(right)) as f64,
                    "<" => f64::from(u8::from(left < right)),
                    ">" => f64::from(u8::from(left > right)),
                    "+" => left + right,
                    "-" => left - right,
                    "*" => left * right,
                    "/" => (right != 0.0).then(|| left / right)?,
                    "%" => (truncated(right) != 0)
                        .then(|| (truncated(left) % truncated(right)) as f64)?,
                    "min" => {
                        if left < right {
                            left
                        } else {
                            right
                        }
                    }
                    "max" => {
                        if left > right {
                            left
                        } else {
                            right
                        }
                    }
                    // `d_ratio`.
                    _ => {
                        if right == 0.0 {
                            0.0
                        } else {
                            left / right
                        }
                    }
                }
            }
        })
    }
}

proptest! {
    #[test]
    fn parsed_formulas_match_their_expression_trees(tree in tree()) {
        let formula = tree.text(0);
        let expr = Expr::parse(&formula).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let counts = FixedCounts::new(&EVENTS);
        let mut missing = Vec::new();
        let value = expr.value(&counts, &mut missing);
        prop_assert_eq!(&missing, &[""; 0]);
        let expected = tree.oracle().unwrap_or(f64::NAN);
        prop_assert!(value == expected || value.is_nan() && expected.is_nan(), "{} is {}, not {}", formula, value, expected);
        // Substituting constants first does not change the value.
        let of_simplified = expr.simplified_for(&WITH_SMT).value(&counts, &mut missing);
        prop_assert!(of_simplified == expected || of_simplified.is_nan() && expected.is_nan());
    }

    #[test]
    fn any_text_is_parsed_or_has_an_error_position(text in "[ab01.e#@\\\\()+*/%<>|&^, ifelsmn-]{0,24}|.{0,12}") {
        match Expr::parse(&text) {
            Ok(expr) => {
                let _any = expr.simplified_for(&WITHOUT_SMT).value(&FixedCounts::new(&EVENTS), &mut Vec::new());
            }
            Err(MetricError::Syntax { position, .. }) => {
                prop_assert!(text.get(position).is_some());
            }
            Err(other) => return Err(TestCaseError::fail(other.to_string())),
        }
    }
}
