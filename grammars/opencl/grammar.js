/**
 * @file OpenCL C 1.0 to 3.0 for tree-sitter, as it stands after preprocessing: of all directives only
 * `#pragma` lines are left. Based on tree-sitter-c, whose node and field names it keeps.
 */

/// <reference types="tree-sitter-cli/dsl" />
// @ts-check

const C = require('tree-sitter-c/grammar');

const { PREC } = C;

/** One word with no, two leading, or two leading and two trailing underscores. */
const withUnderscores = word => [word, `__${word}`];

const ADDRESS_SPACES = ['global', 'local', 'constant', 'private', 'generic'].flatMap(withUnderscores);
const ACCESS = ['read_only', 'write_only', 'read_write'].flatMap(withUnderscores);
const KERNEL = withUnderscores('kernel');
const QUALIFIERS = [
  ...['const', 'volatile', 'restrict'].flatMap(word => [word, `__${word}`, `__${word}__`]),
  '_Atomic',
];
const STORAGE = [
  'extern', 'static', 'auto', 'register',
  'inline', '__inline', '__inline__', '__forceinline',
];
const SIGNS = ['signed', '__signed__', 'unsigned', 'long', 'short'];
const ATTRIBUTE = ['__attribute__', '__attribute'];
const ASM = ['asm', '__asm', '__asm__'];
const STATEMENTS = [
  'if', 'else', 'for', 'while', 'do', 'switch', 'case', 'default', 'return', 'break', 'continue', 'goto',
];

const ARITHMETIC = ['char', 'short', 'int', 'long'].flatMap(word => [word, `u${word}`])
  .concat('half', 'float', 'double', 'bool');

const VECTORS = ARITHMETIC.flatMap(word => [2, 3, 4, 8, 16].map(lanes => `${word}${lanes}`));

const ATOMICS = [
  'flag', 'int', 'uint', 'long', 'ulong', 'float', 'double', 'half',
  'intptr_t', 'uintptr_t', 'size_t', 'ptrdiff_t',
].map(word => `atomic_${word}`);

const IMAGES = [
  '1d', '1d_array', '1d_buffer',
  '2d', '2d_array', '2d_depth', '2d_array_depth', '2d_msaa', '2d_array_msaa', '2d_msaa_depth', '2d_array_msaa_depth',
  '3d',
].map(kind => `image${kind}_t`);

const SCALARS = [
  // `short` and `long` alone, signed or not, are sized_type_specifier nodes, as in C.
  ...ARITHMETIC.filter(word => !SIGNS.includes(word)),
  '_Bool', 'void', 'size_t', 'ptrdiff_t', 'intptr_t', 'uintptr_t',
  ...[8, 16, 32, 64].flatMap(bits => [`int${bits}_t`, `uint${bits}_t`]),
];

const OPAQUE = [
  'sampler_t', 'event_t', 'queue_t', 'ndrange_t', 'clk_event_t', 'reserve_id_t', 'cl_mem_fence_flags',
  'memory_order', 'memory_scope',
];

