# SPDX-License-Identifier: Apache-2.0
"""The base of operators as classes, and how a row of a table becomes one."""

from undertow._arguments import describe, fits, words

# What an argument takes, by the type of its default.
_TAKES = {bool: "bool", int: "int | Sequence[int]", float: "float", str: "str"}


class Primitive:
    """Base of the class forms. The constructor's arguments become attributes; the call passes them on by name.

    Raises TypeError for arguments that the class does not have.
    """

    _defaults = {}

    def __init__(self, *args, **kwargs):
        names = list(self._defaults)
        cls = type(self).__name__
        if cls == "Primitive":
            raise TypeError("ops.Primitive has no operator of its own; use one of its subclasses")
        if len(args) > len(names):
            raise TypeError(f"ops.{cls} takes at most {len(names)} arguments, got {len(args)}")
        given = dict(zip(names, args))
        for key, value in kwargs.items():
            if key not in self._defaults:
                raise TypeError(f"ops.{cls} got an unexpected argument '{key}'; it takes {', '.join(names) or 'none'}")
            if key in given:
                raise TypeError(f"ops.{cls} got '{key}' twice")
            given[key] = value
        for key, value in given.items():
            takes = _TAKES.get(type(self._defaults[key]))
            if takes and not fits(value, takes):
                raise TypeError(f"ops.{cls}: '{key}' must be {words(takes)}, but is {describe(value)}")
        missing = [key for key, value in (self._defaults | given).items() if value is REQUIRED]
        if missing:
            raise TypeError(f"ops.{cls} needs the argument '{missing[0]}'")
        self._attributes = self._defaults | given
        self.__dict__.update(self._attributes)

    @property
    def name(self):
        return type(self).__name__

    def __call__(self, *inputs):
        return self._call(*inputs, **{key: value for key, value in self._attributes.items() if key not in self._hints})

    def __repr__(self):
        return f"ops.{self.name}({', '.join(f'{k}={v!r}' for k, v in self._attributes.items())})"

    def add_prim_attr(self, name, value):
        """Keeps a remark about the operator, which has no effect here. Returns the operator."""
        self.__dict__[name] = value
        return self

    def shard(self, in_strategy=None, out_strategy=None):
        """How to split the operator over devices; one device has nothing to split. Returns the operator."""
        return self

    def set_stage(self, stage):
        """A stage of a pipeline over devices; one device has one. Returns the operator."""
        return self


REQUIRED = object()  # an argument without a default


def define(namespace, name, call, hints=(), **defaults):
    """Adds the class `name` to a module's `namespace` and to its __all__.

    call: takes the inputs in order and the attributes by name. hints: attributes that MindSpore has and that make no
    difference here; they are accepted and not passed on.
    """
    namespace[name] = type(
        name,
        (Primitive,),
        {
            "_call": staticmethod(call),
            "_defaults": defaults,
            "_hints": frozenset(hints),
            "__module__": namespace["__name__"],
            "__doc__": (getattr(call, "__doc__", None) or f"The class form of ops.{call.__name__}."),
        },
    )
    namespace["__all__"].append(name)
