package org.edgefl.app.screens;

import android.os.Bundle;
import android.view.View;
import android.widget.ListView;
import android.widget.RadioButton;
import android.widget.RadioGroup;
import android.widget.TextView;
import java.util.ArrayList;
import java.util.List;
import org.edgefl.agent.Progress.Phase;
import org.edgefl.agent.TaskRecord;
import org.edgefl.app.R;
import org.edgefl.app.screens.CostChart.Point;

/** What every task cost, as a chart and a list, and where the numbers come from. */
final class CostScreen extends Screen {
    private static final String FIRST = "first";
    private static final String TOP = "top";
    private static final String JOULES = "joules";
    private static final int MOST_BARS = 24;

    private final Background.Latest loading = background.new Latest();
    private final ListView list = (ListView) view;
    private final View header;
    private final ProblemCard problem;
    private final TaskList rows;
    private List<TaskRecord> tasks = List.of();
    private Phase phase;
    private int first = -1;
    private int top;

    CostScreen(MainActivity activity) {
        super(activity, R.layout.screen_cost);
        header = View.inflate(activity, R.layout.part_cost_header, null);
        problem = header.findViewById(R.id.problem);
        rows = new TaskList(activity);
        list.addHeaderView(header, null, false);
        list.addFooterView(View.inflate(activity, R.layout.part_cost_footer, null), null, false);
        list.setAdapter(rows);
        RadioGroup choice = header.findViewById(R.id.chart_choice);
        choice.setOnCheckedChangeListener((group, chosen) -> showChart());
        showChart();
    }

    @Override
    void opened() {
        phase = null;
        refresh();
    }

    @Override
    void refresh() {
        // A record is added when a task ends: not at every step.
        if (phone.activity().phase() != phase) {
            phase = phone.activity().phase();
            loading.run(phone::history, this::showTasks, problem::show);
        }
    }

    private void showTasks(List<TaskRecord> found) {
        tasks = found;
        rows.set(found);
        header.findViewById(R.id.cost_empty).setVisibility(found.isEmpty() ? View.VISIBLE : View.GONE);
        showChart();
        if (first >= 0) {
            list.setSelectionFromTop(first, top);
            first = -1;
        }
    }

    private boolean isJoules() {
        return ((RadioButton) header.findViewById(R.id.chart_joules)).isChecked();
    }

    private void showChart() {
        boolean joules = isJoules();
        List<Point> points = new ArrayList<>();
        for (TaskRecord task : tasks) {
            TaskCost cost = TaskCost.of(task);
            double value = joules ? cost.joules() : cost.seconds();
            if (!Double.isNaN(value) && points.size() < MOST_BARS) {
                points.add(0, new Point(task.round(), value, !joules || cost.isMeasured()));
            }
        }
        header.findViewById(R.id.chart_card).setVisibility(tasks.isEmpty() ? View.GONE : View.VISIBLE);
        CostChart chart = header.findViewById(R.id.chart);
        chart.setVisibility(points.isEmpty() ? View.GONE : View.VISIBLE);
        chart.show(points, value -> inUnits(value, joules));
        String words = words(points, joules);
        chart.setContentDescription(words);
        headerText(R.id.chart_words).setText(words);
        headerText(R.id.chart_heading).setText(joules ? R.string.chart_joules_heading : R.string.chart_seconds_heading);
    }

    private TextView headerText(int id) {
        return header.findViewById(id);
    }

    private String inUnits(double value, boolean joules) {
        return joules ? Units.joules(activity, value) : Units.seconds(activity, value);
    }

    /** Say what the chart shows, for who does not see it. */
    private String words(List<Point> points, boolean joules) {
        if (points.isEmpty()) {
            return activity.getString(joules ? R.string.chart_no_joules : R.string.chart_no_seconds);
        }
        double least = points.stream().mapToDouble(Point::value).min().getAsDouble();
        double most = points.stream().mapToDouble(Point::value).max().getAsDouble();
        String range = activity.getResources().getQuantityString(R.plurals.chart_words, points.size(), points.size(),
            inUnits(least, joules), inUnits(most, joules), inUnits(points.get(points.size() - 1).value(), joules));
        boolean outlines = points.stream().anyMatch(point -> !point.filled());
        return outlines ? activity.getString(R.string.chart_estimates, range) : range;
    }

    @Override
    void save(Bundle state) {
        super.save(state);
        state.putInt(FIRST, list.getFirstVisiblePosition());
        state.putInt(TOP, list.getChildCount() == 0 ? 0 : list.getChildAt(0).getTop() - list.getPaddingTop());
        state.putBoolean(JOULES, isJoules());
    }

    @Override
    void restore(Bundle state) {
        super.restore(state);
        first = state.getInt(FIRST, -1);
        top = state.getInt(TOP);
        RadioGroup choice = header.findViewById(R.id.chart_choice);
        choice.check(state.getBoolean(JOULES) ? R.id.chart_joules : R.id.chart_seconds);
    }
}
