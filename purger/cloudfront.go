package purger

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/followpress/followpress/internal/secret"
)

// Limits that CloudFront documents: paths in progress at a time, without and with a * at the end.
const (
	cloudFrontEndpoint  = "https://cloudfront.amazonaws.com"
	cloudFrontVersion   = "2020-05-31"
	cloudFrontPaths     = 3_000
	cloudFrontWildcards = 15
	pollWait            = 5 * time.Second
	// maxInvalidation is much longer than the usual minute or two.
	maxInvalidation = 15 * time.Minute
)

// cloudFront creates invalidations and waits until each is completed, because edges serve old
// answers until then. One is in progress at a time, to stay within the limits. Only the signer
// of the AWS SDK is used: its CloudFront client would add megabytes for two requests.
type cloudFront struct {
	endpoint, id string
	credentials  func(context.Context) (Credentials, error)
	hide         *secret.Hider
}

func newCloudFront(rest string, o Options, hide *secret.Hider) (service, error) {
	if o.AWS == nil {
		return service{}, errors.New("no credentials")
	}
	endpoint, err := endpointOf(CloudFront, o, cloudFrontEndpoint)
	c := &cloudFront{endpoint, rest, o.AWS, hide}
	return service{name: string(CloudFront) + ":" + rest, inFlight: 1, cut: c.cut, cutTags: cutCloudFrontTags, request: c.request, judge: judgeCloudFront, finish: c.finish}, err
}

func (c *cloudFront) cut(p Purge) []batch {
	if p.All {
		return []batch{{all: true, items: []string{"/*"}}}
	}
	p = withoutOdd(manifestsAsOne(p.withoutEach()))
	wide := wildcards(p.Wide)
	if len(wide) > cloudFrontWildcards {
		// Too many: purge whole folders. A path with a * costs as much as one without.
		var folders []string
		for _, w := range p.Wide {
			folders = append(folders, endpointFolder(w))
		}
		p = Purge{Exact: p.Exact, Wide: folders}.compact()
		wide = wildcards(p.Wide)
	}
	if len(wide) > cloudFrontWildcards {
		return []batch{{all: true, items: []string{"/*"}}}
	}
	batches := cutAt(p.Exact, cloudFrontPaths)
	if len(batches) == 0 {
		batches = []batch{{}}
	}
	last := &batches[len(batches)-1]
	last.items = slices.Concat(last.items, wide)
	return batches
}

// cutCloudFrontTags makes an item of each tag: # and the tag, which costs as much as a path
// (docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/invalidation-specifying-tags.html).
func cutCloudFrontTags(tags []string) []batch {
	items := make([]string, len(tags))
	for i, tag := range tags {
		items[i] = "#" + tag
	}
	return cutAt(items, cloudFrontPaths)
}

// withoutOdd replaces paths with odd bytes by a wildcard before the first of these: CloudFront would refuse the whole
// request for one.
func withoutOdd(p Purge) Purge {
	exact, wide := make([]string, 0, len(p.Exact)), slices.Clone(p.Wide)
	for _, u := range p.Exact {
		if oddAt(u) < len(u) {
			wide = append(wide, u)
		} else {
			exact = append(exact, u)
		}
	}
	return Purge{Exact: exact, Wide: wide}
}

// wildcards returns paths that end in *, for any query. It omits those covered by another, because each costs.
func wildcards(wide []string) []string {
	var all []string
	for _, w := range wide {
		all = append(all, w[:oddAt(w)])
	}
	slices.Sort(all)
	n := 0
	for _, before := range all {
		if n == 0 || !strings.HasPrefix(before, strings.TrimSuffix(all[n-1], "*")) {
			all[n] = before + "*"
			n++
		}
	}
	return all[:n]
}

