package object

import (
	"fmt"
	"strings"

	"github.com/followpress/followpress/site"
)

// Limits of the memory allocated for a body whose size is known only from the server.
const (
	MaxUnchecked = 1 << 20
	MaxAdmitted  = 256 << 20 // after admit accepted the size
)

// MaxBytes is the maximum size of an object that is read into memory. Real ones have some MiB.
const MaxBytes = 1 << 30

// maxManifestBytes is the maximum size of a manifest object.
const maxManifestBytes = 16 << 20

// Most returns the maximum size of an object in bytes. Objects that every reader reads first have small limits.
func Most(key site.Key) int64 {
	if rest, isNext := strings.CutPrefix(string(key), string(site.NextPrefix)); isNext {
		if _, name, ok := strings.Cut(rest, "/"); ok { // after the counter
			rest = name
		}
		key = site.Key(rest)
	}
	switch {
	case key == site.RootKey:
		return site.MaxRootBytes
	case key == site.LockKey, key == site.MarkKey, key == site.NoteKey:
		return MaxUnchecked
	case strings.HasPrefix(string(key), string(site.ManifestKey(""))):
		return maxManifestBytes
	}
	return MaxBytes
}

// CheckSize returns an error that wraps ErrTooLarge if size exceeds Most.
func CheckSize(key site.Key, size int64) error {
	if most := Most(key); size > most {
		return fmt.Errorf("read %s: %d bytes, more than %d MiB: %w", key, size, most>>20, ErrTooLarge)
	}
	return nil
}
