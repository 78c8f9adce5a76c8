"""Reads the TOML file in which an operator describes a federation.

`edgefl serve` and `edgefl fed create` use it. Errors name the line. The file describes the federation only: addresses,
certificates and folders belong to the server, and are options of `edgefl serve`.

    [federation]   name, model (a bundle; its path is relative to the file), seed, mode, round_share
    [strategy]     name, and the strategy's own settings beside it
    [work] [rounds] [selection] [buffering] [evaluation] [limits] [budget]
                   fields of the class of that name in `edgefl.federation.settings`

TOML has no null: the text "no limit" removes a limit that has a default.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from coordinator.federations.federation_file_layout import settings_data, settings_path
from coordinator.federations.toml_lines import Path as Place
from coordinator.federations.toml_lines import line_of, lines_of
from edgefl.artifacts.bundle import Bundle, pack_bundle, read_bundle
from edgefl.data.catalogue import KNOWN
from edgefl.errors import DataError, EdgeFLError, SchemaError
from edgefl.federation.sample import sample_of
from edgefl.federation.settings import EvaluationSettings, FederationSettings
from edgefl.federation.strategy import federation_strategy
from edgefl.values import FieldError, from_json, printable

__all__ = ["FederationFile", "read_federation_file"]

_LARGEST = 2**20
_EXAMPLE = "examples/coordinator/federation.toml is an example."
_AT = re.compile(r"(?P<says>.*) \(at (?:line (?P<line>\d+), column (?P<column>\d+)|end of document)\)", re.DOTALL)
_JSON_PAIR = re.compile(r'"(\w+)": ')


@dataclass(frozen=True, slots=True)
class FederationFile:
    """A federation file that was read and checked."""

    path: Path
    settings: FederationSettings
    model: Path
    """The bundle: a zip file or a folder of `edgefl export`."""
    lines: Mapping[Place, int] = field(repr=False, default_factory=dict)

    def bundle(self) -> bytes:
        """Return the bundle as the bytes of a zip file."""
        return self.model.read_bytes() if self.model.is_file() else pack_bundle(read_bundle(self.model))

    def located(self, error: FieldError) -> SchemaError:
        """Return an error about the settings as an error about the file, with its line."""
        return _located(_in_file(error), self.path, self.lines)


def read_federation_file(path: Path, *, data_is_here: bool = False) -> FederationFile:
    """Read a federation file, and check it, its strategy and its bundle; a `SchemaError` names the line.

    With `data_is_here`, this machine will evaluate, so the data must be here and fit the model.
    """
    text = _text(path)
    parsed = _parsed(text, path)
    lines = lines_of(text)
    try:
        head = settings_data(parsed)
    except FieldError as error:
        raise _located(error, path, lines) from None
    try:
        settings = from_json(FederationSettings, _with_places(head.settings, path.absolute().parent))
        settings.check_real_time()
        _check_strategy(settings)
        model = path.absolute().parent / Path(head.model).expanduser()
        bundle = _bundle(model)
        sample_of(settings, bundle)
        if data_is_here and settings.evaluation is not None:
            _check_data(settings.evaluation, bundle)
    except FieldError as error:
        raise _located(_in_file(error), path, lines) from None
    return FederationFile(path, settings, model, lines)


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
    except OSError as error:
        raise EdgeFLError(f"{path} cannot be read: {error.strerror}", fix=f"Give a TOML file; {_EXAMPLE}") from None
    if len(data) > _LARGEST:
        raise SchemaError(
            f"{path} has more than {_LARGEST:,} bytes", fix=f"No federation file is that large; {_EXAMPLE}"
        )
    try:
        return data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SchemaError(
            f"{path}, line {line}: this is not UTF-8 text", fix=f"Save it as UTF-8, or give a TOML file; {_EXAMPLE}"
        ) from None


def _parsed(text: str, path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # a number of a million digits is a ValueError, too
        found = _AT.fullmatch(str(error))
        says, where = str(error), ""
        if found is not None:
            says = found["says"]
            line = found["line"] or text.count("\n") + 1
            where = f", line {line}" + (f", column {found['column']}" if found["column"] else "")
        raise SchemaError(
            printable(f"{path}{where}: this is not valid TOML: {says}"), fix=_syntax_advice(says)
        ) from None


def _syntax_advice(says: str) -> str:
    if "overwrite" in says or "twice" in says or "already exists" in says:
        return "Every key and every [table] may appear once: keep one of them."
    if "Invalid value" in says:
        return 'Texts need quotes: deadline = "10 min"; numbers have none: count = 20; flags are true or false.'
    return f"A line is [table], key = value, or # a comment; texts need quotes. {_EXAMPLE}"


def _with_places(settings: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Make the paths of the evaluation's data absolute, if they exist relative to the file's folder."""
    evaluation = settings.get("evaluation")
    if not isinstance(evaluation, dict):
        return settings
    placed = dict(evaluation)
    known = {source.name for source in KNOWN}
    for key in ("data", "folder"):
        value = placed.get(key)
        if isinstance(value, str) and value and not (key == "data" and value in known):
            absolute = folder / Path(value)
            placed[key] = str(absolute) if absolute.exists() else value
    return settings | {"evaluation": placed}


def _check_strategy(settings: FederationSettings) -> None:
    try:
        federation_strategy(settings)
    except FieldError as error:
        raise error.under("strategy") from None
    except SchemaError as error:
        raise FieldError(f"is {settings.strategy.name!r}, and {error.problem}", fix=error.fix, path=_NAME) from None


_NAME = ("strategy", "name")


def _bundle(model: Path) -> Bundle:
    if not model.exists():
        raise FieldError(
            f"must be the path of a bundle, but {model} does not exist",
            fix="Export one with: edgefl export --model NAME --out FILE.zip. A path is relative to this file's folder.",
            path=("federation", "model"),
        )
    try:
        return read_bundle(model)
    except EdgeFLError as error:
        raise FieldError(
            f"does not name a usable bundle: {error.problem}", fix=error.fix, path=("federation", "model")
        ) from None


def _check_data(evaluation: EvaluationSettings, bundle: Bundle) -> None:
    from coordinator.rounds.evaluation import (
        check_data,  # needs onnxruntime, which is not needed to create a federation
    )

    try:
        check_data(bundle, evaluation)
    except DataError as error:
        raise FieldError(f"cannot be used: {error.problem}", fix=error.fix, path=("evaluation", "data")) from None


def _in_file(error: FieldError) -> FieldError:
    return FieldError(error.says, fix=error.fix, path=settings_path(error.path))


def _located(error: FieldError, path: Path, lines: Mapping[Place, int]) -> SchemaError:
    line = line_of(error.path, lines)
    where = f"{path}, line {line}" if line is not None else f"{path}"
    # The values describe their JSON form, but the reader writes TOML.
    return SchemaError(printable(f"{where}: {error.problem}"), fix=_JSON_PAIR.sub(r"\1 = ", error.fix))
