"""The HTML page about one run."""

from edgefl.charts.coverage import coverage_chart
from edgefl.charts.figure import Figure
from edgefl.charts.heatmaps import MOST_GROUPS, channel_heatmaps, label_heatmap, layer_heatmap
from edgefl.report.device_rows import device_rows
from edgefl.report.equal_cost import equal_cost_of
from edgefl.report.equal_cost_tables import target_table
from edgefl.report.headlines import asked, headlines, name_of, standing
from edgefl.report.html_elements import Markup, element, joined
from edgefl.report.page import charts, page
from edgefl.report.run_charts import curves
from edgefl.report.tables import class_table, definitions, device_table, tiles
from edgefl.simulation.run_folder import Run
from edgefl.values.formatting import pluralise

__all__ = ["run_page"]

_HOW_TO_ZOOM = "Drag over a chart to zoom in; double-click to zoom out."


def run_page(run: Run) -> str:
    """Return a self-contained page about a run."""
    request, notice = run.request, standing(run)
    return page(
        title=name_of(run),
        subtitle=f"{request.federation.strategy.name} · {request.model} on {request.data}, {request.partition} · "
        f"{pluralise(request.devices, 'device')} · {pluralise(request.federation.rounds.count, 'round')}",
        notices=(notice,) if notice else (),
        sections=(
            ("result", "Result", tiles(headlines(run))),
            ("curves", "Over the rounds", _curves(run)),
            ("cost", "Cost of reaching an accuracy", _cost(run)),
            ("devices", "Devices", device_table(device_rows(run))),
            ("data", "Data", _data(run)),
            ("masks", "Masks", _masks(run)),
            ("asked", "Settings", joined(definitions(asked(run)), class_table(request.classes, run.fleet))),
        ),
    )


def _curves(run: Run) -> Markup:
    if not run.rounds:
        return element("p", "No round has finished yet.", class_="empty")
    return joined(element("p", _HOW_TO_ZOOM, class_="hint zoom"), charts(curves(run.rounds)))


def _cost(run: Run) -> Markup:
    found = equal_cost_of([run])
    if not found.targets:
        return element("p", "The global model has not been evaluated yet.", class_="empty")
    return target_table([name_of(run)], found)


def _data(run: Run) -> Markup:
    figure = label_heatmap([(device.device_id, device.labels) for device in run.fleet])
    if figure is None:
        return element("p", "The fleet has not been written yet.", class_="empty")
    return charts((figure,), columns="one")


def _masks(run: Run) -> Markup:
    if not run.parts:
        return element("p", "There are no submodels to show yet: they are written when a run ends.", class_="empty")
    groups = len(run.parts[0].channels)
    more = f" The first {MOST_GROUPS} of {groups} channel groups are shown." if groups > MOST_GROUPS else ""
    told = (
        f"The last submodel of each device; {len(run.parts):,} of {pluralise(len(run.fleet), 'device')} had one.{more}"
    )
    return joined(
        element("p", told, class_="hint"),
        charts(_there(layer_heatmap(run.parts), coverage_chart(run.parts)), columns="one"),
        charts(channel_heatmaps(run.parts)),
    )


def _there(*figures: Figure | None) -> tuple[Figure, ...]:
    return tuple(figure for figure in figures if figure is not None)
