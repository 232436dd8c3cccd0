package reproduce

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/shards"
	"github.com/followpress/followpress/storage/checked"
)

// mostNamed bounds the objects of a kind that are named.
const mostNamed = 5

// differences are what two sites differ in.
type differences struct {
	members []string         // of the root
	kinds   map[string]*kind // objects by the pattern of their route
	configs []site.Config    // of both sites: a limit may differ
}

// A kind has the objects of a route that differ.
type kind struct {
	count int
	first []site.Key
}

// compare compares the site that is live with the one that was made; nil if they are equal.
func compare(ctx context.Context, live *checked.Site, made *generator.Site) (*differences, error) {
	body, err := made.Get(ctx, site.RootKey)
	if err != nil {
		return nil, err
	}
	root, err := site.ParseRoot(body)
	if err != nil {
		return nil, err
	}
	is := live.Root()
	root.Config.Tags = is.Config.Tags
	root.HeaderRules = root.Config.HeaderRules()
	if body, err = root.Encode(); err != nil {
		return nil, err
	}
	if bytes.Equal(body, live.RootBody()) {
		return nil, nil
	}
	d := &differences{members: membersOf(is, &root), kinds: map[string]*kind{}, configs: []site.Config{is.Config, root.Config}}
	return d, d.objects(ctx, live, made, &root)
}

// membersOf lists the members in which two roots differ, by their names in JSON.
func membersOf(a, b *site.Root) (names []string) {
	x, y := reflect.ValueOf(*a), reflect.ValueOf(*b)
	for i := range x.NumField() {
		if !reflect.DeepEqual(x.Field(i).Interface(), y.Field(i).Interface()) {
			name, _, _ := strings.Cut(x.Type().Field(i).Tag.Get("json"), ",")
			names = append(names, name)
		}
	}
	return names
}

// objects compares what the manifests list.
func (d *differences) objects(ctx context.Context, live *checked.Site, made *generator.Site, root *site.Root) error {
	is := live.Root()
	ours, err := shards.Open(ctx, root, made.Get)
	if err != nil {
		return err
	}
	a := shards.NewSplit(is.ShardDigits, live.Shard)
	b := shards.NewSplit(root.ShardDigits, func(ctx context.Context, name string) ([]site.Entry, error) {
		s, err := ours.Shard(ctx, name)
		return s.Objects, err
	})
	for _, part := range site.HashPrefixes(max(is.ShardDigits, root.ShardDigits)) {
		theirs, err := a.Entries(ctx, part)
		if err != nil {
			return err
		}
		our, err := b.Entries(ctx, part)
		if err != nil {
			return err
		}
		listed := map[site.Key]site.Entry{}
		for _, e := range theirs {
			listed[e.Key] = e
		}
		for _, e := range our {
			if was, ok := listed[e.Key]; !ok || was != e {
				d.add(e.Key)
			}
			delete(listed, e.Key)
		}
		for key := range listed {
			d.add(key)
		}
	}
	return nil
}

// add adds an object that differs.
func (d *differences) add(key site.Key) {
	pattern := "other objects"
	for _, c := range d.configs {
		if route, ok := c.RouteOf(key); ok {
			pattern = route.Pattern
		}
	}
	k := d.kinds[pattern]
	if k == nil {
		k = &kind{}
		d.kinds[pattern] = k
	}
	k.count++
	at, _ := slices.BinarySearch(k.first, key)
	if k.first = slices.Insert(k.first, at, key); len(k.first) > mostNamed {
		k.first = k.first[:mostNamed]
	}
}

// String says what differs, the most frequent kinds first.
func (d *differences) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "the root differs in: %s\n", strings.Join(d.members, ", "))
	var patterns []string
	total := 0
	for pattern, k := range d.kinds {
		patterns = append(patterns, pattern)
		total += k.count
	}
	slices.SortFunc(patterns, func(x, y string) int {
		return cmp.Or(cmp.Compare(d.kinds[y].count, d.kinds[x].count), cmp.Compare(x, y))
	})
	fmt.Fprintf(&b, "%d objects differ\n", total)
	for _, pattern := range patterns {
		k := d.kinds[pattern]
		fmt.Fprintf(&b, "%10d %s:", k.count, pattern)
		for _, key := range k.first {
			fmt.Fprintf(&b, " %s", printable(key))
		}
		if k.count > len(k.first) {
			b.WriteString(" …")
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// printable is a key as a path, so that no key steers a terminal.
func printable(key site.Key) string { return key.URLPath() }
