// Package tags names the tags of answers, by which caches of some services forget them: the origin names the
// tags of an answer in a header, and a purge names a tag. Every answer has the tag of its group, and
// mostly that of its subject too, so a purge names few tags however many answers changed.
//
// All tags begin with "fp-", because a zone or a service may have tags of others. They are in lower
// case, since CloudFront and Cloudflare do not tell cases apart. The functions are pure.
//
// The API may change in any release.
package tags

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/routes"
)

const prefix = "fp-"

// Tags that are not of a subject or of one route.
const (
	// Boards is the group of all that shows the order of the whole graph.
	Boards = prefix + "boards"
	// Ranks is the group of all that shows the ranks of one account.
	Ranks = prefix + "ranks"
	// Names has the answers for users under names that are looked up (site.NamesLookup): which account a
	// name means may change.
	Names = prefix + "names"
	// Absent is for answers of a bucket, that an object does not exist. A bucket has no metadata for
	// those, so what is in front of it gives them the tag.
	Absent = prefix + "absent"
)

// The metadata that holds the tags of an object. An S3-compatible server sends the metadata NAME as the
// header x-amz-meta-NAME. The values are separated by commas in CacheTag, by spaces in SurrogateKey.
//
// CloudFront takes any header with commas, whose name its distribution configures
// (docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/invalidation-by-tags.html): up to 50 tags of 256
// characters. Cloudflare takes Cache-Tag
// (developers.cloudflare.com/cache/how-to/purge-cache/purge-by-tags/): up to 16 KiB and 1,000 tags. Fastly takes
// Surrogate-Key (www.fastly.com/documentation/reference/http/http-headers/Surrogate-Key/): up to 16,384 bytes, and
// 1,024 for each. S3 keeps up to 2 KB of metadata. An object has at most Most.
const (
	CacheTag     = "cache-tag"
	SurrogateKey = "surrogate-key"
	// Header begins the header that has a metadata.
	Header = "x-amz-meta-"

	Most      = 2
	MostBytes = 64
)

// metadataOf names the metadata for each service that site.Config.Tags may have.
var metadataOf = map[string]string{"cloudfront": CacheTag, "cloudflare": CacheTag, "fastly": SurrogateKey}

// Normal returns the names of services as site.Config.Tags has them: each once, in order, with spaces
// between.
func Normal(services []string) (string, error) {
	services = slices.Compact(slices.Sorted(slices.Values(services)))
	for _, s := range services {
		if metadataOf[s] == "" {
			return "", fmt.Errorf("tags %q: use cloudfront, cloudflare or fastly", s)
		}
	}
	return strings.Join(services, " "), nil
}

// For reports whether the site's objects have tags for a service.
func For(c site.Config, service string) bool {
	return slices.Contains(strings.Fields(c.Tags), service)
}

// Metadata returns the metadata that the object with a key has, by name. It is nil if the site has no tags.
func Metadata(c site.Config, key site.Key) map[string]string {
	if c.Tags == "" {
		return nil
	}
	route, ok := c.RouteOf(key)
	if !ok {
		return nil
	}
	return metadata(c, Of(c, route, key))
}

func metadata(c site.Config, tags []string) map[string]string {
	all := map[string]string{}
	for _, s := range strings.Fields(c.Tags) {
		separator := ","
		if metadataOf[s] == SurrogateKey {
			separator = " "
		}
		all[metadataOf[s]] = strings.Join(tags, separator)
	}
	return all
}

// Headers returns the headers of an answer to a request, as a bucket sends them with an object. They are none if
// the site has no tags, or no site changes the answer.
func Headers(c site.Config, r site.Resolution) []site.Header {
	if c.Tags == "" || r.Route == nil || r.Key == "" {
		return nil
	}
	var headers []site.Header
	for name, value := range metadata(c, Of(c, r.Route, r.Key)) {
		headers = append(headers, site.Header{Name: Header + name, Value: value})
	}
	return headers
}

// Of returns the tags of what answers on a route, by its key: that of its group, and before it that of its
// subject if there is one.
func Of(c site.Config, route *site.Route, key site.Key) []string {
	subject, group := Subject(c, route, key), Group(route)
	if subject == "" {
		return []string{group}
	}
	return []string{subject, group}
}

// Subject returns the tag of what a key names: its list, its user, or the object itself if there are many like it
// that change apart. It is "" for objects that only change with their group.
func Subject(c site.Config, route *site.Route, key site.Key) string {
	pattern := route.Path(c)
	if Group(route) == Boards || route.ID == routes.Manifest || !strings.Contains(pattern, "{") {
		return ""
	}
	segments := strings.Split("/"+string(key), "/")
	for i, variable := range strings.Split(pattern, "/") {
		if i >= len(segments) {
			break
		}
		switch variable {
		case "{token_id}":
			return prefix + "list-" + short(segments[i])
		case "{user}", "{address}":
			if c.Names == site.NamesLookup && !isAddress(segments[i]) {
				return Names
			}
			return prefix + "user-" + short(segments[i])
		}
	}
	return prefix + "object-" + hashed(string(key))
}

func isAddress(text string) bool {
	_, err := site.ParseAddress(text)
	return err == nil
}

// longestPlain is the length of an address, which tags show as it is, as they do shorter numbers and names.
const longestPlain = 42

// short is a text itself, or its hash if the text is long or has bytes that some service does not take.
func short(text string) string {
	plain := !strings.ContainsFunc(text, func(r rune) bool {
		return ('a' > r || r > 'z') && ('0' > r || r > '9') && r != '.' && r != '-'
	})
	if plain && len(text) <= longestPlain {
		return text
	}
	return hashed(text)
}

// hashed has 64 bits of a hash. If two texts had the same, a purge of one would purge the other too.
func hashed(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "-" + hex.EncodeToString(sum[:8])
}

// Group returns the tag that all answers of a route have, and those of routes that change with it.
func Group(r *site.Route) string { return groups[r.ID] }

var groups = func() []string {
	all := site.AllFeatures().Routes()
	tags := make([]string, len(all))
	for i, r := range all {
		switch {
		case r.CacheControl == site.RouteBy(routes.Leaderboard).CacheControl: // they change together, so the table has them cached alike
			tags[i] = Boards
		case r.ID == routes.Details || r.ID == routes.UserDetails:
			tags[i] = Ranks
		default:
			var words []string
			for s := range strings.SplitSeq(r.Pattern, "/") {
				if !strings.Contains(s, "{") {
					words = append(words, strings.ToLower(strings.Trim(s, "_")))
				}
			}
			tags[i] = prefix + strings.Join(words, "-")
		}
	}
	return tags
}()
