package org.edgefl.app.telemetry;

import android.app.ActivityManager;
import android.content.Context;
import android.os.Build;
import android.os.Debug;
import java.util.Locale;
import org.edgefl.profile.DeviceFacts;

/** What Android says about the phone, for its profile. */
public final class PhoneFacts implements DeviceFacts {
    private static final int MOST_THREADS = 4;

    private final Context context;

    /** The phone that the app runs on. */
    public PhoneFacts(Context context) {
        this.context = context;
    }

    @Override
    public String deviceName() {
        String maker = text(Build.MANUFACTURER);
        String model = text(Build.MODEL);
        // Many models begin with their maker's name.
        boolean named = model.toLowerCase(Locale.ROOT).startsWith(maker.toLowerCase(Locale.ROOT));
        String name = (named ? model : maker + " " + model).trim();
        return name.isEmpty() ? "a phone" : name;
    }

    /** Printable, and not too long for the protocol. */
    private static String text(String found) {
        String clean = found == null ? "" : found.replaceAll("[^\\x20-\\x7e]", "").trim();
        return clean.substring(0, Math.min(clean.length(), 60));
    }

    @Override
    public String architecture() {
        String abi = Build.SUPPORTED_ABIS.length == 0 ? "unknown" : Build.SUPPORTED_ABIS[0];
        return switch (abi) {
            case "arm64-v8a" -> "aarch64";
            case "armeabi-v7a" -> "armv7l";
            default -> abi;
        };
    }

    @Override
    public String system() {
        return "Android " + text(Build.VERSION.RELEASE);
    }

    @Override
    public int cores() {
        return Runtime.getRuntime().availableProcessors();
    }

    /**
     * Threads for the engine: half of the cores, from 1 to 4. Phones have fast and slow cores, mostly four of each, and
     * a step waits for its slowest thread.
     */
    public int engineThreads() {
        return Math.max(1, Math.min(MOST_THREADS, cores() / 2));
    }

    private ActivityManager.MemoryInfo memory() {
        ActivityManager.MemoryInfo found = new ActivityManager.MemoryInfo();
        context.getSystemService(ActivityManager.class).getMemoryInfo(found);
        return found;
    }

    @Override
    public long memoryTotalBytes() {
        return memory().totalMem;
    }

    /** What is free above the mark at which the system begins to kill apps. */
    @Override
    public long memoryFreeBytes() {
        ActivityManager.MemoryInfo found = memory();
        return Math.max(0, found.availMem - found.threshold);
    }

    @Override
    public long processBytes() {
        return 1024 * Debug.getPss();
    }
}
