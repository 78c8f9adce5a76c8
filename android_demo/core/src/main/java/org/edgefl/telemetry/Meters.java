package org.edgefl.telemetry;

import java.util.Map;

/**
 * Instruments of a device, read around every task. A phone app brings its own.
 *
 * <p>{@link TelemetrySections} makes the sections. An instrument that fails costs its section, and never the task.
 */
public interface Meters {
    /** Note where every instrument stands before a task. */
    void begin();

    /** Return the section {@code memory} of the telemetry of the task since {@link #begin}. */
    Map<String, Object> memory();

    /** Return the section {@code energy}, or null if it is neither measured nor estimated. */
    Map<String, Object> energy();

    /** Return the section {@code thermal}, or null if the system does not show it. */
    Map<String, Object> thermal();
}
