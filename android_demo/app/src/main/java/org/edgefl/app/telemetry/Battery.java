package org.edgefl.app.telemetry;

import android.content.Context;
import android.content.Intent;
import android.content.IntentFilter;
import android.os.BatteryManager;

/** The phone's battery as it is now. */
public final class Battery {
    private final Context context;

    /** The battery of the phone that the app runs on. */
    public Battery(Context context) {
        this.context = context;
    }

    /** The system keeps the last broadcast about the battery; nobody has to listen for it. */
    private int extra(String name, int unknown) {
        Intent last = context.registerReceiver(null, new IntentFilter(Intent.ACTION_BATTERY_CHANGED));
        return last == null ? unknown : last.getIntExtra(name, unknown);
    }

    /** Return whether the phone is on external power, or null if the system does not say. */
    public Boolean isPlugged() {
        int plugged = extra(BatteryManager.EXTRA_PLUGGED, -1);
        return plugged < 0 ? null : (Boolean) (plugged != 0);
    }

    /** Return its temperature in degrees Celsius, or NaN. */
    public double celsius() {
        int tenths = extra(BatteryManager.EXTRA_TEMPERATURE, Integer.MIN_VALUE);
        return tenths == Integer.MIN_VALUE ? Double.NaN : tenths / 10.0;
    }

    /** Return its voltage, or NaN. Documented in millivolts; a few phones report volts. */
    public double volts() {
        int reported = extra(BatteryManager.EXTRA_VOLTAGE, 0);
        if (reported <= 0) {
            return Double.NaN;
        }
        return reported < 100 ? reported : reported / 1000.0;
    }

    /** Return the magnitude of its current in the vendor's own unit, or NaN if it is not supported. */
    public double rawCurrent() {
        BatteryManager manager = context.getSystemService(BatteryManager.class);
        int reported = manager == null ? 0 : manager.getIntProperty(BatteryManager.BATTERY_PROPERTY_CURRENT_NOW);
        return reported == 0 || reported == Integer.MIN_VALUE ? Double.NaN : Math.abs((double) reported);
    }
}
