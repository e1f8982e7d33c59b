(attribute (attribute_name) @_attribute [(quoted_attribute_value (attribute_value) @name) (attribute_value) @name]
  (#match? @_attribute "^[iI][dD]$")) @def.id
(element (start_tag (tag_name) @_tag (attribute (attribute_name) @_attribute
  [(quoted_attribute_value (attribute_value) @name) (attribute_value) @name]) @def.id)
  (#match? @_tag "^(a|form|iframe|map)$") (#eq? @_attribute "name"))

(attribute (attribute_name) @_attribute [(quoted_attribute_value (attribute_value) @words) (attribute_value) @words]
  (#any-of? @_attribute "class" "for" "aria-labelledby" "aria-describedby" "aria-controls"))
(attribute (attribute_name) @_attribute (quoted_attribute_value (attribute_value) @fragment)
  (#eq? @_attribute "href") (#match? @fragment "^#."))
(script_element (start_tag (attribute (attribute_name) @_attribute (quoted_attribute_value (attribute_value) @ref.import))
  (#eq? @_attribute "src")))
(element (start_tag (tag_name) @_tag (attribute (attribute_name) @_attribute
  (quoted_attribute_value (attribute_value) @ref.import)) (#eq? @_tag "link") (#eq? @_attribute "href")))
(start_tag (tag_name) @ref.call (#match? @ref.call "-"))
