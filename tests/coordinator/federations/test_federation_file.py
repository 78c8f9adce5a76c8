"""A federation file as its operator meets it: what is taken, and what is said about the rest, with its line."""

import shutil
from pathlib import Path

import pytest

from coordinator.federations.federation_file import read_federation_file
from coordinator.federations.federation_file_layout import federation_toml
from edgefl.artifacts.bundle import read_bundle, unpack_bundle, write_bundle
from edgefl.errors import EdgeFLError, SchemaError
from edgefl.federation import (
    BudgetCaps,
    BufferingSettings,
    EvaluationSettings,
    FederationMode,
    FederationSettings,
    RoundSettings,
    SampleSettings,
    SelectionSettings,
    StrategyChoice,
    UploadLimits,
)
from edgefl.values import FieldError, RawDtype, SampleNormalisation, from_json
from tests.device_runtime.federation import BUNDLE

EXAMPLES = Path(__file__).parents[3] / "examples" / "coordinator"
WHOLE = """\
[federation]
name = "digits"
model = "cnn.zip"
seed = 7

[strategy]
name = "fedavg"
learning_rate = 0.1

[work]
epochs = 2

[rounds]
count = 20
deadline = "10 min"
at_least = 2

[selection]
devices = 5
over_select = 1.3

[evaluation]
data = "digits"

[limits]
most_bytes = "16 MiB"
"""


def write(folder: Path, text: str) -> Path:
    shutil.copy(BUNDLE, folder / "cnn.zip")
    path = folder / "federation.toml"
    path.write_text(text, encoding="utf-8")
    return path


def settings_of(folder: Path, text: str) -> FederationSettings:
    return read_federation_file(write(folder, text)).settings


def complaint(folder: Path, text: str) -> SchemaError:
    path = write(folder, text)
    with pytest.raises(SchemaError) as caught:
        read_federation_file(path, data_is_here=True)
    problem = caught.value.problem
    assert problem.startswith(str(path))
    caught.value.problem = problem.removeprefix(f"{path}").removeprefix(", ")
    return caught.value


def test_a_whole_file_becomes_settings_and_a_bundle(tmp_path: Path) -> None:
    file = read_federation_file(write(tmp_path, WHOLE), data_is_here=True)
    settings = file.settings
    assert (settings.name, settings.seed, settings.mode) == ("digits", 7, FederationMode.ROUNDS)
    assert settings.strategy.name == "fedavg"
    assert dict(settings.strategy.settings) == {"learning_rate": 0.1}
    assert settings.work.epochs == 2
    assert settings.rounds.deadline == 600
    assert settings.limits.most_bytes == 16 * 2**20
    assert settings.limits.most_movement == FederationSettings(name="x").limits.most_movement
    assert settings.evaluation is not None
    assert settings.evaluation.data == "digits"
    assert file.model == tmp_path / "cnn.zip"
    assert unpack_bundle(file.bundle()).manifest == read_bundle(BUNDLE).manifest


def test_two_lines_are_a_federation(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, '[federation]\nname = "small"\nmodel = "cnn.zip"\n')
    assert settings == FederationSettings(name="small")


def test_a_folder_is_a_bundle_too(tmp_path: Path) -> None:
    path = write(tmp_path, '[federation]\nname = "small"\nmodel = "exported/cnn"\n')
    write_bundle(read_bundle(BUNDLE), tmp_path / "exported" / "cnn")
    assert unpack_bundle(read_federation_file(path).bundle()).manifest == read_bundle(BUNDLE).manifest


def test_a_file_can_say_what_a_sample_is(tmp_path: Path) -> None:
    text = """
[federation]
name = "photos"
model = "cnn.zip"

[sample]
kind = "image"
class_names = [
    "nought",  # or zero
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine",
]

[sample.normalisation]
mean = [0.49]
std = [0.25]
"""
    said = settings_of(tmp_path, text).sample
    assert said is not None
    assert said.class_names is not None
    assert said.class_names[0] == "nought"
    assert said.normalisation == SampleNormalisation(mean=(0.49,), std=(0.25,), scale=255)


def test_what_contradicts_the_model_is_named_with_its_line(tmp_path: Path) -> None:
    text = '[federation]\nname = "photos"\nmodel = "cnn.zip"\n[sample]\nshape = [3, 8, 8]\n'
    with pytest.raises(
        EdgeFLError, match=r"line 5: field 'sample.shape' is \[3, 8, 8\], but the model takes \[1, 8, 8\]"
    ):
        settings_of(tmp_path, text)


def test_a_wrong_entry_of_a_list_is_named_with_its_line(tmp_path: Path) -> None:
    text = '[federation]\nname = "photos"\nmodel = "cnn.zip"\n[sample]\nshape = [\n  3,\n  -1,\n]\n'
    with pytest.raises(EdgeFLError, match=r"line 7.*sample.shape\[1\]"):
        settings_of(tmp_path, text)


