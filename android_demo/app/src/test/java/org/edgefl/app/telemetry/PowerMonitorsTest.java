package org.edgefl.app.telemetry;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertTrue;

import android.os.Bundle;
import android.os.IPowerStatsService;
import android.os.PowerMonitor;
import android.os.ResultReceiver;
import android.os.health.SystemHealthManager;
import java.util.Map;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;

@RunWith(RobolectricTestRunner.class)
public final class PowerMonitorsTest {
    private static final PowerMonitor BIG =
        new PowerMonitor(0, PowerMonitor.POWER_MONITOR_TYPE_MEASUREMENT, "[S2M_VDD_CPUCL2]:BIG");
    private static final PowerMonitor LITTLE =
        new PowerMonitor(1, PowerMonitor.POWER_MONITOR_TYPE_MEASUREMENT, "[S4M_VDD_CPUCL0]:LITTLE");
    private static final PowerMonitor DISPLAY =
        new PowerMonitor(2, PowerMonitor.POWER_MONITOR_TYPE_MEASUREMENT, "[VSYS_PWR_DISPLAY]:DISPLAY");
    private static final PowerMonitor CONSUMER =
        new PowerMonitor(3, PowerMonitor.POWER_MONITOR_TYPE_CONSUMER, "CPU");

    /** The system's service: counters in microwatt-seconds. */
    private static final class Service extends IPowerStatsService.Stub {
        private final PowerMonitor[] monitors;
        private final long[] counters = new long[4];

        Service(PowerMonitor... monitors) {
            this.monitors = monitors;
        }

        @Override
        public void getSupportedPowerMonitors(ResultReceiver receiver) {
            Bundle answer = new Bundle();
            answer.putParcelableArray(KEY_MONITORS, monitors);
            receiver.send(RESULT_SUCCESS, answer);
        }

        @Override
        public void getPowerMonitorReadings(int[] indices, ResultReceiver receiver) {
            long[] energy = new long[indices.length];
            for (int i = 0; i < indices.length; i++) {
                energy[i] = counters[indices[i]];
            }
            Bundle answer = new Bundle();
            answer.putLongArray(KEY_ENERGY, energy);
            answer.putLongArray(KEY_TIMESTAMPS, new long[indices.length]);
            receiver.send(RESULT_SUCCESS, answer);
        }
    }

    private static PowerMonitors find(Service service) {
        return PowerMonitors.find(new SystemHealthManager(null, service));
    }

    @Test
    public void processorsRailsAreAddedUpAndNothingElse() {
        Service service = new Service(BIG, LITTLE, DISPLAY, CONSUMER);
        PowerMonitors monitors = find(service);
        service.counters[0] = 5_000_000;
        assertTrue(monitors.begin());
        service.counters[0] = 7_000_000;
        service.counters[1] = 500_000;
        service.counters[2] = 90_000_000;
        service.counters[3] = 2_500_000;
        Map<String, Object> energy = monitors.energy(true);
        assertEquals(2.5, (double) energy.get("joules"), 1e-9);
        assertEquals("android power monitor", energy.get("source"));
        assertEquals("package", energy.get("scope"));
        assertEquals("measured", energy.get("provenance"));
        assertNull(energy.get("sample_hertz"));
        assertEquals(true, energy.get("plugged"));
    }

    @Test
    public void allRailsCountIfNoneIsTheProcessors() {
        Service service = new Service(DISPLAY, CONSUMER);
        PowerMonitors monitors = find(service);
        assertTrue(monitors.begin());
        service.counters[2] = 3_000_000;
        assertEquals(3.0, (double) monitors.energy(null).get("joules"), 1e-9);
        assertEquals("device", monitors.energy(null).get("scope"));
    }

    @Test
    public void phoneWithoutRailsHasNoMonitors() {
        assertNull(find(new Service()));
        assertNull(find(new Service(CONSUMER)));
    }

    @Test
    public void missingOrRestartedCounterGivesNoReading() {
        Service service = new Service(BIG);
        PowerMonitors monitors = find(service);
        service.counters[0] = -1;
        assertFalse(monitors.begin());
        service.counters[0] = 9;
        assertTrue(monitors.begin());
        service.counters[0] = 8;
        assertNull(monitors.energy(false));
    }
}
