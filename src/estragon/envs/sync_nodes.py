"""Finds the scenes of a project that have a Sync node, from its text, before anything is started.

Only scenes that certainly never connect are rejected: code may add what the text does not show.
"""

import difflib
import posixpath
import re
from functools import cached_property
from pathlib import Path

from estragon.godot.project_check import project_files
from estragon.support.errors import UserError

MAX_SUGGESTIONS = 3
ROOT = "res://"
TEXT = (".gd", ".tscn", ".tres")
OPAQUE = (".scn", ".cs")
ADDRESS = re.compile(r"""["'*]((?:res|uid)://[^"'\s]+)["']""")
RELATIVE = re.compile(r"""(?:\bload|\bpreload|\bextends)\s*\(?\s*["']([^"':]+)["']""")
COMMENT = re.compile(r"""^((?:[^"'#\n]|"[^"\n]*"|'[^'\n]*')*)#.*$""", re.MULTILINE)
CLASS = re.compile(r"^\s*(?:@\w+\s+)*class_name\s+(\w+)", re.MULTILINE)
BASE = re.compile(
    r"""^(?:\s*class_name\s+\w+)?\s*extends\s+(?:(\w+)|["']([^"']+)["'])""", re.MULTILINE
)
AUTOLOADS = re.compile(r"^\[autoload\]\s*$(.*?)(?=^\[|\Z)", re.MULTILINE | re.DOTALL)
MODEL = re.compile(r'^onnx_model_path = "([^"]+)"', re.MULTILINE)
UID = re.compile(r' uid="(uid://\w+)"')
NAME = re.compile(r"\b[A-Za-z_]\w*")
UNCERTAIN = {
    re.compile(
        r"(?:\bchange_scene_to_\w+|\bResourceLoader\.load\w*|(?<![\w.])load)\s*\(\s*"
        r"(?:[^\s\"'&]|&?[\"'][^\"'\n]*[\"']\s*[^\s,)])"
    ): "loads a resource that its text does not name",
    re.compile(r"\benv_info\b"): "speaks the protocol itself",
    re.compile(r"\bset_script\s*\(|sync\.gd"): "may add a Sync node",
}


