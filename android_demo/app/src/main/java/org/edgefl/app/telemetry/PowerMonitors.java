package org.edgefl.app.telemetry;

import android.content.Context;
import android.os.OutcomeReceiver;
import android.os.PowerMonitor;
import android.os.PowerMonitorReadings;
import android.os.health.SystemHealthManager;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.regex.Pattern;
import org.edgefl.app.RequiresApi;
import org.edgefl.telemetry.TelemetrySections;

/**
 * Energy by the phone's power monitors: Android 15 and later, where the phone has them.
 *
 * <p>Rails are read, not consumers: the two overlap. The processor's rails are what training loads, so they are taken if
 * any can be recognised by name; else all of them.
 */
@RequiresApi(35)
final class PowerMonitors implements EnergyMeter {
    static final String SOURCE = "android power monitor";

    private static final Pattern PROCESSOR = Pattern.compile("(?i)(.*[^a-z])?cpu.*");
    private static final long PATIENCE_SECONDS = 3;
    private static final Executor AT_ONCE = Runnable::run;

    private final SystemHealthManager health;
    private final List<PowerMonitor> rails;
    private final String scope;
    private long[] began;

    private PowerMonitors(SystemHealthManager health, List<PowerMonitor> rails, String scope) {
        this.health = health;
        this.rails = rails;
        this.scope = scope;
    }

    /** Return the phone's monitors, or null if it has none. */
    static PowerMonitors find(Context context) {
        SystemHealthManager health = context.getSystemService(SystemHealthManager.class);
        return health == null ? null : find(health);
    }

    static PowerMonitors find(SystemHealthManager health) {
        CompletableFuture<List<PowerMonitor>> answer = new CompletableFuture<>();
        try {
            health.getSupportedPowerMonitors(AT_ONCE, answer::complete);
        } catch (RuntimeException notThere) {
            return null;
        }
        List<PowerMonitor> all = await(answer);
        return all == null ? null : chosen(health, all);
    }

    private static PowerMonitors chosen(SystemHealthManager health, List<PowerMonitor> all) {
        List<PowerMonitor> rails = new ArrayList<>();
        List<PowerMonitor> processor = new ArrayList<>();
        for (PowerMonitor monitor : all) {
            if (monitor.getType() == PowerMonitor.POWER_MONITOR_TYPE_MEASUREMENT) {
                rails.add(monitor);
                if (PROCESSOR.matcher(monitor.getName()).matches()) {
                    processor.add(monitor);
                }
            }
        }
        if (!processor.isEmpty()) {
            return new PowerMonitors(health, processor, "package");
        }
        return rails.isEmpty() ? null : new PowerMonitors(health, rails, "device");
    }

    /** The system answers on a thread of its own; a phone whose service hangs must not hold up training. */
    private static <T> T await(CompletableFuture<T> answer) {
        try {
            return answer.get(PATIENCE_SECONDS, TimeUnit.SECONDS);
        } catch (InterruptedException stop) {
            Thread.currentThread().interrupt();
            return null;
        } catch (ExecutionException | TimeoutException none) {
            return null;
        }
    }

    @Override
    public boolean begin() {
        began = read();
        return began != null;
    }

    /** Return microwatt-seconds since boot of every rail, or null if one is missing. */
    private long[] read() {
        CompletableFuture<PowerMonitorReadings> answer = new CompletableFuture<>();
        try {
            health.getPowerMonitorReadings(rails, AT_ONCE, new OutcomeReceiver<>() {
                @Override
                public void onResult(PowerMonitorReadings readings) {
                    answer.complete(readings);
                }

                @Override
                public void onError(RuntimeException error) {
                    answer.completeExceptionally(error);
                }
            });
        } catch (RuntimeException refused) {
            return null;
        }
        PowerMonitorReadings readings = await(answer);
        if (readings == null) {
            return null;
        }
        long[] found = new long[rails.size()];
        for (int i = 0; i < found.length; i++) {
            found[i] = readings.getConsumedEnergy(rails.get(i));
            if (found[i] == PowerMonitorReadings.ENERGY_UNAVAILABLE) {
                return null;
            }
        }
        return found;
    }

    /** Return the section {@code energy} since the beginning; null if a counter is missing or began again. */
    @Override
    public Map<String, Object> energy(Boolean plugged) {
        long[] now = read();
        if (now == null) {
            return null;
        }
        double joules = 0;
        for (int i = 0; i < now.length; i++) {
            if (now[i] < began[i]) {
                return null;
            }
            joules += (now[i] - began[i]) / 1e6;
        }
        return TelemetrySections.energy(joules, SOURCE, scope, TelemetrySections.MEASURED, null, null, plugged);
    }

    @Override
    public void close() {}
}
