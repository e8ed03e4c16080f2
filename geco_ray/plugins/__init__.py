"""Components from outside: where their code is, what identifies it, and how a file becomes one."""

from __future__ import annotations

from geco_ray.plugins.loading import Plugin, load_plugin, loaded_plugins, with_plugins
from geco_ray.plugins.sources import Origin, origin_of

__all__ = ["Origin", "Plugin", "load_plugin", "loaded_plugins", "origin_of", "with_plugins"]
