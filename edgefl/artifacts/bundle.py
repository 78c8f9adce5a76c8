"""A bundle: everything that was exported of a model, in a folder or a zip file, with a manifest of digests.

    manifest.json         what the bundle holds, of which model, made with which versions
    model_graph.json      the model graph
    train.onnx            the training graph, for every mask (see export.training_graph)
    infer.onnx            the inference graph, weights as inputs
    weights.safetensors   the weights, a body of kind `weights`
    sample.json           what a sample is; bundles of older versions have none
    train.KEY.pte,        ExecuTorch programs for a ladder of widths, cuts and batch sizes, if they were compiled: the
    infer.KEY.pte         manifest says what each is for

The coordinator and the command line read bundles; the exporter writes them. Reading checks every digest, and that the
graphs can only compute.
"""

import io
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from edgefl.artifacts.artifact_store import write_atomically
from edgefl.artifacts.bundle_zip import read_zip
from edgefl.artifacts.graph_check import check_graph
from edgefl.data import plain_sample
from edgefl.errors import SchemaError
from edgefl.model_graph import Dtype, ModelGraph
from edgefl.values import (
    Digest,
    Name,
    PositiveCount,
    Program,
    ProgramRole,
    ProgramSpec,
    SampleDtype,
    SampleSpec,
    check_fields,
    digest_of,
    document,
    dumps,
    loads,
)

__all__ = [
    "GRAPH",
    "INFER",
    "MANIFEST",
    "SAMPLE",
    "TRAIN",
    "WEIGHTS",
    "Bundle",
    "Manifest",
    "pack_bundle",
    "program_file",
    "read_bundle",
    "spec_problem",
    "unpack_bundle",
    "with_programs",
    "with_sample",
    "write_bundle",
]

MANIFEST = "manifest.json"
GRAPH = "model_graph.json"
TRAIN = "train.onnx"
INFER = "infer.onnx"
WEIGHTS = "weights.safetensors"
SAMPLE = "sample.json"

_ONNX = ".onnx"
# A zip file stores the times of its files; with a fixed time, equal bundles have equal bytes.
_EPOCH = (1980, 1, 1, 0, 0, 0)


@document("bundle", version=1)
@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a bundle holds."""

    model: Name
    """The model's name."""
    graph: Digest
    """The digest of the model graph, which masks and plans refer to."""
    input_shape: tuple[PositiveCount, ...]
    """The shape of one sample."""
    input_dtype: Dtype
    outputs: PositiveCount
    """The number of outputs per sample: the classes."""
    loss: Name
    files: Mapping[str, Digest]
    """The digest of every other file."""
    made_with: Mapping[str, str]
    """Versions of the software that made it."""
    programs: tuple[Program, ...] = field(default=(), metadata={"added": True})
    """ExecuTorch programs, each in the file `program_file` names."""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True)
class Bundle:
    """A bundle in memory."""

    manifest: Manifest
    graph: ModelGraph
    files: Mapping[str, bytes]

    @property
    def sample(self) -> SampleSpec:
        """What a sample is: the bundle's own description, or what its manifest knows."""
        if SAMPLE in self.files:
            return loads(SampleSpec, self.files[SAMPLE], tolerant=True)
        return _plain_sample(self.manifest)


def with_sample(bundle: Bundle, sample: SampleSpec) -> Bundle:
    """Return a bundle with a description of its samples, which must fit its manifest."""
    text = (dumps(sample, indent=2) + "\n").encode()
    manifest = replace(bundle.manifest, files={**bundle.manifest.files, SAMPLE: digest_of(text)})
    described = Bundle(manifest, bundle.graph, {**bundle.files, SAMPLE: text})
    _check_sample(described, "the bundle")
    return described


def program_file(spec: ProgramSpec) -> str:
    """Return the name of the file of a program."""
    return f"{spec.role.value}.{spec.key.removeprefix('sha256:')[:16]}.pte"


def with_programs(bundle: Bundle, programs: Mapping[Program, bytes]) -> Bundle:
    """Return a bundle with further programs; of those with the same specification, the new one stays."""
    known = {program.spec.key: program for program in (*bundle.manifest.programs, *programs)}
    files = {program_file(program.spec): data for program, data in programs.items()}
    digests = {name: digest_of(data) for name, data in files.items()}
    manifest = replace(
        bundle.manifest, files={**bundle.manifest.files, **digests}, programs=tuple(known[key] for key in sorted(known))
    )
    larger = Bundle(manifest, bundle.graph, {**bundle.files, **files})
    _check_programs(larger, "the bundle")
    return larger


