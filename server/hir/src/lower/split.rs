//! Structures and short arrays of pointers whose parts are followed as variables of their own.
//!
//! A structure with integers or pointers in it often holds what an index is made of (`int2 at`, a view with a pointer and a stride), an
//! array of pointers the halves of a double buffer. Their parts become variables, so that the analysis need not know of them. A
//! structure that the kernel is given by value never changes as a whole: what of it is no scalar (unions, long arrays) may stay as it
//! is.

use std::ops::Range;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::Lowering;
use super::constants::constant;
use super::shapes::is_place;
use warplens_ir::{
    Expr, ExprKind, Function, MathClass, Opaque, Site, Stmt, StmtKind, Storage, Type, VarId,
    expressions,
};

/// Local structures with more scalars than this stay whole.
const MOST_FIELDS: usize = 32;

/// What of a parameter is beyond this many scalars stays as it is: parameters of attention kernels have a hundred.
const MOST_MEMBERS: usize = 256;

/// Longer arrays in a parameter stay as they are.
const LONGEST_ARRAY: u64 = 16;

/// Arrays of more pointers than this stay in memory: `T *buffers[2]`, `T *stages[4]`.
const MOST_POINTERS: u64 = 4;

/// A structure as variables of their own.
#[derive(Debug, Clone, Default)]
pub(super) struct Leaves {
    /// Offset within the structure, variable.
    scalars: Vec<(u64, VarId)>,
    /// Bytes that are in no variable.
    rest: Vec<Range<u64>>,
}

impl Leaves {
    pub(super) fn scalars(&self) -> &[(u64, VarId)] {
        &self.scalars
    }
}

