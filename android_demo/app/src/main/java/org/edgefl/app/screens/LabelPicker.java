package org.edgefl.app.screens;

import android.content.Context;
import android.os.Bundle;
import android.os.Parcelable;
import android.util.AttributeSet;
import android.view.View;
import android.widget.AdapterView;
import android.widget.ArrayAdapter;
import android.widget.LinearLayout;
import android.widget.RadioButton;
import android.widget.Spinner;
import java.util.ArrayList;
import java.util.List;
import org.edgefl.app.R;

/** Chooses the class of what is added next: a button for each of a few classes, a list for many. */
public final class LabelPicker extends LinearLayout {
    /** No class is chosen. */
    static final int NONE = -1;

    private static final String VIEW = "view";
    private static final String CHOSEN = "chosen";
    private static final int MOST_BUTTONS = 20;

    private final List<RadioButton> buttons = new ArrayList<>();
    private Runnable changed = () -> {};
    private int classes;
    private int chosen = NONE;

    /** A picker in a layout. */
    public LabelPicker(Context context, AttributeSet attributes) {
        super(context, attributes);
    }

    void onChanged(Runnable listener) {
        changed = listener;
    }

    int chosen() {
        return chosen;
    }

    /** Offer this many classes. */
    void setClasses(int count) {
        if (count == classes) {
            return;
        }
        classes = count;
        chosen = chosen < count ? chosen : NONE;
        removeAllViews();
        buttons.clear();
        if (count <= MOST_BUTTONS) {
            addButtons();
        } else {
            addSpinner();
        }
    }

    private void addButtons() {
        TileGrid grid = new TileGrid(getContext(), null);
        grid.setTileWidth(getResources().getDimensionPixelSize(R.dimen.label_tile));
        for (int i = 0; i < classes; i++) {
            int label = i;
            RadioButton button = (RadioButton) View.inflate(getContext(), R.layout.item_label, null);
            button.setText(getContext().getString(R.string.number, label));
            button.setContentDescription(getContext().getString(R.string.class_number, label));
            button.setChecked(label == chosen);
            button.setOnClickListener(clicked -> choose(label));
            buttons.add(button);
            grid.addView(button);
        }
        addView(grid, LayoutParams.MATCH_PARENT, LayoutParams.WRAP_CONTENT);
    }

    private void addSpinner() {
        List<String> names = new ArrayList<>();
        names.add(getContext().getString(R.string.class_none));
        for (int i = 0; i < classes; i++) {
            names.add(getContext().getString(R.string.class_number, i));
        }
        ArrayAdapter<String> adapter =
            new ArrayAdapter<>(getContext(), android.R.layout.simple_spinner_item, names);
        adapter.setDropDownViewResource(android.R.layout.simple_spinner_dropdown_item);
        Spinner spinner = new Spinner(getContext());
        spinner.setContentDescription(getContext().getString(R.string.label_heading));
        spinner.setMinimumHeight(getResources().getDimensionPixelSize(R.dimen.target));
        spinner.setAdapter(adapter);
        spinner.setSelection(chosen + 1);
        spinner.setOnItemSelectedListener(new AdapterView.OnItemSelectedListener() {
            @Override
            public void onItemSelected(AdapterView<?> parent, View view, int position, long id) {
                choose(position - 1);
            }

            @Override
            public void onNothingSelected(AdapterView<?> parent) {
                choose(NONE);
            }
        });
        addView(spinner, LayoutParams.MATCH_PARENT, LayoutParams.WRAP_CONTENT);
    }

    private void choose(int label) {
        chosen = label;
        for (int i = 0; i < buttons.size(); i++) {
            buttons.get(i).setChecked(i == label);
        }
        changed.run();
    }

    @Override
    protected Parcelable onSaveInstanceState() {
        Bundle state = new Bundle();
        state.putParcelable(VIEW, super.onSaveInstanceState());
        state.putInt(CHOSEN, chosen);
        return state;
    }

    @Override
    @SuppressWarnings("deprecation") // The typed variant needs API 33.
    protected void onRestoreInstanceState(Parcelable saved) {
        Bundle state = (Bundle) saved;
        super.onRestoreInstanceState(state.getParcelable(VIEW));
        chosen = state.getInt(CHOSEN, NONE);
    }
}
