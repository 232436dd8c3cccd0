// Package rounds is a source whose rounds come from a test instead of chains.
package rounds

import (
	"context"

	"github.com/followpress/followpress/source"
)

// A Feed is a source (live.Source) whose rounds a test sends. Make it with a buffer to send without waiting.
type Feed chan source.Round

// Next waits for a round, or for the end of ctx.
func (f Feed) Next(ctx context.Context) (source.Round, error) {
	select {
	case r := <-f:
		return r, nil
	case <-ctx.Done():
		return source.Round{}, ctx.Err()
	}
}
