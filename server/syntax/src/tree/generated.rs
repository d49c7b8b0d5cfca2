//! Made of the grammars' `node-types.json` by `cargo xtask generate`: do not edit.

/// A variant of `Kind` and the name of the kind in the grammars.
macro_rules! list_kinds {
    ($make:ident) => {
        $make! {
            AbstractArrayDeclarator "abstract_array_declarator"
            AbstractBlockPointerDeclarator "abstract_block_pointer_declarator"
            AbstractFunctionDeclarator "abstract_function_declarator"
            AbstractParenthesizedDeclarator "abstract_parenthesized_declarator"
            AbstractPointerDeclarator "abstract_pointer_declarator"
            AbstractReferenceDeclarator "abstract_reference_declarator"
            AccessQualifier "access_qualifier"
            AccessSpecifier "access_specifier"
            AddressSpaceQualifier "address_space_qualifier"
            AliasDeclaration "alias_declaration"
            AlignasQualifier "alignas_qualifier"
            AlignofExpression "alignof_expression"
            Annotation "annotation"
            ArgumentList "argument_list"
            ArrayDeclarator "array_declarator"
            AssignmentExpression "assignment_expression"
            Attribute "attribute"
            AttributeDeclaration "attribute_declaration"
            AttributeSpecifier "attribute_specifier"
            AttributedDeclarator "attributed_declarator"
            AttributedStatement "attributed_statement"
            Auto "auto"
            BaseClassClause "base_class_clause"
            BinaryExpression "binary_expression"
            BitfieldClause "bitfield_clause"
            BlockLiteral "block_literal"
            BlockPointerDeclarator "block_pointer_declarator"
            BreakStatement "break_statement"
            CallExpression "call_expression"
            CaseStatement "case_statement"
            CastExpression "cast_expression"
            CatchClause "catch_clause"
            CharLiteral "char_literal"
            Character "character"
            ClassSpecifier "class_specifier"
            CoAwaitExpression "co_await_expression"
            CoReturnStatement "co_return_statement"
            CoYieldStatement "co_yield_statement"
            CommaExpression "comma_expression"
            Comment "comment"
            CompoundLiteralExpression "compound_literal_expression"
            CompoundRequirement "compound_requirement"
            CompoundStatement "compound_statement"
            ConcatenatedString "concatenated_string"
            ConceptDefinition "concept_definition"
            ConditionClause "condition_clause"
            ConditionalExpression "conditional_expression"
            ConstevalBlockDeclaration "consteval_block_declaration"
            ConstraintConjunction "constraint_conjunction"
            ConstraintDisjunction "constraint_disjunction"
            ContinueStatement "continue_statement"
            Declaration "declaration"
            DeclarationList "declaration_list"
            Decltype "decltype"
            DefaultMethodClause "default_method_clause"
            DeleteExpression "delete_expression"
            DeleteMethodClause "delete_method_clause"
            DependentName "dependent_name"
            DependentType "dependent_type"
            DestructorName "destructor_name"
            DoStatement "do_statement"
            ElseClause "else_clause"
            EnumSpecifier "enum_specifier"
            Enumerator "enumerator"
            EnumeratorList "enumerator_list"
            EscapeSequence "escape_sequence"
            ExpansionStatement "expansion_statement"
            ExplicitFunctionSpecifier "explicit_function_specifier"
            ExplicitObjectParameterDeclaration "explicit_object_parameter_declaration"
            ExportDeclaration "export_declaration"
            ExpressionStatement "expression_statement"
            ExtensionExpression "extension_expression"
            False "false"
            FieldDeclaration "field_declaration"
            FieldDeclarationList "field_declaration_list"
            FieldDesignator "field_designator"
            FieldExpression "field_expression"
            FieldIdentifier "field_identifier"
            FieldInitializer "field_initializer"
            FieldInitializerList "field_initializer_list"
            FoldExpression "fold_expression"
            ForRangeLoop "for_range_loop"
            ForStatement "for_statement"
            FriendDeclaration "friend_declaration"
            FunctionDeclarator "function_declarator"
            FunctionDefinition "function_definition"
            FunctionQualifier "function_qualifier"
            GenericExpression "generic_expression"
            GlobalModuleFragmentDeclaration "global_module_fragment_declaration"
            GnuAsmClobberList "gnu_asm_clobber_list"
            GnuAsmExpression "gnu_asm_expression"
            GnuAsmGotoList "gnu_asm_goto_list"
            GnuAsmInputOperand "gnu_asm_input_operand"
            GnuAsmInputOperandList "gnu_asm_input_operand_list"
            GnuAsmOutputOperand "gnu_asm_output_operand"
            GnuAsmOutputOperandList "gnu_asm_output_operand_list"
            GnuAsmQualifier "gnu_asm_qualifier"
            GotoStatement "goto_statement"
            Identifier "identifier"
            IfStatement "if_statement"
            ImportDeclaration "import_declaration"
            IncompleteForStatement "incomplete_for_statement"
            InitDeclarator "init_declarator"
            InitStatement "init_statement"
            InitializerList "initializer_list"
            InitializerPair "initializer_pair"
            KernelCallSyntax "kernel_call_syntax"
            LabeledStatement "labeled_statement"
            LambdaCaptureInitializer "lambda_capture_initializer"
            LambdaCaptureSpecifier "lambda_capture_specifier"
            LambdaDeclarator "lambda_declarator"
            LambdaDefaultCapture "lambda_default_capture"
            LambdaExpression "lambda_expression"
            LambdaSpecifier "lambda_specifier"
            LaunchBounds "launch_bounds"
            LinkageSpecification "linkage_specification"
            LiteralSuffix "literal_suffix"
            ModuleDeclaration "module_declaration"
            ModuleName "module_name"
            ModulePartition "module_partition"
            MsBasedModifier "ms_based_modifier"
            MsCallModifier "ms_call_modifier"
            MsDeclspecModifier "ms_declspec_modifier"
            MsPointerModifier "ms_pointer_modifier"
            MsRestrictModifier "ms_restrict_modifier"
            MsSignedPtrModifier "ms_signed_ptr_modifier"
            MsUnalignedPtrModifier "ms_unaligned_ptr_modifier"
            MsUnsignedPtrModifier "ms_unsigned_ptr_modifier"
            NamespaceAliasDefinition "namespace_alias_definition"
            NamespaceDefinition "namespace_definition"
            NamespaceIdentifier "namespace_identifier"
            NestedNamespaceSpecifier "nested_namespace_specifier"
            NewDeclarator "new_declarator"
            NewExpression "new_expression"
            Noexcept "noexcept"
            Null "null"
            NumberLiteral "number_literal"
            OffsetofExpression "offsetof_expression"
            OperatorCast "operator_cast"
            OperatorName "operator_name"
            OptionalParameterDeclaration "optional_parameter_declaration"
            OptionalTypeParameterDeclaration "optional_type_parameter_declaration"
            ParameterDeclaration "parameter_declaration"
            ParameterList "parameter_list"
            ParameterPackExpansion "parameter_pack_expansion"
            ParenthesizedDeclarator "parenthesized_declarator"
            ParenthesizedExpression "parenthesized_expression"
            PipeSpecifier "pipe_specifier"
            PlaceholderTypeSpecifier "placeholder_type_specifier"
            PointerDeclarator "pointer_declarator"
            PointerExpression "pointer_expression"
            PointerTypeDeclarator "pointer_type_declarator"
            PreprocArg "preproc_arg"
            PreprocCall "preproc_call"
            PreprocDef "preproc_def"
            PreprocDefined "preproc_defined"
            PreprocDirective "preproc_directive"
            PreprocElif "preproc_elif"
            PreprocElifdef "preproc_elifdef"
            PreprocElse "preproc_else"
            PreprocFunctionDef "preproc_function_def"
            PreprocIf "preproc_if"
            PreprocIfdef "preproc_ifdef"
            PreprocInclude "preproc_include"
            PreprocParams "preproc_params"
            PrimitiveType "primitive_type"
            PrivateModuleFragmentDeclaration "private_module_fragment_declaration"
            PureVirtualClause "pure_virtual_clause"
            QualifiedIdentifier "qualified_identifier"
            RawStringContent "raw_string_content"
            RawStringDelimiter "raw_string_delimiter"
            RawStringLiteral "raw_string_literal"
            RefQualifier "ref_qualifier"
            ReferenceDeclarator "reference_declarator"
            ReflectExpression "reflect_expression"
            RequirementSeq "requirement_seq"
            RequiresClause "requires_clause"
            RequiresExpression "requires_expression"
            ReturnStatement "return_statement"
            SehExceptClause "seh_except_clause"
            SehFinallyClause "seh_finally_clause"
            SehLeaveStatement "seh_leave_statement"
            SehTryStatement "seh_try_statement"
            SimpleRequirement "simple_requirement"
            SizedTypeSpecifier "sized_type_specifier"
            SizeofExpression "sizeof_expression"
            SpliceExpression "splice_expression"
            SpliceSpecifier "splice_specifier"
            SpliceTypeSpecifier "splice_type_specifier"
            StatementIdentifier "statement_identifier"
            StaticAssertDeclaration "static_assert_declaration"
            StorageClassSpecifier "storage_class_specifier"
            StringContent "string_content"
            StringLiteral "string_literal"
            StructSpecifier "struct_specifier"
            StructuredBindingDeclarator "structured_binding_declarator"
            SubscriptArgumentList "subscript_argument_list"
            SubscriptDesignator "subscript_designator"
            SubscriptExpression "subscript_expression"
            SubscriptRangeDesignator "subscript_range_designator"
            SwitchStatement "switch_statement"
            SystemLibString "system_lib_string"
            TemplateArgumentList "template_argument_list"
            TemplateDeclaration "template_declaration"
            TemplateFunction "template_function"
            TemplateInstantiation "template_instantiation"
            TemplateMethod "template_method"
            TemplateParameterList "template_parameter_list"
            TemplateTemplateParameterDeclaration "template_template_parameter_declaration"
            TemplateType "template_type"
            This "this"
            ThrowSpecifier "throw_specifier"
            ThrowStatement "throw_statement"
            TrailingReturnType "trailing_return_type"
            TranslationUnit "translation_unit"
            True "true"
            TryStatement "try_statement"
            TypeDefinition "type_definition"
            TypeDescriptor "type_descriptor"
            TypeIdentifier "type_identifier"
            TypeParameterDeclaration "type_parameter_declaration"
            TypeQualifier "type_qualifier"
            TypeRequirement "type_requirement"
            UnaryExpression "unary_expression"
            UnionSpecifier "union_specifier"
            UpdateExpression "update_expression"
            UserDefinedLiteral "user_defined_literal"
            UsingDeclaration "using_declaration"
            VariadicDeclarator "variadic_declarator"
            VariadicParameter "variadic_parameter"
            VariadicParameterDeclaration "variadic_parameter_declaration"
            VariadicTypeParameterDeclaration "variadic_type_parameter_declaration"
            VectorLiteral "vector_literal"
            VirtualSpecifier "virtual_specifier"
            WhileStatement "while_statement"
            Not "!"
            NotEqual "!="
            Percent "%"
            PercentEqual "%="
            Ampersand "&"
            And "&&"
            AmpersandEqual "&="
            OpenParenthesis "("
            CloseParenthesis ")"
            Star "*"
            StarEqual "*="
            Plus "+"
            PlusPlus "++"
            PlusEqual "+="
            Comma ","
            Minus "-"
            MinusMinus "--"
            MinusEqual "-="
            Arrow "->"
            Dot "."
            Ellipsis "..."
            Slash "/"
            SlashEqual "/="
            Colon ":"
            ColonColon "::"
            Semicolon ";"
            Less "<"
            ShiftLeft "<<"
            LaunchOpen "<<<"
            ShiftLeftEqual "<<="
            LessEqual "<="
            Equal "="
            EqualEqual "=="
            Greater ">"
            GreaterEqual ">="
            ShiftRight ">>"
            ShiftRightEqual ">>="
            LaunchClose ">>>"
            Question "?"
            OpenBracket "["
            CloseBracket "]"
            Caret "^"
            CaretEqual "^="
            OpenBrace "{"
            Bar "|"
            BarEqual "|="
            Or "||"
            CloseBrace "}"
            Tilde "~"
            NullMacro "NULL"
            CudaConstant "__constant__"
            CudaDevice "__device__"
            CudaGlobal "__global__"
            CudaHost "__host__"
            CudaManaged "__managed__"
            CudaShared "__shared__"
            AndWord "and"
            BitandWord "bitand"
            BitorWord "bitor"
            ComplWord "compl"
            NotWord "not"
            NotEqWord "not_eq"
            OrWord "or"
            XorWord "xor"
            Const "const"
            Constexpr "constexpr"
            Else "else"
            Extern "extern"
            If "if"
            Nullptr "nullptr"
            Static "static"
            Virtual "virtual"
            Volatile "volatile"
        }
    };
}

