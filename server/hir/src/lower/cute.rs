//! CuTe: layouts and tensors whose every index is computed from types.
//!
//! Which elements a thread takes follows from templates that a C++ compiler evaluates, hundreds of instantiations for one copy. They
//! are not followed: a kernel that is made of them says so once, instead of losing each of its statements.

use warplens_syntax::Node;

use super::{Lowering, Source, text_of};

/// Functions of CuTe's layouts and tensors, and of nothing else that kernels use.
const ALGEBRA: [&str; 16] = [
    "local_partition",
    "local_tile",
    "make_fragment_like",
    "make_gmem_ptr",
    "make_identity_tensor",
    "make_layout",
    "make_smem_ptr",
    "make_tensor",
    "make_tensor_like",
    "make_tiled_copy",
    "make_tiled_mma",
    "partition_fragment_A",
    "partition_fragment_B",
    "partition_fragment_C",
    "partition_shape_A",
    "partition_shape_C",
];

/// What the names of all of them have in them: most bodies have none of these.
const PARTS: [&str; 3] = ["make_", "local_", "partition_"];

impl Lowering<'_> {
    /// True where the body of a function computes with layouts.
    pub(super) fn is_of_layouts(&self, body: Node, source: Source) -> bool {
        computes_with_layouts(text_of(body, source), &source.parsed.text)
    }
}

/// True where a body computes with CuTe's layouts, in a text that says it uses CuTe.
fn computes_with_layouts(body: &str, text: &str) -> bool {
    if !PARTS.iter().any(|part| body.contains(part)) {
        return false;
    }
    let mut calls = ALGEBRA.iter().filter(|name| calls(body, name));
    calls.next().is_some() && (text.contains("cute::") || text.contains("namespace cute"))
}

/// True where a function of this name is called, its template arguments given or not.
fn calls(body: &str, name: &str) -> bool {
    body.match_indices(name).any(|(at, _)| {
        let before = body.as_bytes()[..at].last();
        let behind = body.as_bytes()[at + name.len()..]
            .trim_ascii_start()
            .first();
        !before.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
            && matches!(behind, Some(b'(' | b'<'))
    })
}

#[cfg(test)]
mod tests {
    use super::computes_with_layouts;

    #[test]
    fn layouts_are_told_from_functions_of_ones_own() {
        let using = "using namespace cute;";
        let yes = |body: &str, text: &str| computes_with_layouts(body, text);
        assert!(yes("{ auto t = make_tensor(make_gmem_ptr(p), l); }", using));
        assert!(yes(
            "{ auto t = cute::local_tile <X>(m, c); }",
            "cute::Layout l;"
        ));
        assert!(!yes("{ auto t = my_make_tensor(p); }", using));
        assert!(!yes("{ auto t = make_tensor(p); }", "int x;"));
        assert!(!yes("{ int make_tensor = 1; }", using));
        assert!(!yes(
            "{ auto a = cute::cast_smem_ptr_to_uint(s); }",
            "cute::"
        ));
    }
}
