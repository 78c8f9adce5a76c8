package org.edgefl.app.screens;

import android.content.Context;
import android.text.TextPaint;
import android.util.AttributeSet;
import android.util.TypedValue;
import android.view.View;
import android.view.accessibility.AccessibilityNodeInfo;
import android.widget.Button;
import android.widget.ImageView;
import android.widget.LinearLayout;
import android.widget.TextView;
import java.util.EnumMap;
import java.util.Map;
import java.util.function.Consumer;
import org.edgefl.app.R;

/** The bar at the bottom: an icon and a label for each screen. */
public final class NavigationBar extends LinearLayout {
    private final Map<Destination, View> items = new EnumMap<>(Destination.class);
    private Consumer<Destination> chosen = destination -> {};

    /** A bar in a layout. */
    public NavigationBar(Context context, AttributeSet attributes) {
        super(context, attributes);
        for (Destination destination : Destination.values()) {
            View item = View.inflate(context, R.layout.item_navigation, null);
            String label = context.getString(destination.title);
            item.setContentDescription(label);
            item.setAccessibilityDelegate(new AsButton());
            ((ImageView) item.findViewById(R.id.icon)).setImageResource(destination.icon);
            ((TextView) item.findViewById(R.id.label)).setText(label);
            item.setOnClickListener(clicked -> chosen.accept(destination));
            addView(item, new LayoutParams(0, LayoutParams.WRAP_CONTENT, 1));
            items.put(destination, item);
        }
    }

    /** All labels have one size: as large as the owner's text, unless the longest would not fit. */
    @Override
    protected void onMeasure(int width, int height) {
        float wanted = getResources().getDimension(R.dimen.navigation_text);
        float gap = getResources().getDimension(R.dimen.gap_tiny);
        float room = (float) MeasureSpec.getSize(width) / items.size() - 2 * gap;
        float size = wanted;
        for (View item : items.values()) {
            TextView label = item.findViewById(R.id.label);
            TextPaint paint = new TextPaint(label.getPaint());
            paint.setTextSize(wanted);
            size = Math.min(size, wanted * room / paint.measureText(label.getText().toString()));
        }
        for (View item : items.values()) {
            ((TextView) item.findViewById(R.id.label)).setTextSize(TypedValue.COMPLEX_UNIT_PX, size);
        }
        super.onMeasure(width, height);
    }

    void onChosen(Consumer<Destination> listener) {
        chosen = listener;
    }

    /** Mark a screen as the open one. */
    void select(Destination destination) {
        items.forEach((other, item) -> item.setSelected(other == destination));
    }

    View item(Destination destination) {
        return items.get(destination);
    }

    /** TalkBack calls an item a button; "selected" comes from the view's own state. */
    private static final class AsButton extends AccessibilityDelegate {
        @Override
        public void onInitializeAccessibilityNodeInfo(View host, AccessibilityNodeInfo info) {
            super.onInitializeAccessibilityNodeInfo(host, info);
            info.setClassName(Button.class.getName());
        }
    }
}
