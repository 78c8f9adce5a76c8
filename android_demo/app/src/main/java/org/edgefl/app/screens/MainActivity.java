package org.edgefl.app.screens;

import android.app.Activity;
import android.content.Intent;
import android.content.pm.PackageManager;
import android.os.Build;
import android.os.Bundle;
import android.view.View;
import android.view.ViewGroup;
import java.util.EnumMap;
import java.util.Map;
import org.edgefl.agent.Invitation;
import org.edgefl.app.R;
import org.edgefl.app.phone.Phone;
import org.edgefl.app.phone.PhoneOwner;

/** The app's one window: hosts the screens, keeps their state, and takes pairing links. */
public final class MainActivity extends Activity {
    private static final String SELECTED = "selected";

    private final Map<Destination, Screen> screens = new EnumMap<>(Destination.class);
    private final Map<Destination, Bundle> kept = new EnumMap<>(Destination.class);
    private final Runnable listener = this::refresh;
    private Destination selected = Destination.FEDERATION;
    private ViewGroup content;
    private NavigationBar navigation;

    /** This phone's part in a federation. */
    Phone phone() {
        return ((PhoneOwner) getApplication()).phone();
    }

    @Override
    protected void onCreate(Bundle state) {
        super.onCreate(state);
        setContentView(R.layout.main);
        content = findViewById(R.id.content);
        navigation = findViewById(R.id.navigation);
        navigation.onChosen(this::open);
        keepClearOfSystemBars();
        if (state != null) {
            restore(state);
        }
        select(selected);
        Intent intent = getIntent();
        boolean again = (intent.getFlags() & Intent.FLAG_ACTIVITY_LAUNCHED_FROM_HISTORY) != 0;
        if (state == null && !again) {
            receive(intent);
        }
    }

    @Override
    protected void onNewIntent(Intent intent) {
        super.onNewIntent(intent);
        receive(intent);
    }

    /** A link to join comes from anywhere: it is only looked at here, and read by the core. */
    private void receive(Intent intent) {
        String uri = Intent.ACTION_VIEW.equals(intent.getAction()) ? intent.getDataString() : null;
        if (uri != null) {
            open(Destination.FEDERATION);
            ((FederationScreen) screen(Destination.FEDERATION)).receive(uri);
        }
    }

    /** Show a screen. */
    void open(Destination destination) {
        select(destination);
        screen(destination).opened();
    }

    private void select(Destination destination) {
        selected = destination;
        Screen opened = screen(destination);
        screens.values().forEach(screen -> screen.view.setVisibility(screen == opened ? View.VISIBLE : View.GONE));
        navigation.select(destination);
        setTitle(destination.title);
    }

    /** Return a screen; it is made when it is needed first. */
    Screen screen(Destination destination) {
        return screens.computeIfAbsent(destination, missing -> {
            Screen made = missing.maker.apply(this);
            content.addView(made.view);
            Bundle state = kept.remove(missing);
            if (state != null) {
                made.restore(state);
            }
            return made;
        });
    }

    private void refresh() {
        screen(selected).refresh();
    }

    @Override
    protected void onStart() {
        super.onStart();
        phone().addListener(listener);
        screen(selected).opened();
    }

    @Override
    protected void onStop() {
        phone().removeListener(listener);
        super.onStop();
    }

    @Override
    protected void onDestroy() {
        screens.values().forEach(Screen::close);
        super.onDestroy();
    }

    @Override
    protected void onSaveInstanceState(Bundle state) {
        super.onSaveInstanceState(state);
        state.putString(SELECTED, selected.name());
        kept.forEach((destination, bundle) -> state.putBundle(destination.name(), bundle));
        screens.forEach((destination, screen) -> {
            Bundle bundle = new Bundle();
            screen.save(bundle);
            state.putBundle(destination.name(), bundle);
        });
    }

    private void restore(Bundle state) {
        selected = Destination.valueOf(state.getString(SELECTED, selected.name()));
        for (Destination destination : Destination.values()) {
            Bundle bundle = state.getBundle(destination.name());
            if (bundle != null) {
                kept.put(destination, bundle);
            }
        }
    }

    /** Over a rotation an invitation need not be asked for again. */
    @Override
    public Object onRetainNonConfigurationInstance() {
        Screen screen = screens.get(Destination.FEDERATION);
        return screen == null ? null : ((FederationScreen) screen).invitation();
    }

    /** The invitation that was looked at before a rotation, or null. */
    Invitation retained() {
        return (Invitation) getLastNonConfigurationInstance();
    }

    @Override
    protected void onActivityResult(int request, int code, Intent data) {
        super.onActivityResult(request, code, data);
        screen(owner(request)).result(request % Destination.REQUESTS, code, data);
    }

    @Override
    public void onRequestPermissionsResult(int request, String[] permissions, int[] results) {
        super.onRequestPermissionsResult(request, permissions, results);
        boolean granted = results.length > 0 && results[0] == PackageManager.PERMISSION_GRANTED;
        screen(owner(request)).permission(request % Destination.REQUESTS, granted);
    }

    private static Destination owner(int request) {
        return Destination.values()[request / Destination.REQUESTS];
    }

    /** From Android 15 on, windows lie behind the system's bars. Up to Android 10 the system keeps them apart. */
    private void keepClearOfSystemBars() {
        if (Build.VERSION.SDK_INT >= 30) {
            new EdgeToEdge(navigation).apply(getWindow(), findViewById(R.id.root));
        }
    }
}
