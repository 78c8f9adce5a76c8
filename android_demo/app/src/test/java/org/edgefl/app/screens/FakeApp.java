package org.edgefl.app.screens;

import android.app.Application;
import org.edgefl.app.phone.Phone;
import org.edgefl.app.phone.PhoneOwner;

/** An application whose phone is a fake. */
public final class FakeApp extends Application implements PhoneOwner {
    final FakePhone phone = new FakePhone();

    @Override
    public Phone phone() {
        return phone;
    }
}
