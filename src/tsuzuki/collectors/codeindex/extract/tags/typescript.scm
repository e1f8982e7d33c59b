(abstract_class_declaration name: (type_identifier) @name) @def.class
(interface_declaration name: (type_identifier) @name) @def.interface
(type_alias_declaration name: (type_identifier) @name) @def.type
(type_alias_declaration name: (type_identifier) @name value: (object_type) @body) @def.type
(enum_declaration name: (identifier) @name) @def.enum
(enum_body name: (property_identifier) @name @def.member)
(enum_body (enum_assignment name: (property_identifier) @name) @def.member)
(internal_module name: (_) @name) @def.namespace
(module name: (identifier) @name) @def.module
(module name: (string (string_fragment) @name)) @def.module
(function_signature name: (identifier) @name) @def.function
(method_signature name: (property_identifier) @name) @def.method
(abstract_method_signature name: (property_identifier) @name) @def.method
(property_signature name: (property_identifier) @name) @def.field
(public_field_definition name: [(property_identifier) (private_property_identifier)] @name
  value: [(arrow_function body: (_) @body) (function_expression body: (_) @body)]) @def.method
(public_field_definition name: [(property_identifier) (private_property_identifier)] @name) @def.field
(required_parameter (accessibility_modifier) pattern: (identifier) @name) @def.property

(type_identifier) @ref.type
(nested_type_identifier name: (type_identifier) @ref.type)
(type_query (identifier) @ref.type)
(extends_clause value: [(identifier) @ref.inherit (member_expression property: (property_identifier) @ref.inherit)])
(implements_clause [(type_identifier) @ref.inherit (generic_type name: (type_identifier) @ref.inherit)])
(extends_type_clause type: [
  (type_identifier) @ref.inherit
  (generic_type name: (type_identifier) @ref.inherit)
  (nested_type_identifier name: (type_identifier) @ref.inherit)
])
(decorator [(identifier) @ref.call (call_expression function: (identifier) @ref.call)])
(import_require_clause (identifier) @ref.import)
