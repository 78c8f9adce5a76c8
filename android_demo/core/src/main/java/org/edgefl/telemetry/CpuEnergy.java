package org.edgefl.telemetry;

import java.nio.file.Path;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;

/**
 * Energy estimated from the CPU time of this process, as the Python client does where there is no instrument.
 *
 * <p>CPU seconds are exact; the power of a busy core is assumed. So the assumption is part of the source's name, and
 * the label says estimated: it compares two devices only as far as their cores are alike.
 */
final class CpuEnergy {
    private static final double ARM_WATTS = 1.2;
    private static final double OTHER_WATTS = 6;
    /** Ticks in which Linux counts times for programs, on every machine of today. */
    private static final double TICKS_PER_SECOND = 100;
    private static final int USER_TIME = 11;

    private final SystemFiles files;
    private final PowerSupplies supplies;
    private final double watts;
    private Double begun;
    private Boolean plugged;

    CpuEnergy(Path root, String architecture) {
        this.files = new SystemFiles(root);
        this.supplies = new PowerSupplies(root);
        String name = architecture.toLowerCase(Locale.ROOT);
        this.watts = name.startsWith("arm") || name.startsWith("aarch64") ? ARM_WATTS : OTHER_WATTS;
    }

    void begin() {
        begun = cpuSeconds();
        plugged = supplies.plugged();
    }

    /** Return the section {@code energy} of the task since {@link #begin}, or null if there is no CPU time. */
    Map<String, Object> section() {
        Double now = cpuSeconds();
        if (begun == null || now == null || now < begun) {
            return null;
        }
        Boolean still = supplies.plugged();
        String number = watts == Math.rint(watts) ? String.valueOf((long) watts) : String.valueOf(watts);
        return TelemetrySections.energy((now - begun) * watts, "CPU seconds x " + number + " W a core", "process",
            TelemetrySections.ESTIMATED, null, null, Objects.equals(plugged, still) ? still : null);
    }

    /** Return the seconds of all threads of this process so far, in steps of 10 ms, or null. */
    private Double cpuSeconds() {
        String text = files.text("proc/self/stat");
        // The name of the program, in brackets, may have spaces and brackets itself.
        int name = text == null ? -1 : text.lastIndexOf(')');
        String[] fields = name < 0 ? new String[0] : text.substring(name + 1).trim().split(" ");
        try {
            return fields.length <= USER_TIME + 1 ? null
                : (Double) ((Long.parseLong(fields[USER_TIME]) + Long.parseLong(fields[USER_TIME + 1]))
                    / TICKS_PER_SECOND);
        } catch (NumberFormatException unknown) {
            return null;
        }
    }
}
