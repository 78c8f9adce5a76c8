package org.edgefl.apk;

import java.io.IOException;
import java.net.JarURLConnection;
import java.net.URISyntaxException;
import java.net.URL;
import java.nio.file.Path;

/**
 * The tools that are libraries of this program, each checked against its pin before any of it runs.
 *
 * <p>A tool is found by a file that only it has, so that its classes need not be loaded to find it.
 */
final class Tools {
    static final String D8 = "com/android/tools/r8/D8.class";
    static final String APKSIG = "com/android/apksig/ApkSigner.class";
    static final String AAPT2 = "prebuilt/linux/aapt2";

    private final Pins pins;

    Tools(Pins pins) {
        this.pins = pins;
    }

    /** Return the checked jar of a tool. */
    Path jar(String member) throws IOException {
        URL found = Tools.class.getClassLoader().getResource(member);
        if (found == null) {
            throw new BuildProblem("a tool is missing on the class path: nothing there has " + member);
        }
        if (!(found.openConnection() instanceof JarURLConnection connection)) {
            throw new BuildProblem("not in a jar, so it cannot be checked: " + found);
        }
        try {
            return pins.check(Path.of(connection.getJarFileURL().toURI()));
        } catch (URISyntaxException e) {
            throw new BuildProblem("the jar of a tool cannot be found: " + found, e);
        }
    }
}
