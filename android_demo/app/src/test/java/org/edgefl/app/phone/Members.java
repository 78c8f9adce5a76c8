package org.edgefl.app.phone;

import static org.junit.Assert.assertNotNull;

import android.content.Intent;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.edgefl.app.EdgeFLApp;
import org.robolectric.Robolectric;
import org.robolectric.RuntimeEnvironment;
import org.robolectric.Shadows;
import org.robolectric.android.controller.ServiceController;
import org.robolectric.shadows.ShadowLooper;
import org.robolectric.util.ReflectionHelpers;

/** The tests' app, and ways to put its phone into a state. */
public final class Members {
    private Members() {}

    public static EdgeFLApp app() {
        return (EdgeFLApp) RuntimeEnvironment.getApplication();
    }

    public static AndroidPhone phone() {
        return app().phone();
    }

    public static Path home() {
        return app().getFilesDir().toPath().resolve("federation");
    }

    /** Make the phone a member of a federation that nobody serves: a port of this machine where nothing listens. */
    static AndroidPhone join() throws IOException {
        Files.createDirectories(home());
        String member = "{\"url\": \"http://127.0.0.1:9\", \"pins\": [], \"federation\": \"digits\","
            + " \"enrolment_id\": \"e1\", \"device_id\": \"device-1\", \"token\": \"" + new KeystoreVault().seal("secret")
            + "\", \"sample\": {\"shape\": [1, 8, 8], \"dtype\": \"float32\", \"raw_dtype\": null,"
            + " \"normalisation\": null, \"classes\": 10, \"example\": null}, \"capabilities\": null, \"code\": null}";
        Files.write(home().resolve("device.json"), member.getBytes(StandardCharsets.UTF_8));
        return restart();
    }

    /** Give the phone a profile of an ordinary machine, so that it need not measure itself to join. */
    static void putProfile() throws IOException {
        Files.createDirectories(home());
        String profile = "{\"schema\": \"edgefl.device_profile/1\", \"device_name\": \"a test\", \"machine\":"
            + " {\"architecture\": \"x86_64\", \"system\": \"Android 15\", \"cores\": 2}, \"engine\":"
            + " \"onnxruntime 1.29.0\", \"threads\": 1, \"cost\": {\"overhead_seconds\": 0.0002,"
            + " \"forward_seconds_per_multiply_add\": 1e-10, \"backward_seconds_per_multiply_add\": 1.5e-10,"
            + " \"memory_base_bytes\": 120000000, \"memory_bytes_per_activation_byte\": 2.0,"
            + " \"relative_error\": 0.1, \"measurements\": 12}, \"memory_total_bytes\": 4000000000,"
            + " \"memory_free_bytes\": 2000000000, \"storage_free_bytes\": 10000000000,"
            + " \"measured_at\": \"2026-01-01T00:00:00Z\"}";
        Files.write(home().resolve("profile.json"), profile.getBytes(StandardCharsets.UTF_8));
    }

    /** What is left when the process dies: the files, and nothing of the phone in memory. */
    static AndroidPhone restart() {
        return replace(null);
    }

    /** Make the app's phone one that writes checkpoints every some seconds of training. */
    public static AndroidPhone checkpointEvery(double seconds) {
        return replace(new AndroidPhone(app(), TrainingEngine.onnxruntime(), seconds));
    }

    private static AndroidPhone replace(AndroidPhone next) {
        AndroidPhone old = ReflectionHelpers.getField(app(), "phone");
        if (old != null) {
            old.close();
        }
        ReflectionHelpers.setField(app(), "phone", next);
        return app().phone();
    }

    /** End what the app's phone does, and close its files. */
    public static void closePhone() {
        phone().close();
    }

    /** Do what the system does after {@code startForegroundService}. */
    public static ServiceController<TrainingService> runService() {
        Intent intent = Shadows.shadowOf(app()).getNextStartedService();
        assertNotNull("nothing was started", intent);
        return Robolectric.buildService(TrainingService.class, intent).create().startCommand(0, 1);
    }

    /** Do what the system does for a sticky service whose process was killed: it gets no intent. */
    public static ServiceController<TrainingService> bringServiceBack() {
        ServiceController<TrainingService> service = Robolectric.buildService(TrainingService.class).create();
        service.get().onStartCommand(null, 0, 1);
        return service;
    }

    /** Let the main thread work until something holds, or a number of seconds have passed. */
    public static boolean await(double seconds, BooleanSupplier something) throws InterruptedException {
        long end = System.nanoTime() + (long) (1e9 * seconds);
        while (!something.getAsBoolean()) {
            if (System.nanoTime() > end) {
                return false;
            }
            ShadowLooper.idleMainLooper(100, TimeUnit.MILLISECONDS);
            Thread.sleep(20);
        }
        ShadowLooper.idleMainLooper();
        return true;
    }
}
