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

// DirectKept matches the URL paths that are keys as they stand and whose answers caches may
// keep. With live they are asked of live, which has nothing that is kept beside a site.
func (v nginxView) DirectKept() string {
	var kept []string
	for _, r := range v.Table.Direct() {
		if !r.Ranges && r.Caching != v.NoCache && (v.Live == nil || !r.Route.Kept()) {
			kept = append(kept, r.Direct)
		}
	}
	return strings.Join(kept, "|")
}

// ObjectLocations are the locations that answer with an object, and the variable that has
// its path in each.
func (v nginxView) ObjectLocations() map[string]string {
	return map[string]string{"direct": "$request_uri", "object": "$followpress_path"}
}

// ScriptLocations are the locations with the name of the function that answers.
func (v nginxView) ScriptLocations() []string {
	return []string{"own", "refused", "absent", "rejected", "unavailable", "purge"}
}

// LiveLocations are the locations that ask live and keep its answer, with the suffix of the upstream of each.
func (v nginxView) LiveLocations() map[string]string {
	return map[string]string{"live": "", "live-computed": "_computed"}
}

// LivePosts are the locations that send live a body, with the longest time that each waits.
func (v nginxView) LivePosts() map[string]string {
	return map[string]string{"live-post": "1s", "live-post-after": "12s"}
}

// CheckedLocations are the locations of objects that clients poll.
func (v nginxView) CheckedLocations() []string {
	if v.Live != nil {
		return []string{"checked", "report"}
	}
	return []string{"checked"}
}

// Failures lists the statuses that are an origin's own failure: from a bucket, those that
// neither carry an object nor say that it does not exist; from the fallback, those that no
// answer has. It has every status in use, including Cloudflare's 52x and 530.
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

// BucketOfTables is the bucket as nginx asks it for whole tables, to answer with parts of them.
func (v nginxView) BucketOfTables() *origin {
	bucket := *v.Bucket
	bucket.Ranges = true
	return &bucket
}

// LiveAs is live with the suffix of an upstream's name, the longest time between two reads, and what answers
// if it has failed.
func (v nginxView) LiveAs(suffix, read, instead string) *origin {
	live := *v.Live
	live.Name += suffix
	live.Origin = live.Scheme + "://" + live.Name
	live.Read, live.Instead = read, instead
	return &live
}
