package object

import (
	"fmt"
	"strings"

	"github.com/followpress/followpress/site"
)

// Bounds of the memory that is allocated for a body because of a size that only the server states.
const (
	MaxUnchecked = 1 << 20
	MaxAdmitted  = 256 << 20 // of a size that was admitted
)

// MaxBytes is what an object may have that is read as a whole. Those of a site are some MiB.
const MaxBytes = 1 << 30

// maxManifestBytes is what an object of the manifest may have.
const maxManifestBytes = 16 << 20

// Most is how many bytes an object may have. Those that every reader of a site reads first are small.
func Most(key site.Key) int64 {
	if announced, is := strings.CutPrefix(string(key), string(site.NextPrefix)); is {
		if _, of, ok := strings.Cut(announced, "/"); ok { // it begins with a counter
			announced = of
		}
		key = site.Key(announced)
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

// CheckSize returns an error that wraps ErrTooLarge if an object has more bytes than Most.
func CheckSize(key site.Key, size int64) error {
	if most := Most(key); size > most {
		return fmt.Errorf("read %s: it has %d bytes, more than %d MiB: %w", key, size, most>>20, ErrTooLarge)
	}
	return nil
}
