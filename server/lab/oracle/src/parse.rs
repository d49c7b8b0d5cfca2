//! The parser: tokens to trees, by recursive descent, for the subset of C and C++ that kernels use.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use crate::lexer::{Position, Token, TokenKind, tokens};
use crate::scalar::Scalar;
use crate::tree::{
    Declaration, Expr, Function, Kind, Loop, Op, Parameter, Stmt, Storage, Structure,
    TemplateArgument, TemplateParameter, TypeName,
};
use crate::{Dialect, Error};

/// Levels of expressions and statements, at most.
const DEEPEST: usize = 200;

/// A file: what is declared at its outermost level.
#[derive(Debug, Default)]
pub(crate) struct File {
    pub(crate) functions: HashMap<Rc<str>, Vec<Rc<Function>>>,
    pub(crate) structures: HashMap<Rc<str>, Rc<Structure>>,
    pub(crate) aliases: HashMap<Rc<str>, TypeName>,
    pub(crate) variables: Vec<Rc<Declaration>>,
    /// Kernels and device functions that were not read, and why.
    pub(crate) unread: Vec<Error>,
}

/// Reads a file. Host code is passed over.
///
/// # Errors
/// The text cannot be lexed; a function that cannot be parsed is listed instead.
pub(crate) fn file(text: &str, dialect: Dialect) -> Result<File, Error> {
    let mut parser = Parser {
        tokens: tokens(text)?,
        at: 0,
        dialect,
        file: File::default(),
        types: HashSet::new(),
        depth: 0,
        own_name: None,
    };
    parser.items();
    Ok(parser.file)
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    dialect: Dialect,
    file: File,
    /// Names of types: structures, other names, template parameters.
    types: HashSet<Rc<str>>,
    depth: usize,
    /// The structure whose members are read.
    own_name: Option<Rc<str>>,
}

/// Specifiers of a type or a function that do not affect values.
const SILENT: [&str; 26] = [
    "const",
    "volatile",
    "static",
    "inline",
    "__inline__",
    "__forceinline__",
    "__noinline__",
    "__device__",
    "__host__",
    "__restrict__",
    "restrict",
    "__restrict",
    "register",
    "global",
    "__global",
    "__private",
    "private",
    "__generic",
    "constexpr",
    "signed",
    "friend",
    "extern",
    "__read_only",
    "__inline",
    "mutable",
    "typename",
];

type ParseResult<T> = Result<T, Error>;

impl Parser {
    // ---- tokens --------------------------------------------------------------------------------

    fn kind(&self) -> &TokenKind {
        self.ahead(0)
    }

    fn ahead(&self, by: usize) -> &TokenKind {
        self.tokens
            .get(self.at + by)
            .map_or(&TokenKind::End, |token| &token.kind)
    }

    fn place(&self) -> Position {
        self.tokens
            .get(self.at)
            .or(self.tokens.last())
            .map_or(Position::default(), |token| token.place)
    }

    fn error<T>(&self, what: &str) -> ParseResult<T> {
        Err(Error::new(self.place(), what))
    }

    fn is(&self, sign: &str) -> bool {
        matches!(self.kind(), TokenKind::Sign(found) if *found == sign)
    }

    fn accept(&mut self, sign: &str) -> bool {
        let is = self.is(sign);
        self.at += usize::from(is);
        is
    }

    fn expect(&mut self, sign: &str) -> ParseResult<()> {
        if self.accept(sign) {
            Ok(())
        } else {
            self.error(&format!("`{sign}` is missing"))
        }
    }

    fn names(&self, name: &str) -> bool {
        matches!(self.kind(), TokenKind::Name(found) if &**found == name)
    }

    fn accept_name(&mut self, name: &str) -> bool {
        let is = self.names(name);
        self.at += usize::from(is);
        is
    }

    fn name(&mut self) -> ParseResult<Rc<str>> {
        match self.kind().clone() {
            TokenKind::Name(name) => {
                self.at += 1;
                Ok(name)
            }
            _ => self.error("a name is missing"),
        }
    }

