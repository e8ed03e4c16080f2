"""Small working files to begin a component of one's own with, each with its test."""

from __future__ import annotations

import keyword
import re
import sys
from pathlib import Path
from string import Template

from geco_ray.errors import UserError, unknown_name
from geco_ray.files.atomic import write_whole

KINDS = ("attribution", "counterfactual", "change", "paradigm", "dataset")
_TEMPLATES = Path(__file__).parent / "templates"
_TEST = '''"""$title keeps to the rules of its kind."""

from pathlib import Path

from geco_ray.testing import check


def test_$name() -> None:
    assert check(f"{Path(__file__).parent / '$name.py'}:$name").faults == []
'''


def write_new(kind: str, name: str, folder: Path) -> list[Path]:
    """Write the files of a new component or data set; their paths.

    Args:
        kind: one of :data:`KINDS`. name: letters in lower case, digits and ``_``. folder: where to.

    Raises:
        UserError: an unknown kind, a name that is no such word, or a file that is there already.
    """
    if kind not in KINDS:
        raise unknown_name("kind", kind, KINDS)
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise UserError("a name is letters in lower case, digits and _", found=name, expected="such as my_method")
    if keyword.iskeyword(name) or keyword.iskeyword(name.capitalize()) or name in sys.stdlib_module_names:
        raise UserError("the name is one of Python's own", found=name, remedy=f"Take another, such as my_{name}")
    words = {
        "name": name,
        "title": name.replace("_", " ").capitalize(),
        "cls": "".join(map(str.capitalize, name.split("_"))),
    }
    texts = {
        folder / _place(kind, name, template.name): Template(template.read_text(encoding="utf-8"))
        for template in sorted(_TEMPLATES.glob(f"{kind}.*"))
    }
    if kind != "dataset":
        texts[folder / f"test_{name}.py"] = Template(_TEST)
    for path in texts:
        if path.exists():
            raise UserError("the file is there already", where=str(path), remedy="Take another name or folder")
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text.substitute(words).encode())
    return list(texts)


def _place(kind: str, name: str, template: str) -> Path:
    ending = Path(template).suffixes[0]
    return Path("tabular" if kind == "dataset" else "") / f"{name}{ending}"