class SyncNodes:
    """The Sync nodes in the files of a project."""

    def __init__(self, project: Path) -> None:
        self._project = project
        self._names = {f"{ROOT}{name}" for name in project_files(project)}
        self._texts = {
            name: _read(project / name.removeprefix(ROOT))
            for name in self._names
            if name.endswith(TEXT)
        }
        self._settings = _read(project / "project.godot")
        self._has_overrides = (project / "override.cfg").exists()

    @property
    def main_scene(self) -> str:
        """The main scene of the project; empty if it has none."""
        found = re.search(r'^run/main_scene="(.*)"', self._settings, re.MULTILINE)
        return self._resolve(found[1], "") if found else ""

    def scenes(self) -> list[str]:
        """All scenes that have a Sync node, or instance a scene that has one."""
        return sorted(
            name for name in self._texts if name.endswith(".tscn") and self._has_sync(name, set())
        )

    def models(self) -> list[Path]:
        """The model files that scenes name, if they exist."""
        named = {
            self._resolve(address, name)
            for name, text in self._texts.items()
            if name.endswith(".tscn")
            for address in MODEL.findall(text)
        }
        files = [self._project / name.removeprefix(ROOT) for name in sorted(named)]
        return [file for file in files if file.is_file()]

    def uncertainty(self, scene: str | None) -> str | None:
        """Why a scene may have a Sync node; empty if it certainly has, None if it has none."""
        start = self.main_scene if scene is None else self._resolve(scene, "")
        section = AUTOLOADS.search(self._settings)
        found = ADDRESS.findall(section[1]) if section else []
        autoloads = [self._resolve(each, "") for each in found]
        if any(each in self._syncs for each in autoloads):
            return ""
        reached = self._reached([start, *autoloads])
        if any(name.endswith(".tscn") and self._has_sync(name, set()) for name in reached):
            return ""
        if start not in self._texts or self._has_overrides or "run/main_scene." in self._settings:
            return "the project does not say which scene it starts with"
        for name in sorted(reached):
            if (name.endswith(OPAQUE) and name in self._names) or name.startswith("uid://"):
                return f"{name} cannot be read"
            for pattern, what in self._uncertain.items():
                if name.endswith(TEXT) and pattern.search(self._code(name)):
                    return f"{name} {what}"
        return None

    @cached_property
    def _uids(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for name, text in self._texts.items():
            if header := re.match(r'\[gd_\w+ [^\]]*uid="(uid://\w+)"', text):
                found[header[1]] = name
        for name in self._names:
            if name.endswith(".uid"):
                found[_read(self._project / name.removeprefix(ROOT)).strip()] = name[:-4]
        return found

    @cached_property
    def _classes(self) -> dict[str, str]:
        scripts = [name for name in self._texts if name.endswith(".gd")]
        return {each: name for name in scripts for each in CLASS.findall(self._texts[name])}

    @cached_property
    def _syncs(self) -> set[str]:
        """The scripts of Sync and of the classes that extend it."""
        scripts = {name: self._bases(name) for name in self._texts if name.endswith(".gd")}
        found = {name for name in scripts if posixpath.basename(name) == "sync.gd"}
        found |= {self._classes["Sync"]} if "Sync" in self._classes else set()
        while more := {name for name in scripts if scripts[name] & found} - found:
            found |= more
        return found

    @cached_property
    def _uncertain(self) -> dict[re.Pattern[str], str]:
        names = "|".join(each for each, name in self._classes.items() if name in self._syncs)
        return UNCERTAIN | {re.compile(rf"\b(?:{names or 'Sync'})\b"): "may add a Sync node"}

    def _bases(self, name: str) -> set[str]:
        found = BASE.findall(self._texts[name])
        return {self._classes.get(each, "") for each, _ in found} | {
            self._resolve(path, name) for _, path in found if path
        }

    def _has_sync(self, scene: str, seen: set[str]) -> bool:
        seen.add(scene)
        parts = {self._resolve(each, scene) for each in ADDRESS.findall(self._code(scene))}
        inside = {each for each in parts if each.endswith(".tscn")} - seen
        return any(
            each in self._syncs or posixpath.basename(each) == "sync.gd" for each in parts
        ) or any(self._has_sync(each, seen) for each in inside)

    def _reached(self, start: list[str]) -> set[str]:
        """All files that these refer to, directly or not, without the addon's own."""
        found, pending = set(start), list(start)
        while pending:
            new = self._references(pending.pop()) - found
            found |= new
            pending += new
        return {name for name in found if not self._is_of_addon(name)}

    def _references(self, name: str) -> set[str]:
        if name not in self._texts or self._is_of_addon(name):
            return set()
        code = self._code(name)
        found = {self._resolve(each, name) for each in ADDRESS.findall(code)}
        found |= {self._resolve(each, name) for each in RELATIVE.findall(code)}
        if name.endswith(".gd") or "script/source" in code:
            found |= {self._classes[each] for each in NAME.findall(code) if each in self._classes}
        return found

    def _code(self, name: str) -> str:
        text = self._texts.get(name, "")
        if name.endswith(".gd"):
            return COMMENT.sub(r"\1", text)
        # An unknown uid has a path beside it.
        text = UID.sub(lambda found: found[0] if found[1] in self._uids else "", text)
        return text.replace('\\"', '"')

    def _is_of_addon(self, name: str) -> bool:
        return any(
            name.startswith(posixpath.dirname(each) + "/")
            for each in self._syncs
            if posixpath.basename(each) == "sync.gd"
        )

    def _resolve(self, address: str, by: str) -> str:
        address = address.removeprefix("*")
        if address.startswith("uid://"):
            return self._uids.get(address, address)
        if address.startswith(ROOT):
            return address
        return ROOT + posixpath.normpath(
            posixpath.join(posixpath.dirname(by.removeprefix(ROOT)), address)
        )


def check_sync(project: Path, scene: str | None) -> str:
    """Reject a scene (None: the main one) that certainly has no Sync node; a hint if in doubt."""
    nodes = SyncNodes(project)
    doubt = nodes.uncertainty(scene)
    scenes = nodes.scenes()
    near = difflib.get_close_matches(scene or nodes.main_scene, scenes, MAX_SUGGESTIONS, cutoff=0.0)
    more = f" (+{len(scenes) - MAX_SUGGESTIONS} more)" if len(scenes) > MAX_SUGGESTIONS else ""
    known = ", ".join(f"--scene {each}" for each in near) + more
    if doubt is None:
        raise UserError(
            f"{scene or nodes.main_scene} has no Sync node, so the game would never connect; "
            + (f"use a scene that has one: {known}" if scenes else "add one in training mode")
        )
    if not doubt:
        return ""
    hint = f"does its scene have a Sync node in training mode (none was found, but {doubt})"
    return f"{hint}, or do you mean {known}" if scenes else hint


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