impl Lowering<'_> {
    /// Makes the fields of a variable variables of their own, where that helps.
    pub(super) fn split_variable(&mut self, id: VarId) {
        let var = &self.vars[id.0 as usize];
        let (name, ty, storage, site) = (var.name.clone(), var.ty.clone(), var.storage, var.site);
        if !self.whole.is_empty() && self.whole.contains(&(name.clone(), site)) {
            return;
        }
        let (most, whole) = match storage {
            Storage::Param(_) => (MOST_MEMBERS, false),
            Storage::Local => (MOST_FIELDS, true),
            _ => return,
        };
        let Some(fields) = Fields::of(&ty, most, whole) else {
            return;
        };
        let scalars = fields
            .scalars
            .into_iter()
            .map(|(offset, path, ty)| {
                let leaf = self.fresh(&format!("{name}.{path}"), ty, storage, site);
                (offset, leaf)
            })
            .collect();
        let rest = fields.rest;
        self.split.insert(id, Leaves { scalars, rest });
    }

    /// The split variables that are read or written as what they are not declared as: what their fields hold is not what is read.
    pub(super) fn reinterpreted(&self, body: &[Stmt]) -> FxHashSet<(String, Site)> {
        let mut found = FxHashSet::default();
        if self.split.is_empty() {
            return found;
        }
        let leaves: FxHashMap<VarId, VarId> = (self.split.iter())
            .flat_map(|(id, leaves)| leaves.scalars.iter().map(|(_, leaf)| (*leaf, *id)))
            .collect();
        let mut note = |place: &Expr| {
            let mut at = place;
            while let ExprKind::Field(base, _) | ExprKind::Cast(_, base) = &at.kind {
                at = base;
            }
            let ExprKind::Var(id) = at.kind else { return };
            let id = leaves.get(&id).copied().unwrap_or(id);
            if self.split.contains_key(&id) {
                let var = &self.vars[id.0 as usize];
                found.insert((var.name.clone(), var.site));
            }
        };
        let is_array = |id: &VarId| {
            self.split.contains_key(id) && matches!(self.vars[id.0 as usize].ty, Type::Array(..))
        };
        let mut look = |expression: &Expr| match &expression.kind {
            // An array of pointers that is handed on, or read where it is not known which.
            ExprKind::Var(id) if is_array(id) => note(expression),
            ExprKind::Assign(_, target, _) | ExprKind::AddressOf(target)
                if matches!(target.kind, ExprKind::Select(..)) =>
            {
                let mut at = &**target;
                while let ExprKind::Select(_, _, other) = &at.kind {
                    at = other;
                }
                note(at);
            }
            ExprKind::Cast(_, inner) => {
                let (Type::Pointer(to, _), ExprKind::AddressOf(place)) =
                    (&expression.ty, &inner.without_casts().kind)
                else {
                    return;
                };
                // The bits of one scalar are that scalar's, whatever they are called.
                let alone = matches!(&place.kind, ExprKind::Var(id) if leaves.contains_key(id));
                if to.size() > 0 && **to != place.ty && !(alone && to.size() == place.ty.size()) {
                    note(place);
                }
            }
            // `(&v.x)[1]`, `&v.x + 1`.
            ExprKind::Index(base, index) => {
                if let ExprKind::AddressOf(place) = &base.kind
                    && constant(index) != Some(0)
                {
                    note(place);
                }
            }
            // `v += w` of vectors changes it as a whole.
            ExprKind::Assign(Some(_), target, _) | ExprKind::Step(_, _, target) => {
                if let ExprKind::Var(id) = target.kind
                    && self.split.contains_key(&id)
                {
                    note(target);
                }
            }
            ExprKind::Binary(_, a, b) => {
                for side in [a, b] {
                    if let ExprKind::AddressOf(place) = &side.kind {
                        note(place);
                    }
                }
            }
            _ => {}
        };
        expressions(body, &mut look);
        for routine in &self.routines {
            expressions(&routine.body, &mut look);
        }
        found
    }

    /// The variable behind a field of a split variable.
    pub(super) fn part(&self, whole: &Expr) -> Option<VarId> {
        let mut at = whole;
        let mut offset = 0;
        loop {
            match &at.kind {
                ExprKind::Field(base, by) => {
                    offset += by;
                    at = base;
                }
                ExprKind::Index(base, index) if matches!(base.ty, Type::Array(..)) => {
                    let index = u64::try_from(constant(index)?).ok()?;
                    offset += index.checked_mul(at.ty.size())?;
                    at = base;
                }
                ExprKind::Var(id) => {
                    let leaves = self.split.get(id)?;
                    return leaves
                        .scalars
                        .iter()
                        .find(|(of, leaf)| {
                            *of == offset && self.vars[leaf.0 as usize].ty == whole.ty
                        })
                        .map(|(_, leaf)| *leaf);
                }
                _ => return None,
            }
        }
    }

    /// The scalars of a structure that is, or is a part of, a split variable: offsets within it.
    fn scalars(&self, whole: &Expr) -> Option<Vec<(u64, VarId)>> {
        let mut at = whole;
        let mut offset = 0;
        while let ExprKind::Field(base, by) = &at.kind {
            offset += by;
            at = base;
        }
        let ExprKind::Var(id) = &at.kind else {
            return None;
        };
        let bytes = offset..offset + whole.ty.size();
        let split = self.split.get(id)?;
        let apart = |rest: &Range<u64>| rest.end <= bytes.start || bytes.end <= rest.start;
        if !split.rest.iter().all(apart) {
            return None;
        }
        let leaves: Vec<_> = split
            .scalars
            .iter()
            .filter(|(of, _)| bytes.contains(of))
            .map(|&(of, leaf)| (of - offset, leaf))
            .collect();
        (!leaves.is_empty()).then_some(leaves)
    }

    /// True for a structure that the launch gives, or a part of one.
    pub(super) fn is_given_whole(&self, place: &Expr) -> bool {
        root(place).is_some_and(|id| {
            let var = &self.vars[id.0 as usize];
            matches!(var.storage, Storage::Param(_)) && self.split.contains_key(&id)
        })
    }

    /// `target = value`.
    pub(super) fn assigned(&mut self, target: Expr, value: Expr, site: Site) -> Expr {
        let value = self.converted_to(value, &target.ty);
        match self.split_assignment(&target, value) {
            Ok(assigned) => assigned,
            Err(value) => {
                // What is not split as a whole is written as a whole: its fields are not known any more.
                if let Some(root) = root(&target)
                    && self.split.contains_key(&root)
                {
                    self.escape(root);
                }
                let value = self.gathered(value);
                let ty = target.ty.clone();
                Expr {
                    kind: ExprKind::Assign(None, Box::new(target), Box::new(value)),
                    ty,
                    site,
                }
            }
        }
    }

    /// `target = value` where the target is split: an expression that assigns each field. Otherwise the value
    /// comes back.
    fn split_assignment(&mut self, target: &Expr, value: Expr) -> Result<Expr, Expr> {
        let Some(leaves) = self.scalars(target) else {
            return Err(value);
        };
        let site = target.site;
        let mut all = Vec::with_capacity(leaves.len() + 1);
        let reason = if is_loaded(&value) {
            Opaque::Loaded
        } else {
            Opaque::Unknown
        };
        let sources: Vec<Option<Expr>> = match &value.kind {
            ExprKind::Select(condition, a, b) => {
                let sides = (self.known_fields(a, &leaves), self.known_fields(b, &leaves));
                let (Some(a_fields), Some(b_fields)) = sides else {
                    return self.either(target, condition, [a, b]);
                };
                let ty = condition.ty.clone();
                let test = self.fresh("condition", ty, Storage::Local, site);
                let test = self.var(test, site);
                all.push(Expr {
                    ty: test.ty.clone(),
                    kind: ExprKind::Assign(None, Box::new(test.clone()), condition.clone()),
                    site,
                });
                let each = a_fields.into_iter().zip(b_fields);
                let chosen = each.map(|(a, b)| Expr {
                    ty: a.ty.clone(),
                    kind: ExprKind::Select(Box::new(test.clone()), Box::new(a), Box::new(b)),
                    site: value.site,
                });
                chosen.map(Some).collect()
            }
            ExprKind::List(parts) if !parts.is_empty() => {
                let mut flat = Vec::new();
                flatten(parts, &mut flat);
                if flat.len() == 1 && leaves.len() > 1 && flat[0].ty.size() == target.ty.size() {
                    let inner = flat.remove(0);
                    return self.split_assignment(target, inner);
                }
                if flat.len() == leaves.len() {
                    flat.into_iter().map(Some).collect()
                } else {
                    all.push(value.clone());
                    // `{}` and too few initialisers leave zeros.
                    let zero = |leaf: VarId| Expr {
                        kind: ExprKind::Int(0),
                        ty: self.vars[leaf.0 as usize].ty.clone(),
                        site,
                    };
                    let mut given = flat.into_iter().map(Some);
                    leaves
                        .iter()
                        .map(|&(_, leaf)| given.next().unwrap_or_else(|| Some(zero(leaf))))
                        .collect()
                }
            }
            ExprKind::Inline(_, Some(result)) => {
                let result = self.var(*result, site);
                all.push(value.clone());
                self.field_values(&result, &leaves)
            }
            _ => {
                let values = self.field_values(&value, &leaves);
                if values.iter().all(Option::is_none) {
                    all.push(value.clone());
                }
                values
            }
        };
        let assign = |to: Expr, from: Expr| Expr {
            ty: to.ty.clone(),
            kind: ExprKind::Assign(None, Box::new(to), Box::new(from)),
            site,
        };
        // `v = make_int2(v.y, v.x)`: every value is taken before any field changes.
        let own: Vec<VarId> = leaves.iter().map(|&(_, leaf)| leaf).collect();
        let crossed = sources.iter().flatten().any(|source| source.reads(&own));
        let mut after = Vec::new();
        for ((_, leaf), from) in leaves.iter().zip(sources) {
            let to = self.var(*leaf, site);
            let from = match from.map(|from| self.bound_reference(*leaf, from, site)) {
                Some(None) => continue,
                Some(from) => from,
                None => None,
            };
            let from = from.unwrap_or(Expr {
                kind: ExprKind::Opaque(reason, Vec::new()),
                ty: to.ty.clone(),
                site,
            });
            if crossed {
                let kept = self.fresh("field", to.ty.clone(), Storage::Local, site);
                let kept = self.var(kept, site);
                all.push(assign(kept.clone(), from));
                after.push(assign(to, kept));
            } else {
                all.push(assign(to, from));
            }
        }
        all.append(&mut after);
        Ok(Expr {
            kind: ExprKind::List(all),
            ty: Type::Void,
            site,
        })
    }

    /// `target = condition ? a : b` of a split structure, each side assigned where it is chosen.
    fn either(&mut self, target: &Expr, condition: &Expr, sides: [&Expr; 2]) -> Result<Expr, Expr> {
        let site = target.site;
        let mut branches = Vec::with_capacity(sides.len());
        for side in sides {
            let assigned = self.split_assignment(target, side.clone())?;
            branches.push(vec![Stmt {
                kind: StmtKind::Expr(assigned),
                site,
            }]);
        }
        let (otherwise, then) = (branches.pop(), branches.pop());
        let (then, otherwise) = (then.unwrap_or_default(), otherwise.unwrap_or_default());
        let branch = Stmt {
            kind: StmtKind::If(condition.clone(), then, otherwise),
            site,
        };
        Ok(Expr {
            kind: ExprKind::Inline(vec![branch], None),
            ty: Type::Void,
            site,
        })
    }

    /// The values of all fields, where a value has one for each and evaluating it does nothing else.
    fn known_fields(&self, value: &Expr, wanted: &[(u64, VarId)]) -> Option<Vec<Expr>> {
        self.field_values(value, wanted).into_iter().collect()
    }

    /// What a field is given; nothing where it is a reference, to a variable, which is the variable from now on: a pointer
    /// is never made of an object.
    pub(super) fn bound_reference(
        &mut self,
        field: VarId,
        value: Expr,
        site: Site,
    ) -> Option<Expr> {
        if let ExprKind::Var(other) = value.kind
            && let Some(place) = self.references.get(&other).cloned()
        {
            self.references.insert(field, place);
            return None;
        }
        match &self.vars[field.0 as usize].ty {
            Type::Pointer(to, space) if value.ty == **to && is_place(&value) => {
                if is_whole_variable(&value) {
                    self.references.insert(field, value);
                    return None;
                }
                Some(address_of(value, *space, site))
            }
            _ => Some(value),
        }
    }

    /// The scalars of a value that is split itself.
    fn field_values(&self, value: &Expr, wanted: &[(u64, VarId)]) -> Vec<Option<Expr>> {
        let Some(leaves) = self.scalars(value) else {
            return vec![None; wanted.len()];
        };
        wanted
            .iter()
            .map(|(offset, _)| {
                leaves
                    .iter()
                    .find(|(of, _)| of == offset)
                    .map(|&(_, leaf)| self.var(leaf, value.site))
            })
            .collect()
    }

    /// A split variable as a whole, by its fields, for what keeps it whole.
    pub(super) fn gathered(&mut self, value: Expr) -> Expr {
        if !matches!(value.ty, Type::Struct(_) | Type::Vector(..)) {
            return value;
        }
        let Expr { kind, ty, site } = value;
        let value = |kind| Expr {
            kind,
            ty: ty.clone(),
            site,
        };
        let value = match kind {
            ExprKind::Inline(_, Some(result)) => {
                return self.gathered_result(value(kind), result);
            }
            ExprKind::Select(condition, a, b) => {
                let [a, b] = [a, b].map(|side| Box::new(self.gathered(*side)));
                return value(ExprKind::Select(condition, a, b));
            }
            ExprKind::List(parts) => {
                let parts = parts.into_iter().map(|part| self.gathered(part));
                return value(ExprKind::List(parts.collect()));
            }
            kind => value(kind),
        };
        let Some(leaves) = self.scalars(&value) else {
            return value;
        };
        let parts = leaves.iter().map(|&(_, leaf)| self.var(leaf, value.site));
        list(&value.ty, parts.collect(), value.site)
    }

    /// A call whose result is split, as a value that is whole.
    fn gathered_result(&mut self, call: Expr, result: VarId) -> Expr {
        let (ty, site) = (call.ty.clone(), call.site);
        let result = self.var(result, site);
        if self.scalars(&result).is_none() {
            return call;
        }
        let parts = self.gathered(result);
        let ExprKind::Inline(body, _) = call.kind else {
            return call;
        };
        // A return within the body leaves the body alone.
        let done = Expr {
            kind: ExprKind::Inline(body, None),
            ty: Type::Void,
            site,
        };
        let whole = self.fresh("value", ty.clone(), Storage::Local, site);
        let filled = Expr {
            kind: ExprKind::Assign(None, Box::new(self.var(whole, site)), Box::new(parts)),
            ty: ty.clone(),
            site,
        };
        let statement = |expr: Expr| Stmt {
            kind: StmtKind::Expr(expr),
            site,
        };
        Expr {
            kind: ExprKind::Inline(vec![statement(done), statement(filled)], Some(whole)),
            ty,
            site,
        }
    }

    /// What the variable holds is not known any more: its address was taken.
    pub(super) fn escape(&mut self, id: VarId) {
        self.vars[id.0 as usize].escapes = true;
        if let Some(leaves) = self.split.get(&id) {
            for (_, leaf) in &leaves.scalars {
                self.vars[leaf.0 as usize].escapes = true;
            }
        }
    }

    /// Members of parameters that nothing reads are none of what the launch gives.
    pub(super) fn drop_unread_members(&mut self, body: &[Stmt]) {
        if self.split.is_empty() {
            return;
        }
        let mut read = vec![false; self.vars.len()];
        let mut subscripted = FxHashSet::default();
        let mut visit = |expr: &Expr| {
            match &expr.kind {
                ExprKind::Var(id) => {
                    if let Some(read) = read.get_mut(id.0 as usize) {
                        *read = true;
                    }
                }
                ExprKind::Index(base, _) => {
                    subscripted.insert(std::ptr::from_ref(&**base));
                }
                // An array that a pointer is made of: what is read through that is any of its elements.
                ExprKind::Field(..)
                    if matches!(expr.ty, Type::Array(..))
                        && !subscripted.contains(&std::ptr::from_ref(expr)) =>
                {
                    for (_, leaf) in self.scalars(expr).unwrap_or_default() {
                        read[leaf.0 as usize] = true;
                    }
                }
                _ => {}
            }
        };
        expressions(body, &mut visit);
        for routine in &self.routines {
            expressions(&routine.body, &mut visit);
        }
        for (_, leaf) in self.split.values().flat_map(|leaves| &leaves.scalars) {
            let var = &mut self.vars[leaf.0 as usize];
            if !read[leaf.0 as usize] && matches!(var.storage, Storage::Param(_)) {
                var.storage = Storage::Local;
            }
        }
    }

    /// A temporary of that type.
    pub(super) fn temporary(&mut self, name: &str, ty: Type, site: Site) -> VarId {
        let id = self.fresh(name, ty, Storage::Local, site);
        self.split_variable(id);
        id
    }
}

