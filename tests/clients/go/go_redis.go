package main

import (
	"context"

	"github.com/redis/go-redis/v9"
)

type goRedis struct{ *redis.Client }

func (c goRedis) ask(words []string) (any, error) {
	return c.Do(context.Background(), anys(words)...).Result()
}

func (c goRedis) many(commands [][]string, transaction bool) ([]any, error) {
	pipeline := c.Pipeline()
	if transaction {
		pipeline = c.TxPipeline()
	}
	var replies []any
	for _, words := range commands {
		pipeline.Do(context.Background(), anys(words)...)
	}
	answered, err := pipeline.Exec(context.Background())
	if transaction && err != nil {
		return nil, err
	}
	for _, command := range answered {
		reply, err := command.(*redis.Cmd).Result()
		if err != nil {
			reply = err
		}
		replies = append(replies, reply)
	}
	return replies, nil
}

func init() {
	libraries["go-redis"] = library{"github.com/redis/go-redis/v9", func(o options) (client, error) {
		return goRedis{redis.NewClient(&redis.Options{Addr: o.address, Protocol: o.resp, Password: o.secret})}, nil
	}}
}