def test_a_limit_can_be_lifted(tmp_path: Path) -> None:
    text = WHOLE + 'most_movement = "no limit"\n'
    assert settings_of(tmp_path, text).limits.most_movement is None


@pytest.mark.parametrize("seed", ["18446744073709551615", '"18446744073709551615"'])
def test_a_seed_keeps_all_its_digits(seed: str, tmp_path: Path) -> None:
    assert settings_of(tmp_path, WHOLE.replace("seed = 7", f"seed = {seed}")).seed == 2**64 - 1


def test_the_buffered_mode_has_its_table(tmp_path: Path) -> None:
    text = WHOLE.replace("seed = 7", 'mode = "buffered"') + "[buffering]\nsize = 3\n"
    settings = settings_of(tmp_path, text)
    assert settings.mode is FederationMode.BUFFERED
    assert settings.buffering.size == 3


def test_data_beside_the_file_is_found_from_anywhere(tmp_path: Path) -> None:
    (tmp_path / "mine.npz").touch()
    settings = settings_of(tmp_path, WHOLE.replace('data = "digits"', 'data = "mine.npz"'))
    assert settings.evaluation is not None
    assert settings.evaluation.data == str(tmp_path / "mine.npz")


def test_a_mark_at_the_beginning_and_windows_line_ends_are_taken(tmp_path: Path) -> None:
    assert settings_of(tmp_path, "\ufeff" + WHOLE.replace("\n", "\r\n")).rounds.count == 20


@pytest.mark.parametrize(
    ("old", "new", "problem", "fix"),
    [
        ('"10 min"', '"512 MiB"', "line 15: field 'rounds.deadline' must be a time in seconds, got", "'30 s'"),
        ('"10 min"', "-1", "line 15: field 'rounds.deadline' must be a time in seconds, got -1", "Write"),
        ('"10 min"', "10 min", "line 15, column 15: this is not valid TOML", "texts need quotes"),
        ('"10 min"', "ten", "line 15, column 12: this is not valid TOML: Invalid value", 'deadline = "10 min"'),
        ("deadline =", "deadlines =", "line 15: field 'rounds.deadlines' is not a known field", "mean 'deadline'?"),
        ('deadline = "10 min"', "deadline_minutes = 10", "line 15: field 'rounds.deadline_minutes'", "deadline = 600"),
        ("count = 20", "count = 20\ncount = 30", "line 15, column 11: this is not valid TOML", "keep one of them"),
        ("count = 20", "count = 2.5", "line 14: field 'rounds.count'", "Write for example 4"),
        ("at_least = 2", "at_least = 6", "line 16: field 'rounds.at_least' is 6, but a round", "Lower it"),
        ("over_select = 1.3", "over_select = 0.5", "line 20: field 'selection.over_select' is at least 1", "1.3"),
        ("[rounds]", "[round]", "line 13: field 'round' is not a known table", "Did you mean [rounds]?"),
        ("[federation]\n", "", "line 1: field 'name' is outside of every table", "below [federation]"),
        ("seed = 7", "epochs = 7", "line 4: field 'federation.epochs' is not a known field", "belongs in [work]"),
        ("seed = 7", "seed = -7", "line 4: field 'federation.seed' must be a whole number from 0 to", "seed = 1234"),
        ("seed = 7", 'seed = "seven"', "line 4: field 'federation.seed' must be a whole number from 0 to", "seed ="),
        ("seed = 7", 'mode = "ronds"', "line 4: field 'federation.mode' must be one of 'rounds', 'buff", "'rounds'?"),
        ('name = "digits"\n', "", "line 1: field 'federation.name' is missing", "Add name = 'task-7'"),
        ('name = "digits"', 'name = "my digits"', "line 2: field 'federation.name' must be an identifier", "Write"),
        ('model = "cnn.zip"\n', "", "line 1: field 'federation.model' is missing", "Add model = 'cnn.zip'"),
        ('"cnn.zip"', '"dnn.zip"', "line 3: field 'federation.model' must be the path of a bundle", "edgefl export"),
        ('"cnn.zip"', '"federation.toml"', "line 3: field 'federation.model' does not name a usable bundle", "again"),
        ('"cnn.zip"', "3", "line 3: field 'federation.model' must be the path of a bundle", "'cnn.zip'"),
        ('"cnn.zip"', '""', "line 3: field 'federation.model' must be the path of a bundle", "'cnn.zip'"),
        ('name = "fedavg"', 'name = "fedavgg"', "line 7: field 'strategy.name' is 'fedavgg', and", "'fedavg'"),
        ('name = "fedavg"', 'name = "nowhere:Mine"', "line 7: field 'strategy.name' is 'nowhere:Mine', and", "folder"),
        ("learning_rate = 0.1", "learning_rat = 0.1", "line 8: field 'strategy.learning_rat'", "'learning_rate'"),
        ("learning_rate = 0.1", 'learning_rate = "high"', "line 8: field 'strategy.learning_rate'", "Write"),
        ("learning_rate = 0.1", "learning_rate = [0.1]", "line 8: field 'strategy.learning_rate'", "Write"),
        ('data = "digits"', 'data = "nowhere.npz"', "line 23: field 'evaluation.data' cannot be used", "Known data"),
        ('data = "digits"', 'date = "digits"', "line 23: field 'evaluation.date' is not a known field", "'data'?"),
        ('data = "digits"', "every = 2", "line 22: field 'evaluation.data' is missing", "Add data ="),
        ("[work]\nepochs = 2", "[buffering]\nsize = 3", "line 10: field 'buffering' is for the mode", "mode ="),
        ("[federation]", "buffering = 3\n[federation]", "line 1: field 'buffering' must be a table, got 3", "[buff"),
        ('most_bytes = "16 MiB"', 'most_movement = "none"', "line 26: field 'limits.most_movement' must be a", "1.25"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_line(old: str, new: str, problem: str, fix: str, tmp_path: Path) -> None:
    assert WHOLE.count(old) == 1
    error = complaint(tmp_path, WHOLE.replace(old, new))
    assert problem in error.problem
    assert fix in error.fix


def test_an_empty_file_says_what_belongs_there(tmp_path: Path) -> None:
    error = complaint(tmp_path, "")
    assert error.problem == ": field 'federation' is missing"
    assert "Add [federation]" in error.fix


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"[federation]\nname = '\xff'", "line 2: this is not UTF-8 text"),
        (b"#" * 2_000_000, "has more than 1,048,576 bytes"),
        (b"x = " + b"[" * 100_000, "not valid TOML"),
        (b"x = " + b"1" * 100_000, "not valid TOML"),
        (b'x = "', "line 1: this is not valid TOML: Unterminated string"),
        (b'x = "\x1b[2J"', "not valid TOML"),
    ],
    ids=["other encoding", "too large", "nested", "long number", "open text", "control character"],
)
def test_what_is_no_toml_is_refused_in_words(data: bytes, problem: str, tmp_path: Path) -> None:
    (tmp_path / "federation.toml").write_bytes(data)
    with pytest.raises(SchemaError) as caught:
        read_federation_file(tmp_path / "federation.toml")
    assert problem in caught.value.problem
    assert caught.value.problem.isprintable()


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(EdgeFLError, match=r"nowhere\.toml cannot be read: No such file or directory"):
        read_federation_file(tmp_path / "nowhere.toml")


