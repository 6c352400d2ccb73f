"""The type stubs name the constants, functions and classes of the module, and the members of the classes."""

import ast
import pathlib

import perf

folder = pathlib.Path(perf.__file__).parent
assert (folder / "py.typed").exists()
tree = ast.parse((folder / "__init__.pyi").read_text())


def members(body):
    """The names that statements of a stub define."""
    names = set()
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign):
            names.add(node.target.id)
    return names


def public(names):
    return {name for name in names if not name.startswith("_")}


assert public(members(tree.body)) == set(perf.__all__), public(members(tree.body)) ^ set(perf.__all__)
classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
assert len(classes) > 15
for node in classes:
    own = getattr(perf, node.name)
    stubbed = public(members(node.body))
    for base in node.bases:
        stubbed |= public(dir(getattr(perf, base.id)))
    assert stubbed == public(dir(own)), (node.name, stubbed ^ public(dir(own)))
    assert own.__module__ == "perf" and own.__doc__, node.name
print("good")
