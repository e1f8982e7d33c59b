(block_mapping_pair key: (flow_node) @name) @def.key
(flow_pair key: (flow_node) @name) @def.key
(alias (alias_name) @ref.read)