    /// Passes over what is in parentheses, brackets or braces, from the one that opens here.
    fn skip_group(&mut self) {
        let mut depth = 0usize;
        loop {
            match self.kind() {
                TokenKind::End => return,
                TokenKind::Sign("(" | "[" | "{") => depth += 1,
                TokenKind::Sign(")" | "]" | "}") => depth = depth.saturating_sub(1),
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return;
            }
        }
    }

    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> ParseResult<T>) -> ParseResult<T> {
        if self.depth > DEEPEST {
            return self.error("nested too deeply");
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    // ---- the outermost level -------------------------------------------------------------------

    fn items(&mut self) {
        while *self.kind() != TokenKind::End {
            if self.accept(";") || self.accept("}") {
                continue;
            }
            if self.names("namespace") {
                while !matches!(self.kind(), TokenKind::Sign("{" | ";") | TokenKind::End) {
                    self.at += 1;
                }
                self.at += 1;
                continue;
            }
            if self.names("extern") && *self.ahead(1) == TokenKind::Text {
                self.at += 2;
                self.accept("{");
                continue;
            }
            let from = self.at;
            let (end, device) = self.item();
            self.depth = 0;
            self.own_name = None;
            let outcome = self.read_item(end, device);
            if let Err(error) = outcome
                && device
            {
                self.file.unread.push(error);
            }
            self.at = end.max(from + 1);
        }
    }

    /// Where an item ends, and whether it is for the device.
    fn item(&self) -> (usize, bool) {
        let mut at = self.at;
        let (mut depth, mut device, mut assigned) = (0usize, false, false);
        let structure = |kind: &TokenKind| matches!(kind, TokenKind::Name(name) if matches!(&**name, "struct" | "union" | "typedef" | "class" | "enum"));
        let mut plain = structure(self.kind());
        if self.names("template") {
            // Past its parameters.
            let mut angles = 0usize;
            while at < self.tokens.len() {
                match self.tokens[at].kind {
                    TokenKind::Sign("<") => angles += 1,
                    TokenKind::Sign(">") => {
                        angles = angles.saturating_sub(1);
                        if angles == 0 {
                            break;
                        }
                    }
                    TokenKind::End => break,
                    _ => {}
                }
                at += 1;
            }
            at = (at + 1).min(self.tokens.len());
            plain = self
                .tokens
                .get(at)
                .is_some_and(|token| structure(&token.kind));
        }
        while let Some(token) = self.tokens.get(at) {
            match &token.kind {
                TokenKind::Name(name) if depth == 0 => {
                    device |= matches!(
                        &**name,
                        "__global__" | "__device__" | "__constant__" | "__kernel" | "kernel"
                    );
                }
                TokenKind::Sign("=") if depth == 0 => assigned = true,
                TokenKind::Sign("(" | "[" | "{") => depth += 1,
                TokenKind::Sign(close @ (")" | "]" | "}")) => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 && *close == "}" && !assigned && !plain {
                        return (at + 1, device);
                    }
                }
                TokenKind::Sign(";") if depth == 0 => return (at + 1, device),
                TokenKind::End => return (at, device),
                _ => {}
            }
            at += 1;
        }
        (at, device)
    }

    fn read_item(&mut self, end: usize, device: bool) -> ParseResult<()> {
        let mut template = Vec::new();
        if self.names("template") {
            template = self.template_parameters()?;
        }
        if self.names("using") {
            self.at += 1;
            let name = self.name()?;
            self.expect("=")?;
            let ty = self.type_name()?;
            self.types.insert(name.clone());
            self.file.aliases.insert(name, ty);
            return Ok(());
        }
        if self.accept_name("typedef") {
            let ty = self.type_name()?;
            let (name, ty) = self.declarator(ty)?;
            self.types.insert(name.clone());
            self.file.aliases.insert(name, ty);
            return Ok(());
        }
        if self.names("struct") || self.names("union") {
            let body = self.tokens[self.at..end]
                .iter()
                .any(|token| token.kind == TokenKind::Sign("{"));
            if body {
                self.structure()?;
                return Ok(());
            }
        }
        let wanted = device || self.dialect == Dialect::OpenCl;
        let constant = ["constexpr", "const", "static"]
            .iter()
            .any(|kind| self.names(kind));
        if !wanted && !constant {
            return Ok(());
        }
        let mut storage = if device {
            Storage::Global
        } else {
            Storage::Own
        };
        let mut kernel = false;
        while let TokenKind::Name(name) = self.kind() {
            match &**name {
                "__global__" | "__kernel" | "kernel" => kernel = true,
                "__constant__" | "__constant" | "constant" => storage = Storage::Constant,
                "__attribute__" | "__launch_bounds__" | "__align__" | "alignas" => {
                    self.at += 1;
                    self.skip_group();
                    continue;
                }
                kind if SILENT.contains(&kind) => {}
                _ => break,
            }
            self.at += 1;
        }
        let ty = self.type_name()?;
        // Attributes may follow the type too.
        while self.names("__attribute__") || self.names("__launch_bounds__") {
            self.at += 1;
            self.skip_group();
        }
        if let (TokenKind::Name(_), TokenKind::Sign("(")) = (self.kind(), self.ahead(1)) {
            let function = self.function(ty, kernel, template)?;
            self.file
                .functions
                .entry(function.name.clone())
                .or_default()
                .push(Rc::new(function));
            return Ok(());
        }
        let mut found = Vec::new();
        self.declarators(storage, &ty, &mut found)?;
        for statement in found {
            if let Stmt::Declare(declaration) = statement {
                self.file.variables.push(declaration);
            }
        }
        Ok(())
    }

    fn template_parameters(&mut self) -> ParseResult<Vec<TemplateParameter>> {
        self.at += 1;
        self.expect("<")?;
        let mut found = Vec::new();
        while !self.accept(">") {
            let is_type = self.accept_name("typename") || self.accept_name("class");
            if !is_type {
                self.type_name()?;
            }
            let name = self.name()?;
            if is_type {
                self.types.insert(name.clone());
            }
            let default = if self.accept("=") {
                Some(if is_type {
                    TemplateArgument::Type(self.type_name()?)
                } else {
                    TemplateArgument::ThreadValues(self.binary(5)?)
                })
            } else {
                None
            };
            found.push(TemplateParameter {
                name,
                is_type,
                default,
            });
            self.accept(",");
        }
        Ok(found)
    }

    fn function(
        &mut self,
        result: TypeName,
        kernel: bool,
        template: Vec<TemplateParameter>,
    ) -> ParseResult<Function> {
        let name = self.name()?;
        self.expect("(")?;
        let mut parameters = Vec::new();
        while !self.accept(")") {
            if self.names("void") && *self.ahead(1) == TokenKind::Sign(")") {
                self.at += 1;
                continue;
            }
            let ty = self.type_name()?;
            let (name, ty) = self.declarator(ty)?;
            // An array parameter is a pointer.
            let ty = match ty {
                TypeName::Array(element, _) => TypeName::Pointer(element),
                ty => ty,
            };
            parameters.push(Parameter { name, ty });
            self.accept(",");
        }
        self.accept_name("const");
        while self.names("__attribute__") {
            self.at += 1;
            self.skip_group();
        }
        if self.accept(";") {
            return self.error("a function without its body");
        }
        let body = self.braces()?;
        Ok(Function {
            name,
            template,
            parameters,
            result,
            body,
            kernel,
        })
    }

    fn structure(&mut self) -> ParseResult<Rc<str>> {
        let union = self.names("union");
        self.at += 1;
        let mut align = 1;
        while self.names("__align__") || self.names("alignas") || self.names("__attribute__") {
            self.at += 1;
            if let (TokenKind::Sign("("), TokenKind::Number(text)) = (self.kind(), self.ahead(1)) {
                align = text.parse().unwrap_or(1);
            }
            self.skip_group();
        }
        let name = match self.kind() {
            TokenKind::Name(_) => self.name()?,
            _ => format!("(structure {})", self.at).into(),
        };
        self.types.insert(name.clone());
        self.expect("{")?;
        let outer = self.own_name.replace(name.clone());
        let (mut fields, mut methods) = (Vec::new(), Vec::new());
        while !self.accept("}") {
            if self.accept(";") {
                continue;
            }
            let ty = self.type_name()?;
            if let (TokenKind::Name(_), TokenKind::Sign("(")) = (self.kind(), self.ahead(1)) {
                methods.push(Rc::new(self.function(ty, false, Vec::new())?));
                continue;
            }
            loop {
                let (name, ty) = self.declarator(ty.clone())?;
                fields.push((name, ty));
                if !self.accept(",") {
                    break;
                }
            }
            self.expect(";")?;
        }
        self.own_name = outer;
        self.file.structures.insert(
            name.clone(),
            Rc::new(Structure {
                name: name.clone(),
                fields,
                methods,
                union,
                align,
            }),
        );
        Ok(name)
    }

    // ---- types ---------------------------------------------------------------------------------

    fn starts_type(&self) -> bool {
        match self.kind() {
            TokenKind::Name(name) => {
                !matches!(&**name, "extern" | "static" | "global") && SILENT.contains(&&**name)
                    || matches!(
                        &**name,
                        "unsigned"
                            | "struct"
                            | "union"
                            | "auto"
                            | "void"
                            | "typename"
                            | "__local"
                            | "local"
                            | "__constant"
                            | "constant"
                            | "global"
                            | "__shared__"
                    )
                    || basic(name).is_some()
                    || (self.types.contains(name) && !self.constructs())
            }
            _ => false,
        }
    }

    /// `T(…)` or `T{…}`: a value, no declaration.
    fn constructs(&self) -> bool {
        matches!(self.ahead(1), TokenKind::Sign("(" | "{"))
    }

    /// A type and the `*` and `&` behind it.
    fn type_name(&mut self) -> ParseResult<TypeName> {
        let mut tokens: Vec<Rc<str>> = Vec::new();
        let mut found: Option<TypeName> = None;
        while let TokenKind::Name(name) = self.kind().clone() {
            match &*name {
                "__local" | "local" | "__constant" | "constant" | "__shared__" => {}
                "__align__" | "alignas" | "__attribute__" => {
                    self.at += 1;
                    self.skip_group();
                    continue;
                }
                "unsigned" | "signed" | "char" | "short" | "int" | "long" => tokens.push(name),
                "struct" | "union"
                    if matches!(self.ahead(1), TokenKind::Sign("{") | TokenKind::Name(_)) =>
                {
                    let defines = *self.ahead(1) == TokenKind::Sign("{")
                        || *self.ahead(2) == TokenKind::Sign("{");
                    if defines {
                        found = Some(TypeName::Named(self.structure()?));
                        continue;
                    }
                }
                kind if SILENT.contains(&kind) => {}
                _ if found.is_some() || !tokens.is_empty() => break,
                "void" => found = Some(TypeName::Void),
                "auto" => found = Some(TypeName::Auto),
                kind => match basic(kind) {
                    Some(ty) => found = Some(ty),
                    None if self.types.contains(&name) => found = Some(TypeName::Named(name)),
                    None => break,
                },
            }
            self.at += 1;
        }
        let mut ty = match found {
            Some(ty) => ty,
            None if !tokens.is_empty() => TypeName::Scalar(integer(&tokens)),
            None => return self.error("a type that is not known"),
        };
        loop {
            if self.accept("*") {
                ty = TypeName::Pointer(Box::new(ty));
            } else if self.accept("&") {
                ty = TypeName::Reference(Box::new(ty));
            } else if matches!(self.kind(), TokenKind::Name(name) if SILENT.contains(&&**name)
                || matches!(&**name, "__local" | "local"))
            {
                self.at += 1;
            } else {
                return Ok(ty);
            }
        }
    }

    /// `* name[2][3]` behind a type: the name and the whole type.
    fn declarator(&mut self, mut ty: TypeName) -> ParseResult<(Rc<str>, TypeName)> {
        loop {
            if self.accept("*") {
                ty = TypeName::Pointer(Box::new(ty));
            } else if self.accept("&") {
                ty = TypeName::Reference(Box::new(ty));
            } else if matches!(self.kind(), TokenKind::Name(name) if SILENT.contains(&&**name)) {
                self.at += 1;
            } else {
                break;
            }
        }
        if self.accept("(") {
            // A pointer to an array.
            let reference = self.is("&");
            self.at += 1;
            let name = self.name()?;
            self.expect(")")?;
            let inner = Box::new(self.dimensions(ty)?);
            let ty = if reference {
                TypeName::Reference(inner)
            } else {
                TypeName::Pointer(inner)
            };
            return Ok((name, ty));
        }
        let name = match self.kind() {
            TokenKind::Name(_) => self.name()?,
            // A parameter may go without.
            _ => "".into(),
        };
        Ok((name, self.dimensions(ty)?))
    }

    fn dimensions(&mut self, element: TypeName) -> ParseResult<TypeName> {
        if !self.accept("[") {
            return Ok(element);
        }
        let count = if self.is("]") {
            None
        } else {
            Some(Box::new(self.assignment()?))
        };
        self.expect("]")?;
        let element = self.deeper(|p| p.dimensions(element))?;
        Ok(TypeName::Array(Box::new(element), count))
    }

    // ---- statements ----------------------------------------------------------------------------

    fn braces(&mut self) -> ParseResult<Vec<Stmt>> {
        self.expect("{")?;
        let mut found = Vec::new();
        while !self.accept("}") {
            if *self.kind() == TokenKind::End {
                return self.error("`}` is missing");
            }
            found.push(self.statement()?);
        }
        Ok(found)
    }

    fn statement(&mut self) -> ParseResult<Stmt> {
        self.deeper(Self::statement_here)
    }

    fn statement_here(&mut self) -> ParseResult<Stmt> {
        let place = self.place();
        if self.is("{") {
            return Ok(Stmt::Block(self.braces()?, true));
        }
        if self.accept(";") {
            return Ok(Stmt::Block(Vec::new(), true));
        }
        let keyword = match self.kind() {
            TokenKind::Name(name) => name.clone(),
            _ => "".into(),
        };
        match &*keyword {
            "if" => {
                self.at += 1;
                let chosen = self.accept_name("constexpr");
                self.expect("(")?;
                let condition = self.expression()?;
                self.expect(")")?;
                let then = self.statement()?;
                let otherwise = if self.accept_name("else") {
                    Some(Box::new(self.statement()?))
                } else {
                    None
                };
                Ok(if chosen {
                    Stmt::Chosen(condition, Box::new(then), otherwise)
                } else {
                    Stmt::If(condition, Box::new(then), otherwise)
                })
            }
            "for" => {
                self.at += 1;
                self.expect("(")?;
                let init = if self.accept(";") {
                    None
                } else {
                    Some(self.simple()?)
                };
                let condition = if self.is(";") {
                    None
                } else {
                    Some(self.expression()?)
                };
                self.expect(";")?;
                let step = if self.is(")") {
                    None
                } else {
                    Some(self.expression()?)
                };
                self.expect(")")?;
                let body = self.statement()?;
                Ok(Stmt::Loop(Box::new(Loop {
                    init,
                    condition,
                    step,
                    body,
                    body_first: false,
                    place,
                })))
            }
            "while" => {
                self.at += 1;
                self.expect("(")?;
                let condition = Some(self.expression()?);
                self.expect(")")?;
                let body = self.statement()?;
                Ok(Stmt::Loop(Box::new(Loop {
                    init: None,
                    condition,
                    step: None,
                    body,
                    body_first: false,
                    place,
                })))
            }
            "do" => {
                self.at += 1;
                let body = self.statement()?;
                if !self.accept_name("while") {
                    return self.error("`while` is missing");
                }
                self.expect("(")?;
                let condition = Some(self.expression()?);
                self.expect(")")?;
                self.expect(";")?;
                Ok(Stmt::Loop(Box::new(Loop {
                    init: None,
                    condition,
                    step: None,
                    body,
                    body_first: true,
                    place,
                })))
            }
            "switch" => self.switch(),
            "break" => {
                self.at += 1;
                self.expect(";")?;
                Ok(Stmt::Break)
            }
            "continue" => {
                self.at += 1;
                self.expect(";")?;
                Ok(Stmt::Continue)
            }
            "return" => {
                self.at += 1;
                let value = if self.is(";") {
                    None
                } else if self.is("{") {
                    Some(self.list(None)?)
                } else {
                    Some(self.expression()?)
                };
                self.expect(";")?;
                Ok(Stmt::Return(value, place))
            }
            "goto" | "asm" | "__asm__" | "try" | "throw" => {
                self.error("a statement that is not read")
            }
            _ => self.simple(),
        }
    }

    fn switch(&mut self) -> ParseResult<Stmt> {
        self.at += 1;
        self.expect("(")?;
        let value = self.expression()?;
        self.expect(")")?;
        self.expect("{")?;
        let mut parts: Vec<(Vec<Option<Expr>>, Vec<Stmt>)> = Vec::new();
        while !self.accept("}") {
            let mut labels = Vec::new();
            loop {
                if self.accept_name("case") {
                    labels.push(Some(self.conditional()?));
                } else if self.accept_name("default") {
                    labels.push(None);
                } else {
                    break;
                }
                self.expect(":")?;
            }
            if !labels.is_empty() {
                parts.push((labels, Vec::new()));
                continue;
            }
            let statement = self.statement()?;
            match parts.last_mut() {
                Some((_, body)) => body.push(statement),
                None => return self.error("a statement before the first `case`"),
            }
        }
        Ok(Stmt::Switch(value, parts))
    }

    /// A declaration or an expression, with its `;`.
    fn simple(&mut self) -> ParseResult<Stmt> {
        let mut storage = Storage::Own;
        let mut external = false;
        let from = self.at;
        let mut declared = false;
        while let TokenKind::Name(name) = self.kind() {
            match &**name {
                "extern" => external = true,
                "static" => declared = true,
                "__shared__" | "__local" | "local" => {
                    // `__local float *p` is a pointer of the thread's own: seen below.
                    storage = Storage::Shared;
                }
                "typedef" | "using" => return self.error("a type declared in a function"),
                _ => break,
            }
            self.at += 1;
        }
        if storage == Storage::Own && !external && !declared && !self.starts_type() {
            self.at = from;
            let expression = self.expression()?;
            self.expect(";")?;
            return Ok(Stmt::Expr(expression));
        }
        // The address space may follow other specifiers: `const __local float *p`.
        let mut at = self.at;
        while let Some(Token {
            kind: TokenKind::Name(name),
            ..
        }) = self.tokens.get(at)
        {
            if matches!(&**name, "__shared__" | "__local" | "local") {
                storage = Storage::Shared;
            }
            if matches!(&**name, "__constant__" | "__constant") && storage == Storage::Own {
                storage = Storage::Constant;
            }
            at += 1;
        }
        if external {
            storage = Storage::DynamicShared;
        }
        let ty = self.type_name()?;
        let storage = match (&ty, self.dialect, storage) {
            (TypeName::Pointer(_), Dialect::OpenCl, _) => Storage::Own,
            (_, _, storage) => storage,
        };
        let mut found = Vec::new();
        self.declarators(storage, &ty, &mut found)?;
        Ok(match found.pop() {
            Some(only) if found.is_empty() => only,
            Some(last) => {
                found.push(last);
                Stmt::Block(found, false)
            }
            None => Stmt::Block(found, false),
        })
    }

    fn declarators(
        &mut self,
        storage: Storage,
        ty: &TypeName,
        out: &mut Vec<Stmt>,
    ) -> ParseResult<()> {
        loop {
            let place = self.place();
            let (name, ty) = self.declarator(ty.clone())?;
            let storage = match ty {
                TypeName::Pointer(_) if self.dialect == Dialect::OpenCl => Storage::Own,
                _ => storage,
            };
            while self.names("__attribute__") {
                self.at += 1;
                self.skip_group();
            }
            let init = if self.accept("=") {
                Some(if self.is("{") {
                    self.list(None)?
                } else {
                    self.assignment()?
                })
            } else if self.is("{") {
                Some(self.list(None)?)
            } else if self.accept("(") {
                let value = self.assignment()?;
                self.expect(")")?;
                Some(value)
            } else {
                None
            };
            out.push(Stmt::Declare(Rc::new(Declaration {
                storage,
                ty,
                name,
                init,
                place,
            })));
            if !self.accept(",") {
                return self.expect(";");
            }
        }
    }

    // ---- expressions ---------------------------------------------------------------------------

    fn expression(&mut self) -> ParseResult<Expr> {
        let mut left = self.assignment()?;
        while self.accept(",") {
            let right = self.assignment()?;
            left = Expr {
                place: left.place,
                kind: Kind::Comma(Box::new(left), Box::new(right)),
            };
        }
        Ok(left)
    }

    fn assignment(&mut self) -> ParseResult<Expr> {
        self.deeper(|p| {
            let place = p.place();
            let left = p.conditional()?;
            let op = match p.kind() {
                TokenKind::Sign("=") => None,
                TokenKind::Sign("+=") => Some(Op::Add),
                TokenKind::Sign("-=") => Some(Op::Sub),
                TokenKind::Sign("*=") => Some(Op::Mul),
                TokenKind::Sign("/=") => Some(Op::Div),
                TokenKind::Sign("%=") => Some(Op::Rem),
                TokenKind::Sign("&=") => Some(Op::And),
                TokenKind::Sign("|=") => Some(Op::Or),
                TokenKind::Sign("^=") => Some(Op::Xor),
                TokenKind::Sign("<<=") => Some(Op::Shl),
                TokenKind::Sign(">>=") => Some(Op::Shr),
                _ => return Ok(left),
            };
            p.at += 1;
            let right = if p.is("{") {
                p.list(None)?
            } else {
                p.assignment()?
            };
            Ok(Expr {
                place,
                kind: Kind::Assign(op, Box::new(left), Box::new(right)),
            })
        })
    }

    fn conditional(&mut self) -> ParseResult<Expr> {
        let place = self.place();
        let condition = self.binary(0)?;
        if !self.accept("?") {
            return Ok(condition);
        }
        let yes = self.expression()?;
        self.expect(":")?;
        let no = self.assignment()?;
        Ok(Expr {
            place,
            kind: Kind::Select(Box::new(condition), Box::new(yes), Box::new(no)),
        })
    }

    fn binary(&mut self, least: u8) -> ParseResult<Expr> {
        // A parenthesis that opens a part belongs to the whole.
        let place = self.place();
        let mut left = self.unary()?;
        loop {
            let (strength, what) = match self.kind() {
                TokenKind::Sign("||") => (1, Err(false)),
                TokenKind::Sign("&&") => (2, Err(true)),
                TokenKind::Sign("|") => (3, Ok(Op::Or)),
                TokenKind::Sign("^") => (4, Ok(Op::Xor)),
                TokenKind::Sign("&") => (5, Ok(Op::And)),
                TokenKind::Sign("==") => (6, Ok(Op::Eq)),
                TokenKind::Sign("!=") => (6, Ok(Op::Ne)),
                TokenKind::Sign("<") => (7, Ok(Op::Lt)),
                TokenKind::Sign("<=") => (7, Ok(Op::Le)),
                TokenKind::Sign(">") if least < 7 => (7, Ok(Op::Gt)),
                TokenKind::Sign(">=") => (7, Ok(Op::Ge)),
                TokenKind::Sign("<<") => (8, Ok(Op::Shl)),
                TokenKind::Sign(">>") => (8, Ok(Op::Shr)),
                TokenKind::Sign("+") => (9, Ok(Op::Add)),
                TokenKind::Sign("-") => (9, Ok(Op::Sub)),
                TokenKind::Sign("*") => (10, Ok(Op::Mul)),
                TokenKind::Sign("/") => (10, Ok(Op::Div)),
                TokenKind::Sign("%") => (10, Ok(Op::Rem)),
                _ => return Ok(left),
            };
            if strength < least.max(1) {
                return Ok(left);
            }
            self.at += 1;
            let right = self.deeper(|p| p.binary(strength + 1))?;
            let (a, b) = (Box::new(left), Box::new(right));
            left = Expr {
                place,
                kind: match what {
                    Ok(op) => Kind::Binary(op, a, b),
                    Err(both) => Kind::Logic(both, a, b),
                },
            };
        }
    }

    fn unary(&mut self) -> ParseResult<Expr> {
        self.deeper(Self::unary_here)
    }

    fn unary_here(&mut self) -> ParseResult<Expr> {
        let place = self.place();
        let TokenKind::Sign(sign) = *self.kind() else {
            if self.names("sizeof") {
                self.at += 1;
                let kind = if self.is("(") {
                    self.at += 1;
                    if self.starts_type()
                        || matches!(self.kind(), TokenKind::Name(name) if self.types.contains(name))
                    {
                        let ty = self.type_name()?;
                        let ty = self.dimensions(ty)?;
                        self.expect(")")?;
                        Kind::SizeOfType(ty)
                    } else {
                        let inner = self.expression()?;
                        self.expect(")")?;
                        Kind::SizeOf(Box::new(inner))
                    }
                } else {
                    Kind::SizeOf(Box::new(self.unary()?))
                };
                return Ok(Expr { kind, place });
            }
            return self.postfix();
        };
        let kind: fn(Box<Expr>) -> Kind = match sign {
            "-" => Kind::Negate,
            "+" => Kind::Plus,
            "!" => Kind::Not,
            "~" => Kind::Invert,
            "*" => Kind::Deref,
            "&" => Kind::AddressOf,
            "++" => |inner| Kind::Step(1, false, inner),
            "--" => |inner| Kind::Step(-1, false, inner),
            "(" => {
                self.at += 1;
                let cast = self.starts_type()
                    || matches!(self.kind(), TokenKind::Name(name) if self.types.contains(name)
                        && matches!(self.ahead(1), TokenKind::Sign(")" | "*")));
                self.at -= 1;
                return if cast { self.cast() } else { self.postfix() };
            }
            _ => return self.postfix(),
        };
        self.at += 1;
        let inner = Box::new(self.unary()?);
        Ok(Expr {
            kind: kind(inner),
            place,
        })
    }

    fn cast(&mut self) -> ParseResult<Expr> {
        let place = self.place();
        self.at += 1;
        let mut ty = self.type_name()?;
        if self.accept("(") {
            // `(float (*)[N])p`
            self.expect("*")?;
            self.expect(")")?;
            ty = TypeName::Pointer(Box::new(self.dimensions(ty)?));
        }
        self.expect(")")?;
        if self.is("{") {
            return self.list(Some(ty));
        }
        if matches!(ty, TypeName::Vector(..)) && self.is("(") {
            // OpenCL's `(float4)(a, b, c, d)`.
            self.at += 1;
            let mut parts = vec![self.assignment()?];
            while self.accept(",") {
                parts.push(self.assignment()?);
            }
            self.expect(")")?;
            let built = Expr {
                kind: Kind::List(Some(ty), parts),
                place,
            };
            return self.suffixes(built, place);
        }
        let inner = self.unary()?;
        Ok(Expr {
            kind: Kind::Cast(ty, Box::new(inner)),
            place,
        })
    }

    fn list(&mut self, ty: Option<TypeName>) -> ParseResult<Expr> {
        let place = self.place();
        self.expect("{")?;
        let mut parts = Vec::new();
        while !self.accept("}") {
            if self.is(".") {
                return self.error("an initializer by name");
            }
            parts.push(if self.is("{") {
                self.deeper(|p| p.list(None))?
            } else {
                self.assignment()?
            });
            if !self.accept(",") {
                self.expect("}")?;
                break;
            }
        }
        Ok(Expr {
            kind: Kind::List(ty, parts),
            place,
        })
    }

    fn postfix(&mut self) -> ParseResult<Expr> {
        let place = self.place();
        let first = self.primary()?;
        self.suffixes(first, place)
    }

    fn suffixes(&mut self, mut left: Expr, place: Position) -> ParseResult<Expr> {
        loop {
            let kind = match self.kind() {
                TokenKind::Sign("[") => {
                    self.at += 1;
                    let index = self.expression()?;
                    self.expect("]")?;
                    Kind::Index(Box::new(left), Box::new(index))
                }
                TokenKind::Sign(sign @ ("." | "->")) => {
                    let arrow = *sign == "->";
                    self.at += 1;
                    let name = self.name()?;
                    if arrow {
                        left = Expr {
                            kind: Kind::Deref(Box::new(left)),
                            place,
                        };
                    }
                    if self.is("(") {
                        Kind::Method(Box::new(left), name, self.arguments()?)
                    } else {
                        Kind::Field(Box::new(left), name)
                    }
                }
                TokenKind::Sign("++") => {
                    self.at += 1;
                    Kind::Step(1, true, Box::new(left))
                }
                TokenKind::Sign("--") => {
                    self.at += 1;
                    Kind::Step(-1, true, Box::new(left))
                }
                _ => return Ok(left),
            };
            left = Expr { kind, place };
        }
    }

    fn arguments(&mut self) -> ParseResult<Vec<Expr>> {
        self.expect("(")?;
        let mut found = Vec::new();
        while !self.accept(")") {
            found.push(if self.is("{") {
                self.list(None)?
            } else {
                self.assignment()?
            });
            if !self.accept(",") {
                self.expect(")")?;
                break;
            }
        }
        Ok(found)
    }

    fn primary(&mut self) -> ParseResult<Expr> {
        let place = self.place();
        let kind = self.kind().clone();
        let kind = match kind {
            TokenKind::Number(text) => {
                self.at += 1;
                number(&text).ok_or_else(|| Error::new(place, "a number that is not read"))?
            }
            TokenKind::Char(value) => {
                self.at += 1;
                Kind::Int(value, Scalar::I8)
            }
            TokenKind::Sign("(") => {
                self.at += 1;
                let inner = self.expression()?;
                self.expect(")")?;
                return Ok(inner);
            }
            TokenKind::Name(name) => return self.named(&name, place),
            _ => return self.error("an expression is missing"),
        };
        Ok(Expr { kind, place })
    }

    fn named(&mut self, name: &Rc<str>, place: Position) -> ParseResult<Expr> {
        let kind = match &**name {
            "true" | "false" => {
                self.at += 1;
                Kind::Int(u64::from(&**name == "true"), Scalar::Bool)
            }
            "nullptr" | "NULL" => {
                self.at += 1;
                Kind::Int(0, Scalar::I64)
            }
            "static_cast" | "reinterpret_cast" | "const_cast" => {
                self.at += 1;
                self.expect("<")?;
                let ty = self.type_name()?;
                self.expect(">")?;
                self.expect("(")?;
                let inner = self.expression()?;
                self.expect(")")?;
                Kind::Cast(ty, Box::new(inner))
            }
            _ if basic(name).is_some() || self.types.contains(name) || &**name == "unsigned" => {
                let ty = self.type_name()?;
                if self.is("{") {
                    return self.list(Some(ty));
                }
                let mut arguments = self.arguments()?;
                match (arguments.pop(), arguments.is_empty()) {
                    (Some(only), true) if !matches!(ty, TypeName::Vector(..)) => {
                        Kind::Cast(ty, Box::new(only))
                    }
                    (Some(last), _) => {
                        arguments.push(last);
                        Kind::List(Some(ty), arguments)
                    }
                    (None, _) => Kind::List(Some(ty), Vec::new()),
                }
            }
            _ => {
                self.at += 1;
                let mut full = name.clone();
                while self.is("::") {
                    self.at += 1;
                    full = self.name()?;
                }
                let template =
                    self.file.functions.get(&full).is_some_and(|all| {
                        all.iter().any(|function| !function.template.is_empty())
                    });
                let mut arguments = Vec::new();
                if template && self.accept("<") {
                    while !self.accept(">") {
                        arguments.push(if self.starts_type() {
                            TemplateArgument::Type(self.type_name()?)
                        } else {
                            TemplateArgument::ThreadValues(self.binary(8)?)
                        });
                        self.accept(",");
                    }
                }
                if self.is("(") {
                    if let Some(ty) = full.strip_prefix("make_").and_then(basic) {
                        Kind::List(Some(ty), self.arguments()?)
                    } else {
                        Kind::Call(full, arguments, self.arguments()?)
                    }
                } else {
                    Kind::Name(full)
                }
            }
        };
        Ok(Expr { kind, place })
    }
}

