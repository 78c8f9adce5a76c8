package org.edgefl.desktop;

import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import org.edgefl.desktop.Main.WrongUsage;

/** The command line of {@code join}. Names and meanings are those of {@code edgefl join}. */
final class JoinOptions {
    static final String HELP = """
        usage: java -jar edgefl-client.jar join URI --data FILE [options]
               java -jar edgefl-client.jar tasks [--home DIR]

        Take part in a federation with this machine, in Java. URI is the operator's pairing URI
        (edgefl://join?... or https://.../join#...), the coordinator's URL with a key, or - to
        read it from standard input, so that no other user of this machine sees it.

          --data FILE            an .npz file with samples 'x' and labels 'y'; it stays here
          --key KEY              join key (default: of the URI, or $EDGEFL_JOIN_KEY)
          --insecure             allow http:// to another machine
          --certificate FILE     certificate that signed the coordinator's, in PEM format
          --home DIR             folder of this device's files (default: ~/.edgefl-java)
          --name NAME            name of the device (default: the coordinator chooses one)
          --profile FILE         profile of this device (default: measure it once)
          --measure-seconds S    how long to measure (default: 20)
          --threads N            engine threads (default: all cores)
          --tasks N              stop after N tasks
          --idle-seconds S       stop after S seconds without anything to do (default: never)
          --wait S               long-poll for this many seconds; 0 disables it (default: 20)
          --validation F         fraction held out for validation (default: 0.1)
          --seed N               seed of that choice (default: 0)
          --checkpoint-seconds S seconds between checkpoints (default: 60)
          --mains-only           work only on external power
          --outside-battery-saver  work only while the system does not save battery
          --below-celsius C      work only while the processor is cooler
          --hours FROM-TO        work only during these hours, such as 22-6
          --megabytes-a-day MB   daily traffic limit
          --memory MB            most memory of a task
          --minutes-a-task MIN   longest time of a task (default: 60)
          --cache MB             size of the download cache (default: 2048)
          --quiet                print errors only
          --help, --version

        `tasks` prints how the device's tasks ended and what they cost, the newest first.

        Ctrl-C or SIGTERM stops it within five seconds; started again, it goes on where it was.
        Exit code 0 is success, 1 an error that is explained, 2 wrong usage.
        """;

    private static final Set<String> FLAGS =
        Set.of("--insecure", "--quiet", "--mains-only", "--outside-battery-saver", "--help", "-h");
    private static final Set<String> VALUES = Set.of("--data", "--key", "--certificate", "--home", "--name",
        "--profile", "--measure-seconds", "--threads", "--tasks", "--idle-seconds", "--wait", "--validation", "--seed",
        "--checkpoint-seconds", "--hours", "--below-celsius", "--megabytes-a-day", "--memory", "--minutes-a-task",
        "--cache");

    private final Map<String, String> values = new HashMap<>();
    private String uri;

    static JoinOptions parse(String[] arguments) {
        JoinOptions options = new JoinOptions();
        for (int i = 1; i < arguments.length; i++) {
            i = options.take(arguments, i);
        }
        boolean joins = arguments[0].equals("join");
        if (joins && !options.help() && (options.uri == null || options.text("--data", null) == null)) {
            throw new WrongUsage("join needs a URI and --data");
        }
        if (!joins && options.uri != null) {
            throw new WrongUsage("'" + options.uri + "' is not an option");
        }
        return options;
    }

    /** The folder of the device's files. */
    Path home() {
        return Path.of(text("--home", System.getProperty("user.home") + "/.edgefl-java"));
    }

    private int take(String[] arguments, int at) {
        String argument = arguments[at];
        int equals = argument.startsWith("--") ? argument.indexOf('=') : -1;
        String name = equals < 0 ? argument : argument.substring(0, equals);
        if (FLAGS.contains(argument)) {
            values.put(argument, "");
        } else if (VALUES.contains(name)) {
            if (equals < 0 && at + 1 >= arguments.length) {
                throw new WrongUsage(name + " needs a value");
            }
            values.put(name, equals < 0 ? arguments[at + 1] : argument.substring(equals + 1));
            return equals < 0 ? at + 1 : at;
        } else if ((argument.startsWith("-") && !argument.equals("-")) || uri != null) {
            throw new WrongUsage("'" + (argument.startsWith("-") ? name : argument) + "' is not an option");
        } else {
            uri = argument;
        }
        return at;
    }

    String uri() {
        return uri;
    }

    boolean help() {
        return has("--help") || has("-h");
    }

    boolean has(String name) {
        return values.containsKey(name);
    }

    String text(String name, String otherwise) {
        return values.getOrDefault(name, otherwise);
    }

    /** Return a number in a range, or the default. */
    double number(String name, double otherwise, double least, double most) {
        if (!has(name)) {
            return otherwise;
        }
        try {
            double value = Double.parseDouble(values.get(name));
            if (value >= least && value <= most) {
                return value;
            }
        } catch (NumberFormatException error) {
            // Said below.
        }
        throw new WrongUsage(name + " must be a number from " + least + " to " + most);
    }
}