/// A variant of `Field` and the name of the field in the grammars.
macro_rules! list_fields {
    ($make:ident) => {
        $make! {
            Alternative "alternative"
            Argument "argument"
            Arguments "arguments"
            AssemblyCode "assembly_code"
            Base "base"
            Body "body"
            Captures "captures"
            Clobbers "clobbers"
            Condition "condition"
            Consequence "consequence"
            Constraint "constraint"
            Declarator "declarator"
            DefaultType "default_type"
            DefaultValue "default_value"
            Delimiter "delimiter"
            Designator "designator"
            Directive "directive"
            End "end"
            Field "field"
            Filter "filter"
            Function "function"
            GotoLabels "goto_labels"
            Header "header"
            Index "index"
            Indices "indices"
            Initializer "initializer"
            InputOperands "input_operands"
            Label "label"
            Left "left"
            Length "length"
            Member "member"
            Message "message"
            Name "name"
            Namespace "namespace"
            Operand "operand"
            Operator "operator"
            OutputOperands "output_operands"
            Parameters "parameters"
            Partition "partition"
            Path "path"
            Pattern "pattern"
            Placement "placement"
            Prefix "prefix"
            Register "register"
            Requirements "requirements"
            Right "right"
            Scope "scope"
            Size "size"
            Start "start"
            Symbol "symbol"
            TemplateParameters "template_parameters"
            Type "type"
            Update "update"
            Value "value"
        }
    };
}

