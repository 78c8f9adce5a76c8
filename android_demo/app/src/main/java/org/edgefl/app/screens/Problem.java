package org.edgefl.app.screens;

import android.content.Context;
import java.util.Locale;
import org.edgefl.EdgeFLError;
import org.edgefl.app.R;

/**
 * What went wrong, for the owner.
 *
 * @param fix what to do about it; empty if the problem says it
 */
record Problem(String problem, String fix) {
    /** Return an error's problem and fix; of errors that are not EdgeFL's own, only that reading or writing failed. */
    static Problem of(Context context, Exception error) {
        if (error instanceof EdgeFLError known) {
            return new Problem(sentence(known.getMessage()), known.fix() == null ? "" : known.fix());
        }
        return new Problem(context.getString(R.string.problem_file), context.getString(R.string.problem_file_fix));
    }

    /** Return a message of the core, which says what happened in lower case, as a sentence. */
    static String sentence(String message) {
        if (message == null || message.isEmpty()) {
            return "";
        }
        String first = message.substring(0, 1).toUpperCase(Locale.ROOT);
        boolean ended = message.endsWith(".") || message.endsWith("!") || message.endsWith("?");
        return first + message.substring(1) + (ended ? "" : ".");
    }
}
