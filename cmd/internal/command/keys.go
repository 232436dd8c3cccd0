package command

import (
	"fmt"

	"github.com/followpress/followpress/site/note"
)

// PublicKeys reads the public keys of a flag, whose name has no hyphens before it. An error names the flag.
func PublicKeys(flag string, texts []string) (note.Keys, error) {
	keys, err := note.ParseKeys(texts...)
	if err != nil {
		return keys, fmt.Errorf("--%s: %w", flag, err)
	}
	return keys, nil
}
