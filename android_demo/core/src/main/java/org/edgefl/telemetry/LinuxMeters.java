package org.edgefl.telemetry;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.Map;

/**
 * What Linux tells any process: its peak memory, its CPU time, the processor's heat.
 *
 * <p>No energy instrument is read: the joules are an estimate from the CPU time, and say so.
 */
public final class LinuxMeters implements Meters {
    private static final String STATUS = "proc/self/status";

    private final SystemFiles files;
    private final CpuEnergy energy;
    private final ProcessorHeat heat;
    private long baseline;
    private boolean cleared;

    /** Meters of this machine. */
    public LinuxMeters() {
        this(Paths.get("/"), System.getProperty("os.arch", "unknown"));
    }

    LinuxMeters(Path root, String architecture) {
        this.files = new SystemFiles(root);
        this.energy = new CpuEnergy(root, architecture);
        this.heat = new ProcessorHeat(root);
    }

    /** Return whether this system has them. */
    public static boolean areAvailable() {
        return new LinuxMeters().kilobytes("VmHWM") > 0;
    }

    @Override
    public void begin() {
        heat.begin();
        energy.begin();
        baseline = kilobytes("VmRSS") * 1024;
        try {
            Files.write(files.root().resolve("proc/self/clear_refs"), "5".getBytes(StandardCharsets.US_ASCII));
            cleared = true;
        } catch (IOException notAllowed) {
            cleared = false;
        }
    }

    private long kilobytes(String name) {
        String status = files.text(STATUS);
        for (String line : status == null ? new String[0] : status.split("\n")) {
            if (line.startsWith(name + ":")) {
                String digits = line.replaceAll("[^0-9]", "");
                return digits.isEmpty() ? 0 : Long.parseLong(digits);
            }
        }
        return 0;
    }

    @Override
    public Map<String, Object> memory() {
        String source = cleared ? "VmHWM" : "VmHWM, the most since the process began";
        return TelemetrySections.memory(baseline, kilobytes("VmHWM") * 1024, source, "process",
            cleared ? TelemetrySections.MEASURED : TelemetrySections.ESTIMATED);
    }

    @Override
    public Map<String, Object> energy() {
        return energy.section();
    }

    @Override
    public Map<String, Object> thermal() {
        return heat.section();
    }
}
