(namespace_declaration name: (_) @name) @def.namespace
(file_scoped_namespace_declaration name: (_) @name) @def.namespace
(class_declaration name: (identifier) @name) @def.class
(interface_declaration name: (identifier) @name) @def.interface
(struct_declaration name: (identifier) @name) @def.struct
(record_declaration name: (identifier) @name) @def.class
(enum_declaration name: (identifier) @name) @def.enum
(enum_member_declaration name: (identifier) @name) @def.member
(delegate_declaration name: (identifier) @name) @def.type
(method_declaration name: (identifier) @name) @def.method
(constructor_declaration name: (identifier) @name) @def.method
(destructor_declaration name: (identifier) @name) @def.method
(local_function_statement name: (identifier) @name) @def.function
(operator_declaration operator: _ @name) @def.method
(indexer_declaration "this" @name) @def.property
(property_declaration name: (identifier) @name) @def.property
(event_declaration name: (identifier) @name) @def.property
(event_field_declaration (variable_declaration (variable_declarator name: (identifier) @name))) @def.field
(field_declaration (modifier "const") (variable_declaration (variable_declarator name: (identifier) @name))) @def.constant
(field_declaration (variable_declaration (variable_declarator name: (identifier) @name))) @def.field
(record_declaration (parameter_list (parameter name: (identifier) @name) @def.property))

(invocation_expression function: [
  (identifier) @ref.call
  (generic_name (identifier) @ref.call)
  (member_access_expression name: [(identifier) @ref.call (generic_name (identifier) @ref.call)])
  (conditional_access_expression (member_binding_expression name: (identifier) @ref.call))
])
(object_creation_expression type: [(identifier) @ref.call (generic_name (identifier) @ref.call)
  (qualified_name name: (identifier) @ref.call)])
(base_list [(identifier) @ref.inherit (generic_name (identifier) @ref.inherit)
  (qualified_name name: (identifier) @ref.inherit)
  (primary_constructor_base_type type: (identifier) @ref.inherit)])
(using_directive [(identifier) @ref.import (qualified_name name: (identifier) @ref.import)])
(attribute name: (identifier) @ref.type)
(_ type: [(identifier) @ref.type (generic_name (identifier) @ref.type) (nullable_type (identifier) @ref.type)
  (array_type (identifier) @ref.type) (qualified_name name: (identifier) @ref.type)])
(method_declaration returns: [(identifier) @ref.type (generic_name (identifier) @ref.type)])
(type_argument_list [(identifier) @ref.type (generic_name (identifier) @ref.type)])
(type_parameter_constraint (type (identifier) @ref.type))
(member_access_expression expression: (identifier) @ref.read)