/// True for a structure that memory holds, or another lane.
fn is_loaded(value: &Expr) -> bool {
    match &value.kind {
        ExprKind::Index(..) | ExprKind::Deref(_) => true,
        ExprKind::Call(function, _) => matches!(
            function.plain().0,
            Function::Load
                | Function::Texture { .. }
                | Function::WarpExchange(..)
                | Function::Math(MathClass::Tensor, _)
        ),
        ExprKind::Field(base, _) | ExprKind::Cast(_, base) => is_loaded(base),
        ExprKind::List(parts) => matches!(parts.as_slice(), [one] if is_loaded(one)),
        _ => false,
    }
}

fn flatten(parts: &[Expr], out: &mut Vec<Expr>) {
    for part in parts {
        match &part.kind {
            ExprKind::List(inner) if !inner.is_empty() && !matches!(part.ty, Type::Int { .. }) => {
                flatten(inner, out);
            }
            _ => out.push(part.clone()),
        }
    }
}

/// The scalars of a structure with an integer or a pointer among them.
#[derive(Default)]
struct Fields {
    /// Offset, path, type.
    scalars: Vec<(u64, String, Type)>,
    /// Bytes of what is no scalar.
    rest: Vec<Range<u64>>,
}

impl Fields {
    /// `None` where nothing is won; where it has to be split `whole`, also where some of it is no scalar.
    fn of(ty: &Type, most: usize, whole: bool) -> Option<Fields> {
        if let Type::Array(element, Some(extent @ 2..=MOST_POINTERS)) = ty
            && matches!(**element, Type::Pointer(..))
            && whole
        {
            let each = (0..*extent).map(|at| {
                let offset = at * element.size();
                (offset, format!("{at}"), (**element).clone())
            });
            return Some(Fields {
                scalars: each.collect(),
                rest: Vec::new(),
            });
        }
        if !matches!(ty, Type::Struct(_) | Type::Vector(..)) {
            return None;
        }
        let mut found = Fields::default();
        found.add(ty, 0, "", most, whole);
        let index =
            |(_, _, ty): &(u64, String, Type)| matches!(ty, Type::Int { .. } | Type::Pointer(..));
        let worth = found.scalars.iter().any(index) && (!whole || found.rest.is_empty());
        worth.then_some(found)
    }

