package org.edgefl.app.screens;

import android.content.Context;
import org.edgefl.agent.TaskRecord;
import org.edgefl.app.R;

/** The cost and the end of a task, in words and units of the owner's language. */
final class CostWords {
    private final Context context;
    private final TaskCost cost;

    CostWords(Context context, TaskCost cost) {
        this.context = context;
        this.cost = cost;
    }

    private String unknown() {
        return context.getString(R.string.not_told);
    }

    String seconds() {
        return Double.isNaN(cost.seconds()) ? unknown() : Units.seconds(context, cost.seconds());
    }

    String memory() {
        if (cost.peakBytes() < 0) {
            return unknown();
        }
        String bytes = Units.bytes(context, cost.peakBytes());
        return "heap".equals(cost.memoryScope()) ? context.getString(R.string.memory_heap, bytes) : bytes;
    }

    String energy() {
        boolean plugged = Boolean.TRUE.equals(cost.plugged());
        if (Double.isNaN(cost.joules())) {
            return plugged ? context.getString(R.string.energy_plugged) : unknown();
        }
        String joules = Units.joules(context, cost.joules());
        String source = cost.energySource() == null ? "" : cost.energySource();
        if (source.startsWith("CPU seconds")) {
            return context.getString(plugged ? R.string.energy_estimated_plugged : R.string.energy_estimated, joules);
        }
        if (source.contains("power monitor")) {
            return context.getString(R.string.energy_monitor, joules);
        }
        if (source.contains("battery")) {
            return Double.isNaN(cost.sampleHertz()) ? context.getString(R.string.energy_counter, joules)
                : context.getString(R.string.energy_current, joules, Units.hertz(context, cost.sampleHertz()));
        }
        return context.getString(R.string.energy_other, joules, source);
    }

    String heat() {
        if (!Double.isNaN(cost.startCelsius()) && !Double.isNaN(cost.endCelsius())) {
            return context.getString(R.string.from_to, Units.celsius(context, cost.startCelsius()),
                Units.celsius(context, cost.endCelsius()));
        }
        if (cost.endStatus() == null) {
            return unknown();
        }
        String end = context.getString(status(cost.endStatus()));
        return cost.startStatus() == null || cost.startStatus().equals(cost.endStatus()) ? end
            : context.getString(R.string.from_to, context.getString(status(cost.startStatus())), end);
    }

    private static int status(String name) {
        return switch (name) {
            case "none" -> R.string.heat_none;
            case "light" -> R.string.heat_light;
            case "moderate" -> R.string.heat_moderate;
            case "severe" -> R.string.heat_severe;
            case "critical" -> R.string.heat_critical;
            default -> R.string.heat_emergency;
        };
    }

    String up() {
        return cost.upBytes() < 0 ? unknown() : Units.bytes(context, cost.upBytes());
    }

    String down() {
        return cost.downBytes() < 0 ? unknown() : Units.bytes(context, cost.downBytes());
    }

    /** Return how a task ended. */
    static String outcome(Context context, TaskRecord task) {
        String reason = task.message();
        return switch (task.outcome()) {
            case "accepted", "already have it" -> context.getString(
                task.personal() ? R.string.outcome_personal : R.string.outcome_accepted);
            case "late" -> context.getString(R.string.outcome_late);
            case "refused" -> context.getString(R.string.outcome_refused, reason);
            default -> context.getString(R.string.outcome_rejected, reason);
        };
    }

    /** Return which task it was. */
    static String title(Context context, TaskRecord task) {
        return context.getString(task.personal() ? R.string.round_personal : R.string.round, task.round());
    }
}
