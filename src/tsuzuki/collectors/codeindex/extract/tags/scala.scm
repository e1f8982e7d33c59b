(package_clause name: (package_identifier) @name) @def.module
(class_definition name: (identifier) @name) @def.class
(object_definition name: (identifier) @name) @def.object
(trait_definition name: (identifier) @name) @def.trait
(enum_definition name: (identifier) @name) @def.enum
(simple_enum_case name: (identifier) @name) @def.member
(full_enum_case name: (identifier) @name) @def.member
(function_definition name: (_) @name) @def.function
(function_declaration name: (_) @name) @def.function
(val_definition pattern: (identifier) @name) @def.variable
(val_definition pattern: (tuple_pattern (identifier) @name)) @def.variable
(var_definition pattern: (identifier) @name) @def.variable
(val_declaration name: (identifier) @name) @def.variable
(var_declaration name: (identifier) @name) @def.variable
(given_definition name: (identifier) @name) @def.variable
(type_definition name: (type_identifier) @name) @def.type
(class_parameter name: (identifier) @name) @def.property

(call_expression function: [
  (identifier) @ref.call
  (field_expression field: (identifier) @ref.call)
  (generic_function function: [(identifier) @ref.call (field_expression field: (identifier) @ref.call)])
])
(infix_expression operator: (identifier) @ref.call)
(instance_expression [(type_identifier) @ref.call (generic_type type: (type_identifier) @ref.call)])
(type_identifier) @ref.type
(extends_clause [(type_identifier) @ref.inherit (generic_type type: (type_identifier) @ref.inherit)])
(import_declaration (identifier) @ref.import .)
(namespace_selectors [(identifier) @ref.import (arrow_renamed_identifier name: (identifier) @ref.import)
  (as_renamed_identifier name: (identifier) @ref.import)])
(field_expression value: (identifier) @ref.read)
(annotation name: (type_identifier) @ref.type)
