// Command fallback is followpress serve alone: a small binary for servers and containers.
package main

import (
	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/cmd/internal/serve"
)

func main() {
	command.Main("fallback", serve.About, &serve.Command{LimitMemory: command.LimitMemory})
}
