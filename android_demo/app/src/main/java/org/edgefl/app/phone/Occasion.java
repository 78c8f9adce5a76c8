package org.edgefl.app.phone;

/** Why an agent runs on the phone, and so what must hold while it does. */
enum Occasion {
    /** To join a federation. It ends with that, or if nobody answers. */
    JOIN(45),
    /** The owner asked for it. Degrees, megabytes and minutes count; charger, network, battery saver and hours do not. */
    NOW(60),
    /** The system gave the app a window at night. Everything counts. */
    NIGHT(300);

    /** Seconds without anything to do after which it ends. */
    final double idleSeconds;

    Occasion(double idleSeconds) {
        this.idleSeconds = idleSeconds;
    }
}
