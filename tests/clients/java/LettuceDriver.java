// Lettuce as a driver. With LETTUCE_OUTPUT=map it reads answers by GenericMapOutput, without by ArrayOutput, which flattens maps.
import io.lettuce.core.*;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.output.*;
import io.lettuce.core.protocol.*;
import java.nio.charset.StandardCharsets;
import java.util.*;

class LettuceDriver extends Driver {
    private final StatefulRedisConnection<String, String> connection;

    LettuceDriver(String[] args) {
        super(args);
        RedisURI.Builder uri = RedisURI.builder().withHost("127.0.0.1").withPort(port);
        if (secret != null) uri.withPassword(secret.toCharArray());
        RedisClient client = RedisClient.create(uri.build());
        client.setOptions(ClientOptions.builder()
            .protocolVersion(resp == 3 ? ProtocolVersion.RESP3 : ProtocolVersion.RESP2).build());
        connection = client.connect();
    }

    private static CommandOutput<String, String, ?> output(String name) {
        if (name.equals("ECHO")) return new ValueOutput<>(StringCodec.UTF8);
        boolean map = "map".equals(System.getenv("LETTUCE_OUTPUT")) && name.startsWith("WEIR.");
        if (map) return new GenericMapOutput<>(StringCodec.UTF8);
        return new ArrayOutput<>(StringCodec.UTF8);
    }

    private RedisFuture<?> send(String[] words) {
        ProtocolKeyword name = new ProtocolKeyword() {
            public byte[] getBytes() { return words[0].getBytes(StandardCharsets.US_ASCII); }
            public String toString() { return words[0]; }
        };
        CommandArgs<String, String> args = new CommandArgs<>(StringCodec.UTF8);
        for (String word : args(words)) args.add(word);
        return connection.async().dispatch(name, output(words[0]), args);
    }

    Object ask(String[] words) throws Exception {
        return send(words).get();
    }

    Object many(List<String[]> commands, boolean transaction) throws Exception {
        List<Object> replies = new ArrayList<>();
        if (transaction) {
            connection.sync().multi();
            for (String[] words : commands) send(words);
            return connection.sync().exec();
        }
        List<RedisFuture<?>> futures = new ArrayList<>();
        connection.setAutoFlushCommands(false);
        for (String[] words : commands) futures.add(send(words));
        connection.flushCommands();
        connection.setAutoFlushCommands(true);
        for (RedisFuture<?> future : futures) replies.add(future.get());
        return replies;
    }

    public static void main(String[] args) throws Exception {
        new LettuceDriver(args).run("Lettuce", RedisClient.class);
    }
}
