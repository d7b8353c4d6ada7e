// Redisson as a driver. It has no call for any command: CL.THROTTLE goes through a script, others through its executor.
import java.util.*;
import org.redisson.Redisson;
import org.redisson.api.*;
import org.redisson.client.codec.StringCodec;
import org.redisson.client.protocol.RedisCommand;
import org.redisson.client.protocol.decoder.ObjectListReplayDecoder;
import org.redisson.command.*;
import org.redisson.config.*;

class RedissonDriver extends Driver {
    private final Redisson client;

    RedissonDriver(String[] args) {
        super(args);
        Config config = new Config();
        config.setUseScriptCache(false); // with it, Redisson sends SCRIPT LOAD and EVALSHA
        config.setProtocol(resp == 3 ? Protocol.RESP3 : Protocol.RESP2);
        config.useSingleServer().setAddress("redis://127.0.0.1:" + port).setPassword(secret)
            .setConnectionMinimumIdleSize(1).setConnectionPoolSize(2).setSubscriptionConnectionMinimumIdleSize(0);
        client = (Redisson) Redisson.create(config);
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private static RedisCommand<Object> command(String name) {
        return name.equals("ECHO") ? new RedisCommand<>(name) : new RedisCommand<>(name, new ObjectListReplayDecoder());
    }

    private RFuture<Object> send(CommandAsyncExecutor executor, String[] words) {
        if (words[0].equals("CL.THROTTLE")) {
            String script = "return redis.call('CL.THROTTLE', KEYS[1], ARGV[1], ARGV[2], ARGV[3])";
            return executor.evalWriteAsync(words[1], StringCodec.INSTANCE, command("EVAL"), script,
                Collections.singletonList(words[1]), words[2], words[3], words[4]);
        }
        return executor.writeAsync("", StringCodec.INSTANCE, command(words[0]), (Object[]) args(words));
    }

    Object ask(String[] words) throws Exception {
        return send(client.getCommandExecutor(), words).toCompletableFuture().get();
    }

    Object many(List<String[]> commands, boolean transaction) {
        BatchOptions options = BatchOptions.defaults().executionMode(
            transaction ? BatchOptions.ExecutionMode.REDIS_WRITE_ATOMIC : BatchOptions.ExecutionMode.IN_MEMORY);
        CommandBatchService batch = new CommandBatchService(client.getCommandExecutor(), options);
        for (String[] words : commands) send(batch, words);
        return batch.execute().getResponses();
    }

    public static void main(String[] args) throws Exception {
        new RedissonDriver(args).run("Redisson", Redisson.class);
    }
}
