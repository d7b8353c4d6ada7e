//! The protocol of drivers (see ../../README.md) for clients in Rust.
use std::io::{stdin, BufRead};

pub struct Options {
    pub port: u16,
    pub resp: u8,
    pub secret: String,
}

pub fn options() -> Options {
    let args: Vec<String> = std::env::args().collect();
    Options { port: args[1].parse().unwrap(), resp: args[2].parse().unwrap(), secret: args[3].clone() }
}

pub enum Line {
    Ask(Vec<String>),
    Many(Vec<Vec<String>>, bool),
}

fn words(text: &str) -> Vec<String> {
    text.split('\t').map(String::from).collect()
}

/// Says which client this is; returns the commands that are to be sent.
pub fn lines(name: &str) -> impl Iterator<Item = Line> {
    println!("{} {}", name, version(name));
    stdin().lock().lines().map(|line| {
        let line = line.unwrap();
        let (verb, rest) = line.split_once('\t').unwrap();
        match verb {
            "ask" => Line::Ask(words(rest)),
            _ => Line::Many(rest.split("\t;\t").map(words).collect(), verb == "multi"),
        }
    })
}

fn version(name: &str) -> String {
    let lock = include_str!("../Cargo.lock");
    let package = format!("name = \"{}\"\nversion = \"", name.trim_end_matches("-rs"));
    let rest = lock.split_once(&package).unwrap().1;
    rest.split('"').next().unwrap().to_string()
}

pub fn text(value: &str) -> String {
    format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
}

pub fn error(why: impl std::fmt::Display) -> String {
    format!("{{\"error\":{}}}", text(&why.to_string()))
}

pub fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(","))
}

pub fn map(pairs: impl Iterator<Item = (String, String)>) -> String {
    format!("{{{}}}", pairs.map(|(k, v)| k + ":" + &v).collect::<Vec<_>>().join(","))
}
