"""The pages: all of a run is there, nothing of it is markup, and nothing comes from elsewhere."""

import base64
import hashlib
import json
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from edgefl.charts.page_assets import OWN_FILES, own_file, plotly_js, style_ids
from edgefl.errors import MissingDependencyError
from edgefl.federation import StrategyChoice
from edgefl.report import comparison_of, comparison_page, run_page
from edgefl.report.device_rows import device_rows
from edgefl.report.html_elements import Markup, data_block, element
from edgefl.simulation.run_folder import Run
from tests.report.runs import HOSTILE, asked, part, tiny_run


class Page(HTMLParser):
    """What a browser would make of a page."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attributes)))

    def handle_data(self, data: str) -> None:
        self.texts.append((self.elements[-1][0] if self.elements else "", data))

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def words(self) -> str:
        return " ".join(text for tag, text in self.texts if tag not in ("script", "style"))

    def blocks(self) -> list[str]:
        """The JSON of each chart."""
        return [text for tag, text in self.texts if tag == "script" and text.startswith("{")]


@pytest.fixture(scope="module")
def page() -> Page:
    return Page(run_page(tiny_run()))


def test_a_report_says_what_came_out(page: Page) -> None:
    words = page.words()
    for said in (
        "70.0 %",
        "80.0 %",
        "estimated by device class",
        "8.79 KiB ↑",
        "17.6 KiB ↓",
        "8 of 9",
        "1 late",
        "15 s",
    ):
        assert said in words
    for said in ("fedavg", "learning_rate = 0.1", "digits_cnn", "iid", "pi4:1, phone:1", "measured by hand"):
        assert said in words


def test_a_report_says_which_part_of_the_model_was_judged() -> None:
    run = tiny_run()
    assert run.summary is not None
    scores = [None if one.score is None else replace(one.score, judged_fraction=0.305) for one in run.rounds]
    rounds = tuple(replace(one, score=score) for one, score in zip(run.rounds, scores, strict=True))
    part = replace(run, rounds=rounds, summary=replace(run.summary, judged_fraction=0.305))
    found = run_page(part)
    assert "; judged with 30.5 % of its parameters: the part that devices hold" in found
    assert "Judged with 30.5 % of its parameters in the end" in found
    assert "of its parameters" not in run_page(run)


def test_a_report_is_of_real_headings_tables_and_described_charts(page: Page) -> None:
    assert len(page.of("h1")) == 1
    assert len(page.of("h2")) == 7
    assert len(page.of("table")) == len(page.of("caption")) == 3
    charts = [one for one in page.of("div") if "data-chart" in one]
    assert len(charts) == 8 + 1 + 2 + 2
    blocks = {one["id"] for one in page.of("script") if one.get("type") == "application/json"}
    assert {one["data-chart"] for one in charts} == blocks
    assert all(one["role"] == "img" and one["aria-label"] for one in charts)
    assert len(page.of("figcaption")) == len(charts)
    assert all(json.loads(text)["traces"] for text in page.blocks())
    assert len(page.blocks()) == len(charts)


def test_a_page_asks_no_host_for_anything(page: Page) -> None:
    for tag, attributes in page.elements:
        assert "src" not in attributes, tag
        assert (attributes.get("href") or "#").startswith("#"), tag
        assert not any(name.startswith("on") or name == "style" for name in attributes), tag
    assert not page.of("link")
    (policy,) = (one["content"] for one in page.of("meta") if one.get("http-equiv"))
    assert policy is not None
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    assert "http" not in policy


def test_the_policy_lets_exactly_what_is_inside_run() -> None:
    text = run_page(tiny_run())
    scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    styles = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    assert (len(scripts), len(styles)) == (3, 1)
    digests = [base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in [*scripts, *styles]]
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    assert re.findall(r"'sha256-([^']*)'", policy) == digests


def hostile_run() -> Run:
    run = tiny_run(names=(HOSTILE, "b", "c"))
    return asked(
        replace(run, parts=tuple(replace(one, channels={HOSTILE: "10"}) for one in run.parts)),
        model=HOSTILE,
        federation=replace(run.request.federation, strategy=StrategyChoice(settings={"method": HOSTILE})),
    )


def test_names_with_markup_are_shown_as_text() -> None:
    usual, hostile = Page(run_page(tiny_run())), Page(run_page(hostile_run()))
    assert not hostile.of("img")
    assert not hostile.of("b")
    assert len(hostile.of("script")) == len(usual.of("script")) - 1  # one group of channels less
    words = hostile.words()
    assert words.count(HOSTILE) >= 4  # the device, the model, its setting, the group
    compared = Page(comparison_page([hostile_run(), tiny_run()], comparison_of([hostile_run(), tiny_run()])))
    assert not compared.of("img")


def test_json_cannot_close_its_element() -> None:
    block = data_block("x", {"name": HOSTILE})
    assert block.count("<") == 2
    (text,) = re.findall(r">(.*)<", block)
    assert json.loads(text) == {"name": HOSTILE}
    with pytest.raises(ValueError, match="not JSON compliant"):
        data_block("x", float("nan"))


def test_elements_escape_all_but_markup() -> None:
    made = element("p", "a < b", Markup("<i>c</i>"), class_="x", aria_label='"', hidden=True, title=None)
    assert made == '<p class="x" aria-label="&quot;" hidden>a &lt; b<i>c</i></p>'


@pytest.mark.parametrize("rounds", [0, 2])
def test_a_run_under_way_is_shown_as_such(rounds: int) -> None:
    words = Page(run_page(tiny_run(rounds=rounds, done=False))).words()
    assert f"This run is not finished: {rounds} of 3 rounds are available" in words
    assert "There are no submodels to show" in words
    assert ("No round has finished yet" in words) == (rounds == 0)


def test_a_run_that_ended_has_no_notice(page: Page) -> None:
    assert "is not finished" not in page.words()


def test_a_row_adds_up_what_a_device_did() -> None:
    first, _, phone = device_rows(tiny_run())
    assert (first.device_id, first.kind, first.samples) == ("pi4-0", "pi4", 30)
    assert (first.arrived, first.late, first.lost, first.refused) == (3, 0, 0, 0)
    assert (phone.arrived, phone.late) == (2, 1)
    assert (first.seconds, first.peak_bytes, first.joules) == (3.0, 3000, 24.0)
    assert (first.up_bytes, first.down_bytes) == (3000, 6000)
    assert (first.kept_fraction, first.trained_fraction, first.before, first.after) == (0.5, 0.25, 0.6, 0.8)


def test_a_device_that_was_never_asked_has_a_row_too() -> None:
    (row, *_) = device_rows(tiny_run(rounds=0, done=False))
    assert (row.kept_fraction, row.seconds, row.peak_bytes, row.joules, row.up_bytes) == (None, None, None, None, 0)


def test_a_thousand_devices_fit_a_page_that_can_be_sent() -> None:
    names = tuple(f"phone-{number:04d}" for number in range(1000))
    run = tiny_run(names=names, rounds=1)
    wide = {f"g{number}": "10" * 256 for number in range(30)}
    parts = tuple(replace(part(name), channels=wide) for name in names)
    assert len(run_page(replace(run, parts=parts)).encode()) < 8e6


def test_without_plotly_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    with pytest.raises(MissingDependencyError, match=r"edgefl-toolkit\[report\]"):
        run_page(tiny_run())


def test_the_library_is_told_that_its_styles_are_there(page: Page) -> None:
    ids = style_ids(plotly_js())
    assert len(ids) >= 2  # one for all charts, one for maps: where there is none any more, this can go
    assert {one["id"] for one in page.of("template")} == set(ids)


def test_scripts_and_styles_of_our_own_ask_for_nothing() -> None:
    for name in OWN_FILES:
        text = own_file(name)
        assert "http" not in text
        assert "url(" not in text
        assert "eval(" not in text
        assert "innerHTML" not in text


def test_every_colour_of_a_chart_is_in_the_stylesheet_light_and_dark() -> None:
    light, dark = own_file("style.css").split("prefers-color-scheme: dark")
    for name in set(re.findall(r"var\((--[\w-]+)\)", run_page(tiny_run()))) - {"--font"}:
        assert f"{name}:" in light, name
        assert f"{name}:" in dark, name