    fn add(&mut self, ty: &Type, offset: u64, path: &str, most: usize, whole: bool) {
        let join = |name: &str| {
            if path.is_empty() {
                name.to_owned()
            } else {
                format!("{path}.{name}")
            }
        };
        let bytes = offset..offset + ty.size().max(1);
        if self.scalars.len() >= most || whole && !self.rest.is_empty() {
            self.rest.push(bytes);
            return;
        }
        match ty {
            Type::Struct(structure) if !structure.fields.is_empty() => {
                // Fields that share bytes (unions) are not followed.
                for (at, field) in structure.fields.iter().enumerate() {
                    let overlaps = structure.fields.iter().enumerate().any(|(of, other)| {
                        of != at
                            && other.offset < field.offset + field.ty.size().max(1)
                            && field.offset < other.offset + other.ty.size().max(1)
                    });
                    let start = offset + field.offset;
                    if overlaps {
                        self.rest.push(start..start + field.ty.size().max(1));
                    } else {
                        self.add(&field.ty, start, &join(&field.name), most, whole);
                    }
                }
            }
            Type::Vector(element, lanes) if element.is_int() => {
                for lane in 0..*lanes {
                    let name = ["x", "y", "z", "w"]
                        .get(lane as usize)
                        .map_or_else(|| format!("s{lane:x}"), |name| (*name).to_owned());
                    let at = offset + u64::from(lane) * element.size();
                    self.scalars.push((at, join(&name), (**element).clone()));
                }
            }
            Type::Array(element, Some(extent)) if !whole && *extent <= LONGEST_ARRAY => {
                for at in 0..*extent {
                    let start = offset + at * element.size();
                    self.add(element, start, &format!("{path}[{at}]"), most, whole);
                }
            }
            Type::Struct(_) | Type::Array(..) | Type::Unknown(_) | Type::Void => {
                self.rest.push(bytes);
            }
            Type::Callable(_) | Type::Library(_) => {}
            ty => self.scalars.push((offset, path.to_owned(), ty.clone())),
        }
    }
}

