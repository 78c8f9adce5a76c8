package org.edgefl.desktop;

/** The client as a program. */
public final class Main {
    private Main() {}

    /** Run a command. */
    public static void main(String[] arguments) {
        System.err.println("edgefl-client: joining is not there yet");
        System.exit(2);
    }
}
