//! What the grammar reads as casts and templates is read again where the names are variables here.

use std::sync::Arc;

use crate::namespaces::Name;
use warplens_syntax::{Expanded, Field, Kind, Node};

use super::{DEEPEST, Lowering, Named, Source, text_of};
use crate::misread;
use warplens_ir::Bound;
use warplens_ir::Expr;
use warplens_ir::Reason;
use warplens_ir::{Site, Type};

impl Lowering<'_> {
    /// An argument of `T x(a, p[i])` that reads as a parameter: `a` as a type, `p[i]` as an array of such.
    pub(super) fn misread_argument(&mut self, parameter: Node, source: Source) -> Option<Expr> {
        let ty = parameter.field(Field::Type)?;
        if parameter.field(Field::Declarator).is_none() {
            return Some(self.expr(ty, source));
        }
        let fragment = misread::parsed(text_of(parameter, source), self.unit.language);
        let again = source.again(&fragment, parameter.start_byte());
        Some(self.expr(misread::expression(&fragment)?, again))
    }

    /// An expression with casts to what are variables here, read again without them.
    pub(super) fn misread_casts(
        &mut self,
        whole: Node,
        source: Source,
        site: Site,
    ) -> Option<Expr> {
        if self.depth > DEEPEST / 2 {
            return None;
        }
        let language = self.unit.language;
        let fragment =
            misread::without_casts(whole, source.parsed, language, |name| self.is_value(name))?;
        Some(self.read_again(&fragment, whole, source, site))
    }

    /// An expression as it is written in another text, in which every byte has its place.
    fn read_again(
        &mut self,
        fragment: &Arc<Expanded>,
        whole: Node,
        source: Source,
        site: Site,
    ) -> Expr {
        let again = source.again(fragment, whole.start_byte());
        match misread::expression(fragment) {
            Some(value) => self.expr(value, again),
            None => self.opaque(site, Reason::SyntaxError, Vec::new()),
        }
    }

    /// An expression with names behind template arguments that read as comparisons, read again.
    pub(super) fn misread_scopes(
        &mut self,
        whole: Node,
        source: Source,
        site: Site,
    ) -> Option<Expr> {
        if self.depth > DEEPEST / 2 {
            return None;
        }
        let text = misread::without_templates(source.parsed.text.get(whole.byte_range())?)?;
        let fragment = misread::parsed(&text, self.unit.language);
        Some(self.read_again(&fragment, whole, source, site))
    }

    /// What an identifier in such a text takes the place of.
    pub(super) fn hidden(&mut self, node: Node, source: Source) -> Option<Expr> {
        source.copied?;
        if !misread::hides(source.parsed.text.get(node.byte_range())?) {
            return None;
        }
        let text = misread::as_one_name(text_of(node, source));
        let fragment = misread::parsed(&text, self.unit.language);
        let again = source.again(&fragment, node.start_byte());
        Some(self.expr(misread::expression(&fragment)?, again))
    }

    /// `a < b || c > (d)` reads as the call of a template `a<b || c>`. Where `a` is a variable here, it is read
    /// again with `a` in parentheses, which no template's name can be.
    pub(super) fn misread_template(
        &mut self,
        whole: Node,
        left: Node,
        source: Source,
        site: Site,
    ) -> Option<Expr> {
        // `x && -a < b || c >= d`: the name is the last on the left.
        let mut template = left;
        while misread::is_operation(&template) {
            template = match template.kind() {
                Kind::BinaryExpression => template.field(Field::Right)?,
                Kind::CastExpression => template.field(Field::Value)?,
                _ => template.field(Field::Argument)?,
            };
        }
        if template.kind() != Kind::TemplateFunction {
            return None;
        }
        let name = text_of(template.field(Field::Name)?, source);
        if !self.is_value(name) || self.depth > DEEPEST / 2 {
            return None;
        }
        let text = text_of(whole, source);
        let (before, rest) = text.split_at_checked(template.start_byte() - whole.start_byte())?;
        let rest = rest.strip_prefix(name)?;
        let fragment = misread::parsed(&format!("{before}({name}){rest}"), self.unit.language);
        let again = Source {
            parsed: &fragment,
            space: source.space,
            header: false,
            at: None,
            fixed: Some(site),
            copied: None,
            of: None,
        };
        Some(self.expr(misread::expression(&fragment)?, again))
    }

    /// True where a name is a value here, not for a type or a template.
    fn is_value(&self, name: &str) -> bool {
        match self.named(name) {
            Some(Named::Var(_)) => true,
            Some(Named::Alias(meaning)) => {
                !matches!(meaning.ty, Type::Callable(_) | Type::Library(_))
            }
            Some(Named::Type(_) | Named::Pack(_)) => false,
            None => {
                let mut bound = self.current().bindings.iter().rev();
                match bound.find(|(of, _)| of == name) {
                    Some((_, bound)) => matches!(bound, Bound::Value(_)),
                    None => {
                        let name = Name::new(name, "");
                        self.unit.constant(name).is_some() || self.unit.global(name).is_some()
                    }
                }
            }
        }
    }
}
