package org.edgefl.agent;

import org.edgefl.values.Refusal;

/** Something that must hold while this device works: power, heat, hours, network. A phone app brings its own. */
public interface Condition {
    /** Return why it does not hold, or null. */
    Refusal violated();
}
