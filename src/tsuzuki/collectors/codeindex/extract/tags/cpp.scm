(class_specifier name: (type_identifier) @name body: (_)) @def.class
(class_specifier name: (template_type name: (type_identifier) @name) body: (_)) @def.class
(struct_specifier name: (template_type name: (type_identifier) @name) body: (_)) @def.struct
(class_specifier name: (qualified_identifier scope: (_) @container name: (type_identifier) @name) body: (_)) @def.class
(namespace_definition name: (namespace_identifier) @name) @def.namespace
(namespace_definition name: (nested_namespace_specifier) @name) @def.namespace
(alias_declaration name: (type_identifier) @name) @def.type
(concept_definition name: (identifier) @name) @def.type

(function_definition declarator: (function_declarator
  declarator: [(field_identifier) (destructor_name) (operator_name)] @name)) @def.function
(function_definition declarator: (_ (function_declarator
  declarator: [(field_identifier) (identifier) (operator_name)] @name))) @def.function
(function_definition declarator: (operator_cast) @name) @def.method
(field_declaration declarator: (function_declarator declarator: [(field_identifier) (operator_name)] @name)) @def.method
(field_declaration declarator: (_ (function_declarator declarator: [(field_identifier) (operator_name)] @name))) @def.method
(declaration declarator: (function_declarator declarator: [(destructor_name) (operator_name)] @name)) @def.method
(function_definition declarator: (function_declarator declarator: (qualified_identifier
  scope: (_) @container name: [(identifier) (destructor_name) (operator_name)] @name))) @def.method
(function_definition declarator: (_ (function_declarator declarator: (qualified_identifier
  scope: (_) @container name: [(identifier) (destructor_name) (operator_name)] @name)))) @def.method
(function_definition declarator: (function_declarator declarator: (qualified_identifier scope: (_) @container
  name: (qualified_identifier scope: (_) @container name: [(identifier) (destructor_name) (operator_name)] @name)))) @def.method
(function_definition declarator: (function_declarator declarator: (qualified_identifier scope: (_) @container
  name: (qualified_identifier scope: (_) @container
    name: (qualified_identifier scope: (_) @container name: [(identifier) (destructor_name) (operator_name)] @name))))) @def.method

(call_expression function: [
  (qualified_identifier name: [(identifier) @ref.call (template_function name: (identifier) @ref.call)])
  (template_function name: (identifier) @ref.call)
  (field_expression field: (template_method name: (field_identifier) @ref.call))
  (qualified_identifier name: (qualified_identifier name: (identifier) @ref.call))
])
(new_expression type: [(type_identifier) @ref.call (qualified_identifier name: (type_identifier) @ref.call)
  (template_type name: (type_identifier) @ref.call)])
(base_class_clause [
  (type_identifier) @ref.inherit
  (template_type name: (type_identifier) @ref.inherit)
  (qualified_identifier name: (type_identifier) @ref.inherit)
])
(using_declaration [(identifier) @ref.import (qualified_identifier name: (identifier) @ref.import)])
