(jsx_opening_element name: [(identifier) @ref.call (member_expression property: (property_identifier) @ref.call)]
  (#not-match? @ref.call "^[a-z][a-z0-9]*$"))
(jsx_self_closing_element name: [(identifier) @ref.call (member_expression property: (property_identifier) @ref.call)]
  (#not-match? @ref.call "^[a-z][a-z0-9]*$"))
(jsx_attribute (jsx_expression (identifier) @ref.read))
