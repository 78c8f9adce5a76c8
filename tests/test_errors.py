import copy

import pytest

from edgefl import errors


@pytest.mark.parametrize("name", [name for name in errors.__all__ if name != "MissingDependencyError"])
def test_every_error_says_what_happened_and_what_to_do(name: str) -> None:
    error = getattr(errors, name)("the sky is green", fix="Look again.")
    assert isinstance(error, errors.EdgeFLError)
    assert str(error) == "the sky is green. Look again."


def test_a_missing_package_names_its_extra() -> None:
    error = errors.MissingDependencyError("shtab", action="Completion", extra="completion")
    assert "pip install 'edgefl-toolkit[completion]'" in str(error)


def test_errors_can_be_copied_and_so_sent_between_processes() -> None:
    for error in (
        errors.MaskError("it broke", fix="Mend it."),
        errors.MissingDependencyError("shtab", action="Completion", extra="completion"),
    ):
        again = copy.deepcopy(error)
        assert type(again) is type(error)
        assert str(again) == str(error)


def test_the_tree_in_the_docstring_is_the_tree() -> None:
    drawn = {line.split()[1] for line in (errors.__doc__ or "").splitlines() if "──" in line}
    assert drawn == {cls.__name__ for cls in errors.EdgeFLError.__subclasses__() if cls.__module__ == errors.__name__}
    assert {"EdgeFLError", *drawn} == set(errors.__all__)
