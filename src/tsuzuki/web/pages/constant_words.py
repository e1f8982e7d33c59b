"""Translates the words of a template when it is compiled: there is one environment for each language.

A list says the same words in each row. `_("Run")` without values is the same text each time, so it is written into
the compiled template; a sentence with values is translated when it is rendered.
"""

from typing import Any

from jinja2 import Environment, nodes
from jinja2.visitor import NodeTransformer

TRANSLATE = "_"


class ConstantWords(Environment):
    def _generate(self, source: nodes.Template, *about: Any, **options: Any) -> str:
        translated = _Translation(self.globals[TRANSLATE]).visit(source)
        return super()._generate(translated, *about, **options)


class _Translation(NodeTransformer):
    def __init__(self, translate: Any) -> None:
        self._translate = translate

    def visit_Call(self, node: nodes.Call) -> nodes.Node:  # noqa: N802 - a visitor is named after its node
        match node:
            case nodes.Call(
                node=nodes.Name(name="_"), args=[nodes.Const(value=str() as text)], kwargs=[]
            ) if node.dyn_args is None and node.dyn_kwargs is None:
                word = nodes.Const(str(self._translate(text)), lineno=node.lineno)
                return nodes.MarkSafe(word, lineno=node.lineno)
        return self.generic_visit(node)
