"""Recordings of the whole program, for every test of this folder."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType


def _load_recording() -> ModuleType:
    # The folder is no package (pytest's importlib mode), so the module is loaded by its path, once.
    name = "infra_recording"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name("recording.py"))
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]
