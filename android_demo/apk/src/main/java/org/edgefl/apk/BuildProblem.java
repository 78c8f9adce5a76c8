package org.edgefl.apk;

/** The APK cannot be built; the message says why, and what to do. */
public final class BuildProblem extends RuntimeException {
    BuildProblem(String message) {
        super(message);
    }

    BuildProblem(String message, Throwable cause) {
        super(message, cause);
    }
}
