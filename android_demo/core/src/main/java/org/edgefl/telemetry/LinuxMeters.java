package org.edgefl.telemetry;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.List;
import java.util.Map;

/** What Linux and Android tell a process about itself in /proc: its peak memory, and the processor's zones. */
public final class LinuxMeters implements Meters {
    private static final Path STATUS = Paths.get("/proc/self/status");
    private static final Path CLEAR = Paths.get("/proc/self/clear_refs");

    private long baseline;
    private boolean cleared;

    /** Return whether this system has them. */
    public static boolean areAvailable() {
        return Files.isReadable(STATUS) && kilobytes("VmHWM") > 0;
    }

    @Override
    public void begin() {
        baseline = kilobytes("VmRSS") * 1024;
        try {
            Files.write(CLEAR, "5".getBytes(StandardCharsets.US_ASCII));
            cleared = true;
        } catch (IOException notAllowed) {
            cleared = false;
        }
    }

    private static long kilobytes(String name) {
        try {
            List<String> lines = Files.readAllLines(STATUS, StandardCharsets.US_ASCII);
            for (String line : lines) {
                if (line.startsWith(name + ":")) {
                    return Long.parseLong(line.replaceAll("[^0-9]", ""));
                }
            }
        } catch (IOException | NumberFormatException unknown) {
            return 0;
        }
        return 0;
    }

    @Override
    public Map<String, Object> memory() {
        String source = cleared ? "VmHWM" : "VmHWM, the most since the process began";
        return HeapMeters.section(baseline, kilobytes("VmHWM") * 1024, source, "process",
            cleared ? "measured" : "estimated");
    }

    @Override
    public Map<String, Object> energy() {
        return null;
    }

    @Override
    public Map<String, Object> thermal() {
        return null;
    }
}
