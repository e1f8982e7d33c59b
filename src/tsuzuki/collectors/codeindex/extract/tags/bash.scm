(function_definition name: (word) @name) @def.function
(variable_assignment name: (variable_name) @name) @def.variable
(command name: (command_name (word) @_alias)
  argument: [(word) @name (concatenation . (word) @name)] (#eq? @_alias "alias") (#match? @name "^[^-].*=")) @def.macro

(command name: (command_name (word) @ref.call))
(command name: (command_name (word) @_source) . argument: (word) @ref.import (#any-of? @_source "source" "."))
(simple_expansion (variable_name) @ref.read (#match? @ref.read "^[A-Za-z_]"))
(expansion (variable_name) @ref.read (#match? @ref.read "^[A-Za-z_]"))
