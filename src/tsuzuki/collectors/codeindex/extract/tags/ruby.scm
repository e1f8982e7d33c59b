(module name: (constant) @name) @def.module
(module name: (scope_resolution scope: (_) @container name: (constant) @name)) @def.module
(class name: (constant) @name) @def.class
(class name: (scope_resolution scope: (_) @container name: (constant) @name)) @def.class
(method name: (_) @name) @def.method
(singleton_method name: (_) @name) @def.method
(assignment left: (constant) @name) @def.constant
(alias name: (_) @name) @def.method
(call method: (identifier) @_method
  arguments: (argument_list [(simple_symbol) @name (string (string_content) @name)]) (#match? @_method "^attr_(reader|writer|accessor)$")) @def.property
(call method: (identifier) @_method
  arguments: (argument_list . [(simple_symbol) @name (string (string_content) @name)]) (#any-of? @_method "define_method" "alias_method")) @def.method

(call method: [(identifier) (constant)] @ref.call)
(class superclass: (superclass [(constant) @ref.inherit (scope_resolution name: (constant) @ref.inherit)]))
(call method: (identifier) @_method (argument_list [(constant) @ref.inherit (scope_resolution name: (constant) @ref.inherit)])
  (#any-of? @_method "include" "extend" "prepend"))
(call method: (identifier) @_method (argument_list (string (string_content) @ref.import))
  (#any-of? @_method "require" "require_relative" "load"))
(call receiver: (constant) @ref.read)
(argument_list (constant) @ref.read)
(scope_resolution name: (constant) @ref.read)
(body_statement (identifier) @ref.call)
(block_body (identifier) @ref.call)
