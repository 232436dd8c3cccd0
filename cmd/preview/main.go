// Command preview is followpress preview alone, for go run ./cmd/preview.
package main

import (
	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/cmd/internal/preview"
)

func main() {
	command.Main("preview", "Serve a site on this machine, with every answer of the API.", &preview.Command{})
}
