package org.edgefl.app.screens;

import android.app.Activity;
import android.content.ActivityNotFoundException;
import android.content.Intent;
import android.net.Uri;
import org.edgefl.http.Pairing;

/** The coordinator's join page in the browser: says how else to take part, if this phone's app cannot train. */
final class JoinPage {
    private JoinPage() {}

    /** Open the page of a pairing; return whether the phone has a browser. */
    static boolean open(Activity activity, Pairing pairing) {
        Intent page = new Intent(Intent.ACTION_VIEW, Uri.parse(pairing.toPageUri()));
        page.addCategory(Intent.CATEGORY_BROWSABLE);
        // This app takes links to join pages too: choose among apps that open any page, which are browsers.
        page.setSelector(new Intent(Intent.ACTION_VIEW, Uri.fromParts("https", "", null))
            .addCategory(Intent.CATEGORY_BROWSABLE));
        try {
            activity.startActivity(page);
            return true;
        } catch (ActivityNotFoundException none) {
            return false;
        }
    }
}