/// `unsigned long int` and so on.
fn integer(tokens: &[Rc<str>]) -> Scalar {
    let has = |kind: &str| tokens.iter().any(|found| &**found == kind);
    match (has("unsigned"), has("char"), has("short"), has("long")) {
        (false, true, ..) => Scalar::I8,
        (true, true, ..) => Scalar::U8,
        (false, _, true, _) => Scalar::I16,
        (true, _, true, _) => Scalar::U16,
        (false, _, _, true) => Scalar::I64,
        (true, _, _, true) => Scalar::U64,
        (true, ..) => Scalar::U32,
        (false, ..) => Scalar::I32,
    }
}

/// The types that no declaration makes.
pub(crate) fn basic(name: &str) -> Option<TypeName> {
    let scalar = |name: &str| {
        Some(match name {
            "bool" => Scalar::Bool,
            "char" | "int8_t" => Scalar::I8,
            "uchar" | "uint8_t" => Scalar::U8,
            "short" | "int16_t" => Scalar::I16,
            "ushort" | "uint16_t" => Scalar::U16,
            "int" | "int32_t" => Scalar::I32,
            "uint" | "uint32_t" => Scalar::U32,
            "long" | "longlong" | "int64_t" | "ptrdiff_t" | "intptr_t" => Scalar::I64,
            "ulong" | "ulonglong" | "uint64_t" | "size_t" | "uintptr_t" => Scalar::U64,
            "half" | "__half" => Scalar::F16,
            "float" => Scalar::F32,
            "double" => Scalar::F64,
            _ => return None,
        })
    };
    if let Some(found) = scalar(name) {
        return Some(TypeName::Scalar(found));
    }
    if name == "dim3" {
        return Some(TypeName::Vector(Scalar::U32, 3));
    }
    let digits = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
    let lanes: u8 = name[digits.len()..].parse().ok()?;
    if !matches!(lanes, 1 | 2 | 3 | 4 | 8 | 16) {
        return None;
    }
    scalar(digits).map(|found| TypeName::Vector(found, lanes))
}

