(function_declaration name: (identifier) @name) @def.function
(method_declaration
  receiver: (parameter_list (parameter_declaration type: [
    (type_identifier) @container
    (generic_type type: (type_identifier) @container)
    (pointer_type (type_identifier) @container)
    (pointer_type (generic_type type: (type_identifier) @container))
  ]))
  name: (field_identifier) @name) @def.method
(type_spec name: (type_identifier) @name type: (struct_type (field_declaration_list) @body)) @def.struct
(type_spec name: (type_identifier) @name type: (interface_type)) @def.interface
(type_spec name: (type_identifier) @name
  type: [(type_identifier) (qualified_type) (generic_type) (pointer_type) (array_type) (slice_type) (map_type)
         (channel_type) (function_type)]) @def.type
(type_alias name: (type_identifier) @name) @def.type
(method_elem name: (field_identifier) @name) @def.method
(field_declaration name: (field_identifier) @name) @def.field
(field_declaration !name type: [(type_identifier) @ref.inherit (pointer_type (type_identifier) @ref.inherit)])
(const_spec name: (identifier) @name) @def.constant
(var_spec name: (identifier) @name) @def.variable
(package_clause (package_identifier) @name) @def.module

(call_expression function: [
  (identifier) @ref.call
  (selector_expression field: (field_identifier) @ref.call)
  (parenthesized_expression (identifier) @ref.call)
])
(type_instantiation_expression type: (type_identifier) @ref.call)
(composite_literal type: [(type_identifier) @ref.call (qualified_type name: (type_identifier) @ref.call)
  (generic_type type: (type_identifier) @ref.call)])
((type_identifier) @ref.type (#not-any-of? @ref.type
  "any" "bool" "byte" "comparable" "error" "float32" "float64" "int" "int8" "int16" "int32" "int64" "rune" "string"
  "uint" "uint8" "uint16" "uint32" "uint64" "uintptr"))
(type_elem (qualified_type name: (type_identifier) @ref.inherit))
(import_spec path: (interpreted_string_literal (interpreted_string_literal_content) @ref.import))
(argument_list (identifier) @ref.read)
