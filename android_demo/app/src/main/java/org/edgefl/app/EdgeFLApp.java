package org.edgefl.app;

import android.app.Application;
import org.edgefl.app.phone.AndroidPhone;
import org.edgefl.app.phone.PhoneOwner;

/** The process: has the one phone that screens, services and jobs share. */
public final class EdgeFLApp extends Application implements PhoneOwner {
    private AndroidPhone phone;

    @Override
    public void onCreate() {
        super.onCreate();
        // An owner's "force stop" takes the nightly job away, and nothing but the app's next start brings it back.
        phone().planNights();
    }

    @Override
    public synchronized AndroidPhone phone() {
        if (phone == null) {
            phone = new AndroidPhone(this);
        }
        return phone;
    }
}
