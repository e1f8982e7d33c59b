(atx_heading heading_content: (_) @name) @def.heading
(setext_heading heading_content: (_) @name) @def.heading
