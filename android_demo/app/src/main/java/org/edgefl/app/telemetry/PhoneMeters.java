package org.edgefl.app.telemetry;

import android.content.Context;
import android.os.Build;
import java.util.Map;
import org.edgefl.telemetry.LinuxMeters;
import org.edgefl.telemetry.Meters;

/**
 * The phone's instruments around a task. Energy comes from the best source that works, chosen anew for every task:
 * power monitors, else the battery while it discharges, else the estimate by CPU seconds.
 */
public final class PhoneMeters implements Meters, AutoCloseable {
    private final Context context;
    private final Battery battery;
    private final Heat heat;
    private final LinuxMeters process = new LinuxMeters();
    private final PssMemory pss = LinuxMeters.areAvailable() ? null : new PssMemory();
    private EnergyMeter meter;
    private Boolean pluggedAtFirst;

    /** The instruments of the phone that the app runs on. */
    public PhoneMeters(Context context) {
        this.context = context;
        this.battery = new Battery(context);
        this.heat = new Heat(context);
    }

    @Override
    public void begin() {
        close();
        heat.begin();
        process.begin();
        if (pss != null) {
            pss.begin();
        }
        pluggedAtFirst = battery.isPlugged();
        meter = begun(monitors());
        if (meter == null) {
            meter = begun(new BatteryEnergy(battery));
        }
    }

    private static EnergyMeter begun(EnergyMeter meter) {
        return meter != null && meter.begin() ? meter : null;
    }

    private EnergyMeter monitors() {
        return Build.VERSION.SDK_INT >= Build.VERSION_CODES.VANILLA_ICE_CREAM ? PowerMonitors.find(context) : null;
    }

    @Override
    public Map<String, Object> memory() {
        return pss == null ? process.memory() : pss.memory();
    }

    @Override
    public Map<String, Object> energy() {
        Boolean pluggedAtLast = battery.isPlugged();
        boolean changed = pluggedAtFirst == null || !pluggedAtFirst.equals(pluggedAtLast);
        Boolean plugged = changed ? null : pluggedAtFirst;
        Map<String, Object> measured = meter == null ? null : meter.energy(plugged);
        close();
        return measured == null ? estimate(plugged) : measured;
    }

    /** CPU seconds of this process, which are exact, times an assumed power. */
    private Map<String, Object> estimate(Boolean plugged) {
        Map<String, Object> fields = process.energy();
        if (fields != null) {
            fields.put("plugged", plugged);
        }
        return fields;
    }

    @Override
    public Map<String, Object> thermal() {
        return heat.thermal();
    }

    /** Stop sampling: a task that was stopped is never asked for its energy. */
    @Override
    public void close() {
        if (meter != null) {
            meter.close();
            meter = null;
        }
    }
}
