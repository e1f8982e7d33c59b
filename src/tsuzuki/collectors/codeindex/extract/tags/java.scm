(package_declaration (_) @name) @def.module
(class_declaration name: (identifier) @name) @def.class
(interface_declaration name: (identifier) @name) @def.interface
(annotation_type_declaration name: (identifier) @name) @def.interface
(enum_declaration name: (identifier) @name) @def.enum
(record_declaration name: (identifier) @name) @def.class
(enum_constant name: (identifier) @name) @def.member
(method_declaration name: (identifier) @name) @def.method
(constructor_declaration name: (identifier) @name) @def.method
(compact_constructor_declaration name: (identifier) @name) @def.method
(annotation_type_element_declaration name: (identifier) @name) @def.method
(field_declaration declarator: (variable_declarator name: (identifier) @name)) @def.variable
(constant_declaration declarator: (variable_declarator name: (identifier) @name)) @def.constant
(record_declaration parameters: (formal_parameters (formal_parameter name: (identifier) @name) @def.field))

(method_invocation name: (identifier) @ref.call)
(method_reference (identifier) @ref.call .)
(object_creation_expression type: [(type_identifier) @ref.call (generic_type . (type_identifier) @ref.call)
  (scoped_type_identifier (type_identifier) @ref.call .)])
(type_identifier) @ref.type
(superclass [(type_identifier) @ref.inherit (generic_type . (type_identifier) @ref.inherit)
  (scoped_type_identifier (type_identifier) @ref.inherit .)])
(super_interfaces (type_list [(type_identifier) @ref.inherit (generic_type . (type_identifier) @ref.inherit)
  (scoped_type_identifier (type_identifier) @ref.inherit .)]))
(extends_interfaces (type_list [(type_identifier) @ref.inherit (generic_type . (type_identifier) @ref.inherit)
  (scoped_type_identifier (type_identifier) @ref.inherit .)]))
(import_declaration [(identifier) @ref.import (scoped_identifier name: (identifier) @ref.import)])
(marker_annotation name: (identifier) @ref.type)
(annotation name: (identifier) @ref.type)
(method_invocation object: (identifier) @ref.read)
