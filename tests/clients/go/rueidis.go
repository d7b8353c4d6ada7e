package main

// The runner makes of this file one for valkey-go, which has the same interface in its own names.

import (
	"context"

	"github.com/redis/rueidis"
)

type rueidisClient struct{ rueidis.Client }

func (c rueidisClient) build(words []string) rueidis.Completed {
	return c.B().Arbitrary(words...).Build()
}

func (c rueidisClient) ask(words []string) (any, error) {
	return c.Do(context.Background(), c.build(words)).ToAny()
}

func (c rueidisClient) many(commands [][]string, transaction bool) ([]any, error) {
	var built []rueidis.Completed
	for _, words := range commands {
		built = append(built, c.build(words))
	}
	if transaction {
		built = append([]rueidis.Completed{c.build([]string{"MULTI"})}, append(built, c.build([]string{"EXEC"}))...)
	}
	results := c.DoMulti(context.Background(), built...)
	if transaction {
		reply, err := results[len(results)-1].ToAny()
		if err != nil {
			return nil, err
		}
		return reply.([]any), nil
	}
	var replies []any
	for _, result := range results {
		reply, err := result.ToAny()
		if err != nil {
			reply = err
		}
		replies = append(replies, reply)
	}
	return replies, nil
}

func init() {
	libraries["rueidis"] = library{"github.com/redis/rueidis", func(o options) (client, error) {
		c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{o.address}, Password: o.secret,
			AlwaysRESP2: o.resp == 2, DisableCache: o.resp == 2})
		return rueidisClient{c}, err
	}}
}
