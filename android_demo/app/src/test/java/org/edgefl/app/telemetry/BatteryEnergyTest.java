package org.edgefl.app.telemetry;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNull;

import android.content.BroadcastReceiver;
import android.content.Context;
import android.content.ContextWrapper;
import android.content.Intent;
import android.content.IntentFilter;
import java.util.Map;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.RuntimeEnvironment;

@RunWith(RobolectricTestRunner.class)
public final class BatteryEnergyTest {
    private static final long SECOND = 1_000_000_000L;

    private final BatteryEnergy energy = new BatteryEnergy(new Battery(RuntimeEnvironment.getApplication()));

    /** Ten seconds at one current, then the joules. */
    private Map<String, Object> tenSeconds(int current) {
        Phones.current(current);
        for (int second = 0; second < 10; second++) {
            energy.sample(second * SECOND);
        }
        return energy.energy(10 * SECOND);
    }

    @Test
    public void microamperesTimesVoltsTimesSecondsAreJoules() {
        Phones.battery(false, 4000, 30);
        Map<String, Object> found = tenSeconds(-500_000);
        assertEquals(0.5 * 4 * 10, (double) found.get("joules"), 1e-9);
        assertEquals("android battery counter", found.get("source"));
        assertEquals("device", found.get("scope"));
        assertEquals("measured", found.get("provenance"));
        assertEquals(1.0, (double) found.get("sample_hertz"), 1e-9);
        assertEquals(false, found.get("plugged"));
    }

    @Test
    public void vendorsMilliamperesOfTheOtherSignAreRecognised() {
        Phones.battery(false, 4000, 30);
        assertEquals(0.5 * 4 * 10, (double) tenSeconds(500).get("joules"), 1e-9);
    }

    @Test
    public void oneQuietMomentDoesNotTurnMicroamperesIntoMilliamperes() {
        Phones.battery(false, 4000, 30);
        Phones.current(-800_000);
        energy.sample(0);
        Phones.current(-9_000);
        energy.sample(SECOND);
        double watts = 4 * (0.8 + 0.009) / 2;
        Phones.current(-9_000);
        assertEquals(watts + 4 * 0.009, (double) energy.energy(2 * SECOND).get("joules"), 1e-9);
    }

    @Test
    public void samplesAreJoinedByTheTrapezoidalRule() {
        Phones.battery(false, 4000, 30);
        Phones.current(-100_000);
        energy.sample(0);
        Phones.current(-300_000);
        assertEquals(4 * 0.2 * 3, (double) energy.energy(3 * SECOND).get("joules"), 1e-9);
    }

    @Test
    public void chargerInTheMiddleLeavesNoReading() {
        Phones.battery(false, 4000, 30);
        Phones.current(-500_000);
        energy.sample(0);
        Phones.battery(true, 4000, 30);
        energy.sample(SECOND);
        Phones.battery(false, 4000, 30);
        assertNull(energy.energy(2 * SECOND));
    }

    @Test
    public void propertyThatIsNotSupportedIsNoReading() {
        Phones.battery(false, 4000, 30);
        Phones.current(0);
        assertFalse(energy.begin());
        Phones.current(Integer.MIN_VALUE);
        assertFalse(new BatteryEnergy(new Battery(RuntimeEnvironment.getApplication())).begin());
    }

    @Test
    public void systemThatDoesNotAnswerIsNoReadingAndNoCrash() {
        Context deaf = new ContextWrapper(RuntimeEnvironment.getApplication()) {
            @Override
            public Intent registerReceiver(BroadcastReceiver receiver, IntentFilter filter) {
                throw new SecurityException("the system is going down");
            }
        };
        Phones.current(-500_000);
        assertFalse(new BatteryEnergy(new Battery(deaf)).begin());
    }
}
