; Definitions.
(class_declaration name: (_) @name) @def.class
(class name: (_) @name) @def.class
(variable_declarator name: (identifier) @name value: (class body: (_) @body)) @def.class
[(function_declaration name: (identifier) @name) (generator_function_declaration name: (identifier) @name)] @def.function
(variable_declarator
  name: (identifier) @name
  value: [(arrow_function body: (_) @body) (function_expression body: (_) @body) (generator_function body: (_) @body)]) @def.function
(method_definition name: [(property_identifier) (private_property_identifier) (computed_property_name)] @name) @def.method
(method_definition name: (string (string_fragment) @name)) @def.method
(pair key: (property_identifier) @name
  value: [(arrow_function body: (_) @body) (function_expression body: (_) @body) (generator_function body: (_) @body)]) @def.method
(assignment_expression left: (identifier) @name
  right: [(arrow_function body: (_) @body) (function_expression body: (_) @body) (generator_function body: (_) @body)]) @def.function
(assignment_expression
  left: (member_expression object: (_) @container property: (property_identifier) @name)
  right: [(arrow_function body: (_) @body) (function_expression body: (_) @body) (generator_function body: (_) @body)]) @def.function
(assignment_expression
  left: (member_expression object: (_) @container property: (property_identifier) @name)
  right: (class body: (_) @body)) @def.class
(variable_declarator name: (identifier) @name value: (object)) @def.object
(lexical_declaration "const" (variable_declarator name: (identifier) @name)) @def.constant
(lexical_declaration "let" (variable_declarator name: (identifier) @name)) @def.variable
(variable_declaration (variable_declarator name: (identifier) @name)) @def.variable

; References.
(call_expression function: [
  (identifier) @ref.call
  (member_expression property: [(property_identifier) (private_property_identifier)] @ref.call)
])
(new_expression constructor: [(identifier) @ref.call (member_expression property: (property_identifier) @ref.call)])
(import_specifier name: (identifier) @ref.import)
(import_clause (identifier) @ref.import)
(namespace_import (identifier) @ref.import)
(export_specifier name: (identifier) @ref.read)
(arguments (identifier) @ref.read)
(pair value: (identifier) @ref.read)
