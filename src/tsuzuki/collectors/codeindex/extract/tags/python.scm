; Definitions. A function in a class becomes a method, a variable in a function is dropped.
(class_definition name: (identifier) @name) @def.class
(function_definition name: (identifier) @name) @def.function
(assignment left: (identifier) @name right: (lambda)) @def.function
(assignment left: (identifier) @name right: (_)) @def.variable
(assignment left: (identifier) @name type: (type)) @def.variable
(assignment left: (pattern_list (identifier) @name)) @def.variable
(type_alias_statement left: (type (identifier) @name)) @def.type
(type_alias_statement left: (type (generic_type (identifier) @name))) @def.type

; References.
(call function: [(identifier) @ref.call (attribute attribute: (identifier) @ref.call)])
(decorator [(identifier) @ref.call (attribute attribute: (identifier) @ref.call)])
(class_definition superclasses: (argument_list [
  (identifier) @ref.inherit
  (attribute attribute: (identifier) @ref.inherit)
  (subscript value: (identifier) @ref.inherit)
  (keyword_argument name: (identifier) @_metaclass value: (identifier) @ref.inherit (#eq? @_metaclass "metaclass"))
]))
(type (identifier) @ref.type)
(type (attribute attribute: (identifier) @ref.type))
(type (generic_type (identifier) @ref.type))
(type (binary_operator (identifier) @ref.type))
(type (subscript value: (identifier) @ref.type))
(union_type (type (identifier) @ref.type))
(except_clause [
  (identifier) @ref.read
  (attribute attribute: (identifier) @ref.read)
  (tuple (identifier) @ref.read)
  (as_pattern [(identifier) @ref.read (tuple (identifier) @ref.read)])
])
(argument_list (identifier) @ref.read)
(keyword_argument value: (identifier) @ref.read)
(pair value: (identifier) @ref.read)
(list (identifier) @ref.read)
(tuple (identifier) @ref.read)
(return_statement (identifier) @ref.read)
(assignment right: (identifier) @ref.read)
(import_statement name: (dotted_name (identifier) @ref.import .))
(import_statement name: (aliased_import name: (dotted_name (identifier) @ref.import .)))
(import_from_statement module_name: (dotted_name (identifier) @ref.import .))
(import_from_statement module_name: (relative_import (dotted_name (identifier) @ref.import .)))
(import_from_statement name: (dotted_name (identifier) @ref.import .))
(import_from_statement name: (aliased_import name: (dotted_name (identifier) @ref.import .)))
