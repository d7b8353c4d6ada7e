// Clients for Go as drivers (see ../README.md): driver CLIENT PORT RESP SECRET
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
)

// A client sends one command, or several: as a pipeline or as a transaction.
type client interface {
	ask(words []string) (any, error)
	many(commands [][]string, transaction bool) ([]any, error)
}

type options struct {
	address string
	resp    int
	secret  string
}

type library struct {
	module  string
	connect func(options) (client, error)
}

var libraries = map[string]library{}

func anys(words []string) []any {
	list := make([]any, len(words))
	for i, word := range words {
		list[i] = word
	}
	return list
}

// plain makes of a reply what json.Marshal() can write.
func plain(value any) any {
	switch v := value.(type) {
	case error:
		return map[string]string{"error": v.Error()}
	case []byte:
		return string(v)
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = plain(v[i])
		}
		return list
	case map[any]any:
		members := map[string]any{}
		for name, member := range v {
			members[fmt.Sprint(name)] = plain(member)
		}
		return members
	case map[string]any:
		members := map[string]any{}
		for name, member := range v {
			members[name] = plain(member)
		}
		return members
	}
	return value
}

func answer(c client, line string) any {
	verb, rest, _ := strings.Cut(line, "\t")
	var reply any
	var err error
	if verb == "ask" {
		reply, err = c.ask(strings.Split(rest, "\t"))
	} else {
		var commands [][]string
		for _, command := range strings.Split(rest, "\t;\t") {
			commands = append(commands, strings.Split(command, "\t"))
		}
		reply, err = c.many(commands, verb == "multi")
	}
	if err != nil {
		return plain(err)
	}
	return plain(reply)
}

func version(module string) string {
	info, _ := debug.ReadBuildInfo()
	for _, dependency := range info.Deps {
		if dependency.Path == module {
			return strings.TrimPrefix(dependency.Version, "v")
		}
	}
	return "?"
}

func main() {
	name := os.Args[1]
	o := options{address: "127.0.0.1:" + os.Args[2], resp: 2, secret: os.Args[4]}
	if os.Args[3] == "3" {
		o.resp = 3
	}
	c, err := libraries[name].connect(o)
	if err == nil {
		_, err = c.ask([]string{"PING"})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(name, version(libraries[name].module))
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		text, _ := json.Marshal(answer(c, lines.Text()))
		fmt.Println(string(text))
	}
}
