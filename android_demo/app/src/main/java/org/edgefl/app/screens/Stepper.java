package org.edgefl.app.screens;

import android.content.Context;
import android.util.AttributeSet;
import android.view.View;
import android.widget.LinearLayout;
import android.widget.TextView;
import java.util.function.IntConsumer;
import java.util.function.IntFunction;
import org.edgefl.app.R;

/** A number with a button for less and one for more: only sensible values can be reached. */
public final class Stepper extends LinearLayout {
    private final View less;
    private final View more;
    private int[] values = {0};
    private boolean around;
    private int value;
    private IntFunction<String> words = String::valueOf;
    private IntConsumer changed = chosen -> {};

    /** A stepper in a layout. */
    public Stepper(Context context, AttributeSet attributes) {
        super(context, attributes);
        inflate(context, R.layout.part_stepper, this);
        less = findViewById(R.id.stepper_less);
        more = findViewById(R.id.stepper_more);
        less.setOnClickListener(clicked -> choose(neighbour(-1)));
        more.setOnClickListener(clicked -> choose(neighbour(1)));
    }

    /**
     * Say what is chosen.
     *
     * @param ladder the values, rising
     * @param wraps whether the first value follows the last
     */
    void begin(int name, int[] ladder, boolean wraps, IntFunction<String> inWords, IntConsumer listener) {
        ((TextView) findViewById(R.id.stepper_name)).setText(name);
        String title = getContext().getString(name);
        less.setContentDescription(getContext().getString(R.string.less, title));
        more.setContentDescription(getContext().getString(R.string.more, title));
        values = ladder;
        around = wraps;
        words = inWords;
        changed = listener;
    }

    /** Show a value, which need not be one of the ladder. */
    void set(int shown) {
        value = shown;
        ((TextView) findViewById(R.id.stepper_value)).setText(words.apply(shown));
        less.setEnabled(around || shown > values[0]);
        more.setEnabled(around || shown < values[values.length - 1]);
    }

    private void choose(int chosen) {
        set(chosen);
        changed.accept(chosen);
    }

    /** The next value above or below; from the end of a ring, the other end. */
    private int neighbour(int direction) {
        int last = values.length - 1;
        int next = direction > 0 ? 0 : last;
        while (next >= 0 && next <= last && (values[next] - value) * direction <= 0) {
            next += direction;
        }
        boolean beyond = next < 0 || next > last;
        return beyond ? values[around == direction > 0 ? 0 : last] : values[next];
    }
}
