//! Puts all mutants of some source files into one program, which is one of them at a time.
//!
//! ```text
//! pytensor-fuse-mutants CRATE FILE... > mutants.txt
//! pytensor-fuse-mutants --check survivors.txt mutants.txt results.txt
//! ```
//!
//! Rewrites the files, and `CRATE/src/lib.rs`, in place: work on a copy. Each line that it prints is a
//! mutant: its number, the file, the line, and what is changed. A program that is compiled from the
//! result is the mutant that the variable `MUTANT` names, and what it was before if that is 0. With
//! another number it ends at the first panic, so that a test that fails is the last one.
//!
//! The second form takes what became of mutants, lines of a number and a word of which `survived` says
//! that no test noticed it, and compares it with the survivors that are known, each with a reason after two
//! dashes. It prints what has no reason, what is noticed by now, and what is no mutant any more, and ends
//! with 1 if there is any of these.
//!
//! # Why not one build for each
//! That is how `cargo mutants` does it, whose changes these are: half a minute for each of two thousand
//! mutants, most of it to compile. All in one take one build, and each then as long as the tests.
//!
//! # Source
//! R. Untch, A. Offutt, M. Harrold, "Mutation analysis using mutant schemata", ISSTA 1993.

use std::collections::HashMap;

use proc_macro2::Span;
use quote::{ToTokens, quote};
use syn::spanned::Spanned;
use syn::visit_mut::{self, VisitMut};
use syn::{BinOp, Block, Expr, ReturnType, Type, parse_quote};

/// What asks which mutant runs; at the end of the crate's root.
const RUNTIME: &str = r#"
/// Whether this program is that mutant.
#[inline]
pub(crate) fn is_mutant(number: u32) -> bool {
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
    static CHOSEN: AtomicU32 = AtomicU32::new(u32::MAX);
    #[cold]
    fn choose() -> u32 {
        let text = std::env::var("MUTANT").unwrap_or_default();
        let chosen = text.parse().unwrap_or(0);
        if chosen != 0 {
            std::panic::set_hook(Box::new(|info| {
                eprintln!("{info}");
                std::process::exit(101);
            }));
        }
        CHOSEN.store(chosen, Relaxed);
        chosen
    }
    let chosen = CHOSEN.load(Relaxed);
    number == if chosen == u32::MAX { choose() } else { chosen }
}
"#;

/// Rewrites one file.
struct Mutator<'a> {
    file: &'a str,
    n_mutants: &'a mut u32,
    function: String,
}

