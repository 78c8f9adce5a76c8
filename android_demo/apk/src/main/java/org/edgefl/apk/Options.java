package org.edgefl.apk;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** A command and its options: {@code --name value}, or {@code --name} once and several values. */
final class Options {
    private final Map<String, List<String>> values = new HashMap<>();

    /** Read what follows the command's name. */
    Options(List<String> arguments) {
        List<String> current = null;
        for (String argument : arguments) {
            if (argument.startsWith("--")) {
                current = values.computeIfAbsent(argument.substring(2), name -> new ArrayList<>());
            } else if (current == null) {
                throw new BuildProblem("not an option: " + argument);
            } else {
                current.add(argument);
            }
        }
    }

    /** Return the one value of an option. */
    String text(String name) {
        List<String> found = values.getOrDefault(name, List.of());
        if (found.size() != 1) {
            throw new BuildProblem("--" + name + " needs one value, not " + found);
        }
        return found.get(0);
    }

    /** Return the value of an option that is a whole number. */
    int number(String name) {
        try {
            return Integer.parseInt(text(name));
        } catch (NumberFormatException e) {
            throw new BuildProblem("--" + name + " is not a whole number: " + text(name), e);
        }
    }

    /** Return the value of an option that is a file or folder. */
    Path path(String name) {
        return Path.of(text(name));
    }

    /** Return the files and folders of an option, which may be given as one path list. */
    List<Path> paths(String name) {
        return values.getOrDefault(name, List.of()).stream()
                .flatMap(list -> Arrays.stream(list.split(java.io.File.pathSeparator)))
                .map(Path::of)
                .toList();
    }
}
