package purger

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/followpress/followpress/internal/plain"
	"github.com/followpress/followpress/internal/secret"
)

// DefaultPatience is the default of Options.Patience.
const DefaultPatience = 2 * time.Minute

// Credentials are those of AWS. SessionToken may be empty.
type Credentials struct {
	AccessKeyID                   string
	SecretAccessKey, SessionToken secret.Text
}

// Options configure the access to services. A service may not need all fields.
type Options struct {
	Sites           []string                                   // public URLs of the site, like https://api.example.org
	Patience        time.Duration                              // give up on a request this long after its first failure; 0 means DefaultPatience
	AWS             func(context.Context) (Credentials, error) // for CloudFront; called for each request
	CloudflareToken secret.Text
	FastlyToken     secret.Text
	Endpoints       map[Kind]string // base URLs of the services' APIs, instead of the documented ones
	Log             *slog.Logger    // nil means none
	Tell            func(string)    // is called with a line for a person before a long wait; nil means none

	firstBackoff time.Duration // 0 means the constant of that name
	pollWait     time.Duration // interval of polling CloudFront; 0 means the constant of that name
}

// A Kind is a kind of service, as it begins a flag.
type Kind string

// The kinds of services.
const (
	CloudFront Kind = "cloudfront"
	Cloudflare Kind = "cloudflare"
	Fastly     Kind = "fastly"
	HTTP       Kind = "http"
)

// kinds are the services that a flag, KIND:OPERAND, can name. open reads credentials by Use of the hider, so that they
// appear in no message. The operand is hidden too, unless it is in the name of the service.
var kinds = map[Kind]struct {
	operand string
	open    func(operand string, o Options, hide *secret.Hider) (service, error)
}{
	CloudFront: {"ID", newCloudFront}, Cloudflare: {"ZONE", newCloudflare}, Fastly: {"SERVICE", newFastly}, HTTP: {"URL-TEMPLATE", newHTTP},
}

// forms lists the forms of a flag.
func forms() string {
	var all []string
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		all = append(all, string(kind)+":"+kinds[kind].operand)
	}
	return "use " + strings.Join(all, ", ")
}

// safeKind reports whether an unknown kind may be printed: anything but a short word of lower-case letters may be a pasted
// token.
func safeKind(kind string) bool {
	return kind != "" && len(kind) <= 16 && strings.Trim(kind, "abcdefghijklmnopqrstuvwxyz") == ""
}

// A batch holds the items of one purge request.
type batch struct {
	all       bool     // everything
	items     []string // paths, URLs, expressions or tags
	tags      bool     // whether items are tags
	reference string   // unique, and the same in all attempts
}

// A service makes the requests to one cache. The client sends and retries them.
type service struct {
	kind     Kind
	name     string // as in a flag, without secrets
	inFlight int    // limit of requests in flight
	// independent means that a refused batch does not affect the others. Without it, a refusal purges everything.
	independent bool

	cut     func(p Purge) []batch       // divides a purge into batches within the documented limits
	cutTags func(tags []string) []batch // the same for tags; nil if the service knows none
	request func(ctx context.Context, b batch) (*http.Request, error)
	// judge reads answers whose meaning differs from their status; may be nil
	judge func(status int, body []byte) verdict
	// finish waits until the purge is complete; nil if the status reports completion
	finish func(ctx context.Context, c *client, answer []byte) error
}

// A Purger purges one service. Purge may be called again, but not concurrently.
type Purger struct {
	service service
	client  *client
	hide    *secret.Hider
}

// New returns the purger that a flag names: cloudfront:ID, cloudflare:ZONE, fastly:SERVICE
// or http:TEMPLATE. It returns an error for an invalid flag or missing credentials,
// without secrets in its text, and sends no request.
func New(flag string, o Options) (*Purger, error) {
	kind, rest, _ := strings.Cut(flag, ":")
	known, ok := kinds[Kind(kind)]
	switch {
	case strings.HasPrefix(rest, "//"):
		return nil, errors.New("a URL alone names no service: put http: before it, http:URL-TEMPLATE")
	case !ok && safeKind(kind):
		return nil, fmt.Errorf("unknown service %q: %s", kind, forms())
	case !ok:
		return nil, errors.New(forms())
	case rest == "":
		return nil, fmt.Errorf("%q lacks the part after the service: use %s:%s", flag, kind, known.operand)
	}
	hide := &secret.Hider{}
	o.Patience = cmp.Or(o.Patience, DefaultPatience)
	o.Log = hide.Logger(cmp.Or(o.Log, slog.New(slog.DiscardHandler)))
	tell := o.Tell
	o.Tell = func(line string) {
		if tell != nil {
			tell(plain.Line(hide.Replace(line)))
		}
	}
	o.Sites = slices.Clone(o.Sites)
	for i, text := range o.Sites {
		u, err := parseURL(text)
		if err != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
			return nil, errors.New("the URL of the site is not like https://HOST")
		}
		o.Sites[i] = u.Scheme + "://" + u.Host
	}
	hide.UseURL(o.Endpoints[Kind(kind)])
	s, err := known.open(rest, o, hide)
	if !strings.Contains(s.name, rest) {
		hide.UseURL(rest)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", kind, err)
	}
	s.kind = Kind(kind)
	return &Purger{s, newClient(s, hide, o), hide}, nil
}

