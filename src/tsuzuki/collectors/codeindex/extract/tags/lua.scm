(function_declaration name: (identifier) @name) @def.function
(function_declaration name: (dot_index_expression table: (_) @container field: (identifier) @name)) @def.function
(function_declaration name: (method_index_expression table: (_) @container method: (identifier) @name)) @def.method
(assignment_statement (variable_list . name: (identifier) @name)
  (expression_list . value: (function_definition body: (_) @body))) @def.function
(assignment_statement (variable_list . name: (dot_index_expression table: (_) @container field: (identifier) @name))
  (expression_list . value: (function_definition body: (_) @body))) @def.function
(field name: (identifier) @name value: (function_definition body: (_) @body)) @def.method
(assignment_statement (variable_list . name: (identifier) @name)
  (expression_list . value: (table_constructor))) @def.object
(assignment_statement (variable_list name: (identifier) @name)) @def.variable

(function_call name: [
  (identifier) @ref.call
  (dot_index_expression field: (identifier) @ref.call)
  (method_index_expression method: (identifier) @ref.call)
])
(function_call name: (identifier) @_require
  arguments: (arguments (string content: (string_content) @ref.import)) (#eq? @_require "require"))
(arguments (identifier) @ref.read)
