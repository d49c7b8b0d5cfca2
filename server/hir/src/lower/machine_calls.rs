//! Calls that stay calls in the machine's code, because the source says so. Their bodies are put in place all the same:
//! what they do is counted there.

use super::Lowering;
use crate::definition::Definition;
use crate::outline::function_declarator;
use warplens_ir::{Expr, ExprKind, MachineCall, StaysCall, Storage};
use warplens_ir::{Site, VarId};
use warplens_syntax::Field;
use warplens_syntax::Kind;

impl Lowering<'_> {
    /// Notes the call of a function that is `__noinline__`.
    pub(super) fn note_noinline(
        &mut self,
        definition: &Definition,
        arguments: &[Expr],
        site: Site,
    ) {
        let text = &definition.text;
        let Some(function) = definition.node(&[Kind::FunctionDefinition]) else {
            return;
        };
        let Some(body) = function.field(Field::Body) else {
            return;
        };
        let head = function.start_byte()..body.start_byte();
        // In front of the function stand words that the grammar lacks as spaces.
        let words = &text.words;
        let end = words.partition_point(|word| word.range.start < body.start_byte());
        let told = words[..end].iter().rev().take_while(|word| {
            word.range.start >= function.start_byte()
                || text
                    .text
                    .get(word.range.end..function.start_byte())
                    .is_some_and(|between| between.trim().is_empty())
        });
        let mut told = told.filter(|word| match word.name {
            "noinline" => true,
            "attribute" => word.argument.contains("noinline"),
            _ => false,
        });
        let spelled = self.opencl()
            && text
                .text
                .get(head)
                .is_some_and(|head| head.contains("noinline"));
        if spelled || told.next().is_some() {
            let name = function_declarator(function)
                .and_then(|declarator| declarator.field(Field::Declarator))
                .and_then(|name| text.text.get(name.byte_range()));
            self.note_call(name.unwrap_or(""), StaysCall::NoInline, arguments, site);
        }
    }

    /// Notes a call of whatever has this name.
    pub(super) fn note_call(&mut self, name: &str, why: StaysCall, arguments: &[Expr], site: Site) {
        if self.unevaluated > 0 || self.calls.iter().any(|known| known.site == site) {
            return;
        }
        let mut addressed: Vec<VarId> = Vec::new();
        for argument in arguments {
            if let Some(var) = self.own_memory(argument)
                && !addressed.contains(&var)
            {
                addressed.push(var);
            }
        }
        self.calls.push(MachineCall {
            site,
            name: name.to_owned(),
            why,
            addressed,
        });
    }

    /// The variable of the thread that an argument is the address of.
    fn own_memory(&self, argument: &Expr) -> Option<VarId> {
        let place = match &argument.kind {
            ExprKind::AddressOf(place) => place,
            _ if matches!(argument.ty, warplens_ir::Type::Array(..)) => argument,
            _ => return None,
        };
        let mut at = place;
        while let ExprKind::Field(inner, _) | ExprKind::Index(inner, _) | ExprKind::Cast(_, inner) =
            &at.kind
        {
            at = inner;
        }
        match at.kind {
            ExprKind::Var(id) if self.vars[id.0 as usize].storage == Storage::Local => Some(id),
            _ => None,
        }
    }
}
