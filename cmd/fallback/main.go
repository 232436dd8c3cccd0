// Command fallback is followpress serve by itself: a small binary for machines and
// containers that do nothing else.
package main

import (
	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/cmd/internal/serve"
)

func main() {
	command.Main("fallback", serve.About, &serve.Command{LimitMemory: command.LimitMemory})
}
