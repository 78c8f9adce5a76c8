package org.edgefl.profile;

import java.io.IOException;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;

/** What any JVM knows, and on Linux what /proc says. */
public final class JvmFacts implements DeviceFacts {
    @Override
    public String deviceName() {
        try {
            return InetAddress.getLocalHost().getHostName();
        } catch (UnknownHostException unknown) {
            return "a Java device";
        }
    }

    @Override
    public String architecture() {
        String name = System.getProperty("os.arch", "unknown");
        return name.equals("amd64") ? "x86_64" : name;
    }

    @Override
    public String system() {
        return System.getProperty("os.name", "unknown") + " " + System.getProperty("os.version", "");
    }

    @Override
    public int cores() {
        return Runtime.getRuntime().availableProcessors();
    }

    @Override
    public long memoryTotalBytes() {
        long found = kilobytes("/proc/meminfo", "MemTotal") * 1024;
        return found > 0 ? found : Math.max(Runtime.getRuntime().maxMemory(), 16L << 20);
    }

    @Override
    public long memoryFreeBytes() {
        long found = kilobytes("/proc/meminfo", "MemAvailable") * 1024;
        Runtime runtime = Runtime.getRuntime();
        return found > 0 ? found : runtime.maxMemory() - runtime.totalMemory() + runtime.freeMemory();
    }

    @Override
    public long processBytes() {
        long found = kilobytes("/proc/self/status", "VmRSS") * 1024;
        return found > 0 ? found : Runtime.getRuntime().totalMemory();
    }

    private static long kilobytes(String file, String name) {
        Path path = Paths.get(file);
        try {
            for (String line : Files.readAllLines(path, StandardCharsets.US_ASCII)) {
                if (line.startsWith(name + ":")) {
                    return Long.parseLong(line.replaceAll("[^0-9]", ""));
                }
            }
        } catch (IOException | NumberFormatException unknown) {
            return 0;
        }
        return 0;
    }
}
