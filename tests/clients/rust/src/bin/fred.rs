//! fred as a driver (see ../../../README.md): fred PORT RESP SECRET
use driver::Line;
use fred::prelude::*;
use fred::types::{config::ReconnectPolicy, ClusterHash, CustomCommand, RespVersion};

fn json(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Queued => driver::text("QUEUED"),
        Value::Integer(n) => n.to_string(),
        Value::String(text) => driver::text(text),
        Value::Bytes(bytes) => driver::text(&String::from_utf8_lossy(bytes)),
        Value::Array(items) => driver::list(items.iter().map(json)),
        Value::Map(map) => {
            driver::map(map.clone().inner().iter().map(|(k, v)| (driver::text(&k.as_str_lossy()), json(v))))
        }
        other => driver::error(format!("{other:?}")),
    }
}

async fn send<C: ClientLike>(client: &C, words: &[String]) -> Result<Value, Error> {
    let command = CustomCommand::new(words[0].clone(), ClusterHash::FirstKey, false);
    client.custom(command, words[1..].to_vec()).await
}

async fn answer(client: &Client, line: Line) -> Result<Value, Error> {
    match line {
        Line::Ask(words) => send(client, &words).await,
        Line::Many(commands, true) => {
            let transaction = client.multi();
            for words in &commands {
                send(&transaction, words).await?;
            }
            transaction.exec(true).await
        }
        Line::Many(commands, false) => {
            let pipeline = client.pipeline();
            for words in &commands {
                send(&pipeline, words).await?;
            }
            pipeline.all().await
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let o = driver::options();
    let mut config = Config::from_url(&format!("redis://127.0.0.1:{}", o.port))?;
    config.version = if o.resp == 3 { RespVersion::RESP3 } else { RespVersion::RESP2 };
    config.password = if o.secret.is_empty() { None } else { Some(o.secret) };
    let client = Builder::from_config(config).set_policy(ReconnectPolicy::new_constant(0, 50)).build()?;
    client.init().await?;
    for line in driver::lines("fred") {
        let reply = answer(&client, line).await;
        println!("{}", reply.map_or_else(driver::error, |value| json(&value)));
    }
    Ok(())
}