// Name returns the service as written in a flag, without secrets.
func (p *Purger) Name() string { return p.service.name }

// A Result describes a purge or a dry run.
type Result struct {
	Service    string  `json:"service"`
	Everything bool    `json:"everything"`
	Tags       bool    `json:"tags,omitempty"` // whether the items are tags
	Items      int     `json:"items"`          // paths, URLs, expressions or tags
	Requests   int     `json:"requests"`       // without retries
	Retries    int64   `json:"retries"`
	Nothing    int     `json:"nothing"` // requests that found nothing to purge, if the service reports that
	Seconds    float64 `json:"seconds"`
	Error      string  `json:"error,omitempty"`

	Planned bool     `json:"planned"`         // set by a dry run
	First   []string `json:"first,omitempty"` // the first 20 items of a dry run, manifest shards last
}

// maxPlanItems bounds Result.First.
const maxPlanItems = 20

// Plan returns what Purge would do, and sends no request.
func (p *Purger) Plan(purge Purge) Result {
	r, batches := p.plan(purge)
	r.Planned = true
	var shards []string // manifest shards; they are less telling than the others
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
	r.First = slices.Clone(r.First[:min(len(r.First), maxPlanItems)])
	return r
}

func (p *Purger) plan(purge Purge) (Result, []batch) {
	r := Result{Service: p.service.name}
	batches := p.service.batches(purge)
	r.Requests = len(batches)
	for _, b := range batches {
		r.Items += len(b.items)
		r.Everything, r.Tags = r.Everything || b.all, r.Tags || b.tags
	}
	return r, batches
}

// Purge purges the service and waits until the service has finished. Requests are retried; the
// first one that fails finally ends the purge. If the service refuses the content of a request
// (status 400), it is asked to purge everything instead, so that one odd name does not keep the
// rest of the site stale. The result is valid after an error too. If ctx ends, the error wraps its
// cause.
func (p *Purger) Purge(ctx context.Context, purge Purge) (Result, error) {
	begun := time.Now()
	r, batches := p.plan(purge)
	err := p.sendAll(ctx, batches)
	if isRefusal(err) && !p.service.independent && !r.Everything {
		p.client.log.Warn("purging everything, because a part was refused", "purge", r.Service, "error", err)
		everything := p.service.cut(Everything())
		r.Everything, r.Tags, r.Requests = true, false, r.Requests+len(everything)
		err = p.sendAll(ctx, everything)
	}
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	r.Retries, r.Nothing, r.Seconds = p.client.retries.Load(), int(p.client.empty.Load()), time.Since(begun).Seconds()
	if err == nil && r.Nothing > 0 && r.Nothing == r.Requests {
		p.client.log.Warn("the cache had nothing to purge: if it holds any of the site, the template is wrong", "purge", r.Service, "requests", r.Requests)
	}
	if err != nil {
		err = fmt.Errorf("purge %s: %w", r.Service, p.hide.Error(err))
		r.Error = err.Error()
	}
	return r, err
}

func (p *Purger) sendAll(ctx context.Context, batches []batch) error {
	refused := make([]error, len(batches))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(p.service.inFlight)
	for i, b := range batches {
		group.Go(func() error {
			if groupCtx.Err() != nil {
				return context.Cause(groupCtx)
			}
			err := p.send(groupCtx, b)
			if p.service.independent && isRefusal(err) {
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

// isRefusal reports whether a server refused the content of a request.
func isRefusal(err error) bool {
	var no *statusError
	return errors.As(err, &no) && no.status == http.StatusBadRequest
}

func (p *Purger) send(ctx context.Context, b batch) error {
	b.reference = "followpress-" + rand.Text()
	answer, err := p.client.do(ctx, func(ctx context.Context) (*http.Request, error) {
		return p.service.request(ctx, b)
	})
	if err != nil || p.service.finish == nil {
		return err
	}
	return p.service.finish(ctx, p.client, answer)
}

// String formats the result for a person.
func (r Result) String() string {
	items, requests := count(r.Items, "item"), count(r.Requests, "request")
	if r.Tags {
		items = count(r.Items, "tag")
	}
	if r.Everything {
		items = "everything"
	}
	switch {
	case r.Planned:
		return fmt.Sprintf("%s: %s to purge, in %s", r.Service, items, requests)
	case r.Error != "":
		return fmt.Sprintf("%s: failed to purge %s", r.Service, items)
	}
	found := ""
	if r.Nothing > 0 {
		found = fmt.Sprintf(" (%d found nothing to purge)", r.Nothing)
	}
	return fmt.Sprintf("%s: %s, in %s%s; %d tried again (%s)", r.Service, items, requests, found, r.Retries,
		time.Duration(r.Seconds*float64(time.Second)).Round(time.Millisecond))
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func cutAt(items []string, n int) []batch {
	var batches []batch
	for part := range slices.Chunk(items, n) {
		batches = append(batches, batch{items: part})
	}
	return batches
}

var errNotURL = errors.New("not a URL like https://HOST")

// parseURL parses an HTTP URL, which must not contain credentials.
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
