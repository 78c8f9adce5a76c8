package org.edgefl.app.telemetry;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertTrue;

import android.os.PowerManager;
import java.util.Map;
import org.junit.After;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.RuntimeEnvironment;
import org.robolectric.Shadows;

@RunWith(RobolectricTestRunner.class)
public final class PhoneMetersTest {
    private final PhoneMeters meters = new PhoneMeters(RuntimeEnvironment.getApplication());

    @After
    public void close() {
        meters.close();
    }

    @Test
    public void pluggedInTheEnergyIsAnEstimateThatSaysSo() {
        Phones.battery(true, 4000, 30);
        Phones.current(900_000);
        meters.begin();
        Map<String, Object> energy = meters.energy();
        assertTrue(energy.get("source").toString().matches("CPU seconds x [0-9.]+ W a core"));
        assertEquals("process", energy.get("scope"));
        assertEquals("estimated", energy.get("provenance"));
        assertEquals(true, energy.get("plugged"));
    }

    @Test
    public void dischargingTheEnergyIsTheBatterys() {
        Phones.battery(false, 4000, 30);
        Phones.current(-900_000);
        meters.begin();
        assertEquals("android battery counter", meters.energy().get("source"));
    }

    @Test
    public void chargerThatCameDuringTheTaskIsNeitherPluggedNorNot() {
        Phones.battery(false, 4000, 30);
        Phones.current(-900_000);
        meters.begin();
        Phones.battery(true, 4000, 30);
        Map<String, Object> energy = meters.energy();
        assertEquals("estimated", energy.get("provenance"));
        assertNull(energy.get("plugged"));
    }

    @Test
    public void heatIsTheSystemsStatusAndNeverTheBatterysDegrees() {
        Phones.battery(true, 4000, 38);
        PowerManager power = RuntimeEnvironment.getApplication().getSystemService(PowerManager.class);
        Shadows.shadowOf(power).setCurrentThermalStatus(PowerManager.THERMAL_STATUS_LIGHT);
        meters.begin();
        Shadows.shadowOf(power).setCurrentThermalStatus(PowerManager.THERMAL_STATUS_MODERATE);
        Map<String, Object> thermal = meters.thermal();
        assertEquals("light", thermal.get("start_status"));
        assertEquals("moderate", thermal.get("end_status"));
        assertNull(thermal.get("start_celsius"));
        assertNull(thermal.get("end_celsius"));
    }

    @Test
    public void peakMemoryIsAtLeastWhatWasThereBefore() {
        meters.begin();
        Map<String, Object> memory = meters.memory();
        assertTrue((long) memory.get("baseline_bytes") > 1 << 20);
        assertTrue((long) memory.get("peak_bytes") >= (long) memory.get("baseline_bytes"));
        assertEquals("process", memory.get("scope"));
    }
}
