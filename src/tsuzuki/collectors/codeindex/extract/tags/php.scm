(namespace_definition name: (namespace_name) @name) @def.namespace
(class_declaration name: (name) @name) @def.class
(interface_declaration name: (name) @name) @def.interface
(trait_declaration name: (name) @name) @def.trait
(enum_declaration name: (name) @name) @def.enum
(enum_case name: (name) @name) @def.member
(function_definition name: (name) @name) @def.function
(method_declaration name: (name) @name) @def.method
(const_element . (name) @name) @def.constant
(property_declaration (property_element name: (variable_name (name) @name))) @def.property
(property_promotion_parameter name: (variable_name (name) @name)) @def.property
(function_call_expression function: (name) @_define
  arguments: (arguments . (argument [(string (string_content) @name) (encapsed_string . (string_content) @name .)]))
  (#eq? @_define "define")) @def.constant
(program (expression_statement (assignment_expression left: (variable_name (name) @name)
  right: [(anonymous_function body: (_) @body) (arrow_function body: (_) @body)]) @def.function))
(program (expression_statement (assignment_expression left: (variable_name (name) @name)) @def.variable))

(function_call_expression function: [(name) @ref.call (qualified_name (name) @ref.call .)])
(member_call_expression name: (name) @ref.call)
(nullsafe_member_call_expression name: (name) @ref.call)
(scoped_call_expression name: (name) @ref.call)
(scoped_call_expression scope: (name) @ref.read)
(class_constant_access_expression . (name) @ref.read)
(object_creation_expression [(name) @ref.call (qualified_name (name) @ref.call .)])
(base_clause [(name) @ref.inherit (qualified_name (name) @ref.inherit .)])
(class_interface_clause [(name) @ref.inherit (qualified_name (name) @ref.inherit .)])
(use_declaration [(name) @ref.inherit (qualified_name (name) @ref.inherit .)])
(named_type [(name) @ref.type (qualified_name (name) @ref.type .)])
(namespace_use_clause [(name) @ref.import (qualified_name (name) @ref.import .)])
(attribute [(name) @ref.type (qualified_name (name) @ref.type .)])
(binary_expression operator: "instanceof" right: (name) @ref.type)
