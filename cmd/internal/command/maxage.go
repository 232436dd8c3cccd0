package command

import (
	"errors"
	"fmt"
	"time"
)

// MaxAge is the flag about how old a site may be.
type MaxAge struct {
	MaxAge time.Duration `placeholder:"DURATION" help:"How old the snapshot of the site may be, such as 36h: an older one is a failure, since no newer one was made. 0, the default, means any age."`
}

// CheckMaxAge checks the flag.
func (m MaxAge) CheckMaxAge() error {
	if m.MaxAge < 0 {
		return errors.New("--max-age cannot be negative")
	}
	return nil
}

// CheckAge is an error if a snapshot as of that time, in RFC 3339, is older now than the flag allows.
func (m MaxAge) CheckAge(asOf string) error {
	if m.MaxAge == 0 {
		return nil
	}
	made, err := time.Parse(time.RFC3339, asOf)
	if err != nil {
		return fmt.Errorf("--max-age: the site's as_of: %w", err)
	}
	if age := time.Since(made); age > m.MaxAge {
		return fmt.Errorf("the site is as of %s, %v ago, and --max-age=%v: find out why no newer snapshot was made or published",
			asOf, age.Round(time.Second), m.MaxAge)
	}
	return nil
}
