# SPDX-License-Identifier: Apache-2.0
"""What runs on the host around epochs and steps."""

from undertow._core.train import Callback, LossMonitor, RunContext, TimeMonitor  # noqa: F401

_HOOKS = tuple(
    f"on_{mode}{part}_{edge}"
    for mode in ("train", "eval")
    for part in ("_epoch", "_step", "")
    for edge in ("begin", "end")
)


class LambdaCallback(Callback):
    """Hooks as functions of a RunContext: on_train_begin=..., on_train_epoch_end=..., on_eval_step_end=..., ..."""

    def __init__(
        self,
        on_train_epoch_begin=None,
        on_train_epoch_end=None,
        on_train_step_begin=None,
        on_train_step_end=None,
        on_train_begin=None,
        on_train_end=None,
        on_eval_epoch_begin=None,
        on_eval_epoch_end=None,
        on_eval_step_begin=None,
        on_eval_step_end=None,
        on_eval_begin=None,
        on_eval_end=None,
    ):
        super().__init__()
        given = locals()
        self._hooks = {name: given[name] for name in _HOOKS if given[name] is not None}
        for name, hook in self._hooks.items():
            if not callable(hook):
                raise TypeError(f"LambdaCallback: {name} must be a function, got {type(hook).__name__}")


def _forward(name):
    def hook(self, run_context):
        if name in self._hooks:
            self._hooks[name](run_context)

    hook.__name__ = name
    return hook


for _name in _HOOKS:
    setattr(LambdaCallback, _name, _forward(_name))
