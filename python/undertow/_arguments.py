# SPDX-License-Identifier: Apache-2.0
"""Which argument of a call is wrong: its name, what it takes, what it got."""

import ast
import difflib
import operator
import re
import reprlib
from dataclasses import dataclass

REQUIRED = object()


@dataclass
class Parameter:
    name: str
    takes: str  # the annotation
    default: object = REQUIRED
    keyword_only: bool = False

    @property
    def optional(self):
        return self.default is not REQUIRED


def parameters_of(signature):
    """(parameters, whether it takes any further arguments, and further ones by name) of a bound function's form.

    nanobind gives ("def f(self, x: int, *, y: float | None = \\0) -> object", doc, *defaults).
    """
    text, _, *defaults = signature
    defaults = defaults[0] if defaults else ()
    text = re.sub(r"\\(\d+)", r"_\1", re.sub(r"\s*->.*", "", text, flags=re.S))
    a = ast.parse(text + ": ...").body[0].args

    def parameter(item, default, keyword_only=False):
        takes = ast.unparse(item.annotation) if item.annotation else ""
        value = REQUIRED if default is None else defaults[int(default.id[1:])]
        return Parameter(item.arg, takes, value, keyword_only)

    names = [*a.posonlyargs, *a.args]
    found = map(parameter, names, [None] * (len(names) - len(a.defaults)) + a.defaults)
    found = [*found, *(parameter(k, d, True) for k, d in zip(a.kwonlyargs, a.kw_defaults))]
    return found, bool(a.vararg), bool(a.kwarg)


def _alternatives(takes):
    """The parts of a union, outside of brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(takes):
        depth += (c == "[") - (c == "]")
        if c == "|" and depth == 0:
            parts.append(takes[start:i].strip())
            start = i + 1
    return list(dict.fromkeys([*parts, takes[start:].strip()]))


def _named(path):
    """The class with a dotted name, or None."""
    import undertow

    found = undertow
    for part in path.removeprefix("undertow.").split("."):
        found = getattr(found, part, None)
    return found if isinstance(found, type) else None


def _is_int(v):
    try:
        operator.index(v)
        return True
    except TypeError:
        return False


def _is_number(v):
    return hasattr(v, "__float__") or _is_int(v)


def _fits(value, takes):
    """Whether the value may be of the annotated type; where that cannot be told, True."""
    kind, _, items = takes.partition("[")
    items = items.removesuffix("]")
    kind = kind.rsplit(".", 1)[-1] if kind.startswith(("collections", "typing")) else kind
    match kind:
        case "" | "object":
            return True
        case "None":
            return value is None
        case "bool":
            return isinstance(value, bool)
        case "int":
            return _is_int(value)
        case "float" | "number":
            return _is_number(value)
        case "str" | "dict" | "list":
            return isinstance(value, {"str": str, "dict": dict, "list": list}[kind])
        case "Callable":
            return callable(value)
        case "Sequence" | "tuple":
            if isinstance(value, (str, bytes, dict)) or not hasattr(value, "__iter__"):
                return False
            item = items.split(",")[0].strip()
            return not isinstance(value, (list, tuple)) or all(fits(v, item) for v in value)
        case "dtype":
            return isinstance(value, type) or type(value).__name__.lower().startswith("dtype") or hasattr(value, "kind")
        case "Initializer":
            return not isinstance(value, (list, tuple, dict))
        case "Tensor" | "Parameter":
            return isinstance(value, _named(kind))
    known = _named(kind)
    return known is None or isinstance(value, known)


def fits(value, takes):
    """Whether the value may be of one of the annotated types."""
    return any(_fits(value, part) for part in _alternatives(takes))


_WORDS = {
    "int": "an int",
    "float": "a number",
    "number": "a number",
    "bool": "True or False",
    "str": "a string",
    "dtype": "a dtype such as float32",
    "Callable": "a function",
    "Sequence[int]": "a sequence of ints",
    "tuple[int, ...]": "a tuple of ints",
    "Sequence[str]": "a sequence of strings",
    "Sequence[Tensor]": "a sequence of Tensors",
    "Initializer": "an Initializer",
    "object": "another value",
    "None": "None",
}


def words(takes):
    """An annotation as text."""
    parts = []
    for part in _alternatives(takes):
        part = part.replace("collections.abc.", "")
        short = re.sub(r"[a-z_.]*\.(?=[A-Z])", "", part)
        parts.append(_WORDS.get(short, f"a {short}"))
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} or {parts[-1]}"


def describe(value):
    """A value in an error message: its type, and what it is."""
    if value is None:
        return "None"
    kind = type(value).__name__
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"a {kind} of shape {tuple(value.shape)}"
    return f"the {kind} {reprlib.repr(value)}"


def _problem(parameters, more, more_named, args, kwargs):
    """What is wrong with the call, or None; and how many arguments were right before."""
    names = [p.name for p in parameters]
    positional = [p for p in parameters if not p.keyword_only]
    if len(args) > len(positional) and not more:
        takes = ", ".join(p.name for p in positional) or "none"
        return f"takes at most {len(positional)} argument{'s' * (len(positional) != 1)} ({takes}), got {len(args)}", 0
    given = dict(zip((p.name for p in positional), args))
    for name in kwargs:
        if name in given:
            return f"got the argument '{name}' twice", 0
        if name not in names and not more_named:
            near = difflib.get_close_matches(name, names, 1)
            hint = f"; did you mean '{near[0]}'?" if near else ""
            return f"has no argument '{name}'{hint} It takes {', '.join(names)}".replace("' It", "'; it"), 0
    given |= kwargs
    for right, p in enumerate(parameters):
        if p.name not in given:
            if not p.optional:
                return f"needs the argument '{p.name}' ({words(p.takes) if p.takes else 'any value'})", right
        elif p.takes and not fits(given[p.name], p.takes):
            return f"'{p.name}' must be {words(p.takes)}, but is {describe(given[p.name])}", right
    return None, len(parameters)


def explain(function, args, kwargs):
    """The text of the TypeError for a call that no form of the function takes; None where it cannot be told."""
    forms = [parameters_of(signature) for signature in function.__nb_signature__]
    name = function.__name__
    if forms and forms[0][0] and forms[0][0][0].name == "self" and args:
        cls = type(args[0]).__name__
        name = cls if name == "__init__" else f"{cls}.{name}"
        args = args[1:]
        forms = [(parameters[1:], more, named) for parameters, more, named in forms]
    found = [_problem(*form, args, kwargs) for form in forms]
    if any(text is None for text, _ in found):
        return None
    text, _ = max(found, key=lambda f: f[1])
    return f"{name}: {text}" if text.startswith("'") else f"{name} {text}"
