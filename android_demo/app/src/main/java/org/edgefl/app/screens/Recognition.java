package org.edgefl.app.screens;

import android.content.res.Resources;
import java.util.List;
import org.edgefl.agent.Invitation;
import org.edgefl.app.R;

/** How a coordinator was recognised, in words. */
final class Recognition {
    private static final int BEGINNING = 8;
    private static final int END = 6;

    private Recognition() {}

    static String of(Resources resources, Invitation invitation) {
        return switch (invitation.trust()) {
            case PINNED -> resources.getString(R.string.trust_pinned, shortened(resources, invitation.pin()));
            case AUTHORITY -> resources.getString(R.string.trust_authority);
            case PLAIN -> resources.getString(R.string.trust_plain);
        };
    }

    static String of(Resources resources, String url, List<String> pins) {
        if (!pins.isEmpty()) {
            return resources.getString(R.string.trust_pinned, shortened(resources, pins.get(0)));
        }
        return resources.getString(url.startsWith("https://") ? R.string.trust_authority : R.string.trust_plain);
    }

    /** Return the ends of a pin: enough to compare with what the operator reads aloud. */
    static String shortened(Resources resources, String pin) {
        String name = pin.substring(pin.indexOf(':') + 1);
        if (name.length() <= BEGINNING + END) {
            return name;
        }
        return resources.getString(R.string.shortened, name.substring(0, BEGINNING),
            name.substring(name.length() - END));
    }
}
