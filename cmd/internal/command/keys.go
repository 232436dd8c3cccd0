package command

import (
	"fmt"

	"github.com/followpress/followpress/site/note"
)

// PublicKeys parses the public keys of a flag, named without hyphens. Errors name the flag.
func PublicKeys(flag string, texts []string) (note.Keys, error) {
	keys, err := note.ParseKeys(texts...)
	if err != nil {
		return keys, fmt.Errorf("--%s: %w", flag, err)
	}
	return keys, nil
}