// manifestsAsOne purges all manifest shards with one path if more than one changed, because each
// path costs.
func manifestsAsOne(p Purge) Purge {
	isShard := func(u string) bool { return strings.HasPrefix(u, manifests) }
	first := slices.IndexFunc(p.Exact, isShard)
	if first < 0 || first == len(p.Exact)-1 || !isShard(p.Exact[first+1]) {
		return p
	}
	return Purge{Exact: p.Exact, Wide: append(slices.Clone(p.Wide), manifests)}.compact()
}

type invalidationBatch struct {
	XMLName         xml.Name `xml:"http://cloudfront.amazonaws.com/doc/2020-05-31/ InvalidationBatch"`
	CallerReference string
	Paths           struct {
		Items struct {
			Path []string
		}
		Quantity int
	}
}

type invalidation struct {
	ID     string `xml:"Id"`
	Status string
}

func (c *cloudFront) request(ctx context.Context, b batch) (*http.Request, error) {
	// The reference lets CloudFront recognize a retry.
	in := invalidationBatch{CallerReference: b.reference}
	in.Paths.Items.Path, in.Paths.Quantity = b.items, len(b.items)
	body, err := xml.Marshal(in)
	if err != nil {
		return nil, fmt.Errorf("encode the request: %w", err)
	}
	return c.signed(ctx, http.MethodPost, "", append([]byte(xml.Header), body...))
}

// signed returns a request about invalidations of the distribution. CloudFront is one
// service for all regions, which signs for us-east-1.
func (c *cloudFront) signed(ctx context.Context, method, id string, body []byte) (*http.Request, error) {
	to := c.endpoint + "/" + cloudFrontVersion + "/distribution/" + url.PathEscape(c.id) + "/invalidation"
	if id != "" {
		to += "/" + url.PathEscape(id)
	}
	r, err := http.NewRequestWithContext(ctx, method, to, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if len(body) > 0 {
		r.Header.Set("Content-Type", "text/xml")
	}
	got, err := c.credentials(ctx)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(body)
	err = v4.NewSigner().SignHTTP(ctx, aws.Credentials{AccessKeyID: got.AccessKeyID, SecretAccessKey: c.hide.Use(got.SecretAccessKey), SessionToken: c.hide.Use(got.SessionToken)},
		r, hex.EncodeToString(sum[:]), "cloudfront", "us-east-1", time.Now())
	return r, err
}

// judgeCloudFront handles throttling, for which CloudFront answers 400 instead of 429.
func judgeCloudFront(status int, body []byte) verdict {
	var said struct {
		Error struct{ Code string }
	}
	if status != http.StatusBadRequest || xml.Unmarshal(body, &said) != nil {
		return byStatus
	}
	switch said.Error.Code {
	case "TooManyInvalidationsInProgress", "Throttling", "ThrottlingException", "RequestLimitExceeded":
		return tryAgain
	}
	return byStatus
}

// finish polls until the invalidation is completed.
func (c *cloudFront) finish(ctx context.Context, client *client, answer []byte) error {
	until := time.Now().Add(maxInvalidation)
	for asked := false; ; asked = true {
		var now invalidation
		if err := xml.Unmarshal(answer, &now); err != nil || now.ID == "" {
			return fmt.Errorf("the answer contains no invalidation: %s", client.quote(answer))
		}
		if now.Status == "Completed" {
			return nil
		}
		if time.Now().After(until) {
			return fmt.Errorf("invalidation %s is %q after %s", now.ID, now.Status, maxInvalidation)
		}
		if !asked {
			client.tell(fmt.Sprintf("%s: waiting until invalidation %s is completed, which takes a minute or two", client.name, now.ID))
		}
		select {
		case <-time.After(client.pollWait):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		var err error
		answer, err = client.do(ctx, func(ctx context.Context) (*http.Request, error) {
			return c.signed(ctx, http.MethodGet, now.ID, nil)
		})
		if err != nil {
			return fmt.Errorf("invalidation %s: %w", now.ID, err)
		}
	}
}
