//! Integers and pointers that a thread keeps in an array of its own: addresses of its rows, one for each fragment.
//!
//! In: stores of integers into such arrays, and loads. Out: what a load gives, where one store wrote just that element: at the
//! same constant subscript, or at a sum of loop counters that reaches it in one way. What a loop writes is forgotten where
//! the loop begins.

use std::ops::ControlFlow;

use warplens_ir::walk::{self, Visitor};
use warplens_ir::{AddressSpace, Expr, ExprKind, Function, Stmt, Type, VarId};
use warplens_symbolic::{Id, Symbol, SymbolKind};

use crate::executor::Executor;
use crate::facts::Space;
use crate::value::{ArrayId, Held, Kind, Stored, Value, Variation};

/// Stores into one array that are kept.
const MOST_STORES: usize = 256;

impl Executor<'_> {
    /// A store into a thread's own array.
    pub(crate) fn keep_element(&mut self, array: ArrayId, offset: Id, ty: &Type, value: &Value) {
        if !self.is_own(array) {
            return;
        }
        self.note_held(array, offset, value);
        if self.dry > 0 || self.counting_only {
            return;
        }
        let followed = is_followed(ty) && !matches!(value.kind, Kind::Data);
        let size = ty.size() as i64;
        let arena = &self.arena;
        let start = arena.as_const(offset);
        let stores = self.elements.entry(array).or_default();
        // What shares a byte with it is overwritten, in part or as a whole.
        stores.retain(|stored| match (start, arena.as_const(stored.offset)) {
            (Some(start), Some(other)) => {
                other.saturating_add(stored.size as i64) <= start
                    || start.saturating_add(size) <= other
            }
            _ => false,
        });
        if followed && stores.len() < MOST_STORES {
            stores.push(Stored {
                offset,
                size: ty.size(),
                value: Value {
                    loads: Vec::new(),
                    ..value.clone()
                },
                context: self.context,
            });
        } else {
            stores.clear();
        }
    }

    /// Notes what a thread's own array holds, whichever element it is.
    fn note_held(&mut self, array: ArrayId, offset: Id, value: &Value) {
        let by_data = self.depends_on_data(offset);
        let held = match value.kind {
            Kind::Data => Held::Data,
            Kind::Int(id) | Kind::Pointer(_, id) if by_data || self.depends_on_data(id) => {
                Held::Data
            }
            Kind::Int(_) => Held::Integers,
            Kind::Pointer(to, _) => Held::Pointers(to),
        };
        let before = self.held.entry(array).or_insert(held);
        *before = match (*before, held) {
            (Held::Data, _) | (_, Held::Data) => Held::Data,
            (before, held) if before == held => held,
            _ => Held::Several,
        };
    }

    /// What an element of a thread's own array is of which no more is known than what the array holds: no data in memory.
    pub(crate) fn some_element(&mut self, array: ArrayId, ty: &Type) -> Option<Value> {
        let held = self.held.get(&array).filter(|_| self.is_own(array))?;
        match (ty, *held) {
            (Type::Int { .. }, Held::Integers) => {
                Some(Value::int(self.unknown(false, Variation::ANY)))
            }
            (Type::Int { .. } | Type::Pointer(..), Held::Pointers(to)) => {
                let offset = self.unknown(false, Variation::ANY);
                Some(Value::pointer(to, offset))
            }
            _ => None,
        }
    }

    /// A thread's own array of integers that a list of numbers initialises; those that it leaves out are zero.
    pub(crate) fn keep_list(&mut self, id: VarId, parts: &[Expr]) {
        let ty = self.kernel.var(id).ty.clone();
        let mut numbers = Vec::new();
        if initial(&ty, parts, &mut numbers).is_none() {
            return;
        }
        let element = innermost(&ty);
        let array = self.array_of(id);
        for (at, (number, ty)) in numbers.into_iter().enumerate() {
            let number = self.arena.constant(number);
            let value = Value::int(self.convert(&ty, element, number));
            let offset = self.arena.constant(at as i64 * element.size() as i64);
            self.keep_element(array, offset, element, &value);
        }
    }

    /// What a load from a thread's own array gives, where it is known.
    pub(crate) fn element(&mut self, array: ArrayId, offset: Id, ty: &Type) -> Option<Value> {
        if self.dry > 0 || !is_followed(ty) || !self.is_own(array) {
            return None;
        }
        let stores = self.elements.get(&array)?;
        let found = match stores.as_slice() {
            [only] => only.clone(),
            several => several
                .iter()
                .find(|stored| stored.offset == offset)?
                .clone(),
        };
        if found.size != ty.size() {
            return None;
        }
        let places = self.places(&found, offset)?;
        // The store happened whenever the load does.
        let (before, now) = (&self.contexts[found.context], &self.contexts[self.context]);
        let guarded = before
            .guards
            .iter()
            .all(|(guard, _)| now.guards.iter().any(|(known, _)| known == guard));
        let within = before.counters.iter().all(|counter| {
            now.counters.contains(counter)
                || places.iter().any(|(of, _)| of == counter)
                || matches!(
                    self.arena.symbol_kind(*counter),
                    SymbolKind::Counter { extent: 1 }
                )
        });
        if !guarded || !within {
            return None;
        }
        let (Kind::Int(mut id) | Kind::Pointer(_, mut id)) = found.value.kind else {
            return None;
        };
        for (counter, at) in places {
            id = self.arena.substitute(id, counter, at);
        }
        let now = &self.contexts[self.context];
        let stale = self.arena.symbols_of(id).any(|symbol| {
            matches!(self.arena.symbol_kind(symbol), SymbolKind::Counter { .. })
                && !now.counters.contains(&symbol)
        });
        let kind = match found.value.kind {
            Kind::Pointer(array, _) => Kind::Pointer(array, id),
            _ => Kind::Int(id),
        };
        (!stale).then_some(Value {
            kind,
            ..found.value
        })
    }

    /// What the counters in a store's subscript were when it wrote the element at `offset`.
    fn places(&mut self, stored: &Stored, offset: Id) -> Option<Vec<(Symbol, Id)>> {
        if stored.offset == offset && self.arena.as_const(offset).is_some() {
            return Some(Vec::new());
        }
        let (constant, terms) = self.arena.terms(stored.offset);
        let (at, mut wanted) = self.arena.terms(offset);
        let mut counters = Vec::with_capacity(terms.len());
        for (term, factor) in terms {
            let symbol = self.arena.as_symbol(term)?;
            let SymbolKind::Counter { extent } = self.arena.symbol_kind(symbol) else {
                return None;
            };
            counters.push((symbol, factor, extent));
        }
        counters.sort_by_key(|(_, factor, _)| std::cmp::Reverse(*factor));
        // Digits of a number: each element is reached in one way.
        let apart = |pair: &[(Symbol, i64, i64)]| pair[0].1 >= pair[1].1.saturating_mul(pair[1].2);
        let last = counters.last().map_or(0, |(_, factor, _)| *factor);
        if !counters.windows(2).all(apart) || last < stored.size as i64 {
            return None;
        }
        let mut left = at.checked_sub(constant)?;
        let mut found = Vec::with_capacity(counters.len());
        for (symbol, factor, extent) in counters {
            let mut digit = self.arena.constant(left.div_euclid(factor));
            left = left.rem_euclid(factor);
            wanted.retain(|&(term, own)| {
                let fits = own % factor == 0;
                if fits {
                    let scaled = self.arena.scale(term, own / factor);
                    digit = self.arena.add(digit, scaled);
                }
                !fits
            });
            let range = self.arena.range(digit);
            if !range.within(0, extent - 1) {
                return None;
            }
            found.push((symbol, digit));
        }
        (left == 0 && wanted.is_empty()).then_some(found)
    }

    fn is_own(&self, array: ArrayId) -> bool {
        self.arrays[array.0 as usize].space == Space::Local
    }

    /// Forgets what these statements may write.
    pub(crate) fn forget_elements(&mut self, statements: &[Stmt]) {
        if self.dry > 0 || self.elements.is_empty() {
            return;
        }
        let mut written = Written::default();
        let _ = walk::walk_block(&mut written, statements);
        let mut all = written.anything;
        for id in written.through {
            if let Some(value) = self.env.get(id) {
                match value.kind {
                    Kind::Pointer(array, _) => {
                        self.elements.remove(&array);
                    }
                    _ => all = true,
                }
            }
            written.own.push(id);
        }
        for id in written.own {
            if let Some(array) = self.arrays_by_var.get(&id) {
                self.elements.remove(array);
            }
        }
        if all {
            self.elements.clear();
        }
    }
}

