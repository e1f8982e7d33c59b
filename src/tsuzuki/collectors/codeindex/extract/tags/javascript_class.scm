(field_definition property: [(property_identifier) (private_property_identifier)] @name
  value: [(arrow_function body: (_) @body) (function_expression body: (_) @body)]) @def.method
(field_definition property: [(property_identifier) (private_property_identifier)] @name) @def.field
(class_heritage [(identifier) @ref.inherit (member_expression property: (property_identifier) @ref.inherit)])
