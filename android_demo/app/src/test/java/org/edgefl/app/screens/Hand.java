package org.edgefl.app.screens;

import static org.robolectric.Shadows.shadowOf;

import android.os.Looper;
import org.robolectric.RuntimeEnvironment;

/** The owner of a fake phone, whose background work is done whenever something is touched. */
final class Hand extends Finger {
    final FakePhone phone = ((FakeApp) RuntimeEnvironment.getApplication()).phone;

    /** Let the background and the main thread do everything that waits. */
    @Override
    public void settle() {
        for (int i = 0; i < 20; i++) {
            shadowOf(Looper.getMainLooper()).idle();
            if (phone.holdBack || phone.work.isEmpty()) {
                return;
            }
            phone.work.poll().run();
        }
        shadowOf(Looper.getMainLooper()).idle();
    }

    /** The system ends the process, and the owner comes back: only saved state is left, as bytes. */
    void surviveProcessDeath() {
        byte[] kept = goAway();
        String link = controller.getIntent().getDataString();
        controller.destroy();
        phone.work.clear();
        comeBack(link, kept);
    }
}
