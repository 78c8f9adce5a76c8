package org.edgefl.app;

import java.util.Arrays;
import java.util.function.BooleanSupplier;
import org.edgefl.app.phone.Members;

/** Waits for the app's own threads while the main thread works, and says what they do if that takes too long. */
final class Waiting {
    private Waiting() {}

    static void until(double seconds, BooleanSupplier something) throws InterruptedException {
        if (!Members.await(seconds, something)) {
            StringBuilder doing = new StringBuilder(Members.phone().activity().toString());
            Thread.getAllStackTraces().forEach((thread, stack) -> {
                if (thread.getName().startsWith("edgefl")) {
                    doing.append("\n").append(thread).append(Arrays.toString(stack));
                }
            });
            throw new AssertionError(doing);
        }
    }
}