impl Mutator<'_> {
    /// The number of a new mutant, which is printed.
    fn new_mutant(&mut self, span: Span, change: &str) -> u32 {
        *self.n_mutants += 1;
        let (file, line, function) = (self.file, span.start().line, &self.function);
        println!("{} {file}:{line} {change} in {function}", self.n_mutants);
        *self.n_mutants
    }

    /// `original`, or one of some others; each is called what it says.
    fn choice(&mut self, span: Span, original: &Expr, others: &[(String, Expr)]) -> Expr {
        others.iter().rev().fold(original.clone(), |rest, (change, other)| {
            let number = self.new_mutant(span, change);
            parse_quote!((if crate::is_mutant(#number) { #other } else { #rest }))
        })
    }
}

impl VisitMut for Mutator<'_> {
    fn visit_item_mut(&mut self, item: &mut syn::Item) {
        let attributes = match item {
            syn::Item::Mod(item) => &item.attrs,
            syn::Item::Fn(item) => &item.attrs,
            syn::Item::Impl(item) => &item.attrs,
            // Nothing that is reckoned when the program is compiled can be chosen when it runs.
            syn::Item::Const(_) | syn::Item::Static(_) | syn::Item::Type(_) => return,
            syn::Item::Struct(_) | syn::Item::Enum(_) => return,
            _ => return visit_mut::visit_item_mut(self, item),
        };
        if !is_of_tests(attributes) {
            visit_mut::visit_item_mut(self, item);
        }
    }

    fn visit_item_fn_mut(&mut self, item: &mut syn::ItemFn) {
        if item.sig.constness.is_none() {
            self.function = item.sig.ident.to_string();
            visit_mut::visit_block_mut(self, &mut item.block);
            self.replace_body(&item.sig, &mut item.block);
        }
    }

    fn visit_impl_item_const_mut(&mut self, _: &mut syn::ImplItemConst) {}

    fn visit_impl_item_fn_mut(&mut self, item: &mut syn::ImplItemFn) {
        if item.sig.constness.is_none() && !is_of_tests(&item.attrs) {
            self.function = item.sig.ident.to_string();
            visit_mut::visit_block_mut(self, &mut item.block);
            self.replace_body(&item.sig, &mut item.block);
        }
    }

    fn visit_type_mut(&mut self, _: &mut Type) {}

    fn visit_expr_repeat_mut(&mut self, repeat: &mut syn::ExprRepeat) {
        self.visit_expr_mut(&mut repeat.expr);
    }

    fn visit_arm_mut(&mut self, arm: &mut syn::Arm) {
        visit_mut::visit_expr_mut(self, &mut arm.body);
        let Some((_, guard)) = &mut arm.guard else { return };
        if !has_let(guard) {
            let (span, original) = (guard.span(), guard.clone());
            self.visit_expr_mut(guard);
            let others = ["true", "false"].map(|value| {
                (format!("guard {} -> {value}", original.to_token_stream()), parsed(value))
            });
            **guard = self.choice(span, &guard.clone(), &others);
        }
    }

    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        let original = expr.clone();
        visit_mut::visit_expr_mut(self, expr);
        match &original {
            Expr::Binary(binary) => {
                let (left, right) = (&binary.left, &binary.right);
                if has_let(left) || has_let(right) {
                    return;
                }
                let others: Vec<(String, Expr)> = replacements(self.file, &binary.op)
                    .iter()
                    .map(|other| {
                        let op: BinOp = syn::parse_str(other).expect("an operator");
                        let change = format!("{} -> {other}", binary.op.to_token_stream());
                        let is_assignment = other.ends_with('=') && other.len() > 1;
                        let is_comparison = ["==", "!=", "<=", ">="].contains(other);
                        let other = if is_assignment && !is_comparison {
                            parse_quote!(#left #op #right)
                        } else {
                            parse_quote!((#left) #op (#right))
                        };
                        (change, other)
                    })
                    .collect();
                *expr = self.choice(binary.op.span(), &expr.clone(), &others);
            }
            Expr::Unary(unary) => {
                let (inner, change) =
                    (&unary.expr, format!("{} deleted", unary.op.to_token_stream()));
                // Words of sets are complemented by reference, which is of another type than they are.
                let is_word = self.file.ends_with("masks.rs");
                let is_kept = is_word
                    || matches!(unary.op, syn::UnOp::Deref(_))
                    || matches!(**inner, Expr::Lit(_));
                if !is_kept {
                    let others = [(change, parse_quote!((#inner)))];
                    *expr = self.choice(unary.op.span(), &expr.clone(), &others);
                }
            }
            _ => {}
        }
    }
}

impl Mutator<'_> {
    /// Lets a function return something simple instead.
    fn replace_body(&mut self, signature: &syn::Signature, body: &mut Block) {
        let values = match &signature.output {
            ReturnType::Default => vec!["()".to_owned()],
            ReturnType::Type(_, kind) => simple_values(kind),
        };
        let original = body.to_token_stream().to_string();
        for value in values.iter().rev().filter(|value| original != format!("{{ {value} }}")) {
            let number = self.new_mutant(signature.ident.span(), &format!("body -> {value}"));
            let value: Expr = parsed(value);
            let Block { stmts, .. } = &body;
            *body = parse_quote!({ if crate::is_mutant(#number) { return #value; } #(#stmts)* });
        }
    }
}

/// Values of a type that are as good as any, if it is one of those that are known.
fn simple_values(kind: &Type) -> Vec<String> {
    let text = kind.to_token_stream().to_string().replace(' ', "");
    let inner = |name: &str| {
        let rest = text.strip_prefix(name)?.strip_prefix('<')?.strip_suffix('>')?;
        Some(simple_values(&syn::parse_str(rest).ok()?))
    };
    match text.as_str() {
        "()" => vec!["()".into()],
        "bool" => vec!["true".into(), "false".into()],
        "usize" | "u64" | "u32" | "u8" | "u128" | "NodeId" | "BlockId" | "VarId" | "TermId" => {
            vec!["0".into(), "1".into()]
        }
        "i64" | "i32" => vec!["0".into(), "1".into(), "-1".into()],
        "f64" => vec!["0.0".into(), "1.0".into()],
        "Ordering" => ["Less", "Equal", "Greater"].map(|o| format!("Ordering::{o}")).into(),
        _ => {
            if let Some(values) = inner("Result") {
                values.iter().map(|value| format!("Ok({value})")).collect()
            } else if let Some(values) = inner("Option") {
                let some = values.iter().map(|value| format!("Some({value})"));
                std::iter::once("None".to_owned()).chain(some).collect()
            } else if text.starts_with("Vec<") {
                vec!["Vec::new()".into()]
            } else {
                Vec::new()
            }
        }
    }
}

/// What may stand in place of an operator.
fn replacements(file: &str, op: &BinOp) -> &'static [&'static str] {
    // Sets have no more than these.
    let is_of_sets = ["masks.rs", "component.rs", "bounds.rs", "exact.rs", "proof.rs"]
        .iter()
        .any(|name| file.ends_with(name));
    match op {
        BinOp::Eq(_) => &["!="],
        BinOp::Ne(_) => &["=="],
        BinOp::Lt(_) => &["==", ">", "<="],
        BinOp::Gt(_) => &["==", "<", ">="],
        BinOp::Le(_) => &[">"],
        BinOp::Ge(_) => &["<"],
        BinOp::And(_) => &["||"],
        BinOp::Or(_) => &["&&"],
        BinOp::Add(_) => &["-", "*"],
        BinOp::Sub(_) => &["+", "/"],
        BinOp::Mul(_) => &["+", "/"],
        BinOp::Div(_) => &["%", "*"],
        BinOp::Rem(_) => &["/", "+"],
        BinOp::Shl(_) => &[">>"],
        BinOp::Shr(_) => &["<<"],
        BinOp::BitAnd(_) => &["|"],
        BinOp::BitOr(_) => &["&"],
        BinOp::BitXor(_) => &["|", "&"],
        BinOp::AddAssign(_) => &["-=", "*="],
        BinOp::SubAssign(_) => &["+=", "/="],
        BinOp::MulAssign(_) => &["+=", "/="],
        BinOp::BitOrAssign(_) | BinOp::BitAndAssign(_) if is_of_sets => &[],
        BinOp::BitOrAssign(_) => &["&=", "^="],
        BinOp::BitAndAssign(_) => &["|="],
        _ => &[],
    }
}

fn is_of_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let text = attribute.to_token_stream().to_string();
        text.contains("cfg (test)") || text.contains("[test]")
    })
}

/// Whether a pattern is matched in the condition: such can stand nowhere else.
fn has_let(expr: &Expr) -> bool {
    match expr {
        Expr::Let(_) => true,
        Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
    }
}

fn parsed(text: &str) -> Expr {
    syn::parse_str(text).expect("an expression")
}

/// What is wrong with the list of survivors.
fn complaints(survivors: &str, mutants: &str, results: &str) -> Vec<String> {
    let lines = |text: &str| -> Vec<String> {
        text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect()
    };
    let names: HashMap<String, String> = lines(mutants)
        .iter()
        .filter_map(|line| line.split_once(' '))
        .map(|(number, name)| (number.to_owned(), name.replace("rust/core/src/", "")))
        .collect();
    let known: HashMap<String, String> = lines(survivors)
        .iter()
        .map(|line| line.split_once(" -- ").unwrap_or((line, "")))
        .map(|(name, reason)| (name.trim().to_owned(), reason.trim().to_owned()))
        .collect();
    let mut found = Vec::new();
    // Several mutants of a line may have one name: one that survives is enough to be listed.
    let mut survived: HashMap<&str, bool> = HashMap::new();
    for line in lines(results) {
        let (number, outcome) = line.split_once(' ').unwrap_or((&line, ""));
        match names.get(number) {
            Some(name) => *survived.entry(name).or_default() |= outcome == "survived",
            None => found.push(format!("no such mutant: {number}")),
        }
    }
    for (name, survived) in &survived {
        match (survived, known.get(*name)) {
            (true, None) => found.push(format!("without a reason: {name}")),
            (false, Some(_)) => found.push(format!("noticed by now: {name}")),
            _ => {}
        }
    }
    for (name, reason) in &known {
        if reason.is_empty() {
            found.push(format!("without a reason: {name}"));
        }
        if !names.values().any(|other| other == name) {
            found.push(format!("no such mutant: {name}"));
        }
    }
    found.sort();
    found
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [mode, survivors, mutants, results] = &arguments[..]
        && mode == "--check"
    {
        let read = |path: &String| std::fs::read_to_string(path).expect("a file that can be read");
        let found = complaints(&read(survivors), &read(mutants), &read(results));
        found.iter().for_each(|line| println!("{line}"));
        std::process::exit(i32::from(!found.is_empty()));
    }
    let [root, files @ ..] = &arguments[..] else { panic!("CRATE FILE...") };
    let mut n_mutants = 0;
    for file in files {
        let text = std::fs::read_to_string(file).expect("a file that can be read");
        let mut tree = syn::parse_file(&text).expect("a file of Rust");
        let mut mutator = Mutator { file, n_mutants: &mut n_mutants, function: String::new() };
        mutator.visit_file_mut(&mut tree);
        std::fs::write(file, quote!(#tree).to_string()).expect("a file that can be written");
    }
    let root = format!("{root}/src/lib.rs");
    let text = std::fs::read_to_string(&root).expect("the root of the crate");
    std::fs::write(&root, text + RUNTIME).expect("a file that can be written");
}

#[cfg(test)]
mod tests {
    use super::complaints;

    #[test]
    fn what_has_no_reason_is_named() {
        let mutants = "1 rust/core/src/a.rs:1 + -> - in f\n2 rust/core/src/a.rs:2 ! deleted in g\n";
        let known = "a.rs:1 + -> - in f -- it cannot be told\n";
        assert!(complaints(known, mutants, "1 survived\n2 noticed\n").is_empty());
        let both = complaints(known, mutants, "1 noticed\n2 survived\n");
        assert_eq!(
            both,
            ["noticed by now: a.rs:1 + -> - in f", "without a reason: a.rs:2 ! deleted in g"]
        );
        let bare = complaints("a.rs:1 + -> - in f\na.rs:9 x in f -- y\n", mutants, "");
        assert_eq!(bare, ["no such mutant: a.rs:9 x in f", "without a reason: a.rs:1 + -> - in f"]);
    }
}
