package org.edgefl.app.telemetry;

import android.os.Process;
import java.util.Locale;
import java.util.Map;

/** The estimate that every phone has: CPU seconds of this process, which are exact, times an assumed power. */
final class CpuEnergy {
    private final double wattsPerCore;
    private long began;

    /** The estimate for a processor, such as {@code aarch64}; the powers are those of the Python agent. */
    CpuEnergy(String architecture) {
        this.wattsPerCore = architecture.startsWith("arm") || architecture.equals("aarch64") ? 1.2 : 6;
    }

    void begin() {
        began = Process.getElapsedCpuTime();
    }

    Map<String, Object> energy(Boolean plugged) {
        double seconds = (Process.getElapsedCpuTime() - began) / 1000.0;
        String watts = wattsPerCore == Math.rint(wattsPerCore)
            ? Long.toString((long) wattsPerCore) : String.format(Locale.ROOT, "%.1f", wattsPerCore);
        return EnergySection.of(
            seconds * wattsPerCore, "CPU seconds x " + watts + " W a core", "process", "estimated", null, plugged);
    }
}
