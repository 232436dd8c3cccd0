// Package tags names cache tags. The origin sends a response's tags in a header, and a purge names a tag. Every
// response has the tag of its group, and most have that of their subject, so that a purge needs few tags however many
// responses changed.
//
// All tags begin with "fp-", because a zone or service may have other tags. They are in lower case, because
// CloudFront and Cloudflare ignore case. The functions are pure.
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

// Tags that belong to neither a subject nor a single route.
const (
	// Boards is the group of everything that shows the order of the whole graph.
	Boards = prefix + "boards"
	// Ranks is the group of everything that shows the ranks of one account.
	Ranks = prefix + "ranks"
	// Names is the tag of answers for users under names that are looked up (site.NamesLookup), because the account of
	// a name may change.
	Names = prefix + "names"
	// Absent is the tag of a bucket's responses for missing objects. These have no metadata, so the cache in front of
	// the bucket adds the tag.
	Absent = prefix + "absent"
)

// The metadata with an object's tags. An S3-compatible server sends metadata NAME as the header x-amz-meta-NAME.
// CacheTag is separated by commas, SurrogateKey by spaces.
//
// CloudFront reads any configured header with commas
// (docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/invalidation-by-tags.html): up to 50 tags of 256
// characters. Cloudflare reads Cache-Tag (developers.cloudflare.com/cache/how-to/purge-cache/purge-by-tags/): up to
// 16 KiB and 1,000 tags. Fastly reads Surrogate-Key
// (www.fastly.com/documentation/reference/http/http-headers/Surrogate-Key/): up to 16,384 bytes, and 1,024 per tag.
// S3 stores up to 2 KB of metadata. An object has at most Most tags.
const (
	CacheTag     = "cache-tag"
	SurrogateKey = "surrogate-key"
	// Header is the prefix of a header with metadata.
	Header = "x-amz-meta-"

	Most = 2
)

// metadataOf maps each service in site.Config.Tags to its metadata.
var metadataOf = map[string]string{"cloudfront": CacheTag, "cloudflare": CacheTag, "fastly": SurrogateKey}

// Normal returns services in the form of site.Config.Tags: unique, sorted, and separated by spaces.
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

// Metadata returns the metadata of an object by name, or nil if the site has no tags.
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

// Headers returns the tag headers of a response, as a bucket sends them with an object. It returns nil if the site
// has no tags, or if the response is the same for all sites.
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

// Of returns the tags of a response on a route, given its key: that of its subject, if any, and that of its group.
func Of(c site.Config, route *site.Route, key site.Key) []string {
	subject, group := Subject(c, route, key), Group(route)
	if subject == "" {
		return []string{group}
	}
	return []string{subject, group}
}

// Subject returns the tag of the subject of a key: its list, its user, or the object itself if there are many similar
// ones that change independently. It returns "" for objects that change only with their group.
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

// longestPlain is the maximum length of a plain subject in a tag: that of an address.
const longestPlain = 42

// short returns the text itself, or its hash if it is long or has bytes that some service rejects.
func short(text string) string {
	plain := !strings.ContainsFunc(text, func(r rune) bool {
		return ('a' > r || r > 'z') && ('0' > r || r > '9') && r != '.' && r != '-'
	})
	if plain && len(text) <= longestPlain {
		return text
	}
	return hashed(text)
}

// hashed returns 64 bits of a hash. In case of a collision, a purge of one text also purges the other.
func hashed(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "-" + hex.EncodeToString(sum[:8])
}

// Group returns the tag shared by all responses of a route, and of routes that change together with it.
func Group(r *site.Route) string { return groups[r.ID] }

var groups = func() []string {
	all := site.AllFeatures().Routes()
	tags := make([]string, len(all))
	for i, r := range all {
		switch {
		case r.CacheControl == site.RouteBy(routes.Leaderboard).CacheControl: // they change together, and the table gives them the same Cache-Control
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