def test_whoever_finds_fault_later_can_name_the_line_too(tmp_path: Path) -> None:
    file = read_federation_file(write(tmp_path, WHOLE))
    error = file.located(
        FieldError("is no good", fix="Write another one", path=("strategy", "settings", "learning_rate"))
    )
    assert error.problem == f"{file.path}, line 8: field 'strategy.learning_rate' is no good"
    assert (
        "line 2: field 'federation.name' is taken"
        in file.located(FieldError("is taken", fix="", path=("name",))).problem
    )


@pytest.mark.parametrize("name", ["federation.toml", "buffered.toml", "phones.toml"])
def test_the_examples_are_sound(name: str, tmp_path: Path) -> None:
    text = (EXAMPLES / name).read_text(encoding="utf-8")
    settings = read_federation_file(write(tmp_path, text), data_is_here=True).settings
    assert from_json(FederationSettings, {"schema": "edgefl.federation/1", "name": settings.name}) != settings


@pytest.mark.parametrize(
    "settings",
    [
        FederationSettings(name="plain"),
        FederationSettings(
            name="everything",
            seed=2**64 - 1,
            strategy=StrategyChoice(name="hermes", settings={"kept_target": 0.3, "frozen": "head", "nesterov": True}),
            rounds=RoundSettings(count=3, deadline=614400.0, at_least=2, most_attempts=4),
            selection=SelectionSettings(devices=4, wait_for=7),
            evaluation=EvaluationSettings(data="digits", every=2),
            limits=UploadLimits(most_movement=None),
            budget=BudgetCaps(memory=2**29, joules=1.5, adapt=False),
            sample=SampleSettings(
                shape=(1, 8, 8),
                raw_dtype=RawDtype.UINT8,
                normalisation=SampleNormalisation(mean=(0.5,), std=(0.25,), scale=16),
                class_names=('zéro "0"', "one = 1", "[two]", *"3456789"),
            ),
            round_share=0.5 / 1024,
        ),
        FederationSettings(name="buffered", mode=FederationMode.BUFFERED, buffering=BufferingSettings(size=3)),
    ],
    ids=lambda settings: settings.name,
)
def test_a_file_that_is_written_from_settings_reads_as_them(tmp_path: Path, settings: FederationSettings) -> None:
    assert settings_of(tmp_path, federation_toml(settings, "cnn.zip")) == settings
