package org.edgefl.app.screens;

import android.content.Context;
import android.view.View;
import android.widget.LinearLayout;
import android.widget.TextView;
import org.edgefl.app.R;

/** Bars with numbers: the samples of every class. */
final class ClassCounts {
    private static final int FEW = 20;
    private static final int MOST_ROWS = 50;

    private ClassCounts() {}

    /** Fill rows; of many classes, only those that have samples. Return the number of all samples. */
    static int show(LinearLayout rows, int[] counts) {
        Context context = rows.getContext();
        rows.removeAllViews();
        int most = 1;
        int total = 0;
        for (int count : counts) {
            most = Math.max(most, count);
            total += count;
        }
        int left = 0;
        for (int label = 0; label < counts.length; label++) {
            boolean shown = counts.length <= FEW || counts[label] > 0;
            if (shown && rows.getChildCount() < MOST_ROWS) {
                rows.addView(row(rows, label, counts[label], most));
            } else if (shown) {
                left++;
            }
        }
        if (left > 0) {
            TextView rest = new TextView(context, null, 0, R.style.Text_Soft);
            rest.setText(context.getResources().getQuantityString(R.plurals.more_classes, left, left));
            rows.addView(rest);
        }
        return total;
    }

    private static View row(LinearLayout rows, int label, int count, int most) {
        Context context = rows.getContext();
        String name = context.getString(R.string.class_number, label);
        Bar bar = Bar.of(rows);
        bar.set(name, Units.number(context, count), (double) count / most);
        bar.describe(context.getResources().getQuantityString(R.plurals.class_samples, count, label, count));
        return bar.view();
    }
}
