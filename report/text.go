package report

import (
	"fmt"
	"strings"
	"time"
)

// String formats the report in a few lines.
func (r *Report) String() string {
	var b strings.Builder
	took := r.Elapsed.Round(time.Millisecond)
	fmt.Fprintf(&b, "from      %s, as of %s\nto        %s, as of %s\n", r.From.Site, r.From.AsOf, r.To.Site, r.To.AsOf)
	if r.Equal {
		fmt.Fprintf(&b, "the sites are equal (%s)\n", took)
		return b.String()
	}
	fmt.Fprintf(&b, "lists     %10d new, %d gone, %d changed\n", r.Lists.New, r.Lists.Gone, r.Lists.Changed)
	fmt.Fprintf(&b, "follows   %10d, and %d unfollows\n", r.Follows.Follows, r.Follows.Unfollows)
	fmt.Fprintf(&b, "profiles  %10d changed\n", r.Profiles.Changed)
	put, removed := r.objects()
	fmt.Fprintf(&b, "objects   %10d new or changed, %s; %d gone\n", put.Objects, size(put.Bytes), removed.Objects)
	fmt.Fprintf(&b, "read      %10d objects and %d shards of the manifests, %s (%s)\n", r.Read.Objects, r.Read.Shards, size(r.Read.Bytes), took)
	return b.String()
}