/// A kind, and of each of its parts the method, the field, and the method for all of them where there may be several.
macro_rules! list_nodes {
    ($make:ident) => {
        $make! {
            AbstractArrayDeclarator { declarator Declarator; size Size; }
            AbstractBlockPointerDeclarator { declarator Declarator; }
            AbstractFunctionDeclarator { declarator Declarator; parameters Parameters; }
            AbstractPointerDeclarator { declarator Declarator; }
            AliasDeclaration { name Name; ty Type; }
            AlignofExpression { ty Type; }
            ArgumentList { }
            ArrayDeclarator { declarator Declarator; size Size; }
            AssignmentExpression { left Left; operator Operator; right Right; }
            Attribute { arguments Arguments; name Name; namespace Namespace; prefix Prefix; }
            BinaryExpression { left Left; operator Operator; right Right; }
            BlockLiteral { body Body; parameters Parameters; ty Type; }
            BlockPointerDeclarator { declarator Declarator; }
            CallExpression { arguments Arguments; function Function all_function; }
            CaseStatement { value Value; }
            CastExpression { ty Type; value Value; }
            CatchClause { body Body; parameters Parameters; }
            ClassSpecifier { body Body; name Name; }
            CoAwaitExpression { argument Argument; operator Operator; }
            CommaExpression { left Left; right Right; }
            CompoundLiteralExpression { ty Type all_ty; value Value; }
            ConceptDefinition { name Name; }
            ConditionClause { initializer Initializer; value Value; }
            ConditionalExpression { alternative Alternative; condition Condition; consequence Consequence; }
            ConstevalBlockDeclaration { body Body; }
            ConstraintConjunction { left Left all_left; operator Operator; right Right all_right; }
            ConstraintDisjunction { left Left all_left; operator Operator; right Right all_right; }
            Declaration { declarator Declarator all_declarator; default_value DefaultValue; ty Type; value Value; }
            DoStatement { body Body; condition Condition; }
            EnumSpecifier { base Base; body Body; name Name; }
            Enumerator { name Name; value Value; }
            ExpansionStatement { body Body; declarator Declarator; initializer Initializer; right Right; ty Type; }
            FieldDeclaration { declarator Declarator all_declarator; default_value DefaultValue all_default_value; ty Type; }
            FieldExpression { argument Argument; field Field; operator Operator; }
            FoldExpression { left Left; operator Operator; right Right; }
            ForRangeLoop { body Body; declarator Declarator; initializer Initializer; right Right; ty Type; }
            ForStatement { body Body; condition Condition; initializer Initializer; update Update; }
            FunctionDeclarator { declarator Declarator; parameters Parameters; }
            FunctionDefinition { body Body; declarator Declarator; ty Type; }
            GnuAsmClobberList { register Register all_register; }
            GnuAsmExpression { assembly_code AssemblyCode; clobbers Clobbers; goto_labels GotoLabels; input_operands InputOperands; output_operands OutputOperands; }
            GnuAsmGotoList { label Label all_label; }
            GnuAsmInputOperand { constraint Constraint; symbol Symbol; value Value; }
            GnuAsmInputOperandList { operand Operand all_operand; }
            GnuAsmOutputOperand { constraint Constraint; symbol Symbol; value Value; }
            GnuAsmOutputOperandList { operand Operand all_operand; }
            GotoStatement { label Label; }
            IfStatement { alternative Alternative; condition Condition; consequence Consequence; }
            ImportDeclaration { header Header; name Name; partition Partition; }
            IncompleteForStatement { body Body; condition Condition; initializer Initializer; }
            InitDeclarator { declarator Declarator; value Value; }
            InitializerPair { designator Designator all_designator; value Value; }
            KernelCallSyntax { }
            LabeledStatement { label Label; }
            LambdaCaptureInitializer { left Left; right Right; }
            LambdaDeclarator { parameters Parameters; }
            LambdaExpression { body Body; captures Captures; constraint Constraint; declarator Declarator; template_parameters TemplateParameters; }
            LinkageSpecification { body Body; value Value; }
            ModuleDeclaration { name Name; partition Partition; }
            NamespaceAliasDefinition { name Name; }
            NamespaceDefinition { body Body; name Name; }
            NewDeclarator { length Length; }
            NewExpression { arguments Arguments; declarator Declarator; placement Placement; ty Type; }
            OffsetofExpression { member Member; ty Type; }
            OperatorCast { declarator Declarator; ty Type; }
            OptionalParameterDeclaration { declarator Declarator; default_value DefaultValue; ty Type; }
            OptionalTypeParameterDeclaration { default_type DefaultType; name Name; }
            ParameterDeclaration { declarator Declarator; ty Type; }
            ParameterList { }
            ParameterPackExpansion { pattern Pattern; }
            PipeSpecifier { ty Type; }
            PlaceholderTypeSpecifier { constraint Constraint; }
            PointerDeclarator { declarator Declarator; }
            PointerExpression { argument Argument; operator Operator; }
            PointerTypeDeclarator { declarator Declarator; }
            PreprocCall { argument Argument; directive Directive; }
            PreprocDef { name Name; value Value; }
            PreprocElif { alternative Alternative; condition Condition; }
            PreprocElifdef { alternative Alternative; name Name; }
            PreprocFunctionDef { name Name; parameters Parameters; value Value; }
            PreprocIf { alternative Alternative; condition Condition; }
            PreprocIfdef { alternative Alternative; name Name; }
            PreprocInclude { path Path; }
            QualifiedIdentifier { name Name all_name; scope Scope; }
            RawStringLiteral { delimiter Delimiter; }
            RequiresClause { constraint Constraint all_constraint; }
            RequiresExpression { parameters Parameters; requirements Requirements; }
            SehExceptClause { body Body; filter Filter; }
            SehFinallyClause { body Body; }
            SehTryStatement { body Body; }
            SizedTypeSpecifier { ty Type; }
            SizeofExpression { ty Type; value Value; }
            StaticAssertDeclaration { condition Condition; message Message; }
            StructSpecifier { body Body; name Name; }
            SubscriptExpression { argument Argument; index Index; indices Indices; }
            SubscriptRangeDesignator { end End; start Start; }
            SwitchStatement { body Body; condition Condition; }
            TemplateDeclaration { parameters Parameters; }
            TemplateFunction { arguments Arguments; name Name; }
            TemplateInstantiation { declarator Declarator; ty Type; }
            TemplateMethod { arguments Arguments; name Name; }
            TemplateTemplateParameterDeclaration { parameters Parameters; }
            TemplateType { arguments Arguments; name Name; }
            TryStatement { body Body; }
            TypeDefinition { declarator Declarator all_declarator; ty Type; }
            TypeDescriptor { declarator Declarator; ty Type; }
            UnaryExpression { argument Argument; operator Operator; }
            UnionSpecifier { body Body; name Name; }
            UpdateExpression { argument Argument; operator Operator; }
            VariadicParameterDeclaration { declarator Declarator; ty Type; }
            VectorLiteral { arguments Arguments; ty Type; }
            WhileStatement { body Body; condition Condition; }
        }
    };
}

pub(super) use {list_fields, list_kinds, list_nodes};
