package org.edgefl.app.screens;

import android.content.Context;
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
            return new Problem(known.getMessage(), known.fix() == null ? "" : known.fix());
        }
        return new Problem(context.getString(R.string.problem_file), context.getString(R.string.problem_file_fix));
    }
}
