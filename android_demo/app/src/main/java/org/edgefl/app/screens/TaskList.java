package org.edgefl.app.screens;

import android.content.Context;
import android.view.LayoutInflater;
import android.view.View;
import android.view.ViewGroup;
import android.widget.BaseAdapter;
import android.widget.LinearLayout;
import android.widget.TextView;
import java.util.List;
import org.edgefl.agent.TaskRecord;
import org.edgefl.app.R;

/** Tasks for a list, the newest first. Rows are made anew: they differ in what the phone could tell. */
final class TaskList extends BaseAdapter {
    private final Context context;
    private List<TaskRecord> tasks = List.of();

    TaskList(Context context) {
        this.context = context;
    }

    void set(List<TaskRecord> found) {
        tasks = found;
        notifyDataSetChanged();
    }

    @Override
    public int getCount() {
        return tasks.size();
    }

    @Override
    public TaskRecord getItem(int position) {
        return tasks.get(position);
    }

    @Override
    public long getItemId(int position) {
        return tasks.get(position).endedMillis();
    }

    @Override
    public boolean areAllItemsEnabled() {
        return false;
    }

    @Override
    public boolean isEnabled(int position) {
        return false;
    }

    @Override
    public View getView(int position, View old, ViewGroup parent) {
        View row = old != null ? old : LayoutInflater.from(context).inflate(R.layout.item_task, parent, false);
        TaskRecord task = tasks.get(position);
        set(row, R.id.task_title, CostWords.title(context, task));
        set(row, R.id.task_outcome, CostWords.outcome(context, task));
        set(row, R.id.task_when, Units.moment(context, task.endedMillis()));
        LinearLayout rows = row.findViewById(R.id.task_rows);
        rows.removeAllViews();
        if (task.telemetry() != null) {
            CostWords words = new CostWords(context, TaskCost.of(task));
            add(rows, R.string.cost_seconds, words.seconds());
            add(rows, R.string.cost_memory, words.memory());
            add(rows, R.string.cost_energy, words.energy());
            add(rows, R.string.cost_heat, words.heat());
            add(rows, R.string.cost_up, words.up());
            add(rows, R.string.cost_down, words.down());
        }
        return row;
    }

    private void add(LinearLayout rows, int name, String value) {
        LinearLayout line = (LinearLayout) LayoutInflater.from(context).inflate(R.layout.item_cost, rows, false);
        set(line, R.id.cost_name, context.getString(name));
        set(line, R.id.cost_value, value);
        LargeText.stack(line);
        rows.addView(line);
    }

    private static void set(View row, int id, String text) {
        ((TextView) row.findViewById(id)).setText(text);
    }
}
