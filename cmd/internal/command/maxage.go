package command

import (
	"errors"
	"fmt"
	"time"

	"github.com/followpress/followpress/site"
)

// MaxAge is the flag for the maximum age of a site.
type MaxAge struct {
	MaxAge time.Duration `placeholder:"DURATION" help:"Fail if the site's snapshot is older, such as 36h. 0, the default, means no limit."`
}

// CheckMaxAge checks the flag.
func (m MaxAge) CheckMaxAge() error {
	if m.MaxAge < 0 {
		return errors.New("--max-age cannot be negative")
	}
	return nil
}

// CheckAge returns an error if a snapshot's time, in RFC 3339, is older than the flag allows, or
// more than site.MaxAhead ahead of the clock.
func (m MaxAge) CheckAge(asOf string) error {
	made, err := time.Parse(time.RFC3339, asOf)
	if err != nil {
		return fmt.Errorf("the site's as_of: %w", err)
	}
	switch age := time.Since(made); {
	case age < -site.MaxAhead:
		return fmt.Errorf("the site is as of %s, more than a day ahead of the clock; set the clock, or publish an older site with --allow-rollback", asOf)
	case m.MaxAge > 0 && age > m.MaxAge:
		return fmt.Errorf("the site is as of %s, %v ago, and --max-age=%v; find out why no newer snapshot was made or published",
			asOf, age.Round(time.Second), m.MaxAge)
	}
	return nil
}
