# SPDX-License-Identifier: Apache-2.0
"""ModelCheckpoint: checkpoints written while a run goes on."""

import os
import time

from undertow._core.train import Callback
from undertow.nn import Cell
from undertow.train.serialization import save_checkpoint

_COUNTS = ("save_checkpoint_steps", "save_checkpoint_seconds", "keep_checkpoint_max", "keep_checkpoint_per_n_minutes")


class CheckpointConfig:
    """When ModelCheckpoint saves and which files it keeps.

    save_checkpoint_steps (or, where that is 0 or None, save_checkpoint_seconds): how often. keep_checkpoint_max: how
    many files, or, where that is 0 or None, one file for each keep_checkpoint_per_n_minutes. saved_network: what is
    saved in place of the training network. append_info: "epoch_num", "step_num", and dicts of numbers to go with it.
    Raises ValueError where all four counts are 0, TypeError and ValueError for other bad arguments; encryption,
    exception_save, remove_redundancy and other formats than ckpt are not supported.
    """

    def __init__(
        self,
        save_checkpoint_steps=1,
        save_checkpoint_seconds=0,
        keep_checkpoint_max=5,
        keep_checkpoint_per_n_minutes=0,
        integrated_save=True,
        async_save=False,
        saved_network=None,
        append_info=None,
        enc_key=None,
        enc_mode="AES-GCM",
        exception_save=False,
        crc_check=False,
        remove_redundancy=False,
        format="ckpt",
    ):
        counts = (save_checkpoint_steps, save_checkpoint_seconds, keep_checkpoint_max, keep_checkpoint_per_n_minutes)
        for name, value in zip(_COUNTS, counts):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
                raise TypeError(f"CheckpointConfig: '{name}' must be an integer or None, got {value!r}")
            if value is not None and value < 0:
                raise ValueError(f"CheckpointConfig: '{name}' must be at least 0, got {value}")
        if not any(counts):
            raise ValueError(f"CheckpointConfig: {', '.join(_COUNTS)} must not all be 0")
        for name, value in (("integrated_save", integrated_save), ("crc_check", crc_check)):
            if not isinstance(value, bool):
                raise TypeError(f"CheckpointConfig: '{name}' must be a bool, got {value!r}")
        if async_save not in (True, False, "thread"):
            raise ValueError(f"CheckpointConfig: 'async_save' must be a bool or 'thread', got {async_save!r}")
        if saved_network is not None and not isinstance(saved_network, Cell):
            raise TypeError(f"CheckpointConfig: 'saved_network' must be a Cell, got {type(saved_network).__name__}")
        if enc_key is not None:
            raise NotImplementedError(f"CheckpointConfig: encrypted checkpoints ({enc_mode}) are not supported")
        if exception_save or remove_redundancy or format != "ckpt":
            raise ValueError(
                "CheckpointConfig: exception_save, remove_redundancy and formats other than ckpt are not supported"
            )
        self.save_checkpoint_steps, self.save_checkpoint_seconds = save_checkpoint_steps, save_checkpoint_seconds
        self.keep_checkpoint_max, self.keep_checkpoint_per_n_minutes = (
            keep_checkpoint_max,
            keep_checkpoint_per_n_minutes,
        )
        if save_checkpoint_steps:
            self.save_checkpoint_seconds = None
        if keep_checkpoint_max:
            self.keep_checkpoint_per_n_minutes = None
        elif not keep_checkpoint_per_n_minutes:
            self.keep_checkpoint_max = 1
        self.integrated_save, self.async_save, self.saved_network = integrated_save, bool(async_save), saved_network
        self.crc_check, self.format, self.enc_key, self.enc_mode = crc_check, format, enc_key, enc_mode
        self.append_dict = _append_dict(append_info)

    def get_checkpoint_policy(self):
        """When it saves and what it keeps, as a dict."""
        return {name: getattr(self, name) for name in (*_COUNTS, "saved_network")}


def _append_dict(info):
    out = {}
    for item in info or ():
        if item in ("epoch_num", "step_num"):
            out[item] = 0
        elif isinstance(item, dict):
            out.update(item)
        else:
            raise TypeError(f"CheckpointConfig: 'append_info' takes 'epoch_num', 'step_num' and dicts, got {item!r}")
    return out


