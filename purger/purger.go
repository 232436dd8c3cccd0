package purger

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// DefaultPatience is how long a request is tried again.
const DefaultPatience = 2 * time.Minute

// Credentials of AWS.
type Credentials struct{ AccessKeyID, SecretAccessKey, SessionToken string }

// Options say how to reach the services. What a service does not need may be empty.
type Options struct {
	Sites           []string      // where the public reaches the site, like https://api.example.org
	Patience        time.Duration // how long a request is tried again; 0 means DefaultPatience
	AWS             func(context.Context) (Credentials, error)
	CloudflareToken string
	FastlyToken     string
	Endpoints       map[Kind]string // of the services' interfaces, where not the documented ones
	Log             *slog.Logger    // nil means none
	Tell            func(string)    // is given a line for a person before a long wait; may be nil

	firstBackoff time.Duration // 0 means the constant of that name
	pollWait     time.Duration // between two questions whether CloudFront is done; 0 means pollWait
}

// A Kind of service.
type Kind string

// The kinds.
const (
	CloudFront Kind = "cloudfront"
	Cloudflare Kind = "cloudflare"
	Fastly     Kind = "fastly"
	Varnish    Kind = "varnish"
	HTTP       Kind = "http"
)

// kinds make the service of what follows the kind and a colon.
var kinds = map[Kind]func(rest string, o Options) (service, error){
	CloudFront: newCloudFront, Cloudflare: newCloudflare, Fastly: newFastly, Varnish: newVarnish, HTTP: newHTTP,
}

// A batch is what one request asks a service to forget.
type batch struct {
	all       bool
	items     []string
	reference string // the same in all attempts, and never used before
}

// A service says how one is asked. Asking, and asking again, is the client's.
type service interface {
	name() string // as a flag has it, without anything secret
	// cut makes requests of a purge, none larger than the service documents.
	cut(p Purge) []batch
	request(ctx context.Context, b batch) (*http.Request, error)
	atOnce() int // requests in flight
}

// Some services need more than a status.
type (
	// A judge knows answers that mean something else than their status.
	judge interface {
		judge(status int, body []byte) verdict
	}
	// A finisher says in its answer whether, or when, it has done what it was asked.
	finisher interface {
		finish(ctx context.Context, c *client, answer []byte) error
	}
	// A loner is asked for the rest when it refuses a batch. All others are asked to
	// forget everything then, because that is wrong for nobody for long.
	loner interface{ eachAlone() }
)

// A Purger is a service that is asked.
type Purger struct {
	service service
	client  *client
}

// New makes the purger that a flag names: cloudfront:ID, cloudflare:ZONE,
// fastly:SERVICE, varnish:URL or http:TEMPLATE.
func New(flag string, o Options) (*Purger, error) {
	kind, rest, _ := strings.Cut(flag, ":")
	open := kinds[Kind(kind)]
	if open == nil || rest == "" {
		return nil, errors.New("use cloudfront:ID, cloudflare:ZONE, fastly:SERVICE, varnish:URL or http:URL-TEMPLATE")
	}
	if o.Patience == 0 {
		o.Patience = DefaultPatience
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Tell == nil {
		o.Tell = func(string) {}
	}
	o.Sites = slices.Clone(o.Sites)
	for i, text := range o.Sites {
		u, err := parseURL(text)
		if err != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
			return nil, errors.New("the URL of the site is not like https://HOST")
		}
		o.Sites[i] = u.Scheme + "://" + u.Host
	}
	s, err := open(rest, o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", kind, err)
	}
	secrets := []string{o.CloudflareToken, o.FastlyToken}
	if k := Kind(kind); k == Varnish || k == HTTP {
		secrets = append(secrets, secretsIn(rest)...)
	}
	return &Purger{s, newClient(s.name(), secrets, o)}, nil
}

// Name is the service as a flag has it, without anything secret.
func (p *Purger) Name() string { return p.service.name() }

// A Result says what a service was asked, or of a dry run would be.
type Result struct {
	Service    string  `json:"service"`
	Everything bool    `json:"everything"`
	Items      int     `json:"items"`    // paths, URLs or expressions
	Requests   int     `json:"requests"` // without those that were tried again
	Retries    int64   `json:"retries"`
	Nothing    int     `json:"nothing"` // requests that found nothing to forget, where the service says so
	Seconds    float64 `json:"seconds"`
	Error      string  `json:"error,omitempty"`

	Planned bool     `json:"planned"`         // of a dry run: nothing was asked
	First   []string `json:"first,omitempty"` // of a dry run: some of the items
}

// firstItems are enough to see what it is about.
const firstItems = 20

