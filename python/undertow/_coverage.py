# SPDX-License-Identifier: Apache-2.0
"""Which of the names that scripts use does Undertow have? Answers without running the scripts.

Seen are names that are reached from an import of `mindspore` (or `undertow`): `ms.ops.relu`, `from mindspore.nn import
Cell`, `nn.Cell.foo`; members of a class of ours where the class is certain: `Tensor(...).foo`, an argument annotated
`x: Tensor`, `self.foo(...)` in a Cell. What a variable holds is not followed beyond that.
"""

import ast
import functools
import os
import types
import warnings
from collections import defaultdict

from undertow import _modules

_ROOTS = ("mindspore", "undertow")


class Use:
    """One place where a script uses a name. `path` is without the package's name: "nn.Conv2d"."""

    def __init__(self, path, line):
        self.path, self.line = path, line


@functools.cache
def resolve(path):
    """The object behind a path, or the first part of the path that is missing, as (object, None) or (None, missing)."""
    found, parts = _module(""), path.split(".") if path else []
    for i, part in enumerate(parts):
        below = None
        if isinstance(found, types.ModuleType):
            below = _module(".".join(parts[: i + 1]))
        value = getattr(found, part, below)
        if value is None and below is None and not hasattr(found, part):
            return None, ".".join(parts[: i + 1])
        if getattr(value, "_undertow_refused", None):
            return None, ".".join(parts[: i + 1])
        if not isinstance(value, (types.ModuleType, type)):
            return value, None  # what members an instance or a function's result has is not known from here
        found = value
    return found, None


@functools.cache
def _module(path):
    try:
        return _modules.load(path)
    except ModuleNotFoundError:
        return None


def _dotted(node):
    """`a.b.c` as ["a", "b", "c"], or None for anything else."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return [node.id, *reversed(parts)]


class _Reader(ast.NodeVisitor):
    def __init__(self):
        self.uses = []
        self.bound = {}  # name in the script -> path in the package
        self.typed = [{}]  # per function: argument -> path of its class
        self.cells = []  # per class: members that it defines itself, if it is a Cell

    def use(self, path, node):
        self.uses.append(Use(path, node.lineno))

    def visit_Import(self, node):
        for item in node.names:
            root, _, rest = item.name.partition(".")
            if root not in _ROOTS:
                continue
            self.bound[item.asname or root] = rest if item.asname else ""
            if rest:
                self.use(rest, node)

    def visit_ImportFrom(self, node):
        root, _, rest = (node.module or "").partition(".")
        if node.level or root not in _ROOTS:
            return
        for item in node.names:
            if item.name == "*":
                self.use(rest, node)
                module = _module(rest)
                for name in getattr(module, "__all__", None) or [n for n in dir(module) if not n.startswith("_")]:
                    self.bound[name] = f"{rest}.{name}".lstrip(".")
                continue
            path = f"{rest}.{item.name}".lstrip(".")
            self.bound[item.asname or item.name] = path
            self.use(path, node)

    def path_of(self, node):
        """The path in the package that an expression names, or None."""
        parts = _dotted(node)
        if not parts or parts[0] not in self.bound:
            return None
        return ".".join([self.bound[parts[0]], *parts[1:]]).strip(".")

    def class_of(self, node):
        """The path of the class of an expression's value where that is certain, or None."""
        if isinstance(node, ast.Name):
            return self.typed[-1].get(node.id)
        if isinstance(node, ast.Call):
            path = self.path_of(node.func)
            if path is not None and isinstance(resolve(path)[0], type):
                return path
        return None

    def visit_Attribute(self, node):
        path = self.path_of(node)
        if path is not None:
            self.use(path, node)
            return
        owner = self.class_of(node.value)
        if owner is not None:
            self.use(f"{owner}.{node.attr}", node)
        elif self._is_cells_own(node):
            self.use(f"nn.Cell.{node.attr}", node)
        self.generic_visit(node)

    def _is_cells_own(self, node):
        """Whether `self.x` in a Cell is a member that Cell has in MindSpore, and not the class's own."""
        own = self.cells[-1] if self.cells else None
        on_self = isinstance(node.value, ast.Name) and node.value.id == "self"
        return own is not None and on_self and node.attr in _CELL_MEMBERS and node.attr not in own

    def visit_Assign(self, node):
        self.generic_visit(node)
        path = self.path_of(node.value)
        for target in node.targets:
            if isinstance(target, ast.Name):
                self.bound.pop(target.id, None)
                if path is not None:
                    self.bound[target.id] = path

    def visit_FunctionDef(self, node):
        types_ = {}
        for argument in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]:
            path = self.path_of(argument.annotation) if argument.annotation is not None else None
            if path is not None and isinstance(resolve(path)[0], type):
                types_[argument.arg] = path
        self.typed.append(types_)
        self.generic_visit(node)
        self.typed.pop()

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node):
        bases = [self.path_of(base) for base in node.bases]
        is_cell = any(path in ("nn.Cell", "nn.SequentialCell", "nn.LossBase") for path in bases)
        own = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
        for item in ast.walk(node):
            if isinstance(item, ast.Attribute) and isinstance(item.ctx, ast.Store) and _dotted(item.value) == ["self"]:
                own.add(item.attr)
        self.cells.append(own if is_cell else None)
        self.generic_visit(node)
        self.cells.pop()


