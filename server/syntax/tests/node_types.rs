//! `src/tree/generated.rs` lists what the grammars' `node-types.json` say; `BLESS=1` writes it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;

/// Tokens that code asks for, and what they are called.
const TOKENS: &[(&str, &str)] = &[
    ("!", "Not"),
    ("!=", "NotEqual"),
    ("%", "Percent"),
    ("%=", "PercentEqual"),
    ("&", "Ampersand"),
    ("&&", "And"),
    ("&=", "AmpersandEqual"),
    ("(", "OpenParenthesis"),
    (")", "CloseParenthesis"),
    ("*", "Star"),
    ("*=", "StarEqual"),
    ("+", "Plus"),
    ("++", "PlusPlus"),
    ("+=", "PlusEqual"),
    (",", "Comma"),
    ("-", "Minus"),
    ("--", "MinusMinus"),
    ("-=", "MinusEqual"),
    ("->", "Arrow"),
    (".", "Dot"),
    ("...", "Ellipsis"),
    ("/", "Slash"),
    ("/=", "SlashEqual"),
    (":", "Colon"),
    ("::", "ColonColon"),
    (";", "Semicolon"),
    ("<", "Less"),
    ("<<", "ShiftLeft"),
    ("<<<", "LaunchOpen"),
    ("<<=", "ShiftLeftEqual"),
    ("<=", "LessEqual"),
    ("=", "Equal"),
    ("==", "EqualEqual"),
    (">", "Greater"),
    (">=", "GreaterEqual"),
    (">>", "ShiftRight"),
    (">>=", "ShiftRightEqual"),
    (">>>", "LaunchClose"),
    ("?", "Question"),
    ("[", "OpenBracket"),
    ("]", "CloseBracket"),
    ("^", "Caret"),
    ("^=", "CaretEqual"),
    ("{", "OpenBrace"),
    ("|", "Bar"),
    ("|=", "BarEqual"),
    ("||", "Or"),
    ("}", "CloseBrace"),
    ("~", "Tilde"),
    ("NULL", "NullMacro"),
    ("__constant__", "CudaConstant"),
    ("__device__", "CudaDevice"),
    ("__global__", "CudaGlobal"),
    ("__host__", "CudaHost"),
    ("__managed__", "CudaManaged"),
    ("__shared__", "CudaShared"),
    ("and", "AndWord"),
    ("bitand", "BitandWord"),
    ("bitor", "BitorWord"),
    ("compl", "ComplWord"),
    ("not", "NotWord"),
    ("not_eq", "NotEqWord"),
    ("or", "OrWord"),
    ("xor", "XorWord"),
    ("const", "Const"),
    ("constexpr", "Constexpr"),
    ("else", "Else"),
    ("extern", "Extern"),
    ("if", "If"),
    ("nullptr", "Nullptr"),
    ("static", "Static"),
    ("virtual", "Virtual"),
    ("volatile", "Volatile"),
];

/// Kinds whose parts have no names and that have a type all the same.
const LISTS: &[&str] = &["argument_list", "kernel_call_syntax", "parameter_list"];

#[test]
fn the_lists_of_kinds_fields_and_nodes_are_those_of_the_grammars() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let opencl = folder.join("../../grammars/opencl/src/node-types.json");
    let opencl = std::fs::read_to_string(opencl).expect("the types of our grammar's nodes");
    let text = lists(&[tree_sitter_cuda::NODE_TYPES, &opencl]);
    let path = folder.join("src/tree/generated.rs");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &text).expect("a file that can be written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == text,
        "src/tree/generated.rs is out of date: `cargo xtask generate` writes it"
    );
}

/// What is said of a kind: its parts by field, and whether a field may hold several.
type Parts = BTreeMap<String, bool>;

fn lists(grammars: &[&str]) -> String {
    let mut kinds: BTreeMap<String, Parts> = BTreeMap::new();
    let mut fields = BTreeSet::new();
    for grammar in grammars {
        let nodes: Vec<Value> = serde_json::from_str(grammar).expect("a list of nodes");
        for node in nodes {
            let name = node["type"].as_str().expect("a name");
            // Supertypes are no nodes.
            if node["named"] != true || node.get("subtypes").is_some() {
                continue;
            }
            let parts = kinds.entry(name.to_owned()).or_default();
            for (field, about) in node["fields"].as_object().into_iter().flatten() {
                fields.insert(field.clone());
                *parts.entry(field.clone()).or_default() |= about["multiple"] == true;
            }
        }
    }
    let mut out = String::from(
        "//! Made of the grammars' `node-types.json` by `cargo xtask generate`: do not edit.\n\n\
         /// A variant of `Kind` and the name of the kind in the grammars.\n\
         macro_rules! list_kinds {\n    ($make:ident) => {\n        $make! {\n",
    );
    for name in kinds.keys() {
        let _ = writeln!(out, "            {} {name:?}", camel(name));
    }
    for (token, name) in TOKENS {
        assert!(!kinds.contains_key(*token), "{token} is a named kind");
        let _ = writeln!(out, "            {name} {token:?}");
    }
    out.push_str(
        "        }\n    };\n}\n\n\
         /// A variant of `Field` and the name of the field in the grammars.\n\
         macro_rules! list_fields {\n    ($make:ident) => {\n        $make! {\n",
    );
    for name in &fields {
        let _ = writeln!(out, "            {} {name:?}", camel(name));
    }
    out.push_str(
        "        }\n    };\n}\n\n\
         /// A kind, and of each of its parts the method, the field, and the method for all of them where there may be several.\n\
         macro_rules! list_nodes {\n    ($make:ident) => {\n        $make! {\n",
    );
    for (name, parts) in kinds
        .iter()
        .filter(|(name, parts)| !parts.is_empty() || LISTS.contains(&name.as_str()))
    {
        let _ = write!(out, "            {} {{", camel(name));
        for (field, many) in parts {
            let method = if field == "type" { "ty" } else { field };
            let _ = write!(out, " {method} {}", camel(field));
            if *many {
                let _ = write!(out, " all_{method}");
            }
            out.push(';');
        }
        out.push_str(" }\n");
    }
    out.push_str("        }\n    };\n}\n\npub(super) use {list_fields, list_kinds, list_nodes};\n");
    out
}

fn camel(name: &str) -> String {
    let parts = name.split('_').filter(|part| !part.is_empty());
    parts
        .map(|part| part[..1].to_ascii_uppercase() + &part[1..])
        .collect()
}
