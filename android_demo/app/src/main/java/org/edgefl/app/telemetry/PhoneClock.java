package org.edgefl.app.telemetry;

import android.content.Context;
import android.os.SystemClock;
import android.provider.Settings;
import org.edgefl.agent.DeviceClock;

/** Android's clock that runs while the phone sleeps. */
public final class PhoneClock implements DeviceClock {
    private final Context context;

    /** The clock of the phone that the app runs on. */
    public PhoneClock(Context context) {
        this.context = context;
    }

    @Override
    public String boot() {
        int count = Settings.Global.getInt(context.getContentResolver(), Settings.Global.BOOT_COUNT, -1);
        return count < 0 ? "" : "boot " + count;
    }

    @Override
    public double seconds() {
        return SystemClock.elapsedRealtimeNanos() / 1e9;
    }
}
