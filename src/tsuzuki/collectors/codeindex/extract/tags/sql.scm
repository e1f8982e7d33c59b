(create_table (object_reference name: (identifier) @name)) @def.table
(create_view (object_reference name: (identifier) @name)) @def.view
(create_materialized_view (object_reference name: (identifier) @name)) @def.view
(create_function . (_)* (keyword_function) . (object_reference name: (identifier) @name)) @def.function
(create_trigger (keyword_trigger) . (object_reference name: (identifier) @name)) @def.trigger
(create_type (object_reference name: (identifier) @name)) @def.type
(create_sequence (object_reference name: (identifier) @name)) @def.variable
(create_schema (identifier) @name) @def.namespace
(create_index column: (identifier) @name) @def.index
(column_definition name: (identifier) @name) @def.field

(invocation (object_reference name: (identifier) @ref.call))
(relation (object_reference name: (identifier) @ref.read))
(from (object_reference name: (identifier) @ref.read))
(insert (object_reference name: (identifier) @ref.read))
(alter_table (object_reference name: (identifier) @ref.read))
(drop_table (object_reference name: (identifier) @ref.read))
(create_index (object_reference name: (identifier) @ref.read))
(create_trigger (keyword_on) . (object_reference name: (identifier) @ref.read))
(create_trigger [(keyword_function) (keyword_procedure)] . (object_reference name: (identifier) @ref.call))
(column_definition (keyword_references) . (object_reference name: (identifier) @ref.read))
(column_definition custom_type: (object_reference name: (identifier) @ref.type))
