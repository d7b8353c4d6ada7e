package main

import (
	"github.com/gomodule/redigo/redis"
)

type redigo struct{ *redis.Pool }

func (c redigo) ask(words []string) (any, error) {
	connection := c.Get()
	defer connection.Close()
	return connection.Do(words[0], anys(words[1:])...)
}

func (c redigo) many(commands [][]string, transaction bool) ([]any, error) {
	connection := c.Get()
	defer connection.Close()
	if transaction {
		connection.Send("MULTI")
	}
	for _, words := range commands {
		connection.Send(words[0], anys(words[1:])...)
	}
	if transaction {
		return redis.Values(connection.Do("EXEC"))
	}
	if err := connection.Flush(); err != nil {
		return nil, err
	}
	var replies []any
	for range commands {
		reply, err := connection.Receive()
		if err != nil {
			reply = err
		}
		replies = append(replies, reply)
	}
	return replies, nil
}

func init() {
	libraries["redigo"] = library{"github.com/gomodule/redigo", func(o options) (client, error) {
		return redigo{&redis.Pool{MaxIdle: 1, Dial: func() (redis.Conn, error) {
			return redis.Dial("tcp", o.address, redis.DialPassword(o.secret))
		}}}, nil
	}}
}
