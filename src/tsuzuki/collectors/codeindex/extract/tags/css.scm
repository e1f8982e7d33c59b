; Selectors nest to the left: each depth has a pattern of its own.
(rule_set (selectors (id_selector (id_name) @name))) @def.id
(rule_set (selectors (_ (id_selector (id_name) @name)))) @def.id
(rule_set (selectors (_ (_ (id_selector (id_name) @name))))) @def.id
(rule_set (selectors (_ (_ (_ (id_selector (id_name) @name)))))) @def.id
(rule_set (selectors (_ (_ (_ (_ (id_selector (id_name) @name))))))) @def.id
(rule_set (selectors (class_selector (class_name) @name))) @def.rule
(rule_set (selectors (_ (class_selector (class_name) @name)))) @def.rule
(rule_set (selectors (_ (_ (class_selector (class_name) @name))))) @def.rule
(rule_set (selectors (_ (_ (_ (class_selector (class_name) @name)))))) @def.rule
(rule_set (selectors (_ (_ (_ (_ (class_selector (class_name) @name))))))) @def.rule
(keyframes_statement (keyframes_name) @name) @def.rule
(declaration (property_name) @name (#match? @name "^--")) @def.variable

(call_expression (function_name) @_var (arguments . (plain_value) @ref.read) (#eq? @_var "var"))
(declaration (property_name) @_animation (plain_value) @ref.read (#match? @_animation "^animation(-name)?$"))
(import_statement [(string_value (string_content) @ref.import)
  (call_expression (arguments (string_value (string_content) @ref.import)))])
((tag_name) @ref.read (#match? @ref.read "-"))