# Members of Cell that scripts call on self.
_CELL_MEMBERS = frozenset(
    """
    add_flags apply auto_prefix cells cells_and_names cls_name extend_repr flatten_weights get_flags get_inputs
    get_parameters get_scope init_parameters_data insert_child_to_cell insert_param_to_cell name_cells param_prefix
    parameters_and_names parameters_dict place recompute register_backward_hook register_forward_hook
    register_forward_pre_hook set_boost set_broadcast_flag set_comm_fusion set_data_parallel set_grad set_inputs
    set_jit_config set_train shard to_float trainable_params training untrainable_params update_cell_prefix
    update_cell_type update_parameters_name
    """.split()  # noqa: SIM905
)


def uses_of(path):
    """The uses in a script. Raises ValueError where it is not Python."""
    try:
        with open(path, "rb") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the script's own: invalid escapes and the like
            tree = ast.parse(file.read(), path)
    except (SyntaxError, ValueError) as error:
        raise ValueError(f"{path} is not Python that this version understands: {error}") from None
    reader = _Reader()
    reader.visit(tree)
    return reader.uses


_modules.quiet = True


def check(path):
    """Prints every use of a name that Undertow lacks, with its line. Returns 1 if there was one, else 0."""
    missing = {}
    for use in uses_of(path):
        name = resolve(use.path)[1]
        if name is not None:
            missing.setdefault((use.line, name))
    for line, name in sorted(missing):
        print(f"{path}:{line}: mindspore.{name}")
    if missing:
        names = len({name for _, name in missing})
        print(f"{names} name{'s' * (names != 1)} that Undertow does not have")
    else:
        print(f"{path}: Undertow has every name that it uses")
    return 1 if missing else 0


def _scripts(folder):
    for where, folders, files in os.walk(folder):
        folders[:] = sorted(f for f in folders if not f.startswith(".") and f != "__pycache__")
        yield from (os.path.join(where, name) for name in sorted(files) if name.endswith(".py"))


def coverage(folder):
    """Prints a table of the names that a folder's scripts use, ours and missing, and the share of each. Returns 0."""
    count, files, is_missing, skipped, scripts = defaultdict(int), defaultdict(set), {}, [], 0
    for script in _scripts(folder):
        try:
            uses = uses_of(script)
        except ValueError as error:
            skipped.append(str(error))
            continue
        scripts += 1
        for use in uses:
            found, missing = resolve(use.path)
            if isinstance(found, types.ModuleType):
                continue  # importing a module is not yet using a name of it
            # A member of an instance counts as the name that gave the instance.
            name = missing or use.path
            count[name] += 1
            files[name].add(script)
            is_missing[name] = missing is not None
    if skipped:
        print("not read:", *skipped, sep="\n  ")
    if not count:
        print(f"{folder}: no script that uses mindspore")
        return 0
    width = max(len(name) for name in count) + len("mindspore.")
    print(f"{'name':{width}}  uses  files  Undertow")
    for name in sorted(count, key=lambda n: (not is_missing[n], -count[n], n)):
        answer = "missing" if is_missing[name] else "yes"
        print(f"{'mindspore.' + name:{width}}  {count[name]:4}  {len(files[name]):5}  {answer}")
    ours = [name for name in count if not is_missing[name]]
    uses, ours_uses = sum(count.values()), sum(count[name] for name in ours)
    print(
        f"\n{scripts} scripts use {len(count)} names {uses} times. Undertow has {len(ours)} of the names "
        f"({100 * len(ours) / len(count):.1f} %), which make {100 * ours_uses / uses:.1f} % of the uses."
    )
    return 0
