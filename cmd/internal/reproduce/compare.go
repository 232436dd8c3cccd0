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

// mostNamed caps the objects named per kind.
const mostNamed = 5

// differences between two sites.
type differences struct {
	members []string         // members of the root
	kinds   map[string]*kind // objects by the pattern of their route
	configs []site.Config    // both sites' configurations: a limit may differ
}

// A kind counts the differing objects of a route.
type kind struct {
	count int
	first []site.Key
}

// compare compares the live site with the rebuilt one; nil if equal.
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

// membersOf returns the JSON names of the members in which two roots differ.
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

// objects compares the manifests' entries.
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

// add records a differing object.
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

// String lists the differences, most frequent kinds first.
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

// printable returns a key as an escaped path, safe for terminals.
func printable(key site.Key) string { return key.URLPath() }
