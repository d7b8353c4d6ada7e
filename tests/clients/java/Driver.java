// The protocol of drivers (see ../README.md) for clients in Java: java CLASS PORT RESP SECRET
import java.io.*;
import java.util.*;
import java.util.stream.Collectors;

abstract class Driver {
    final int port;
    final int resp;
    final String secret; // null: none

    Driver(String[] args) {
        port = Integer.parseInt(args[0]);
        resp = Integer.parseInt(args[1]);
        secret = args[2].isEmpty() ? null : args[2];
    }

    abstract Object ask(String[] words) throws Exception;

    abstract Object many(List<String[]> commands, boolean transaction) throws Exception;

    /** The arguments of a command, which come after its name. */
    static String[] args(String[] words) {
        return Arrays.copyOfRange(words, 1, words.length);
    }

    static String json(Object value) {
        if (value == null || value instanceof Number || value instanceof Boolean) return String.valueOf(value);
        if (value instanceof byte[]) return json(new String((byte[]) value));
        if (value instanceof Throwable) return "{\"error\":" + json(String.valueOf(((Throwable) value).getMessage())) + "}";
        if (value instanceof Map) {
            return ((Map<?, ?>) value).entrySet().stream().map(e -> json(e.getKey()) + ":" + json(e.getValue()))
                .collect(Collectors.joining(",", "{", "}"));
        }
        if (value instanceof Iterable) {
            List<String> items = new ArrayList<>();
            for (Object item : (Iterable<?>) value) items.add(json(item));
            return "[" + String.join(",", items) + "]";
        }
        return "\"" + value.toString().replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", " ") + "\"";
    }

    private String answer(String line) {
        String[] words = line.split("\t");
        try {
            if (words[0].equals("ask")) return json(ask(args(words)));
            String rest = line.substring(words[0].length() + 1);
            List<String[]> commands = Arrays.stream(rest.split("\t;\t")).map(c -> c.split("\t")).collect(Collectors.toList());
            return json(many(commands, words[0].equals("multi")));
        } catch (Exception e) {
            return json(e);
        }
    }

    /** Answers the lines of standard input. The version is that of the jar that has the class. */
    void run(String name, Class<?> of) throws IOException {
        String jar = new File(of.getProtectionDomain().getCodeSource().getLocation().getPath()).getName();
        System.out.println(name + " " + jar.replaceAll("^[a-z-]*-|(\\.RELEASE)?\\.jar$", ""));
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null; ) System.out.println(answer(line));
        System.exit(0);
    }
}
