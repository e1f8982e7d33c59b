(function_definition declarator: (function_declarator declarator: (identifier) @name)) @def.function
(function_definition declarator: (_ declarator: (function_declarator declarator: (identifier) @name))) @def.function
(function_definition declarator: (_ declarator: (_ declarator: (function_declarator declarator: (identifier) @name)))) @def.function
(function_definition declarator: (function_declarator declarator: (parenthesized_declarator (pointer_declarator
  declarator: (function_declarator declarator: (identifier) @name))))) @def.function
(function_definition declarator: (function_declarator
  declarator: (parenthesized_declarator (identifier) @name))) @def.function
(function_definition declarator: (_ declarator: (function_declarator
  declarator: (parenthesized_declarator (identifier) @name)))) @def.function
(declaration declarator: (function_declarator declarator: (identifier) @name)) @def.function
(declaration declarator: (pointer_declarator declarator: (function_declarator declarator: (identifier) @name))) @def.function
(struct_specifier name: (type_identifier) @name body: (_)) @def.struct
(union_specifier name: (type_identifier) @name body: (_)) @def.union
(enum_specifier name: (type_identifier) @name body: (_)) @def.enum
(enumerator name: (identifier) @name) @def.member
(type_definition declarator: (type_identifier) @name) @def.type
(type_definition type: (struct_specifier !name body: (_) @body) declarator: (type_identifier) @name) @def.struct
(type_definition type: (union_specifier !name body: (_) @body) declarator: (type_identifier) @name) @def.union
(type_definition type: (enum_specifier !name body: (_) @body) declarator: (type_identifier) @name) @def.enum
(type_definition declarator: (_ declarator: (type_identifier) @name)) @def.type
(type_definition declarator: (function_declarator declarator: (parenthesized_declarator
  (pointer_declarator declarator: (type_identifier) @name)))) @def.type
(field_declaration declarator: (field_identifier) @name) @def.field
(field_declaration declarator: (_ declarator: (field_identifier) @name)) @def.field
(field_declaration declarator: (function_declarator declarator: (parenthesized_declarator
  (pointer_declarator declarator: (field_identifier) @name)))) @def.field
(field_declaration declarator: (_ declarator: (_ declarator: (field_identifier) @name))) @def.field
(field_declaration declarator: (pointer_declarator declarator: (function_declarator
  declarator: (parenthesized_declarator (pointer_declarator declarator: (field_identifier) @name))))) @def.field
(preproc_def name: (identifier) @name) @def.macro
(preproc_function_def name: (identifier) @name) @def.macro
(declaration declarator: (identifier) @name) @def.variable
(declaration declarator: (init_declarator declarator: (identifier) @name)) @def.variable
(declaration declarator: (init_declarator declarator: (_ declarator: (identifier) @name))) @def.variable
(declaration declarator: (init_declarator declarator: (_ declarator: (_ declarator: (identifier) @name)))) @def.variable
(declaration declarator: (pointer_declarator declarator: (identifier) @name)) @def.variable
(declaration declarator: (pointer_declarator declarator: (_ declarator: (identifier) @name))) @def.variable
(declaration declarator: (array_declarator declarator: (identifier) @name)) @def.variable

(call_expression function: [(identifier) @ref.call (field_expression field: (field_identifier) @ref.call)])
(type_identifier) @ref.type
(preproc_include path: (system_lib_string) @ref.import)
(preproc_include path: (string_literal (string_content) @ref.import))
(preproc_ifdef name: (identifier) @ref.read)
(argument_list [(identifier) @ref.read (pointer_expression argument: (identifier) @ref.read)])
