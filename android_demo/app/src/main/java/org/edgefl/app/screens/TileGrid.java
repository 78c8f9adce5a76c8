package org.edgefl.app.screens;

import android.content.Context;
import android.util.AttributeSet;
import android.view.View;
import android.view.ViewGroup;
import org.edgefl.app.R;

/** Children in rows of equal columns, as many as fit; rows are as high as their highest child. */
public final class TileGrid extends ViewGroup {
    private static final float MOST_GROWTH = 1.5f;

    private int tile;
    private int columns = 1;

    /** A grid in a layout. */
    public TileGrid(Context context, AttributeSet attributes) {
        super(context, attributes);
        float scale = Math.max(1, Math.min(getResources().getConfiguration().fontScale, MOST_GROWTH));
        setTileWidth(Math.round(getResources().getDimension(R.dimen.tile) * scale));
    }

    /** Set the least width of a tile, in pixels. */
    void setTileWidth(int pixels) {
        tile = pixels;
        requestLayout();
    }

    @Override
    protected void onMeasure(int width, int height) {
        int room = MeasureSpec.getSize(width);
        columns = Math.max(1, room / tile);
        int each = MeasureSpec.makeMeasureSpec(room / columns, MeasureSpec.EXACTLY);
        int total = 0;
        for (int first = 0; first < getChildCount(); first += columns) {
            total += measureRow(first, each);
        }
        setMeasuredDimension(room, total);
    }

    private int measureRow(int first, int each) {
        int highest = 0;
        int last = Math.min(first + columns, getChildCount());
        for (int i = first; i < last; i++) {
            getChildAt(i).measure(each, MeasureSpec.makeMeasureSpec(0, MeasureSpec.UNSPECIFIED));
            highest = Math.max(highest, getChildAt(i).getMeasuredHeight());
        }
        for (int i = first; i < last; i++) {
            getChildAt(i).measure(each, MeasureSpec.makeMeasureSpec(highest, MeasureSpec.EXACTLY));
        }
        return highest;
    }

    @Override
    protected void onLayout(boolean changed, int left, int top, int right, int bottom) {
        int each = (right - left) / columns;
        boolean mirrored = getLayoutDirection() == LAYOUT_DIRECTION_RTL;
        int y = 0;
        for (int i = 0; i < getChildCount(); i++) {
            View child = getChildAt(i);
            int column = mirrored ? columns - 1 - i % columns : i % columns;
            child.layout(column * each, y, (column + 1) * each, y + child.getMeasuredHeight());
            y += i % columns == columns - 1 ? child.getMeasuredHeight() : 0;
        }
    }
}