def write_bundle(bundle: Bundle, path: Path) -> None:
    """Write a bundle to a folder, or to a zip file if the path ends in .zip."""
    if path.suffix == ".zip":
        write_atomically(path, pack_bundle(bundle))
        return
    for name, data in ({**bundle.files, MANIFEST: dumps(bundle.manifest, indent=2).encode()}).items():
        write_atomically(path / name, data)


def pack_bundle(bundle: Bundle) -> bytes:
    """Return a bundle as the bytes of a zip file: equal bundles give equal bytes."""
    files = {MANIFEST: dumps(bundle.manifest, indent=2).encode(), **bundle.files}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, files[name])
    return buffer.getvalue()


def unpack_bundle(data: bytes) -> Bundle:
    """Read a bundle from the bytes of a zip file, and check it."""
    return _checked(lambda names: read_zip(data, names, "the bundle"), "the bundle")


def read_bundle(path: Path) -> Bundle:
    """Read a bundle from a folder or a zip file, and check it."""
    if path.is_file():
        return _checked(lambda names: read_zip(path, names, str(path)), str(path))
    return _checked(lambda names: _folder_files(path, names), str(path))


def _checked(read: Callable[[list[str]], Mapping[str, bytes]], origin: str) -> Bundle:
    manifest = loads(Manifest, _only(read([MANIFEST]), MANIFEST, origin))
    unsafe = [name for name in manifest.files if Path(name).name != name]
    if unsafe:
        raise SchemaError(
            f"the bundle names the file {min(unsafe)!r}", fix="All files of a bundle must be in one folder."
        )
    files = read(list(manifest.files))
    for name, digest in manifest.files.items():
        if digest_of(_only(files, name, origin)) != digest:
            raise SchemaError(f"{name} of {origin} does not match its digest", fix="Export or copy the bundle again.")
        if name.endswith(_ONNX):
            check_graph(files[name], f"{name} of {origin}")
    graph = loads(ModelGraph, _only(files, GRAPH, origin))
    if graph.digest != manifest.graph:
        raise SchemaError(f"the manifest of {origin} describes another model graph", fix="Export the bundle again.")
    bundle = Bundle(manifest, graph, files)
    _check_sample(bundle, origin)
    _check_programs(bundle, origin)
    return bundle


def _check_programs(bundle: Bundle, origin: str) -> None:
    for program in bundle.manifest.programs:
        name = program_file(program.spec)
        if bundle.manifest.files.get(name) != program.pte or len(bundle.files[name]) != program.size:
            problem: str | None = f"there is no file {name} that matches the manifest"
        else:
            problem = spec_problem(program.spec, bundle)
        if problem is not None:
            raise SchemaError(f"{problem} ({origin})", fix="Export the bundle again, with --programs.")


def spec_problem(spec: ProgramSpec, bundle: Bundle) -> str | None:
    """Return why a program is not one of this bundle's model; None if it is."""
    graph, files = bundle.graph, bundle.manifest.files
    source = files.get(TRAIN if spec.role is ProgramRole.TRAIN else INFER)
    if spec.model != graph.digest or spec.graph != source:
        return f"the program {spec.key[:20]} is for another model"
    wrong = set(spec.widths) ^ set(graph.group)
    wrong |= {name for name, width in spec.widths.items() if name in graph.group and width > graph.group[name].width}
    wrong |= set(spec.trained) - set(graph.trainable_layers)
    return f"the program's {min(wrong)!r} does not fit the model" if wrong else None


def _check_sample(bundle: Bundle, origin: str) -> None:
    if SAMPLE not in bundle.files:
        return
    said, needed = bundle.sample, _plain_sample(bundle.manifest)
    for name in ("shape", "dtype", "classes"):
        if getattr(said, name) != getattr(needed, name):
            problem = f"{SAMPLE} of {origin} has the {name} {getattr(said, name)}, the model {getattr(needed, name)}"
            raise SchemaError(problem, fix="Export the bundle again.")


def _plain_sample(manifest: Manifest) -> SampleSpec:
    # A model takes real numbers or tokens, whatever their width.
    dtype = SampleDtype.FLOAT32 if manifest.input_dtype.startswith("float") else SampleDtype.INT64
    return plain_sample(tuple(manifest.input_shape), dtype, manifest.outputs)


def _only(files: Mapping[str, bytes], name: str, origin: str) -> bytes:
    if name not in files:
        raise SchemaError(f"{origin} has no {name}", fix="Give a folder or zip file that `edgefl export` wrote.")
    return files[name]


def _folder_files(path: Path, names: list[str]) -> dict[str, bytes]:
    return {name: (path / name).read_bytes() for name in names if (path / name).is_file()}
