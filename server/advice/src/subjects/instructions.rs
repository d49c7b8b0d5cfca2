//! Instructions of inline PTX, as a kernel executes them.

use warplens_facts::facts::Site;
use warplens_ir::{Expr, ExprKind, Function, executed};

use crate::Context;

/// One instruction, where it is in the source.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Instruction<'a> {
    /// With its suffixes.
    pub(crate) mnemonic: &'a str,
    /// The registers that it reads; of instructions that leave memory alone and make nothing, its numbers.
    pub(crate) arguments: &'a [Expr],
    pub(crate) site: Site,
}

impl Instruction<'_> {
    /// True where its mnemonic has this part.
    pub(crate) fn has(self, part: &str) -> bool {
        self.mnemonic.split('.').any(|own| own == part)
    }

    /// The three sides of the product that it computes: `m64n128k16`.
    pub(crate) fn sides(self) -> Option<[u32; 3]> {
        self.mnemonic.split('.').find_map(|part| {
            let (m, rest) = part.strip_prefix('m')?.split_once('n')?;
            let (n, k) = rest.split_once('k')?;
            Some([m.parse().ok()?, n.parse().ok()?, k.parse().ok()?])
        })
    }
}

/// Instructions whose mnemonic begins like this.
pub(crate) fn instructions<'a>(ctx: &Context<'a>, begins: &str) -> Vec<Instruction<'a>> {
    let mut found = Vec::new();
    executed(ctx.kernel, &mut |expression, site| {
        if let ExprKind::Call(function, arguments) = &expression.kind
            && let Function::Math(_, mnemonic)
            | Function::Ignored(_, mnemonic)
            | Function::Instruction(mnemonic, _) = function
            && mnemonic.starts_with(begins)
        {
            found.push(Instruction {
                mnemonic,
                arguments,
                site,
            });
        }
    });
    found
}
