package org.edgefl.app.telemetry;

import android.app.ActivityManager;
import android.content.Context;
import android.content.Intent;
import android.os.BatteryManager;
import org.robolectric.RuntimeEnvironment;
import org.robolectric.Shadows;
import org.robolectric.shadows.ShadowBatteryManager;

/** Sets what the tests' phone says about its battery and memory. */
public final class Phones {
    private Phones() {}

    /** A phone with 4 GB, half of them free, that runs on its battery and draws 3.6 W. */
    public static void ordinary() {
        battery(false, 4000, 30);
        current(-900_000);
        memory(4_000_000_000L, 2_000_000_000L);
    }

    /** The broadcast that the system keeps. */
    @SuppressWarnings("deprecation")
    public static void battery(boolean plugged, int millivolts, double celsius) {
        Context context = RuntimeEnvironment.getApplication();
        Intent state = new Intent(Intent.ACTION_BATTERY_CHANGED)
            .putExtra(BatteryManager.EXTRA_PLUGGED, plugged ? BatteryManager.BATTERY_PLUGGED_USB : 0)
            .putExtra(BatteryManager.EXTRA_VOLTAGE, millivolts)
            .putExtra(BatteryManager.EXTRA_TEMPERATURE, (int) Math.round(10 * celsius));
        context.sendStickyBroadcast(state);
    }

    /** The current in whatever unit and sign a vendor likes. */
    public static void current(int reported) {
        ShadowBatteryManager manager =
            Shadows.shadowOf(RuntimeEnvironment.getApplication().getSystemService(BatteryManager.class));
        manager.setIntProperty(BatteryManager.BATTERY_PROPERTY_CURRENT_NOW, reported);
    }

    /** Memory of the whole phone, and what is free. */
    public static void memory(long total, long free) {
        ActivityManager.MemoryInfo memory = new ActivityManager.MemoryInfo();
        memory.totalMem = total;
        memory.availMem = free;
        Shadows.shadowOf(RuntimeEnvironment.getApplication().getSystemService(ActivityManager.class))
            .setMemoryInfo(memory);
    }
}
