//! redis-rs as a driver (see ../../../README.md): redis-rs PORT RESP SECRET
use driver::Line;
use redis::{aio::ConnectionManager, Cmd, Value};

fn json(value: &Value) -> String {
    match value {
        Value::Nil => "null".into(),
        Value::Okay => driver::text("OK"),
        Value::Int(n) => n.to_string(),
        Value::BulkString(bytes) => driver::text(&String::from_utf8_lossy(bytes)),
        Value::SimpleString(text) => driver::text(text),
        Value::Array(items) => driver::list(items.iter().map(json)),
        Value::Map(pairs) => driver::map(pairs.iter().map(|(k, v)| (json(k), json(v)))),
        Value::ServerError(why) => driver::error(format!("{why:?}")),
        other => driver::error(format!("{other:?}")),
    }
}

fn command(words: &[String]) -> Cmd {
    let mut cmd = redis::cmd(&words[0]);
    cmd.arg(&words[1..]);
    cmd
}

async fn answer(connection: &mut ConnectionManager, line: Line) -> redis::RedisResult<Value> {
    match line {
        Line::Ask(words) => command(&words).query_async(connection).await,
        Line::Many(commands, transaction) => {
            let mut pipe = redis::pipe();
            if transaction {
                pipe.atomic();
            }
            for words in commands {
                pipe.add_command(command(&words));
            }
            pipe.query_async(connection).await
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> redis::RedisResult<()> {
    let o = driver::options();
    let secret = if o.secret.is_empty() { String::new() } else { format!(":{}@", o.secret) };
    let url = format!("redis://{}127.0.0.1:{}/?protocol=resp{}", secret, o.port, o.resp);
    let mut connection = ConnectionManager::new(redis::Client::open(url)?).await?;
    for line in driver::lines("redis-rs") {
        let reply = answer(&mut connection, line).await;
        println!("{}", reply.map_or_else(driver::error, |value| json(&value)));
    }
    Ok(())
}
