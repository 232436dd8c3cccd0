package publisher

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/followpress/followpress/publisher/internal/lock"
	"github.com/followpress/followpress/site"
)

// A Percent is a share of 0 to 100 %, in millionths, so that no comparison depends on rounding.
type Percent uint32

// hundred is 100 %.
const hundred Percent = 1_000_000

var percentage = regexp.MustCompile(`^([0-9]{1,3})(?:\.([0-9]{1,4}))?%$`)

// UnmarshalText reads a percentage such as 5% or 0.5%. The sign is required: 0.05 could be meant as
// five percent.
func (p *Percent) UnmarshalText(text []byte) error {
	parts := percentage.FindStringSubmatch(string(text))
	if parts == nil {
		return fmt.Errorf("%s is no percentage: write one such as 5%% or 0.5%%", site.Quoted(string(text)))
	}
	n, err := strconv.ParseUint(parts[1]+(parts[2] + "0000")[:4], 10, 32)
	if err != nil || Percent(n) > hundred {
		return fmt.Errorf("%s is more than 100%%", text)
	}
	*p = Percent(n)
	return nil
}

// String is the percentage as UnmarshalText reads it.
func (p Percent) String() string {
	return strconv.FormatFloat(float64(p)/float64(hundred/100), 'f', -1, 64) + "%"
}

// exceeded reports whether more than that share of live is lost if next is left.
func (p Percent) exceeded(live, next int) bool {
	if live <= 0 || next >= live {
		return false
	}
	lost, of := bits.Mul64(uint64(live-max(next, 0)), uint64(hundred))
	most, low := bits.Mul64(uint64(live), uint64(p))
	return lost > most || lost == most && of > low
}

// checkLoss is an error if a site lacks more than that share of what the live one has. What an old
// root does not count is not compared.
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
	return fmt.Errorf("the site would lose more than %v of the one in the bucket: it has %s: "+
		"find out why the snapshot has less, or publish it with --max-loss 100%%", p, strings.Join(lost, ", "))
}

// ErrRollback says that the bucket has a newer site than the one to publish, or had one that its readers have seen.
var ErrRollback = errors.New("the site is older than the one in the bucket")

// errFuture says that a site is as of a time that is yet to come. If it were published, all sites after it would be older.
var errFuture = errors.New("the site is as of the future")

// refuseFuture is an error if the site is as of a time after Options.NotAfter.
func (r *run) refuseFuture() error {
	if most := r.options.NotAfter; !most.IsZero() && r.asOf.After(most) {
		return fmt.Errorf("%w: as_of is %s, and may be %s at most: nobody could publish after it without --allow-rollback: set the clock, or find out where the snapshot has that time from",
			errFuture, r.source.Root.AsOf, most.UTC().Format(time.RFC3339))
	}
	return nil
}

// refuseRollback is an error if the site is older than one as of that time, unless that is allowed.
func (r *run) refuseRollback(live string) error {
	if r.options.AllowRollback || !r.isOlder(live) {
		return nil
	}
	return fmt.Errorf("%w: it is as of %s, and %s was published: find out why the snapshot is older, or go back with --allow-rollback",
		ErrRollback, r.source.Root.AsOf, live)
}

// isOlder reports whether the site is older than one as of that time. No site is older than one whose time is not known.
func (r *run) isOlder(live string) bool {
	was, err := time.Parse(time.RFC3339, live)
	return err == nil && r.asOf.Before(was)
}

// guard compares the site with the live one, whose root has the body. It is an error if the site is older or too much
// would be lost. A first publish has nothing to lose, even if it was cut off. An older site that may be published may lack
// what was new since.
func (r *run) guard(ctx context.Context, body []byte) error {
	most := hundred
	if r.options.MaxLoss != nil {
		most = *r.options.MaxLoss
	}
	const unknown = "what the site in the bucket has is not known (%w): if this site is complete, publish it with --max-loss 100%%"
	if body == nil {
		if most >= hundred {
			return nil
		}
		mark, err := lock.ReadMark(ctx, r.bucket)
		if err != nil || mark != nil {
			return err
		}
		if removed, err := r.hasManifest(ctx); err != nil || !removed {
			return err
		}
		return fmt.Errorf(unknown, errors.New("it has a manifest and no "+string(site.RootKey)))
	}
	live, err := site.ParseRoot(body)
	switch {
	case errors.Is(err, site.ErrNewer):
		return newerSite(err)
	case err != nil && most < hundred:
		return fmt.Errorf(unknown, err)
	case err == nil && r.isOlder(live.AsOf):
		return r.refuseRollback(live.AsOf)
	}
	return most.checkLoss(live.Counts, r.source.Root.Counts)
}
