(function_item name: (identifier) @name) @def.function
(function_signature_item name: (identifier) @name) @def.function
(struct_item name: (type_identifier) @name) @def.struct
(union_item name: (type_identifier) @name) @def.union
(enum_item name: (type_identifier) @name) @def.enum
(enum_variant name: (identifier) @name) @def.member
(trait_item name: (type_identifier) @name) @def.trait
(type_item name: (type_identifier) @name) @def.type
(associated_type name: (type_identifier) @name) @def.type
(const_item name: (identifier) @name) @def.constant
(static_item name: (identifier) @name) @def.variable
(mod_item name: (identifier) @name) @def.module
(macro_definition name: (identifier) @name) @def.macro
(field_declaration name: (field_identifier) @name) @def.field
(impl_item type: [
  (type_identifier) @name
  (generic_type type: (type_identifier) @name)
  (scoped_type_identifier name: (type_identifier) @name)
  (reference_type type: (type_identifier) @name)
]) @scope.class

(call_expression function: [
  (identifier) @ref.call
  (field_expression field: (field_identifier) @ref.call)
  (scoped_identifier name: (identifier) @ref.call)
  (generic_function function: [
    (identifier) @ref.call
    (scoped_identifier name: (identifier) @ref.call)
    (field_expression field: (field_identifier) @ref.call)
  ])
])
(macro_invocation macro: [(identifier) @ref.call (scoped_identifier name: (identifier) @ref.call)])
(struct_expression name: [(type_identifier) @ref.call (scoped_type_identifier name: (type_identifier) @ref.call)])
(type_identifier) @ref.type
(scoped_identifier path: (identifier) @ref.read)
(trait_bounds [(type_identifier) @ref.type])
(trait_item bounds: (trait_bounds [(type_identifier) @ref.inherit
  (scoped_type_identifier name: (type_identifier) @ref.inherit)]))
(impl_item trait: [(type_identifier) @ref.inherit (generic_type type: (type_identifier) @ref.inherit)
  (scoped_type_identifier name: (type_identifier) @ref.inherit)])
(use_declaration argument: [(identifier) @ref.import (scoped_identifier name: (identifier) @ref.import)])
(use_list [(identifier) @ref.import (scoped_identifier name: (identifier) @ref.import)])
(use_as_clause path: [(identifier) @ref.import (scoped_identifier name: (identifier) @ref.import)])
(use_wildcard [(identifier) @ref.import (scoped_identifier name: (identifier) @ref.import)])
