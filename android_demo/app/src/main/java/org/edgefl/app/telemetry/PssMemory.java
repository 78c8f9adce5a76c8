package org.edgefl.app.telemetry;

import android.os.Debug;
import java.util.Map;
import org.edgefl.telemetry.TelemetrySections;

/** Memory of this process by {@code Debug.getPss()}, read twice: for systems without {@code VmHWM}. */
final class PssMemory {
    private long began;

    void begin() {
        began = bytes();
    }

    private static long bytes() {
        return 1024 * Debug.getPss();
    }

    /** Return the section {@code memory}; two readings do not see the peak between them, so it is an estimate. */
    Map<String, Object> memory() {
        return TelemetrySections.memory(began, bytes(), "Debug.getPss at the beginning and the end", "process",
            TelemetrySections.ESTIMATED);
    }
}