/// What a list gives the integers of an array, row behind row; nothing where not all of it are numbers.
fn initial(ty: &Type, parts: &[Expr], into: &mut Vec<(i64, Type)>) -> Option<()> {
    let Type::Array(inner, Some(_)) = ty else {
        return None;
    };
    let element = innermost(inner);
    let count = ty
        .size()
        .checked_div(element.size())
        .filter(|_| element.is_int())?;
    let end = into.len() + usize::try_from(count).ok()?;
    if end > MOST_STORES {
        return None;
    }
    for part in parts {
        match &part.kind {
            ExprKind::Int(number) => into.push((*number, part.ty.clone())),
            ExprKind::List(row) => initial(inner, row, into)?,
            _ => return None,
        }
    }
    (into.len() <= end).then(|| into.resize(end, (0, element.clone())))
}

fn innermost(ty: &Type) -> &Type {
    match ty {
        Type::Array(inner, _) => innermost(inner),
        ty => ty,
    }
}

/// True for what is followed as an element: an integer, an address.
fn is_followed(ty: &Type) -> bool {
    matches!(ty, Type::Int { .. } | Type::Pointer(..))
}

/// Variables whose elements are written, or what they point to.
#[derive(Default)]
struct Written {
    own: Vec<VarId>,
    through: Vec<VarId>,
    /// A function that is kept once may write anything.
    anything: bool,
}

