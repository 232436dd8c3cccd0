package purger

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/routes"
	"github.com/followpress/followpress/site/tags"
)

// Tags returns the tags that purge the answers about changed objects, or nil if the site has no tags or needs more than
// most. The tags cover all that URLs covers, and more: the tag of a list or user covers all its objects. If a group has
// too many lists or users, the tag of the whole group replaces theirs, beginning with the largest group.
//
// The caller makes sure that the configuration did not change: otherwise caches may hold answers without tags.
func Tags(c site.Config, keys []site.Key, most int) []string {
	if c.Tags == "" {
		return nil
	}
	t := tagging{config: c, groups: map[string]bool{tags.Absent: true, tags.Group(site.RouteBy(routes.Root)): true}, subjects: map[string]map[string]bool{}}
	for _, key := range keys {
		route, ok := c.RouteOf(key)
		if !ok || route.ID == routes.Error {
			return nil
		}
		t.add(route, key)
	}
	return t.within(most)
}

// A tagging collects the tags of changed answers.
type tagging struct {
	config   site.Config
	groups   map[string]bool            // groups with purged tags
	subjects map[string]map[string]bool // by group: the subjects with changed objects
}

// add adds an object and the answers computed from it, as Purge.add does.
func (t *tagging) add(route *site.Route, key site.Key) {
	t.addSubject(route, tags.Subject(t.config, route, key))
	if !t.config.EFP() {
		users := tags.Group(site.RouteBy(routes.UserSearch))
		switch route.ID {
		case routes.SearchShard, routes.UserBucket:
			t.groups[users] = true
		}
		return
	}
	own := variables(t.config, route, key)
	switch {
	case route.ID == routes.UserBucket && t.config.Names == site.NamesLookup:
		t.groups[tags.Names] = true
	case route.ID == routes.Unknown:
		of, ok := t.config.RouteOf(t.config.UserObjectKey(site.UnknownAddress, site.ListObject(own["{object}"])))
		if !ok {
			return
		}
		t.groups[tags.Group(of)], route, own = true, of, nil
	}
	for _, answers := range t.config.Routes() {
		of := sourcesOf(answers)
		switch {
		case answers.Post: // no cache keeps them
		case slices.Contains(of.Any, route.ID):
			t.groups[tags.Group(answers)] = true
		case slices.Contains(of.Own, route.ID):
			t.addAnswers(answers, own)
		}
	}
}

// addAnswers adds a route's answers about a list or user, or all its answers if neither is known.
func (t *tagging) addAnswers(route *site.Route, own map[string]string) {
	path := route.Path(t.config)
	for _, variable := range []string{"{token_id}", "{user}"} {
		if value, ok := own[variable]; ok && strings.Contains(path, variable) {
			t.addSubject(route, tags.Subject(t.config, route, site.Key(strings.Replace(path, variable, value, 1)[1:])))
			return
		}
	}
	t.groups[tags.Group(route)] = true
}

func (t *tagging) addSubject(route *site.Route, subject string) {
	group := tags.Group(route)
	if subject == "" {
		t.groups[group] = true
		return
	}
	if t.subjects[group] == nil {
		t.subjects[group] = map[string]bool{}
	}
	t.subjects[group][subject] = true
	if t.config.Names == site.NamesLookup && route.Subject == "user" {
		t.groups[tags.Names] = true // the same under a name
	}
}

// within returns at most that many tags, or nil.
func (t *tagging) within(most int) []string {
	for {
		all := maps.Clone(t.groups)
		largest := ""
		for _, group := range slices.Sorted(maps.Keys(t.subjects)) {
			if t.groups[group] {
				continue
			}
			maps.Copy(all, t.subjects[group])
			if largest == "" || len(t.subjects[group]) > len(t.subjects[largest]) {
				largest = group
			}
		}
		if len(all) <= most {
			return slices.SortedFunc(maps.Keys(all), func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) })
		}
		if largest == "" {
			return nil
		}
		t.groups[largest] = true
	}
}

// batches divides a purge into batches: of tags where these avoid purging everything, or need fewer requests, or the same
// number with fewer items. It uses URLs if there are no tags, or none for this service.
func (s *service) batches(p Purge) []batch {
	byURL := s.cut(p)
	if len(p.Tags) == 0 || s.cutTags == nil || !slices.Contains(p.Tagged, s.kind) {
		return byURL
	}
	byTag := s.cutTags(p.Tags)
	for i := range byTag {
		byTag[i].tags = true
	}
	everything := slices.ContainsFunc(byURL, func(b batch) bool { return b.all })
	if everything || cmp.Or(cmp.Compare(len(byTag), len(byURL)), cmp.Compare(itemsOf(byTag), itemsOf(byURL))) < 0 {
		return byTag
	}
	return byURL
}

func itemsOf(batches []batch) (n int) {
	for _, b := range batches {
		n += len(b.items)
	}
	return n
}

// Tagged returns the services that the site's objects have tags for.
func Tagged(c site.Config) (kinds []Kind) {
	for _, kind := range []Kind{CloudFront, Cloudflare, Fastly} {
		if tags.For(c, string(kind)) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}
