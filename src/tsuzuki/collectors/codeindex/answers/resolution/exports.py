"""What a module gives others: its own definitions, and what it takes over from other modules."""

import posixpath
from typing import TYPE_CHECKING

from tsuzuki.collectors.codeindex.answers.resolution.modules import go_package_name
from tsuzuki.collectors.codeindex.answers.resolution.roles import named
from tsuzuki.collectors.codeindex.answers.resolution.scoped_file import ScopedFile
from tsuzuki.collectors.codeindex.answers.resolution.values import Module, NamedDefinition, Value
from tsuzuki.collectors.codeindex.queries.lookups import Symbol

if TYPE_CHECKING:
    from tsuzuki.collectors.codeindex.answers.resolution.resolver import ScopeResolver


def export(resolver: "ScopeResolver", module: str, name: str, family: str) -> Value | None:
    """What other files get under a name from a module; None if that cannot be said."""
    if family == "go":
        return _of_package(resolver, module, name, "")
    symbols = tuple(
        one for one in resolver.definitions(name) if one.path == module and not one.container
    )
    scoped = resolver.scoped(module)
    if family == "python":
        return _of_python(resolver, scoped, module, name, symbols)
    if symbols or scoped is None:
        return NamedDefinition(symbols) if symbols else None
    return _default(resolver, scoped) if name == "default" else _of_script(resolver, scoped, name)


def _of_python(
    resolver: "ScopeResolver",
    scoped: ScopedFile | None,
    module: str,
    name: str,
    symbols: tuple[Symbol, ...],
) -> Value | None:
    if scoped and (bound := scoped.at_top(name)):
        return resolver.of_bound(scoped, name, bound)
    if symbols:
        return NamedDefinition(symbols)
    if submodule := resolver.modules.submodule(module, name):
        return Module(submodule)
    return _from_wildcards(resolver, scoped, name) if scoped else None


def _from_wildcards(resolver: "ScopeResolver", scoped: ScopedFile, name: str) -> Value | None:
    """From the only one of the modules taken over as a whole that has the name."""
    found = [
        value
        for written in scoped.rules.wildcards(scoped.syntax)
        if (module := resolver.modules.find(scoped.family, written, scoped.path))
        and (value := resolver.export(module, name, scoped.family))
    ]
    return found[0] if found and all(one == found[0] for one in found) else None


def _of_script(resolver: "ScopeResolver", scoped: ScopedFile, name: str) -> Value | None:
    """`export { a as name }`, also of another module, else a module that is taken over as a whole."""
    for one in scoped.syntax.occurrences(name):
        specifier = one.path[-2].node
        if specifier.type == "namespace_export":
            source = named(one.path[-3].node, "source")
            written = scoped.syntax.written(source).strip("'\"") if source else ""
            module = resolver.modules.find(scoped.family, written, scoped.path)
            return Module(module) if module else None
        if specifier.type != "export_specifier":
            continue
        if one.path[-1].field == "name" and named(specifier, "alias"):
            continue
        original = named(specifier, "name")
        path = scoped.syntax.path_to(original.start_byte) if original else one.path
        role, written = scoped.role(path), scoped.syntax.written(path[-1].node)
        if not role.module:
            if written == "default":
                return None
            return resolver.bare(scoped, written, path)
        module = resolver.modules.find(scoped.family, role.module, scoped.path)
        return resolver.export(module, written, scoped.family) if module else None
    return _from_wildcards(resolver, scoped, name)


def _default(resolver: "ScopeResolver", scoped: ScopedFile) -> Value | None:
    """What `export default` names."""
    for statement in scoped.syntax.root.named_children:
        if statement.type != "export_statement":
            continue
        if not any(one.type == "default" for one in statement.children):
            continue
        declaration = named(statement, "declaration")
        node = named(declaration, "name") if declaration else named(statement, "value")
        is_name = node is not None and node.type in ("identifier", "type_identifier")
        return resolver.evaluate(scoped, node) if node and is_name else None
    return _of_script(resolver, scoped, "default")


def from_outside(resolver: "ScopeResolver", scoped: ScopedFile, name: str) -> Value | None:
    """What no scope of a file binds: in Go a package or a name of the own package, in Python of a module that is
    taken over as a whole."""
    if scoped.family == "python":
        return _from_wildcards(resolver, scoped, name)
    if scoped.family != "go":
        return None
    for written in _go_imports(scoped):
        module = resolver.modules.find("go", written, scoped.path)
        if go_package_name(written) == name or (
            module and name in _packages_in(resolver, module, name)
        ):
            return Module(module) if module else None
    folder = posixpath.dirname(scoped.path) or "."
    return _of_package(resolver, folder, name, scoped.path)


def _go_imports(scoped: ScopedFile) -> list[str]:
    """The imports without a name of their own."""
    found = []
    for declaration in scoped.syntax.root.named_children:
        if declaration.type != "import_declaration":
            continue
        listed = declaration.named_children
        if listed and listed[0].type == "import_spec_list":
            listed = listed[0].named_children
        found += [
            scoped.syntax.written(path).strip('"`')
            for one in listed
            if one.type == "import_spec" and named(one, "name") is None
            if (path := named(one, "path"))
        ]
    return found


def _packages_in(resolver: "ScopeResolver", folder: str, name: str) -> set[str]:
    """The name, if a package in this folder has it."""
    return {
        one.name
        for one in resolver.definitions(name)
        if one.kind == "module" and (posixpath.dirname(one.path) or ".") == folder
    }


def _of_package(resolver: "ScopeResolver", folder: str, name: str, from_path: str) -> Value | None:
    """A name of a package of Go. Only its own tests see what is defined in a test."""
    inside = _package_of(resolver, from_path) if from_path else None
    symbols = tuple(
        one
        for one in resolver.definitions(name)
        if one.language == "go"
        and (posixpath.dirname(one.path) or ".") == folder
        and not one.container
        and one.kind != "module"
        and (_package_of(resolver, one.path) == inside if inside else _is_public(one))
    )
    return NamedDefinition(symbols) if symbols else None


def _is_public(symbol: Symbol) -> bool:
    return not symbol.path.endswith("_test.go")


def _package_of(resolver: "ScopeResolver", path: str) -> str:
    scoped = resolver.scoped(path)
    symbols = scoped.file.symbols if scoped else ()
    return next((one.name for one in symbols if one.kind == "module"), "")
