# Smaller numbers for the copy of src/server and src/fleet that tests/bounds drives to its bounds. The code is the same.
s/^(#define SERVER_FLUSH_BYTES) 65536/\1 16384/
s/^(#define SERVER_REPLY_BYTES) \(1u << 20\)/\1 65600u/
s/^(#define SERVER_OUTPUT_BYTES) \(16u << 20\)/\1 (1u << 20)/
s/^(#define SERVER_THREAD_INPUT_BYTES) \(64u << 20\)/\1 (1u << 20)/
/^#define SERVER_THREAD_OUTPUT_BYTES/,/64u << 20/s/\(64u << 20\)/(2u << 20)/
s/^(#define SERVER_ADMIN_CONNECTIONS) 1024/\1 20/
s/^(#define SERVER_ADMIN_PER_ADDRESS) 512/\1 4/
s/^(#define SERVER_STREAMS) 128/\1 6/
s/^(#define SERVER_STREAM_BYTES) \(256u << 10\)/\1 (32u << 10)/
s/^(#define SERVER_BACKLOG) 511/\1 8/
s/^(#define SERVER_RESERVE) 16/\1 4/
s/^(#define SERVER_PENDING) 1024/\1 8/
s/^(#define PENALTY_PLACES) 4096/\1 16/
s/^(#define PENALTY_MOST_MS) 1000/\1 200/
s/^(#define PENALTY_FORGET_MS) 60000/\1 1000/
s/^(#define GRPC_STREAMS) 256/\1 24/
s/^(#define GRPC_FRAMES) 2000/\1 100/
s/^(#define RESERVATIONS_MAX) 65536/\1 128/
s/^(#define QUEUE_COMMANDS) 1024/\1 8/
s/^(#define QUEUE_BYTES) \(1u << 20\)/\1 4096u/
s/^(#define SANDBOXES_MAX) 32/\1 3/
s/^(#define SANDBOX_ASKS_MAX) 512/\1 4/
s/^(#define DEMO_SANDBOXES_MAX) 4/\1 2/
s/^(#define DEMO_IDLE_MS) 60000/\1 500/
s/^(#define DEMO_BODY_MAX) 131072/\1 4096/
s/^(#define JOBS_MAX) 8/\1 2/
s/^(#define BLOCKS_MOST) 1000/\1 4/
s/^(#define HISTORY_BYTES) \(4u << 20\)/\1 (64u << 10)/
s/^(#define JOB_REPLY_BYTES) \(8u << 20\)/\1 4096u/
s/^(#define TEXT_BYTES) \(1u << 20\)/\1 2048u/
s/^(#define DELAYS_HELD) 8192/\1 4/
s/^(#define CROWD_LOOKS) 64/\1 4/
s/^(#define CROWD_FRESH_MS) 100/\1 400/
s/^(#define SERVER_FIRST_MS) 500/\1 200/
s/^(#define SERVER_DRAIN_MS) 4000/\1 800/
s/^(#define KEEP_BYTES) \(256u << 10\)/\1 8192u/
s/^(#define DENIED_LOG_EACH) 100/\1 10/
s/^(#define DENIED_LOG_KEYS) 8192/\1 256/
s/^(#define HISTORY_EVENTS) 50/\1 5/
s/^(#define HISTORY_EVENT_BYTES) 16384/\1 1024/
s/^(#define FLEET_QUEUE_MAX) 16384/\1 16/
s/^(#define FLEET_READ_BYTES) 65536/\1 256/
s/^(#define READS_MAX) 8/\1 2/
s/^(#define ROUNDS_MAX) 8/\1 2/
s/^(#define EXEC_BYTES) \(SERVER_REPLY_BYTES \/ 2\)/\1 8192u/
s/^(#define FLEET_SEALED_BYTES) 65536/\1 2048/
