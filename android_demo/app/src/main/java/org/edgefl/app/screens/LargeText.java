package org.edgefl.app.screens;

import android.content.res.Resources;
import android.view.View;
import android.view.ViewGroup;
import android.widget.LinearLayout;

/** Owners who chose large text get columns where others get rows. */
final class LargeText {
    private static final float LARGE = 1.3f;

    private LargeText() {}

    static boolean isOn(Resources resources) {
        return resources.getConfiguration().fontScale > LARGE;
    }

    /** Put the parts of a row below each other if the text is large. */
    static void stack(LinearLayout row) {
        if (isOn(row.getResources())) {
            arrange(row, LinearLayout.VERTICAL);
        }
    }

    /** Put the parts of a row below each other, or side by side at equal widths. */
    static void arrange(LinearLayout row, int orientation) {
        row.setOrientation(orientation);
        boolean column = orientation == LinearLayout.VERTICAL;
        for (int i = 0; i < row.getChildCount(); i++) {
            View part = row.getChildAt(i);
            LinearLayout.LayoutParams room = (LinearLayout.LayoutParams) part.getLayoutParams();
            room.width = column ? ViewGroup.LayoutParams.MATCH_PARENT : 0;
            room.weight = column ? 0 : 1;
            room.setMarginEnd(0);
            part.setLayoutParams(room);
        }
    }
}