/// The variable that a place is, or is a part of.
fn root(place: &Expr) -> Option<VarId> {
    match &place.kind {
        ExprKind::Var(id) => Some(*id),
        ExprKind::Field(base, _) => root(base),
        ExprKind::Index(base, _) if matches!(base.ty, Type::Array(..)) => root(base),
        _ => None,
    }
}

/// A structure by its fields' values.
pub(super) fn list(ty: &Type, parts: Vec<Expr>, site: Site) -> Expr {
    Expr {
        kind: ExprKind::List(parts),
        ty: ty.clone(),
        site,
    }
}

/// `pointer` as the place it points to; `&place` gives the place back.
pub(super) fn deref(pointer: Expr, site: Site) -> Expr {
    if let ExprKind::AddressOf(place) = pointer.kind {
        return Expr { site, ..*place };
    }
    let ty = pointer
        .ty
        .element()
        .cloned()
        .unwrap_or(Type::Unknown(String::new()));
    Expr {
        kind: ExprKind::Deref(Box::new(pointer)),
        ty,
        site,
    }
}

/// True for a variable or a field of one: the same place whenever it is read.
fn is_whole_variable(place: &Expr) -> bool {
    match &place.kind {
        ExprKind::Var(_) => true,
        ExprKind::Field(base, _) => is_whole_variable(base),
        _ => false,
    }
}

/// What a reference that is kept in an object refers to: `.` is not for pointers.
pub(super) fn referred(object: Expr) -> Expr {
    match &object.ty {
        Type::Pointer(to, _) if matches!(**to, Type::Struct(_) | Type::Vector(..)) => {
            let site = object.site;
            deref(object, site)
        }
        _ => object,
    }
}

pub(super) fn address_of(place: Expr, space: warplens_ir::AddressSpace, site: Site) -> Expr {
    if let ExprKind::Deref(pointer) = place.kind {
        return Expr { site, ..*pointer };
    }
    let ty = Type::Pointer(Arc::new(place.ty.clone()), space);
    Expr {
        kind: ExprKind::AddressOf(Box::new(place)),
        ty,
        site,
    }
}
