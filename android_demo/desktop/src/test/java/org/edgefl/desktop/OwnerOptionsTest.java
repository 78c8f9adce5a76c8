package org.edgefl.desktop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.edgefl.values.Refusal.Reason;
import org.junit.jupiter.api.Test;

/** The owner's conditions and the command line that asks for them. */
class OwnerOptionsTest {
    private static JoinOptions options(String... more) {
        String[] all = new String[more.length + 4];
        all[0] = "join";
        all[1] = "http://127.0.0.1:1";
        all[2] = "--data";
        all[3] = "mine.npz";
        System.arraycopy(more, 0, all, 4, more.length);
        return JoinOptions.parse(all);
    }

    @Test
    void whoRequiresMainsPowerMeansItAlsoWhereItIsNotKnown() {
        assertNull(SystemConditions.mainsOnly(true));
        assertEquals(Reason.POWER, SystemConditions.mainsOnly(false).reason());
        assertEquals(Reason.POWER, SystemConditions.mainsOnly(null).reason());
    }

    @Test
    void aTemperatureThatIsNotShownForbidsNothing() {
        assertNull(SystemConditions.below(null, 60));
        assertNull(SystemConditions.below(59.9, 60));
        assertEquals(Reason.TEMPERATURE, SystemConditions.below(60.0, 60).reason());
    }

    @Test
    void everyConditionOfTheCommandLineIsThere() {
        assertEquals(0, SystemConditions.of(options()).size());
        assertEquals(4, SystemConditions.of(
            options("--mains-only", "--outside-battery-saver", "--below-celsius", "60", "--hours=22-6")).size());
        assertThrows(Main.WrongUsage.class, () -> SystemConditions.of(options("--hours", "25-6")));
        assertThrows(Main.WrongUsage.class, () -> SystemConditions.of(options("--below-celsius", "hot")));
    }

    @Test
    void everyOptionInTheHelpIsUnderstood() {
        Matcher option = Pattern.compile("(?m)^  (--[a-z-]+)( [A-Z-]+)? ").matcher(JoinOptions.HELP);
        int count = 0;
        for (; option.find(); count++) {
            String[] words = option.group(2) == null ? new String[] {option.group(1)}
                : new String[] {option.group(1), "1"};
            if (!option.group(1).equals("--data")) {
                assertTrue(options(words).has(option.group(1)), option.group(1));
            }
        }
        assertTrue(count > 15, "the help is read");
    }
}
