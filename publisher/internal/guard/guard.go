// Package guard refuses sites that must not replace the live one, or objects that no publisher has put.
package guard

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/followpress/followpress/publisher/internal/lock"
	"github.com/followpress/followpress/publisher/internal/requests"
	"github.com/followpress/followpress/publisher/internal/survey"
	"github.com/followpress/followpress/site"
)

// A Percent is a share of 0 to 100 %, in millionths, so that no comparison depends on rounding.
type Percent uint32

// hundred is 100 %.
const hundred Percent = 1_000_000

var percentage = regexp.MustCompile(`^([0-9]{1,3})(?:\.([0-9]{1,4}))?%$`)

// UnmarshalText reads a percentage such as 5% or 0.5%. The sign is required: 0.05 could mean five
// percent.
func (p *Percent) UnmarshalText(text []byte) error {
	parts := percentage.FindStringSubmatch(string(text))
	if parts == nil {
		return fmt.Errorf("invalid percentage %s; write one such as 5%% or 0.5%%", site.Quoted(string(text)))
	}
	n, err := strconv.ParseUint(parts[1]+(parts[2] + "0000")[:4], 10, 32)
	if err != nil || Percent(n) > hundred {
		return fmt.Errorf("%s is more than 100%%", text)
	}
	*p = Percent(n)
	return nil
}

// String returns the percentage in the form that UnmarshalText reads.
func (p Percent) String() string {
	return strconv.FormatFloat(float64(p)/float64(hundred/100), 'f', -1, 64) + "%"
}

// exceeded reports whether going from live to next loses more than the share p.
func (p Percent) exceeded(live, next int) bool {
	if live <= 0 || next >= live {
		return false
	}
	lostHigh, lostLow := bits.Mul64(uint64(live-max(next, 0)), uint64(hundred))
	mostHigh, mostLow := bits.Mul64(uint64(live), uint64(p))
	return lostHigh > mostHigh || lostHigh == mostHigh && lostLow > mostLow
}

// checkLoss returns an error if next lacks more than the share p of live. Counts that an old root
// does not have are not compared.
func (p Percent) checkLoss(live, next site.Counts) error {
	var lost []string
	for _, c := range []struct {
		what       string
		live, next int
	}{
		{"lists", live.Lists, next.Lists},
		{"primary lists", live.Primary, next.Primary},
		{"follows", live.Follows, next.Follows},
		{"names", live.Names, next.Names},
	} {
		if p.exceeded(c.live, c.next) {
			lost = append(lost, fmt.Sprintf("%d %s instead of %d", c.next, c.what, c.live))
		}
	}
	if lost == nil {
		return nil
	}
	return fmt.Errorf("the site would lose more than %v of the live site: it has %s; "+
		"check why the snapshot has less, or publish with --max-loss 100%%", p, strings.Join(lost, ", "))
}

var (
	// ErrRollback means that the site to publish is older than the live one, or than one that readers
	// have seen.
	ErrRollback = errors.New("the site is older than the one in the bucket")
	// ErrFuture means that the site's time is in the future. Every later site would then count as a
	// rollback.
	ErrFuture = errors.New("the site's time is in the future")
	// ErrForeign means that a publish would overwrite objects that no publisher has put.
	ErrForeign = errors.New("the site would overwrite foreign objects")
)

// A Guard compares the site to publish with the live one. See publisher.Options.
type Guard struct {
	Site          *site.Root
	AsOf          time.Time // time of Site
	NotAfter      time.Time
	MaxLoss       *Percent
	AllowRollback bool
	Overwrite     bool
}

// Future returns an error if the site's time is after NotAfter.
func (g *Guard) Future() error {
	if !g.NotAfter.IsZero() && g.AsOf.After(g.NotAfter) {
		return fmt.Errorf("%w: as_of is %s, the latest allowed is %s; set the clock, or check where the snapshot's time comes from",
			ErrFuture, g.Site.AsOf, g.NotAfter.UTC().Format(time.RFC3339))
	}
	return nil
}

// Rollback returns an error if the site is older than the time live, unless AllowRollback is set.
func (g *Guard) Rollback(live string) error {
	if g.AllowRollback || !g.isOlder(live) {
		return nil
	}
	return fmt.Errorf("%w: it is as of %s, and %s was published; check why the snapshot is older, or use --allow-rollback",
		ErrRollback, g.Site.AsOf, live)
}

// isOlder reports whether the site is older than the time live. It returns false if live is not a
// valid time.
func (g *Guard) isOlder(live string) bool {
	was, err := time.Parse(time.RFC3339, live)
	return err == nil && g.AsOf.Before(was)
}

// NewerSite explains that the version of a live site is not known.
func NewerSite(err error) error {
	return fmt.Errorf("compare with the live site: %w; use the newer version", err)
}

// Loss compares the site with the live one, whose root is body. It returns an error if the site is
// older or would lose too much. A first publish has nothing to lose, even if it was cut off. A site
// that may be older may also have less.
func (g *Guard) Loss(ctx context.Context, bucket *requests.Bucket, body []byte) error {
	most := hundred
	if g.MaxLoss != nil {
		most = *g.MaxLoss
	}
	const unknown = "cannot tell what the live site has (%w); if this site is complete, publish it with --max-loss 100%%"
	if body == nil {
		if most >= hundred {
			return nil
		}
		mark, err := lock.ReadMark(ctx, bucket)
		if err != nil || mark != nil {
			return err
		}
		if removed, err := survey.HasManifest(ctx, bucket); err != nil || !removed {
			return err
		}
		return fmt.Errorf(unknown, errors.New("the bucket has a manifest but no "+string(site.RootKey)))
	}
	live, err := site.ParseRoot(body)
	switch {
	case errors.Is(err, site.ErrNewer):
		return NewerSite(err)
	case err != nil && most < hundred:
		return fmt.Errorf(unknown, err)
	case err == nil && g.isOlder(live.AsOf):
		return g.Rollback(live.AsOf)
	}
	return most.checkLoss(live.Counts, g.Site.Counts)
}

const maxForeignNamed = 5

// Foreign returns an error for objects that a run would overwrite, unless Overwrite is set.
func (g *Guard) Foreign(keys []site.Key) error {
	if len(keys) == 0 || g.Overwrite {
		return nil
	}
	slices.Sort(keys)
	more := ""
	if n := len(keys) - maxForeignNamed; n > 0 {
		more, keys = fmt.Sprintf(" and %d more", n), keys[:maxForeignNamed]
	}
	var named []string
	for _, key := range keys {
		named = append(named, string(key))
	}
	return fmt.Errorf("%w: %s%s; use a separate prefix, or --overwrite to replace them", ErrForeign, strings.Join(named, ", "), more)
}
