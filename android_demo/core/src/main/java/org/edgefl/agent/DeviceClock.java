package org.edgefl.agent;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;

/** The clock of deadlines: cannot be set, and runs while the device sleeps. A phone app brings the system's own. */
public interface DeviceClock {
    /** What any JVM has: on Linux the time since the system started, elsewhere a clock that may stop in sleep. */
    DeviceClock JVM = new DeviceClock() {
        @Override
        public String boot() {
            String id = read("/proc/sys/kernel/random/boot_id");
            return read("/proc/uptime").isEmpty() ? "" : id;
        }

        @Override
        public double seconds() {
            String[] uptime = read("/proc/uptime").split(" ");
            try {
                return Double.parseDouble(uptime[0]);
            } catch (NumberFormatException elsewhere) {
                return System.nanoTime() / 1e9;
            }
        }

        private String read(String file) {
            try {
                return new String(Files.readAllBytes(Paths.get(file)), StandardCharsets.US_ASCII).trim();
            } catch (IOException | SecurityException unknown) {
                return "";
            }
        }
    };

    /** An id of this start of the system, or an empty text: seconds of two starts cannot be compared. */
    String boot();

    /** Seconds since some moment of this start of the system, sleep included. */
    double seconds();
}