module.exports = grammar(C, {
  name: 'opencl',

  conflicts: $ => [
    // `a * b;`, `a (b);`, `(a) (b)`: only a symbol table knows whether `a` is a type.
    [$.type_specifier, $._operand],
    [$.type_specifier, $._declarator],
    // `unsigned const x`: is the word after the qualifiers still a part of the type?
    [$.sized_type_specifier],
    // `__attribute__((a)) b …`
    [$._declaration_modifiers, $.attributed_statement],
  ],

  extras: $ => [
    /\s|\\\r?\n/,
    $.comment,
    $.preproc_call,
  ],

  inline: $ => [
    $._type_identifier,
    $._field_identifier,
    $._statement_identifier,
    $._non_case_statement,
    $._plain_statement,
    $._assignment_left_expression,
  ],

  supertypes: $ => [
    $.expression,
    $.statement,
    $.type_specifier,
    $._declarator,
    $._field_declarator,
    $._type_declarator,
    $._abstract_declarator,
  ],

  // Words that are never taken for an identifier, whatever stands before them: an unfinished statement then
  // ends where the next one begins.
  reserved: {
    global: _ => [
      ...STATEMENTS, ...STORAGE, ...QUALIFIERS, ...ADDRESS_SPACES.filter(word => word !== 'generic'), ...ACCESS,
      ...KERNEL, ...SIGNS, ...ATTRIBUTE,
      'typedef', 'struct', 'union', 'enum', 'sizeof',
    ],
    none: _ => [],
  },

  rules: {
    translation_unit: $ => repeat($._top_level_item),

    _top_level_item: $ => choice(
      $.function_definition,
      $.declaration,
      $.type_definition,
      $._empty_declaration,
      ';',
    ),

    // A function in a function is a missing brace: the functions after it are worth having.
    _block_item: $ => choice(
      $.function_definition,
      $.declaration,
      $.statement,
      $.type_definition,
      $._empty_declaration,
    ),

    // Pragmas

    preproc_call: $ => seq(
      field('directive', $.preproc_directive),
      choice(
        field('argument', $.preproc_arg),
        token.immediate(/\r?\n/),
      ),
    ),
    preproc_directive: _ => /#[ \t]*pragma/,
    // To the end of the line, or to a comment.
    preproc_arg: _ => token(prec(-1, /[^\s\\/]([^\\/\r\n]|\\\r?\n|\\[^\r\n]|\/[^\\/*\r\n])*/)),

    // Declarations

    function_definition: $ => seq(
      $._declaration_specifiers,
      field('declarator', $._declarator),
      field('body', $.compound_statement),
    ),

    declaration: $ => seq($._declaration, ';'),
    _declaration: $ => seq(
      $._declaration_specifiers,
      commaSep1(choice(
        seq(
          field('declarator', $._declarator),
          optional($.gnu_asm_expression),
          repeat($.attribute_specifier),
        ),
        field('declarator', $.init_declarator),
      )),
    ),

    init_declarator: $ => seq(
      field('declarator', $._declarator),
      repeat($.attribute_specifier),
      '=',
      field('value', choice($.initializer_list, $.expression)),
    ),

    type_definition: $ => seq(
      'typedef',
      $._declaration_specifiers,
      commaSep1(seq(field('declarator', $._type_declarator), repeat($.attribute_specifier))),
      ';',
    ),

    _empty_declaration: $ => seq(
      repeat($._leading_modifier),
      choice($.struct_specifier, $.union_specifier, $.enum_specifier),
      ';',
    ),

    _declaration_modifiers: $ => choice(
      $.storage_class_specifier,
      $.function_qualifier,
      $._qualifier,
      $.attribute_specifier,
    ),

    // After the type, `uniform` is more likely a name: `float uniform(uint2 *state)`.
    _leading_modifier: $ => choice($._declaration_modifiers, alias('uniform', $.type_qualifier)),

    _declaration_specifiers: $ => prec.right(seq(
      repeat($._leading_modifier),
      field('type', $.type_specifier),
      repeat($._declaration_modifiers),
    )),

    _qualifier: $ => choice(
      $.type_qualifier,
      $.address_space_qualifier,
      $.access_qualifier,
    ),

    storage_class_specifier: _ => choice(...STORAGE),
    type_qualifier: _ => choice(...QUALIFIERS),
    address_space_qualifier: _ => choice(...ADDRESS_SPACES),
    access_qualifier: _ => choice(...ACCESS),
    function_qualifier: _ => choice(...KERNEL),

    attribute_specifier: $ => seq(
      choice(...ATTRIBUTE),
      '(', '(',
      optional($.attribute),
      repeat(seq(',', optional($.attribute))),
      ')', ')',
    ),

    attribute: $ => seq(
      field('name', choice(reserved('none', $.identifier), alias('const', $.identifier))),
      field('arguments', optional($.argument_list)),
    ),

    _declarator: $ => choice(
      $.pointer_declarator,
      $.block_pointer_declarator,
      $.function_declarator,
      $.array_declarator,
      $.parenthesized_declarator,
      $.identifier,
    ),

    _field_declarator: $ => choice(
      alias($.pointer_field_declarator, $.pointer_declarator),
      alias($.function_field_declarator, $.function_declarator),
      alias($.array_field_declarator, $.array_declarator),
      alias($.parenthesized_field_declarator, $.parenthesized_declarator),
      $._field_identifier,
    ),

    // A file may define the names of OpenCL's own types, so as to be compiled as C as well.
    _type_declarator: $ => choice(
      alias($.pointer_type_declarator, $.pointer_declarator),
      alias($.block_pointer_type_declarator, $.block_pointer_declarator),
      alias($.function_type_declarator, $.function_declarator),
      alias($.array_type_declarator, $.array_declarator),
      alias($.parenthesized_type_declarator, $.parenthesized_declarator),
      $._type_identifier,
      $.primitive_type,
      alias($._vector_type, $.primitive_type),
    ),

    _abstract_declarator: $ => choice(
      $.abstract_pointer_declarator,
      $.abstract_block_pointer_declarator,
      $.abstract_function_declarator,
      $.abstract_array_declarator,
      $.abstract_parenthesized_declarator,
    ),

    parenthesized_declarator: $ => parenthesized($._declarator),
    parenthesized_field_declarator: $ => parenthesized($._field_declarator),
    parenthesized_type_declarator: $ => parenthesized($._type_declarator),
    abstract_parenthesized_declarator: $ => prec(1, seq('(', $._abstract_declarator, ')')),

    pointer_declarator: $ => pointer($, '*', $._declarator),
    pointer_field_declarator: $ => pointer($, '*', $._field_declarator),
    pointer_type_declarator: $ => pointer($, '*', $._type_declarator),
    abstract_pointer_declarator: $ => pointer($, '*', optional($._abstract_declarator)),

    block_pointer_declarator: $ => pointer($, '^', $._declarator),
    block_pointer_type_declarator: $ => pointer($, '^', $._type_declarator),
    abstract_block_pointer_declarator: $ => pointer($, '^', optional($._abstract_declarator)),

    function_declarator: $ => prec.right(1, seq(
      field('declarator', $._declarator),
      field('parameters', $.parameter_list),
      repeat($.attribute_specifier),
    )),

    array_declarator: $ => array($, $._declarator),
    array_field_declarator: $ => array($, $._field_declarator),
    array_type_declarator: $ => array($, $._type_declarator),
    abstract_array_declarator: $ => array($, optional($._abstract_declarator)),

    parameter_list: $ => seq(
      '(',
      commaSep(choice($.parameter_declaration, $.variadic_parameter)),
      ')',
    ),

    // Types

    type_specifier: $ => choice(
      $.struct_specifier,
      $.union_specifier,
      $.enum_specifier,
      $.pipe_specifier,
      $.sized_type_specifier,
      $.primitive_type,
      alias($._vector_type, $.primitive_type),
      $._type_identifier,
    ),

    pipe_specifier: $ => seq('pipe', repeat($._qualifier), field('type', $.type_specifier)),

    sized_type_specifier: $ => choice(
      seq($.primitive_type, repeat1(choice(...SIGNS))),
      seq(
        repeat1(choice(...SIGNS)),
        optional(seq(
          repeat($._qualifier),
          field('type', $.primitive_type),
          repeat(choice(...SIGNS)),
        )),
      ),
    ),

    primitive_type: _ => token(prec(1, choice(...SCALARS, ...ATOMICS, ...IMAGES, ...OPAQUE))),
    // Apart from the others, because `(float4)(x)` is a literal and `(float)(x)` a cast.
    _vector_type: _ => token(prec(1, choice(...VECTORS))),

    struct_specifier: $ => aggregate($, 'struct'),
    union_specifier: $ => aggregate($, 'union'),

    enum_specifier: $ => prec.right(seq(
      'enum',
      repeat($.attribute_specifier),
      choice(
        seq(
          field('name', $._type_identifier),
          field('body', optional($.enumerator_list)),
        ),
        field('body', $.enumerator_list),
      ),
      repeat($.attribute_specifier),
    )),

    enumerator_list: $ => seq('{', commaSep($.enumerator), optional(','), '}'),

    _field_declaration_list_item: $ => choice($.field_declaration, ';'),

    field_declaration: $ => seq(
      $._declaration_specifiers,
      optional(commaSep1(seq(
        field('declarator', $._field_declarator),
        optional($.bitfield_clause),
        repeat($.attribute_specifier),
      ))),
      ';',
    ),

    type_descriptor: $ => seq(
      repeat($._qualifier),
      field('type', $.type_specifier),
      repeat($._qualifier),
      field('declarator', optional($._abstract_declarator)),
    ),

    _vector_type_descriptor: $ => prec(1, seq(
      repeat($._qualifier),
      field('type', alias($._vector_type, $.primitive_type)),
    )),

    // Statements

    _non_case_statement: $ => choice(
      $.attributed_statement,
      $._plain_statement,
    ),

    _plain_statement: $ => choice(
      $.labeled_statement,
      $.compound_statement,
      $.expression_statement,
      $.if_statement,
      $.switch_statement,
      $.do_statement,
      $.while_statement,
      $.for_statement,
      $.incomplete_for_statement,
      $.return_statement,
      $.break_statement,
      $.continue_statement,
      $.goto_statement,
    ),

    // The last statement of a block may lack its semicolon: where somebody is typing, it most often does, and
    // error recovery supplies one missing token, not two.
    compound_statement: $ => seq(
      '{',
      repeat($._block_item),
      optional(choice(
        alias($._open_expression_statement, $.expression_statement),
        alias($._declaration, $.declaration),
        alias($._open_return_statement, $.return_statement),
      )),
      '}',
    ),
    _open_expression_statement: $ => choice($.expression, $.comma_expression),
    _open_return_statement: $ => seq('return', choice($.expression, $.comma_expression)),

    // The head is a rule of its own because error recovery supplies a missing parenthesis only where the rule
    // ends with it.
    for_statement: $ => seq($._for_head, field('body', $.statement)),
    _for_head: $ => seq('for', '(', $._for_statement_body, ')'),

    // `for (int i = 0)`, `for ()`: its parts are still to come, and it is no endless loop.
    incomplete_for_statement: $ => seq($._incomplete_for_head, field('body', $.statement)),
    _incomplete_for_head: $ => seq(
      'for',
      '(',
      optional(choice(
        field('initializer', choice(alias($._declaration, $.declaration), $.expression, $.comma_expression)),
        seq(
          choice(
            field('initializer', $.declaration),
            seq(field('initializer', optional(choice($.expression, $.comma_expression))), ';'),
          ),
          field('condition', optional(choice($.expression, $.comma_expression))),
        ),
      )),
      ')',
    ),

    attributed_statement: $ => seq(
      repeat1($.attribute_specifier),
      choice($.case_statement, $._plain_statement),
    ),

    // Expressions

    expression: $ => choice(
      $._operand,
      $.conditional_expression,
      $.assignment_expression,
      $.binary_expression,
      $.unary_expression,
      $.update_expression,
      $.cast_expression,
      $.pointer_expression,
      $.sizeof_expression,
      $.extension_expression,
      alias($._splat, $.vector_literal),
    ),

    // What a postfix operator may follow.
    _operand: $ => choice(
      $.alignof_expression,
      $.offsetof_expression,
      $.generic_expression,
      $.subscript_expression,
      $.call_expression,
      $.field_expression,
      alias($._postfix_update, $.update_expression),
      $.compound_literal_expression,
      $.vector_literal,
      $.block_literal,
      $.identifier,
      alias($._late_word, $.identifier),
      $.number_literal,
      $._string,
      $.true,
      $.false,
      $.null,
      $.char_literal,
      $.parenthesized_expression,
      $.gnu_asm_expression,
    ),

    // Reserved, but programs from before use the words as names.
    _late_word: _ => choice('uniform', 'pipe'),

    _assignment_left_expression: $ => choice(
      $.identifier,
      alias($._late_word, $.identifier),
      $.call_expression,
      $.field_expression,
      $.pointer_expression,
      $.subscript_expression,
      $.parenthesized_expression,
    ),

    // `(float4)(x)`. Not an operand of postfix operators: `(float4)(v).x` casts `(v).x`.
    _splat: $ => prec(1, seq(
      '(', field('type', alias($._vector_type_descriptor, $.type_descriptor)), ')',
      field('arguments', alias($._splat_argument, $.argument_list)),
    )),
    _splat_argument: $ => prec(1, seq('(', optional($.expression), ')')),

    // `(float4)(a, b, c, d)`. A type that is no known vector type is taken for one by its several arguments.
    vector_literal: $ => prec.dynamic(1, prec(1, seq(
      '(', field('type', anyDescriptor($)), ')',
      field('arguments', alias($._vector_arguments, $.argument_list)),
    ))),
    _vector_arguments: $ => seq('(', $._vector_elements, ')'),
    // Shaped like comma_expression, so that the two part only at the closing parenthesis.
    _vector_elements: $ => prec(1, seq(
      $.expression,
      ',',
      optional(choice($.expression, $._vector_elements)),
    )),

    // Where `a` is unknown, `(a)(b)` is taken for a cast, and `(a) - b` and `(a) * b` for arithmetic.
    cast_expression: $ => prec.dynamic(1, prec(PREC.CAST, seq(
      '(', field('type', anyDescriptor($)), ')',
      field('value', $.expression),
    ))),
    unary_expression: $ => prec.dynamic(-2, prec.left(PREC.UNARY, seq(
      field('operator', choice('!', '~', '-', '+')),
      field('argument', $.expression),
    ))),
    pointer_expression: $ => prec.dynamic(-2, prec.left(PREC.CAST, seq(
      field('operator', choice('*', '&')),
      field('argument', $.expression),
    ))),

    compound_literal_expression: $ => seq(
      '(', field('type', anyDescriptor($)), ')',
      field('value', $.initializer_list),
    ),

    sizeof_expression: $ => prec(PREC.SIZEOF, seq(
      'sizeof',
      choice(
        field('value', $.expression),
        seq('(', field('type', anyDescriptor($)), ')'),
      ),
    )),

    block_literal: $ => seq(
      '^',
      optional(field('type', $.type_specifier)),
      optional(field('parameters', $.parameter_list)),
      field('body', $.compound_statement),
    ),

    parenthesized_expression: $ => seq(
      '(',
      choice($.expression, $.comma_expression),
      ')',
    ),

    argument_list: $ => seq(
      '(',
      commaSep(choice($.expression, alias($._type_argument, $.type_descriptor))),
      ')',
    ),

    // `vec_step(float4)`, `vec_type_hint(uint)`; the name of a user's type reads as an identifier.
    _type_argument: $ => seq(
      repeat($._qualifier),
      field('type', choice(
        $.primitive_type,
        alias($._vector_type, $.primitive_type),
        $.sized_type_specifier,
        $.struct_specifier,
        $.union_specifier,
      )),
      repeat($._qualifier),
      field('declarator', optional($._abstract_declarator)),
    ),

    subscript_expression: $ => prec(PREC.SUBSCRIPT, seq(
      field('argument', $._operand),
      '[',
      field('index', $.expression),
      ']',
    )),

    call_expression: $ => prec(PREC.CALL, seq(
      field('function', $._operand),
      field('arguments', $.argument_list),
    )),

    field_expression: $ => seq(
      prec(PREC.FIELD, seq(
        field('argument', $._operand),
        field('operator', choice('.', '->')),
      )),
      field('field', $._field_identifier),
    ),

    update_expression: $ => prec.right(PREC.UNARY, seq(
      field('operator', choice('--', '++')),
      field('argument', $.expression),
    )),
    _postfix_update: $ => prec(PREC.SUBSCRIPT, seq(
      field('argument', $._operand),
      field('operator', choice('--', '++')),
    )),

    gnu_asm_qualifier: _ => choice(
      'volatile', '__volatile', '__volatile__', 'inline', 'goto',
    ),

    // Literals. A sign is an operator, not a part of the number.
    number_literal: _ => token(seq(
      choice(
        /[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]*)?/,
        /\.[0-9]+([eE][+-]?[0-9]*)?/,
        /0[xX]([0-9a-fA-F]+(\.[0-9a-fA-F]*)?|\.[0-9a-fA-F]+)([pP][+-]?[0-9]*)?/,
        /0[bB][01]+/,
      ),
      /[uUlLfFhHdD]*/,
    )),

    concatenated_string: $ => prec.right(seq($.string_literal, repeat1($.string_literal))),
  },
});

function commaSep(rule) {
  return optional(commaSep1(rule));
}

function commaSep1(rule) {
  return seq(rule, repeat(seq(',', rule)));
}

function parenthesized(declarator) {
  return prec.dynamic(PREC.PAREN_DECLARATOR, seq('(', declarator, ')'));
}

function pointer($, star, declarator) {
  return prec.dynamic(1, prec.right(seq(
    star,
    repeat(choice($._qualifier, $.attribute_specifier)),
    field('declarator', declarator),
  )));
}

function array($, declarator) {
  return prec(1, seq(
    field('declarator', declarator),
    '[',
    repeat(choice($._qualifier, 'static')),
    field('size', optional(choice($.expression, '*'))),
    ']',
  ));
}

function aggregate($, keyword) {
  return prec.right(seq(
    keyword,
    repeat($.attribute_specifier),
    choice(
      seq(
        field('name', $._type_identifier),
        field('body', optional($.field_declaration_list)),
      ),
      field('body', $.field_declaration_list),
    ),
    repeat($.attribute_specifier),
  ));
}

function anyDescriptor($) {
  return choice($.type_descriptor, alias($._vector_type_descriptor, $.type_descriptor));
}
