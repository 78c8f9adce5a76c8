package org.edgefl.telemetry;

import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.Map;
import java.util.regex.Pattern;

/**
 * The processor's temperature, and whether the system throttled it: Linux shows both below {@code /sys}.
 *
 * <p>Zones have types that their vendors chose. Only zones of the processor count: the temperature of a battery or a
 * radio would mislead.
 */
public final class ProcessorHeat {
    private static final Pattern[] BEST_FIRST = {
        pattern("x86_pkg_temp"), pattern("cpu"), pattern("soc|tsens"), pattern("acpitz")};
    private static final Pattern COOLS_PROCESSOR = pattern("cpufreq|cpu-throttle|processor");

    private final SystemFiles files;
    private Double startCelsius;
    private Long startEvents;
    private Long startCooling;

    /** Heat of this machine. */
    public ProcessorHeat() {
        this(Paths.get("/"));
    }

    ProcessorHeat(Path root) {
        this.files = new SystemFiles(root);
    }

    private static Pattern pattern(String text) {
        return Pattern.compile(text, Pattern.CASE_INSENSITIVE);
    }

    /** Return the degrees of the hottest of the best-matching zones, or null if the system shows none. */
    public Double celsius() {
        for (Pattern wanted : BEST_FIRST) {
            Double hottest = null;
            for (String zone : files.entries("sys/class/thermal", "thermal_zone")) {
                Long reading = isOf(zone, wanted) ? files.whole(zone + "/temp") : null;
                // Zones that are switched off show 0 K and other nonsense.
                boolean plausible = reading != null && reading >= -40_000 && reading <= 150_000;
                if (plausible && (hottest == null || reading / 1000.0 > hottest)) {
                    hottest = reading / 1000.0;
                }
            }
            if (hottest != null) {
                return hottest;
            }
        }
        return null;
    }

    private boolean isOf(String entry, Pattern wanted) {
        String type = files.text(entry + "/type");
        return type != null && wanted.matcher(type).find();
    }

    /** Note where everything stands before a task. */
    void begin() {
        startCelsius = celsius();
        startEvents = throttleEvents();
        startCooling = coolingState();
    }

    /** Return the section {@code thermal} of the task since {@link #begin}. */
    Map<String, Object> section() {
        return TelemetrySections.thermal(startCelsius, celsius(), throttled(), null, null);
    }

    private Boolean throttled() {
        Long events = throttleEvents();
        Long cooling = coolingState();
        // A core that went offline took its count with it.
        Boolean byEvents = startEvents == null || events == null || events < startEvents
            ? null : (Boolean) (events > startEvents);
        Boolean byCooling = startCooling == null || cooling == null
            ? null : (Boolean) (startCooling > 0 || cooling > 0);
        if (Boolean.TRUE.equals(byEvents) || Boolean.TRUE.equals(byCooling)) {
            return true;
        }
        return byEvents == null ? byCooling : byEvents;
    }

    /** Return how often the processor was throttled since the system started (x86), or null. */
    private Long throttleEvents() {
        Long sum = null;
        for (String core : files.entries("sys/devices/system/cpu", "cpu")) {
            for (String level : new String[] {"core", "package"}) {
                Long count = files.whole(core + "/thermal_throttle/" + level + "_throttle_count");
                sum = count == null ? sum : Long.valueOf((sum == null ? 0 : sum) + count);
            }
        }
        return sum;
    }

    /** Return the highest state of the devices that limit the processor's clock, 0 if none does now, or null. */
    private Long coolingState() {
        Long highest = null;
        for (String device : files.entries("sys/class/thermal", "cooling_device")) {
            Long state = isOf(device, COOLS_PROCESSOR) ? files.whole(device + "/cur_state") : null;
            highest = state == null ? highest : Long.valueOf(highest == null ? state : Math.max(highest, state));
        }
        return highest;
    }
}
