// Jedis as a driver.
import java.util.*;
import redis.clients.jedis.*;
import redis.clients.jedis.commands.ProtocolCommand;
import redis.clients.jedis.util.KeyValue;

class JedisDriver extends Driver {
    private final RedisClient client;

    JedisDriver(String[] args) {
        super(args);
        client = RedisClient.builder().hostAndPort("127.0.0.1", port).clientConfig(DefaultJedisClientConfig.builder()
            .password(secret).protocol(resp == 3 ? RedisProtocol.RESP3 : RedisProtocol.RESP2).build()).build();
    }

    private static ProtocolCommand name(String[] words) {
        return () -> words[0].getBytes();
    }

    /** Jedis gives a map of an unknown command as a list of KeyValue. */
    private static Object plain(Object value) {
        if (!(value instanceof List)) return value;
        List<?> list = (List<?>) value;
        if (list.isEmpty() || !(list.get(0) instanceof KeyValue)) {
            List<Object> items = new ArrayList<>();
            for (Object item : list) items.add(plain(item));
            return items;
        }
        Map<Object, Object> map = new LinkedHashMap<>();
        for (Object item : list) map.put(new String((byte[]) ((KeyValue<?, ?>) item).getKey()), ((KeyValue<?, ?>) item).getValue());
        return map;
    }

    Object ask(String[] words) {
        return plain(client.sendCommand(name(words), args(words)));
    }

    Object many(List<String[]> commands, boolean transaction) {
        if (transaction) {
            try (AbstractTransaction multi = client.multi()) {
                for (String[] words : commands) multi.sendCommand(name(words), args(words));
                return plain(multi.exec());
            }
        }
        try (Pipeline pipeline = client.pipelined()) {
            for (String[] words : commands) pipeline.sendCommand(name(words), args(words));
            return plain(pipeline.syncAndReturnAll());
        }
    }

    public static void main(String[] args) throws Exception {
        JedisDriver driver = new JedisDriver(args);
        driver.client.ping();
        driver.run("Jedis", RedisClient.class);
    }
}
