package org.edgefl.agent;

/** Where the agent says what it does: a terminal, a notification, a screen. */
public interface Log {
    /** Say something in one line. */
    void say(String line);
}
