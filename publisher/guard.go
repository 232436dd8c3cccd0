package publisher

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/followpress/followpress/publisher/internal/lock"
	"github.com/followpress/followpress/site"
)

// A Percent is a share of 0 to 100 %, in millionths, so that no comparison depends on rounding.
type Percent uint32

const hundred Percent = 1_000_000

// UnmarshalText reads a percentage such as 5% or 0.5%. The sign is required: 0.05 could mean five
// percent.
func (p *Percent) UnmarshalText(text []byte) error {
	number, signed := strings.CutSuffix(string(text), "%")
	share, err := strconv.ParseFloat(number, 64)
	if err != nil || !signed || !(share >= 0 && share <= 100) { // NaN is a number to strconv
		return fmt.Errorf("invalid percentage %s; write one of 0%% to 100%%, such as 5%% or 0.5%%", site.Quoted(string(text)))
	}
	*p = Percent(math.Round(share * float64(hundred/100)))
	return nil
}

// String returns the percentage in the form that UnmarshalText reads.
func (p Percent) String() string {
	return strconv.FormatFloat(float64(p)/float64(hundred/100), 'f', -1, 64) + "%"
}

// exceeded reports whether going from live to next loses more than the share p.
func (p Percent) exceeded(live, next int) bool {
	return (float64(live)-float64(next))*float64(hundred) > float64(live)*float64(p)
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

// ErrRollback means that the site to publish is older than the live one, or than one that readers
// have seen.
var ErrRollback = errors.New("the site is older than the one in the bucket")

// errFuture means that the site's time is in the future. Every later site would then count as a
// rollback.
var errFuture = errors.New("the site's time is in the future")

// refuseFuture returns an error if the site's time is after Options.NotAfter.
func (r *run) refuseFuture() error {
	if most := r.options.NotAfter; !most.IsZero() && r.asOf.After(most) {
		return fmt.Errorf("%w: as_of is %s, the latest allowed is %s; set the clock, or check where the snapshot's time comes from",
			errFuture, r.source.Root.AsOf, most.UTC().Format(time.RFC3339))
	}
	return nil
}

// refuseRollback returns an error if the site is older than the time live, unless
// Options.AllowRollback is set.
func (r *run) refuseRollback(live string) error {
	if r.options.AllowRollback || !r.isOlder(live) {
		return nil
	}
	return fmt.Errorf("%w: it is as of %s, and %s was published; check why the snapshot is older, or use --allow-rollback",
		ErrRollback, r.source.Root.AsOf, live)
}

// isOlder reports whether the site is older than the time live. It returns false if live is not a
// valid time.
func (r *run) isOlder(live string) bool {
	was, err := time.Parse(time.RFC3339, live)
	return err == nil && r.asOf.Before(was)
}

// guard compares the site with the live one, whose root is body. It returns an error if the site is
// older or would lose too much. A first publish has nothing to lose, even if it was cut off. A site
// that may be older may also have less.
func (r *run) guard(ctx context.Context, body []byte) error {
	most := hundred
	if r.options.MaxLoss != nil {
		most = *r.options.MaxLoss
	}
	const unknown = "cannot tell what the live site has (%w); if this site is complete, publish it with --max-loss 100%%"
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
		return fmt.Errorf(unknown, errors.New("the bucket has a manifest but no "+string(site.RootKey)))
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
