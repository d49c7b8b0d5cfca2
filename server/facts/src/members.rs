//! Members of structures passed by value that pointers lead to: each is a variable of its own, and no access.

use warplens_ir::{Storage, Type, VarId};
use warplens_symbolic::Id;

use crate::executor::Executor;
use crate::reals::path_to;
use crate::value::ArrayId;

impl Executor<'_> {
    /// The member of a parameter that lies at these bytes, where the address is known and the member is followed by itself.
    pub(crate) fn member_at(&self, array: ArrayId, offset: Id, ty: &Type) -> Option<VarId> {
        let at = u64::try_from(self.arena.as_const(offset)?).ok()?;
        let mut all = self.arrays_by_var.iter();
        let (whole, _) = all.find(|(_, known)| **known == array)?;
        let whole = self.kernel.var(*whole);
        if !matches!(
            (whole.storage, &whole.ty),
            (Storage::Param(_), Type::Struct(_))
        ) {
            return None;
        }
        let name = format!("{}{}", whole.name, path_to(&whole.ty, at)?);
        let mut vars = self.kernel.vars.iter();
        let found = vars.position(|var| {
            matches!(var.storage, Storage::Param(_)) && var.name == name && var.ty == *ty
        })?;
        Some(VarId(u32::try_from(found).ok()?))
    }
}
