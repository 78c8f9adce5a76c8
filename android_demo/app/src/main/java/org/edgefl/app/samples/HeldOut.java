package org.edgefl.app.samples;

import org.edgefl.noise.Noise;

/**
 * Which samples are held out for validation: one of ten in a row, by the number that a sample got when it was added.
 *
 * <p>A sample that is held out stays so when others are added or deleted, so that no model is ever tested on what it was
 * trained on. Which one of ten is random, because an owner who draws 0 to 9 in turn would hold out one class alone.
 */
final class HeldOut {
    private static final int ONE_OF = 10;
    private static final long SEED = Noise.derive(0, "held out on a phone");

    private HeldOut() {}

    static boolean isHeldOut(long id) {
        long chosen = Long.remainderUnsigned(Noise.bits(SEED, (int) (id / ONE_OF)), ONE_OF);
        return id % ONE_OF == chosen;
    }

    /** Return a flag for every sample; with nothing else to train on, nothing is held out. */
    static boolean[] of(long[] ids) {
        boolean[] held = new boolean[ids.length];
        int count = 0;
        for (int i = 0; i < ids.length; i++) {
            held[i] = isHeldOut(ids[i]);
            count += held[i] ? 1 : 0;
        }
        return count == ids.length ? new boolean[ids.length] : held;
    }
}