// Plan says what Purge would ask, and asks nothing.
func (p *Purger) Plan(what Purge) Result {
	r, batches := p.plan(what)
	r.Planned = true
	var shards []string // of the manifest say little: they come last
	for _, b := range batches {
		for _, item := range b.items {
			if strings.Contains(item, manifests) {
				shards = append(shards, item)
			} else {
				r.First = append(r.First, item)
			}
		}
	}
	r.First = append(r.First, shards...)
	r.First = slices.Clone(r.First[:min(len(r.First), firstItems)])
	return r
}

func (p *Purger) plan(what Purge) (Result, []batch) {
	r := Result{Service: p.service.name()}
	batches := p.service.cut(what)
	r.Requests = len(batches)
	for _, b := range batches {
		r.Items += len(b.items)
		r.Everything = r.Everything || b.all
	}
	return r, batches
}

// Purge asks the service, and waits until it has done so. Requests are independent of
// each other; the first that fails for good ends the purge. Where the service refuses
// what one says (400), it is asked to forget everything: one odd name must not keep
// the rest of the site stale.
func (p *Purger) Purge(ctx context.Context, what Purge) (Result, error) {
	begun := time.Now()
	r, batches := p.plan(what)
	err := p.sendAll(ctx, batches)
	if _, alone := p.service.(loner); isRefusal(err) && !alone && !r.Everything {
		p.client.log.Warn("purging everything, because a part was refused", "purge", r.Service, "error", err)
		everything := p.service.cut(Everything())
		r.Everything, r.Requests = true, r.Requests+len(everything)
		err = p.sendAll(ctx, everything)
	}
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	r.Retries, r.Nothing, r.Seconds = p.client.retries.Load(), int(p.client.empty.Load()), time.Since(begun).Seconds()
	if err == nil && r.Nothing > 0 && r.Nothing == r.Requests {
		p.client.log.Warn("the cache had nothing of all that it should forget: if it holds anything of the site, the template is wrong", "purge", r.Service, "requests", r.Requests)
	}
	if err != nil {
		err = fmt.Errorf("purge %s: %w", r.Service, err)
		r.Error = err.Error()
	}
	return r, err
}

func (p *Purger) sendAll(ctx context.Context, batches []batch) error {
	_, alone := p.service.(loner)
	refused := make([]error, len(batches))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(p.service.atOnce())
	for i, b := range batches {
		group.Go(func() error {
			if groupCtx.Err() != nil {
				return context.Cause(groupCtx)
			}
			err := p.send(groupCtx, b)
			if alone && isRefusal(err) {
				refused[i] = err
				return nil
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	refused = slices.DeleteFunc(refused, func(err error) bool { return err == nil })
	if len(refused) > 0 {
		return fmt.Errorf("%d of %d refused: %w", len(refused), len(batches), refused[0])
	}
	return nil
}

// isRefusal reports whether a server did not like what a request says.
func isRefusal(err error) bool {
	var no *statusError
	return errors.As(err, &no) && no.status == http.StatusBadRequest
}

func (p *Purger) send(ctx context.Context, b batch) error {
	b.reference = "followpress-" + rand.Text()
	verdicts, _ := p.service.(judge)
	answer, err := p.client.do(ctx, verdicts, func(ctx context.Context) (*http.Request, error) {
		return p.service.request(ctx, b)
	})
	if f, ok := p.service.(finisher); ok && err == nil {
		err = f.finish(ctx, p.client, answer)
	}
	return err
}

// String is the result for a person.
func (r Result) String() string {
	what := fmt.Sprintf("%d items", r.Items)
	if r.Everything {
		what = "everything"
	}
	switch {
	case r.Planned:
		return fmt.Sprintf("%s: %s to purge, in %d requests", r.Service, what, r.Requests)
	case r.Error != "":
		return fmt.Sprintf("%s: failed to purge %s", r.Service, what)
	}
	found := ""
	if r.Nothing > 0 {
		found = fmt.Sprintf(" (%d found nothing to forget)", r.Nothing)
	}
	return fmt.Sprintf("%s: %s, in %d requests%s; %d tried again (%s)", r.Service, what, r.Requests, found, r.Retries,
		time.Duration(r.Seconds*float64(time.Second)).Round(time.Millisecond))
}

// cutAt makes batches of at most n.
func cutAt(items []string, n int) []batch {
	var batches []batch
	for part := range slices.Chunk(items, n) {
		batches = append(batches, batch{items: part})
	}
	return batches
}

var errNotURL = errors.New("not a URL like https://HOST")

// parseURL reads a URL that must not hold credentials.
func parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Fragment != "" {
		return nil, errNotURL
	}
	if u.User != nil {
		return nil, errors.New("the URL has a user: it would end up in logs")
	}
	return u, nil
}
