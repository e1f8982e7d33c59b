(class_declaration declaration_kind: ["class" "actor"] name: (type_identifier) @name) @def.class
(class_declaration declaration_kind: "struct" name: (type_identifier) @name) @def.struct
(class_declaration declaration_kind: "enum" name: (type_identifier) @name) @def.enum
(class_declaration declaration_kind: "extension" name: (user_type (type_identifier) @name)) @scope.class
(protocol_declaration name: (type_identifier) @name) @def.interface
(function_declaration name: [(simple_identifier) (custom_operator) "=="] @name) @def.function
(protocol_function_declaration name: (simple_identifier) @name) @def.method
(init_declaration "init" @name) @def.method
(deinit_declaration "deinit" @name) @def.method
(subscript_declaration "subscript" @name) @def.method
(enum_entry name: (simple_identifier) @name) @def.member
(typealias_declaration name: (type_identifier) @name) @def.type
(associatedtype_declaration name: (type_identifier) @name) @def.type
(property_declaration name: (pattern bound_identifier: (simple_identifier) @name)
  computed_value: (_) @body) @def.property
(property_declaration name: (pattern bound_identifier: (simple_identifier) @name)) @def.variable
(protocol_property_declaration name: (pattern bound_identifier: (simple_identifier) @name)) @def.property
(operator_declaration (custom_operator) @name) @def.function

(call_expression . [
  (simple_identifier) @ref.call
  (navigation_expression suffix: (navigation_suffix suffix: (simple_identifier) @ref.call))
])
(user_type (type_identifier) @ref.type)
(inheritance_specifier inherits_from: (user_type . (type_identifier) @ref.inherit))
(import_declaration (identifier (simple_identifier) @ref.import .))
(navigation_expression target: (simple_identifier) @ref.read)
(value_argument value: (simple_identifier) @ref.read)
