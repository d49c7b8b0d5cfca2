//! Names that only the build can define: OpenCL's `-D` options, which the host program puts together when it
//! runs, and macros of the command line.
//!
//! Such a name is an assumption that says which option settles it; it costs no statement. A name that may be
//! half of one that is known is none: it is being typed.

use super::{Lowering, Named};
use warplens_ir::{Assumption, AssumptionKind, Expr, ExprKind, Opaque};
use warplens_ir::{Site, Type};

/// What OpenCL's own functions begin with: a name like that is not the build's.
const FUNCTIONS: &[&str] = &[
    "__",
    "as_",
    "async_",
    "atom",
    "barrier",
    "convert_",
    "get_",
    "half_",
    "intel_",
    "mem_fence",
    "native_",
    "read_",
    "sub_group_",
    "vload",
    "vstore",
    "work_group_",
    "write_",
];

impl Lowering<'_> {
    /// A value that only the build can define: one for the whole launch, which one is not known.
    pub(super) fn value_from_the_build(&mut self, name: &str, site: Site) -> Option<Expr> {
        let option = self.opencl() && self.may_be_an_option(name);
        if !option && !is_macro_name(name) {
            return None;
        }
        self.assume_from_the_build(name, "not defined in what was read; not known", false);
        Some(Expr {
            kind: ExprKind::Opaque(Opaque::Build, Vec::new()),
            ty: Type::INT,
            site,
        })
    }

    /// OpenCL: a type that only the build's options can define, taken for the likeliest.
    pub(super) fn type_from_the_build(&mut self, name: &str) -> Option<Type> {
        if !self.opencl() || !self.may_be_an_option(name) {
            return None;
        }
        let lower = name.to_ascii_lowercase();
        let integral = ["dim", "idx", "int", "index"]
            .iter()
            .any(|part| lower.contains(part));
        let spelled_as_a_type = name.contains(|c: char| c.is_ascii_uppercase())
            || name.starts_with("real")
            || lower.contains("type");
        let ty = if name.ends_with("_t") || (integral && !lower.contains("type")) {
            Type::INT
        } else if spelled_as_a_type {
            Type::FLOAT
        } else {
            return None;
        };
        let taken = if ty.is_int() { "int" } else { "float" };
        self.assume_from_the_build(name, taken, true);
        Some(ty)
    }

    /// OpenCL: a function of plain values that only the build's options can define. It computes something from
    /// its arguments; what it issues is not known.
    pub(super) fn function_from_the_build(
        &mut self,
        name: &str,
        arguments: &[Expr],
        site: Site,
    ) -> Option<Expr> {
        let plain = |argument: &Expr| {
            matches!(
                argument.ty,
                Type::Int { .. } | Type::Float { .. } | Type::Vector(..)
            )
        };
        if !self.opencl()
            || arguments.is_empty()
            || !arguments.iter().all(plain)
            || !self.may_be_an_option(name)
        {
            return None;
        }
        let ty = arguments[0].ty.clone();
        self.assume_from_the_build(name, "not defined in what was read; arithmetic", false);
        Some(Expr {
            kind: ExprKind::Opaque(Opaque::Build, arguments.to_vec()),
            ty,
            site,
        })
    }

    /// True unless the name is the beginning of one that is known here, or of a function of the language.
    fn may_be_an_option(&self, name: &str) -> bool {
        let longer = |known: &String| known.len() > name.len() && known.starts_with(name);
        let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let scopes = &self.current().scopes;
        plain
            && name.starts_with(|c: char| c.is_ascii_alphabetic())
            && !FUNCTIONS.iter().any(|known| name.starts_with(known))
            && (is_macro_name(name)
                || !scopes
                    .iter()
                    .flatten()
                    .any(|(known, meaning)| longer(known) && !matches!(meaning, Named::Type(_))))
    }

    fn assume_from_the_build(&mut self, name: &str, value: &str, taken: bool) {
        if self.unevaluated == 0 || taken {
            self.assume(name, value, AssumptionKind::Build { taken });
        }
    }

    /// Notes what was assumed, once.
    pub(super) fn assume(&mut self, name: &str, value: &str, kind: AssumptionKind) {
        if !self.assumed.iter().any(|known| known.name == name) {
            self.assumed.push(Assumption {
                name: name.to_owned(),
                value: value.to_owned(),
                kind,
            });
        }
    }
}

fn is_macro_name(name: &str) -> bool {
    name.len() > 1
        && name.starts_with(|c: char| c.is_ascii_uppercase())
        && name
            .chars()
            .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}
