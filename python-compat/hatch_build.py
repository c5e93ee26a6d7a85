"""Puts the Lua scripts of the repository into sdist and wheel. A wheel that is built from an sdist finds them there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Scripts(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        if version == 'editable' or (root / 'src' / 'godelayed' / 'lua').is_dir():
            return
        lua = root.parent / 'lua'
        found = list(lua.rglob('*.lua'))
        if not found:
            raise FileNotFoundError(f'expected the Lua scripts in {lua}, found none: build from a clone')
        place = 'src/godelayed/lua' if self.target_name == 'sdist' else 'godelayed/lua'
        for file in found:
            build_data['force_include'][str(file)] = f'{place}/{file.relative_to(lua).as_posix()}'