class ModelCheckpoint(Callback):
    """ModelCheckpoint(prefix="CKP", directory=None, config=None): writes <prefix>-<epoch>_<step>.ckpt into a directory.

    With the sink on, that is after a command of steps. `prefix` and `directory` may be functions of the run's
    parameters; a prefix from a function is the whole name of the file. Where the directory has such files from an
    earlier run, the prefix gets a number: CKP_1, CKP_2, ... Raises ValueError and TypeError for other arguments.
    """

    def __init__(self, prefix="CKP", directory=None, config=None):
        super().__init__()
        if not callable(prefix):
            self._check_prefix(prefix)
        if config is not None and not isinstance(config, CheckpointConfig):
            raise TypeError(f"ModelCheckpoint: 'config' must be a CheckpointConfig, got {type(config).__name__}")
        if directory is not None and not callable(directory) and not isinstance(directory, (str, os.PathLike)):
            raise TypeError(f"ModelCheckpoint: 'directory' must be a path or a function, got {directory!r}")
        self._config = config or CheckpointConfig()
        self._prefix, self._directory = prefix, directory
        if not callable(directory):
            self._directory = os.path.abspath(os.curdir if directory is None else os.fspath(directory))
            os.makedirs(self._directory, exist_ok=True)
            if not callable(prefix):
                self._prefix = _free_prefix(self._directory, prefix)
        self._append = dict(self._config.append_dict)
        self._first = {key: self._append.get(key, 0) for key in ("epoch_num", "step_num")}
        self._written = []  # (path, time), oldest first
        self._last_step, self._last_time = 0, time.monotonic()

    @staticmethod
    def _check_prefix(prefix):
        if not isinstance(prefix, str) or "/" in prefix:
            raise ValueError(f"ModelCheckpoint: 'prefix' must be a name without '/', or a function, got {prefix!r}")

    @property
    def latest_ckpt_file_name(self):
        """The path of the newest file, or ""."""
        return self._written[-1][0] if self._written else ""

    def step_end(self, run_context):
        self._save(run_context.original_args())

    def end(self, run_context):
        self._save(run_context.original_args(), last=True)

    def on_eval_step_end(self, run_context):
        pass

    def on_eval_end(self, run_context):
        pass

    def _due(self, step, last):
        if step == self._last_step:
            return False
        config = self._config
        if config.save_checkpoint_steps:
            return last or step >= self._last_step + config.save_checkpoint_steps
        if config.save_checkpoint_seconds:
            return last or time.monotonic() - self._last_time > config.save_checkpoint_seconds
        return False

    def _path(self, params):
        directory, name = self._directory, self._prefix
        if callable(directory):
            directory = directory(params)
            os.makedirs(directory, exist_ok=True)
        if callable(name):
            name = name(params)
            self._check_prefix(name)
        else:
            step = (params.cur_step_num - 1) % params.batch_num + 1 if params.batch_num else params.cur_step_num
            name = f"{name}-{params.cur_epoch_num}_{step}"
        return os.path.join(directory, name + ".ckpt")

    def _save(self, params, last=False):
        if not self._due(params.cur_step_num, last):
            return
        path = self._path(params)
        self._make_room(path)
        for key, value in (("epoch_num", params.cur_epoch_num), ("step_num", params.cur_step_num)):
            if key in self._append:
                self._append[key] = self._first[key] + value
        network = self._config.saved_network or params.train_network
        save_checkpoint(
            network,
            path,
            self._config.integrated_save,
            self._config.async_save and not last,
            self._append,
            crc_check=self._config.crc_check,
        )
        self._last_step, self._last_time = params.cur_step_num, time.monotonic()
        self._written.append((path, self._last_time))
        params.latest_ckpt_file, params.last_save_ckpt_step = path, params.cur_step_num

    def _make_room(self, path):
        """Removes files so that, with the one to come, as many are there as the configuration says."""
        config, now = self._config, time.monotonic()
        self._written = [entry for entry in self._written if entry[0] != path]
        if config.keep_checkpoint_max:
            drop = self._written[: max(len(self._written) - config.keep_checkpoint_max + 1, 0)]
        else:
            window = config.keep_checkpoint_per_n_minutes * 60
            recent = [entry for entry in self._written if now - entry[1] < window]
            drop = recent[1:]  # one stands for its window
        for entry in drop:
            self._written.remove(entry)
            if os.path.exists(entry[0]):
                os.remove(entry[0])


def _free_prefix(directory, prefix):
    """The prefix, or with the next free number where the directory holds files of it."""
    number = 0
    for name in os.listdir(directory):
        if not name.endswith(".ckpt") or not name.startswith(prefix):
            continue
        rest = name[len(prefix) :].split("-")[0]
        if rest == "" and "-" in name[len(prefix) :]:
            number = max(number, 1)
        elif rest.startswith("_") and rest[1:].isdigit():
            number = max(number, int(rest[1:]) + 1)
    return f"{prefix}_{number}" if number else prefix
