package org.edgefl.app.telemetry;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import android.app.ActivityManager;
import android.content.Context;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.RuntimeEnvironment;
import org.robolectric.Shadows;
import org.robolectric.shadows.ShadowBuild;

@RunWith(RobolectricTestRunner.class)
public final class PhoneFactsTest {
    private final Context context = RuntimeEnvironment.getApplication();
    private final PhoneFacts facts = new PhoneFacts(context);

    @Test
    public void nameHasTheMakerOnce() {
        ShadowBuild.setManufacturer("Google");
        ShadowBuild.setModel("Pixel 8");
        assertEquals("Google Pixel 8", facts.deviceName());
        ShadowBuild.setManufacturer("OnePlus");
        ShadowBuild.setModel("ONEPLUS A6003\u0007");
        assertEquals("ONEPLUS A6003", facts.deviceName());
    }

    @Test
    public void processorHasTheNameThatOtherClientsUse() {
        ShadowBuild.setSupportedAbis(new String[] {"arm64-v8a", "armeabi-v7a"});
        assertEquals("aarch64", facts.architecture());
        ShadowBuild.setSupportedAbis(new String[] {"x86_64"});
        assertEquals("x86_64", facts.architecture());
    }

    @Test
    public void freeMemoryIsWhatTheSystemGivesBeforeItKillsApps() {
        ActivityManager.MemoryInfo memory = new ActivityManager.MemoryInfo();
        memory.totalMem = 8_000_000_000L;
        memory.availMem = 3_000_000_000L;
        memory.threshold = 500_000_000L;
        Shadows.shadowOf(context.getSystemService(ActivityManager.class)).setMemoryInfo(memory);
        assertEquals(8_000_000_000L, facts.memoryTotalBytes());
        assertEquals(2_500_000_000L, facts.memoryFreeBytes());
    }

    @Test
    public void engineGetsOneToFourThreads() {
        assertTrue(facts.engineThreads() >= 1 && facts.engineThreads() <= 4);
    }
}
