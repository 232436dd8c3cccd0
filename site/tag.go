package site

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/followpress/followpress/site/routes"
)

// Caches of some services forget answers by tags: the origin names the tags of an answer in a header, and
// a purge names a tag. Every answer has the tag of its group, and mostly that of its subject too, so a
// purge names few tags however many answers changed.
//
// All tags begin with tagPrefix, because a zone or a service may have tags of others. They are in lower
// case, since CloudFront and Cloudflare do not tell cases apart, and have at most MaxTagBytes.
const (
	tagPrefix = "fp-"
	// BoardsTag is the group of all that shows the order of the whole graph.
	BoardsTag = tagPrefix + "boards"
	// RanksTag is the group of all that shows the ranks of one account.
	RanksTag = tagPrefix + "ranks"
	// NamesTag has the answers for users under names that are looked up (NamesLookup): which account a
	// name means may change.
	NamesTag = tagPrefix + "names"
	// AbsentTag is for answers of a bucket, that an object does not exist. A bucket has no metadata for
	// those, so what is in front of it gives them the tag.
	AbsentTag = tagPrefix + "absent"
)

// The metadata that holds the tags of an object. An S3-compatible server sends the metadata NAME as the
// header x-amz-meta-NAME. The values are separated by commas in CacheTag, by spaces in SurrogateKey.
//
// CloudFront takes any header with commas, whose name its distribution configures
// (docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/invalidation-by-tags.html): up to 50 tags of 256
// characters. Cloudflare takes Cache-Tag
// (developers.cloudflare.com/cache/how-to/purge-cache/purge-by-tags/): up to 16 KiB and 1,000 tags. Fastly takes
// Surrogate-Key (www.fastly.com/documentation/reference/http/http-headers/Surrogate-Key/): up to 16,384 bytes, and
// 1,024 for each. S3 keeps up to 2 KB of metadata. An object has at most MaxTags.
const (
	CacheTag     = "cache-tag"
	SurrogateKey = "surrogate-key"
	// MetadataHeader begins the header that has a metadata, in its canonical form.
	MetadataHeader = "X-Amz-Meta-"

	MaxTags     = 2
	MaxTagBytes = 64
)

// tagMetadata names the metadata for each service that Config.Tags may have.
var tagMetadata = map[string]string{"cloudfront": CacheTag, "cloudflare": CacheTag, "fastly": SurrogateKey}

// NormalTags returns the names of services as Config.Tags has them: each once, in order, with spaces
// between.
func NormalTags(services []string) (string, error) {
	services = slices.Compact(slices.Sorted(slices.Values(services)))
	for _, s := range services {
		if tagMetadata[s] == "" {
			return "", fmt.Errorf("tags %q: use cloudfront, cloudflare or fastly", s)
		}
	}
	return strings.Join(services, " "), nil
}

// HasTagsFor reports whether the site's objects have tags for a service.
func (c Config) HasTagsFor(service string) bool {
	return slices.Contains(strings.Fields(c.Tags), service)
}

// TagMetadata returns the metadata that the object with a key has, by name. It is nil if the site has no tags.
func (c Config) TagMetadata(key Key) map[string]string {
	if c.Tags == "" {
		return nil
	}
	route, ok := c.RouteOf(key)
	if !ok {
		return nil
	}
	return c.metadata(c.TagsOf(route, key))
}

func (c Config) metadata(tags []string) map[string]string {
	all := map[string]string{}
	for _, s := range strings.Fields(c.Tags) {
		separator := ","
		if tagMetadata[s] == SurrogateKey {
			separator = " "
		}
		all[tagMetadata[s]] = strings.Join(tags, separator)
	}
	return all
}

// TagHeaders returns the headers of an answer to a request, as a bucket sends them with an object. They are none if
// the site has no tags, or no site changes the answer.
func (c Config) TagHeaders(r Resolution) []Header {
	if c.Tags == "" || r.Route == nil || r.Key == "" {
		return nil
	}
	var headers []Header
	for name, value := range c.metadata(c.TagsOf(r.Route, r.Key)) {
		headers = append(headers, Header{MetadataHeader + name, value})
	}
	return headers
}

// TagsOf returns the tags of what answers on a route, by its key: that of its group, and before it that of its
// subject if there is one.
func (c Config) TagsOf(route *Route, key Key) []string {
	subject, group := c.SubjectTag(route, key), route.GroupTag()
	if subject == "" {
		return []string{group}
	}
	return []string{subject, group}
}

// SubjectTag returns the tag of what a key names: its list, its user, or the object itself if there are many like it
// that change apart. It is "" for objects that only change with their group.
func (c Config) SubjectTag(route *Route, key Key) string {
	group := route.GroupTag()
	if group == BoardsTag || route.ID == routes.Manifest || !strings.Contains(strings.Join(route.segments, ""), "{") {
		return ""
	}
	path := string(key)
	if route.underAPI {
		path = strings.TrimPrefix(path, c.BasePath+"/")
	}
	segments := strings.Split(path, "/")
	for i, variable := range route.segments {
		if i >= len(segments) {
			break
		}
		switch variable {
		case "{token_id}":
			return tagPrefix + "list-" + short(segments[i])
		case "{user}", "{address}":
			if c.Names == NamesLookup && !isAddressKey(segments[i]) {
				return NamesTag
			}
			return tagPrefix + "user-" + short(segments[i])
		}
	}
	return tagPrefix + "object-" + hashed(string(key))
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

// GroupTag returns the tag that all answers of a route have, and those of routes that change with it.
func (r *Route) GroupTag() string { return groupTags[r.ID] }

var groupTags = func() []string {
	tags := make([]string, len(allRoutes))
	for i, r := range allRoutes {
		switch {
		case r.CacheControl == cacheBoard: // they change together, so the table has them cached alike
			tags[i] = BoardsTag
		case r.ID == routes.Details || r.ID == routes.UserDetails:
			tags[i] = RanksTag
		default:
			var words []string
			for _, s := range r.segments {
				if !strings.Contains(s, "{") {
					words = append(words, strings.ToLower(strings.Trim(s, "_")))
				}
			}
			tags[i] = tagPrefix + strings.Join(words, "-")
		}
	}
	return tags
}()
