//! OpenCL's pipes: a packet read or written is an access whose address is unknown; reserving,
//! committing and asking are calls of the runtime.

use super::Lowering;
use super::construct::after;
use super::construct::asked;
use super::split::{deref, list};
use warplens_ir::functions::Function;
use warplens_ir::{Expr, ExprKind, Stmt, StmtKind};
use warplens_ir::{Site, Type};

impl Lowering<'_> {
    /// A function on a pipe: `read_pipe(pipe, &packet)`, `write_pipe(pipe, id, index, &packet)`.
    pub(super) fn pipe_call(&mut self, name: &str, arguments: &[Expr], site: Site) -> Option<Expr> {
        let operands = || {
            arguments
                .iter()
                .filter(|argument| !matches!(argument.ty, Type::Library(_)))
                .cloned()
        };
        match (name, arguments) {
            ("read_pipe" | "write_pipe", [_, packet] | [_, _, _, packet]) => {
                let store = name == "write_pipe";
                let packet = deref(packet.clone(), site);
                let mut needed: Vec<Expr> = operands().collect();
                // The packet's own address is a place, not an operand.
                needed.pop();
                if store {
                    needed.push(packet.clone());
                }
                let access = Expr {
                    kind: ExprKind::Call(Function::Pipe { store }, needed),
                    ty: packet.ty.clone(),
                    site,
                };
                let done = if store {
                    access
                } else {
                    self.assigned(packet, access, site)
                };
                let statement = Stmt {
                    kind: StmtKind::Expr(done),
                    site,
                };
                Some(after(vec![statement], asked(Vec::new(), Type::INT, site)))
            }
            (
                "reserve_read_pipe"
                | "reserve_write_pipe"
                | "work_group_reserve_read_pipe"
                | "work_group_reserve_write_pipe"
                | "sub_group_reserve_read_pipe"
                | "sub_group_reserve_write_pipe",
                [_, _],
            ) => {
                let ty = Type::Library("reserve_id_t".into());
                Some(asked(operands().collect(), ty, site))
            }
            (
                "commit_read_pipe"
                | "commit_write_pipe"
                | "work_group_commit_read_pipe"
                | "work_group_commit_write_pipe"
                | "sub_group_commit_read_pipe"
                | "sub_group_commit_write_pipe",
                [_, _],
            ) => Some(list(
                &Type::Void,
                vec![asked(Vec::new(), Type::INT, site)],
                site,
            )),
            ("is_valid_reserve_id" | "get_pipe_num_packets" | "get_pipe_max_packets", [_]) => {
                let ty = if name == "is_valid_reserve_id" {
                    Type::INT
                } else {
                    Type::UINT
                };
                Some(asked(Vec::new(), ty, site))
            }
            _ => None,
        }
    }
}
