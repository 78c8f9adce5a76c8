package org.edgefl.app.telemetry;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertNull;

import android.content.Context;
import android.net.ConnectivityManager;
import android.net.NetworkInfo;
import android.os.PowerManager;
import org.edgefl.agent.OwnerLimits;
import org.edgefl.values.Refusal;
import org.edgefl.values.Refusal.Reason;
import org.junit.Before;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.RuntimeEnvironment;
import org.robolectric.Shadows;
import org.robolectric.shadows.ShadowNetworkInfo;
import org.robolectric.shadows.ShadowPowerManager;

@SuppressWarnings("deprecation") // NetworkInfo: the shadow of the metered network has nothing newer.
@RunWith(RobolectricTestRunner.class)
public final class PhoneConditionsTest {
    private final Context context = RuntimeEnvironment.getApplication();
    private final PhoneConditions phone = new PhoneConditions(context);
    private final ShadowPowerManager power = Shadows.shadowOf(context.getSystemService(PowerManager.class));

    @Before
    public void goodNight() {
        Phones.battery(true, 4000, 30);
        network(ConnectivityManager.TYPE_WIFI);
        power.setIsPowerSaveMode(false);
        power.setCurrentThermalStatus(PowerManager.THERMAL_STATUS_NONE);
    }

    private void network(int type) {
        Shadows.shadowOf(context.getSystemService(ConnectivityManager.class)).setActiveNetworkInfo(
            ShadowNetworkInfo.newInstance(NetworkInfo.DetailedState.CONNECTED, type, 0, true,
                NetworkInfo.State.CONNECTED));
    }

    private Reason atNight() {
        return reason(new OwnerLimits(phone.night(() -> 40), 1, 0, 0, 0));
    }

    private Reason now() {
        return reason(new OwnerLimits(phone.now(() -> 40), 1, 0, 0, 0));
    }

    private static Reason reason(OwnerLimits limits) {
        Refusal found = limits.violated();
        return found == null ? null : found.reason();
    }

    @Test
    public void coolPhoneOnChargerAndWifiWorks() {
        assertNull(atNight());
        assertNull(now());
    }

    @Test
    public void batteryAboveTheOwnersDegreesDoesNot() {
        Phones.battery(true, 4000, 40.5);
        assertEquals(Reason.TEMPERATURE, atNight());
        assertEquals(Reason.TEMPERATURE, now());
        Phones.battery(true, 4000, 40);
        assertNull(now());
    }

    @Test
    public void severeThermalStatusStopsBothAndModerateNeither() {
        power.setCurrentThermalStatus(PowerManager.THERMAL_STATUS_MODERATE);
        assertNull(atNight());
        power.setCurrentThermalStatus(PowerManager.THERMAL_STATUS_SEVERE);
        assertEquals(Reason.THERMAL, atNight());
        assertEquals(Reason.THERMAL, now());
    }

    @Test
    public void chargerNetworkAndBatterySaverCountAtNightOnly() {
        Phones.battery(false, 4000, 30);
        assertEquals(Reason.POWER, atNight());
        goodNight();
        network(ConnectivityManager.TYPE_MOBILE);
        assertEquals(Reason.METERED, atNight());
        goodNight();
        power.setIsPowerSaveMode(true);
        assertEquals(Reason.BATTERY_SAVER, atNight());
        Phones.battery(false, 4000, 30);
        network(ConnectivityManager.TYPE_MOBILE);
        assertNull(now());
    }
}
