(package_header (qualified_identifier) @name) @def.module
(class_declaration "class" name: (identifier) @name) @def.class
(class_declaration "interface" name: (identifier) @name) @def.interface
(class_declaration (modifiers (class_modifier "enum")) name: (identifier) @name) @def.enum
(object_declaration name: (identifier) @name) @def.object
(companion_object name: (identifier) @name) @def.object
(enum_entry (identifier) @name) @def.member
(function_declaration name: (identifier) @name (function_body) @body) @def.function
(function_declaration name: (identifier) @name) @def.function
(type_alias type: (identifier) @name) @def.type
(property_declaration (variable_declaration (identifier) @name)) @def.variable
(property_declaration (multi_variable_declaration (variable_declaration (identifier) @name))) @def.variable
(class_parameter ["val" "var"] (identifier) @name) @def.property

(call_expression . [(identifier) @ref.call (navigation_expression (identifier) @ref.call .)])
(constructor_invocation (user_type (identifier) @ref.call .))
(constructor_invocation (user_type . (identifier) @ref.call (type_arguments)))
(user_type (identifier) @ref.type)
(delegation_specifier [
  (constructor_invocation (user_type . (identifier) @ref.inherit))
  (user_type . (identifier) @ref.inherit)
  (explicit_delegation (user_type . (identifier) @ref.inherit))
])
(import (qualified_identifier (identifier) @ref.import .))
(navigation_expression . (identifier) @ref.read)
(value_argument (identifier) @ref.read .)
