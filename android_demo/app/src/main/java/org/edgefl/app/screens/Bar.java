package org.edgefl.app.screens;

import android.view.LayoutInflater;
import android.view.View;
import android.view.ViewGroup;
import android.widget.ProgressBar;
import android.widget.TextView;
import org.edgefl.app.R;

/** A bar with a name and a number. */
record Bar(View view) {
    private static final int FULL = 1000;

    /** Make one for a column, without adding it. */
    static Bar of(ViewGroup column) {
        return new Bar(LayoutInflater.from(column.getContext()).inflate(R.layout.item_bar, column, false));
    }

    /** Show a share from 0 to 1. */
    void set(String name, String value, double share) {
        ((TextView) view.findViewById(R.id.bar_name)).setText(name);
        ((TextView) view.findViewById(R.id.bar_value)).setText(value);
        ((ProgressBar) view.findViewById(R.id.bar)).setProgress((int) Math.round(FULL * share));
    }

    /** Give TalkBack one sentence instead of the parts. */
    void describe(String sentence) {
        view.setContentDescription(sentence);
        view.setFocusable(true);
    }
}