fn number(text: &str) -> Option<Kind> {
    let clean: String = text.chars().filter(|&letter| letter != '\'').collect();
    let lower = clean.to_ascii_lowercase();
    let hex = lower.strip_prefix("0x");
    if hex.is_none() && (lower.contains('.') || lower.contains('e') || lower.ends_with('f')) {
        let (digits, scalar) = match lower.strip_suffix(['f', 'h']) {
            Some(digits) if lower.ends_with('f') => (digits, Scalar::F32),
            Some(digits) => (digits, Scalar::F16),
            None => (lower.as_str(), Scalar::F64),
        };
        let number = if scalar == Scalar::F32 {
            f64::from(digits.parse::<f32>().ok()?)
        } else {
            digits.parse().ok()?
        };
        return Some(Kind::Float(number, scalar));
    }
    let body = hex.unwrap_or(&lower);
    let digits = body.trim_end_matches(['u', 'l']);
    let suffix = &body[digits.len()..];
    let value = if hex.is_some() {
        u64::from_str_radix(digits, 16).ok()?
    } else if let Some(binary) = digits.strip_prefix("0b") {
        u64::from_str_radix(binary, 2).ok()?
    } else if digits.len() > 1 && digits.starts_with('0') {
        u64::from_str_radix(digits, 8).ok()?
    } else {
        digits.parse().ok()?
    };
    let (unsigned, long) = (suffix.contains('u'), suffix.contains('l'));
    let scalar = if !long && !unsigned && i32::try_from(value).is_ok() {
        Scalar::I32
    } else if !long && (unsigned || hex.is_some()) && u32::try_from(value).is_ok() {
        Scalar::U32
    } else if !unsigned && i64::try_from(value).is_ok() {
        Scalar::I64
    } else {
        Scalar::U64
    };
    Some(Kind::Int(value, scalar))
}