impl Written {
    /// What a place that is written may be an element of.
    fn place(&mut self, target: &Expr) {
        let pointer = match &target.kind {
            ExprKind::Deref(pointer) => Some(&**pointer),
            ExprKind::Index(base, _) if matches!(base.ty, Type::Pointer(..)) => Some(&**base),
            _ => None,
        };
        match pointer {
            Some(pointer) => self.pointer(pointer),
            None => self.own.extend(target.base_variable()),
        }
    }

    fn pointer(&mut self, pointer: &Expr) {
        let elsewhere = matches!(
            pointer.ty,
            Type::Pointer(_, AddressSpace::Shared | AddressSpace::Constant)
        );
        if !elsewhere {
            self.through.extend(pointer.base_variable());
        }
    }
}

impl Visitor<'_> for Written {
    fn expression(&mut self, expression: &Expr) -> ControlFlow<()> {
        match &expression.kind {
            ExprKind::Assign(_, target, _)
            | ExprKind::Step(_, _, target)
            | ExprKind::AddressOf(target) => self.place(target),
            ExprKind::Call(function, arguments) => {
                let reads = matches!(
                    function.plain().0,
                    Function::Load
                        | Function::Math(..)
                        | Function::Rows { store: false, .. }
                        | Function::WarpExchange(..)
                );
                let pointers = arguments
                    .iter()
                    .filter(|argument| matches!(argument.ty, Type::Pointer(..) | Type::Array(..)));
                if !reads {
                    pointers.for_each(|pointer| self.pointer(pointer));
                }
            }
            ExprKind::Apply(..) => self.anything = true,
            _ => {}
        }
        walk::walk_expression(self, expression)
    }
}
