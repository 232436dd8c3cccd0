package site

import (
	"slices"
	"strings"

	"github.com/followpress/followpress/site/routes"
)

// UserObjects returns the objects that every address of the graph has under APIEFP, and that UnknownKey has for other
// addresses. It omits SearchFollowing, which only names and users with a primary list have.
func UserObjects() []ListObject { return userObjects }

var userObjects = slices.DeleteFunc(Config{API: APIEFP}.objectsOf(subjectUser), func(o ListObject) bool { return o == SearchFollowing })

// ListObjects returns the objects that every list has.
func (c Config) ListObjects() []ListObject { return listObjects[c.EFP()] }

var listObjects = map[bool][]ListObject{
	false: Config{API: APISpec}.objectsOf(subjectList), true: Config{API: APIEFP}.objectsOf(subjectList),
}

// objectsOf returns the objects of lists or users, according to the table of routes.
func (c Config) objectsOf(subject string) (objects []ListObject) {
	for _, r := range c.Routes() {
		if r.Subject == subject && !r.Computed {
			objects = append(objects, r.object())
		}
	}
	return objects
}

// Summaries returns the keys of the objects that exist once and describe the whole graph.
func (c Config) Summaries() (keys []Key) {
	for _, r := range c.Routes() {
		if !r.Computed && !r.Fixed && !r.Kept() && r.ID != routes.Root && !strings.Contains(r.Path(c), "{") {
			keys = append(keys, Key(r.Path(c)[1:]))
		}
	}
	return keys
}
