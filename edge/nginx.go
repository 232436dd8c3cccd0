package edge

import (
	"strings"
)

// Nginx is nginx 1.22 or later with the njs module.
const Nginx Kind = "nginx"

func init() {
	definitions[Nginx] = definition{
		outputs: [][2]string{{"nginx.conf", "followpress.conf"}, {"nginx.js", "followpress.js"}},
		parts:   []string{"resolve.js"},
		view: func(v *view) (any, error) {
			address, err := v.Listen.listenAddress()
			return nginxView{v, address}, err
		},
	}
}

type nginxView struct {
	*view
	ListenAddress string
}

// DirectKept matches URL paths that equal keys and have cacheable answers. With live it omits the
// objects next to a site, which live does not have.
func (v nginxView) DirectKept() string {
	var kept []string
	for _, r := range v.Table.Direct() {
		if !r.Ranges && r.Caching != v.NoCache && (v.Live == nil || !r.Route.Kept()) {
			kept = append(kept, r.Direct)
		}
	}
	return strings.Join(kept, "|")
}

// ObjectLocations returns the locations that answer with an object, each with the variable of its path.
func (v nginxView) ObjectLocations() map[string]string {
	return map[string]string{"direct": "$request_uri", "object": "$followpress_path"}
}

// ScriptLocations returns the locations named after the functions that answer.
func (v nginxView) ScriptLocations() []string {
	return []string{"own", "refused", "absent", "rejected", "unavailable", "purge"}
}

// LiveLocations returns the locations that cache answers of live, each with the suffix of its upstream.
func (v nginxView) LiveLocations() map[string]string {
	return map[string]string{"live": "", "live-computed": "_computed"}
}

// LivePosts returns the locations that send a body to live, each with its timeout.
func (v nginxView) LivePosts() map[string]string {
	return map[string]string{"live-post": "1s", "live-post-after": "12s"}
}

// CheckedLocations returns the locations of objects that clients poll.
func (v nginxView) CheckedLocations() []string {
	if v.Live != nil {
		return []string{"checked", "report"}
	}
	return []string{"checked"}
}

// Failures lists the statuses that mean a failure of the origin. For a bucket, they are all that
// neither carry an object nor mean that it is missing; for the fallback, all that it never sends.
// 52x and 530 are Cloudflare's.
func (o *origin) Failures() string {
	const always = "300 301 303 305 307 308 401 402 406 407 408 409 410 411 414 415 416 417 418 421 422 423 424 425 426 428 431 451 " +
		"500 501 502 503 504 505 506 507 508 510 511 520 521 522 523 524 525 526 527 530"
	if o.Ranges {
		return "302 405 429 " + strings.Replace(always, " 416", "", 1)
	}
	if o.ShortName == "bucket" {
		return "302 405 429 " + always
	}
	return "403 " + always
}

// BucketOfTables returns the bucket as an origin of whole tables, of which nginx answers parts.
func (v nginxView) BucketOfTables() *origin {
	bucket := *v.Bucket
	bucket.Ranges = true
	return &bucket
}

// LiveAs returns live with a suffix of the upstream's name, a read timeout, and the location that answers if live fails.
func (v nginxView) LiveAs(suffix, read, instead string) *origin {
	live := *v.Live
	live.Name += suffix
	live.Origin = live.Scheme + "://" + live.Name
	live.Read, live.Instead = read, instead
	return &live
}
