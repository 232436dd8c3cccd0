package profile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	json "github.com/goccy/go-json"
	"golang.org/x/sync/errgroup"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/refresh"
	"github.com/followpress/followpress/site/rules"
	"github.com/followpress/followpress/source/internal/ask"
	"github.com/followpress/followpress/source/internal/collect"
)

const (
	bulkMost        = 50      // accounts per request at first; the worker reports a lower limit
	profileMost     = 1 << 20 // bytes of a profile
	singlesAtOnce   = 4       // concurrent requests for one account
	bulkPerMinute   = 9       // requests per minute after a rate limit
	singlePerMinute = 160
)

// A refresher asks a worker. mu guards its fields during concurrent requests.
type refresher struct {
	*collect.Collector[meta]

	o    Options
	size int // accounts per request; 1 without bulk requests

	mu     sync.Mutex
	report *Report
	queue  []site.Address // accounts not asked about yet
	alone  []site.Address // accounts whose bulk requests failed
}

// run asks while the budget allows, and completes the report.
func (r *refresher) run(ctx context.Context) error {
	r.queue = queue(r.o.Wanted, r.Store, time.Now())
	r.o.Progress.Stage("profiles", r.expected())
	err := r.ask(ctx)
	r.o.Progress.End()
	if r.report.Cost, err = r.Cost(err); err != nil {
		return err
	}
	r.report.Dropped, r.report.Doubted, err = r.Drop(func(m meta) meta {
		m.Fresh = 0
		return m
	})
	r.forget(time.Now())
	if err := errors.Join(err, r.Store.Flush()); err != nil {
		return err
	}
	r.count()
	return nil
}

// errStopped means that the worker answers no requests of this kind.
var errStopped = fmt.Errorf("%w: the worker refuses", ask.ErrGaveUp)

// expected returns the number of accounts that the budget may allow.
func (r *refresher) expected() int64 {
	n := len(r.queue)
	if most := r.o.Budget.Requests; most > 0 && most < n/bulkMost {
		n = most * bulkMost
	}
	return int64(n)
}

func (r *refresher) ask(ctx context.Context) error {
	err := r.askBulk(ctx)
	if err == nil {
		r.queue = append(r.queue, r.alone...)
		r.alone = nil
		err = r.askSingles(ctx)
	}
	r.report.Left = len(r.queue) + len(r.alone)
	r.report.Bulk = r.size
	return err
}

// askBulk asks about many accounts per request, until none is left or single requests are better.
func (r *refresher) askBulk(ctx context.Context) error {
	lane := r.Client.Lane(0, time.Minute/bulkPerMinute)
	for len(r.queue) > 0 && r.size > 1 {
		if lane.Limited() && r.size*bulkPerMinute < singlePerMinute {
			return nil
		}
		batch := r.queue[:min(r.size, len(r.queue))]
		entries, err := r.bulk(ctx, lane, batch)
		var most tooMany
		switch {
		case errors.As(err, &most):
			r.size = int(most)
			continue
		case errors.Is(err, errNoBulk):
			r.size = 1
			return nil
		case errors.Is(err, ask.ErrFailed): // one of the accounts may be the cause
			r.alone = append(r.alone, batch...)
		case err != nil:
			return err
		}
		r.queue = r.queue[len(batch):]
		for i, entry := range entries {
			if err := r.take(batch[i], entry); err != nil {
				return err
			}
		}
		if err := r.Store.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// tooMany is the worker's limit of accounts per request.
type tooMany int

func (n tooMany) Error() string {
	return fmt.Sprintf("the worker accepts at most %d addresses per request", int(n))
}

// errNoBulk means that the worker has no bulk requests in a known form.
var errNoBulk = errors.New("no bulk requests")

var atMost = regexp.MustCompile(`expected at most (\d{1,9})\b`)

// bulk asks about accounts in one request. It returns an entry for each, or an error that is
// tooMany, errNoBulk, or one of Lane.Get.
func (r *refresher) bulk(ctx context.Context, lane *ask.Lane, batch []site.Address) ([]json.RawMessage, error) {
	query := url.Values{}
	for _, address := range batch {
		query.Add("addresses[]", address.String()) // unique and in lower case, so the worker keeps the order
	}
	answer, err := lane.Get(ctx, "/bulk/a", query, int64(len(batch))*profileMost)
	if err != nil {
		return nil, err
	}
	switch answer.Status {
	case http.StatusOK:
		return entriesOf(answer.Body, batch)
	case http.StatusBadRequest:
		if m := atMost.FindSubmatch(answer.Body); m != nil {
			if n, _ := strconv.Atoi(string(m[1])); n > 0 && n < len(batch) {
				return nil, tooMany(n)
			}
		}
		return nil, fmt.Errorf("%w: status 400", ask.ErrFailed)
	case http.StatusRequestEntityTooLarge, http.StatusRequestURITooLong, http.StatusRequestHeaderFieldsTooLarge:
		if len(batch) > 1 {
			return nil, tooMany(len(batch) / 2)
		}
		return nil, errNoBulk
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return nil, errNoBulk
	}
	return nil, fmt.Errorf("%w: status %d", errStopped, answer.Status)
}

// entriesOf returns the entries of an answer for the accounts of a batch. An entry without a
// profile does not name its account. So if one entry belongs to another account than its position
// says, all are rejected.
func entriesOf(body []byte, batch []site.Address) ([]json.RawMessage, error) {
	var in struct {
		Length int `json:"response_length"`
		// The array skips entries in excess of the request, so that they take no memory.
		Response [bulkMost + 1]json.RawMessage `json:"response"`
	}
	if err := json.Unmarshal(body, &in); err != nil || in.Length != len(batch) || in.Response[len(batch)] != nil || in.Response[len(batch)-1] == nil {
		return nil, errNoBulk
	}
	entries := in.Response[:len(batch)]
	for i, entry := range entries {
		var whose struct {
			Address string `json:"address"`
		}
		_ = json.Unmarshal(entry, &whose) // take reports errors
		if address, err := site.ParseAddress(whose.Address); err == nil && address != batch[i] {
			return nil, fmt.Errorf("%w: the entries are in the wrong order", ask.ErrFailed)
		}
	}
	return entries, nil
}

// askSingles asks about one account per request, several at a time.
func (r *refresher) askSingles(ctx context.Context) error {
	lane := r.Client.Lane(0, time.Minute/singlePerMinute)
	lane.Own = func(a ask.Answer) bool {
		_, ok := statusOf(a)
		return ok
	}
	r.Begin()
	var spent atomic.Bool
	group, ctx := errgroup.WithContext(ctx)
	for range singlesAtOnce {
		group.Go(func() error {
			for {
				address, ok := r.next()
				if !ok {
					return nil
				}
				entry, err := single(ctx, lane, address)
				err = r.took(address, entry, err)
				if errors.Is(err, ask.ErrSpent) {
					spent.Store(true)
					return nil // an error would cancel requests already paid for
				}
				if err != nil {
					return err
				}
			}
		})
	}
	if err := group.Wait(); err != nil || !spent.Load() {
		return err
	}
	return ask.ErrSpent
}

func (r *refresher) next() (address site.Address, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.queue) == 0 {
		return address, false
	}
	address = r.queue[0]
	r.queue = r.queue[1:]
	return address, true
}

// took takes the answer to a request for one account, or puts the account back.
func (r *refresher) took(address site.Address, entry json.RawMessage, err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case errors.Is(err, ask.ErrFailed):
		r.fail(address, "no answer", err)
		err = nil
	case err != nil:
		r.alone = append(r.alone, address)
		return err
	default:
		err = r.take(address, entry)
	}
	if err == nil {
		err = r.GaveUp()
	}
	return errors.Join(err, r.Store.Flush())
}

// single asks about one account. It returns a profile or an error in the form of a bulk entry.
func single(ctx context.Context, lane *ask.Lane, address site.Address) (json.RawMessage, error) {
	answer, err := lane.Get(ctx, "/a/"+address.String(), nil, profileMost)
	if err != nil {
		return nil, err
	}
	if answer.Status == http.StatusOK {
		return answer.Body, nil
	}
	if in, ok := statusOf(answer); ok {
		in.Type = typeError
		return json.Marshal(in)
	}
	if answer.Status == http.StatusNotFound { // perhaps from a proxy or another service
		return nil, fmt.Errorf("%w: a 404 that does not come from the worker", ask.ErrFailed)
	}
	return nil, fmt.Errorf("%w: status %d", errStopped, answer.Status)
}

// statusOf returns the worker's reason for not having a profile. ok is false if the answer is not
// the worker's own.
func statusOf(a ask.Answer) (in status, ok bool) {
	err := json.Unmarshal(a.Body, &in)
	return in, err == nil && in.Status == a.Status && in.Error != ""
}

// A status holds the members of an entry apart from a profile.
type status struct {
	Type   string `json:"type"`
	Status int    `json:"status"`
	Error  string `json:"error"`
}

const typeError = "error"

func (r *refresher) take(address site.Address, entry json.RawMessage) error {
	now := time.Now()
	if len(entry) > profileMost {
		r.fail(address, "invalid profile", fmt.Errorf("%d bytes", len(entry)))
		return nil
	}
	entry = bytes.TrimSpace(entry)
	var in status
	if bytes.HasPrefix(entry, []byte{'{'}) {
		_ = json.Unmarshal(entry, &in) // DecodeProfile reports errors
	}
	if in.Type == typeError {
		if in.Status == http.StatusNotFound || in.Status == http.StatusUnprocessableEntity {
			r.absent(address, now)
			return nil
		}
		r.fail(address, fmt.Sprintf("status %d", in.Status), fmt.Errorf("status %d: %s", in.Status, site.Quoted(in.Error)))
		return nil
	}
	p, err := refresh.DecodeProfile(entry, address, now)
	if err != nil {
		r.fail(address, "invalid profile", err)
		return nil
	}
	if p.NoTexts > 0 {
		r.report.Altered++
		r.report.NoTexts += p.NoTexts
	}
	return r.found(address, p.Profile, now)
}

// found keeps a profile, unless the kept one is fresher: the worker may have answered from a cache.
func (r *refresher) found(address site.Address, p site.Profile, now time.Time) error {
	p.Fresh = min(p.Fresh, now.UnixMilli()) // so that a wrong clock does not win forever
	key := address.String()
	old, known, _ := r.Store.Meta(key)
	old = old.until(now)
	r.answered(known)
	r.report.Found++
	m := meta{Asked: now.UnixMilli(), Fresh: p.Fresh}
	if known && rules.IsNewer(old.Fresh, p.Fresh) {
		m.Fresh = old.Fresh
		r.Store.PutMeta(key, m)
		return nil
	}
	return put(r.Store, key, m, p)
}

// absent records that the worker has no profile of an account, or one of another account (422).
func (r *refresher) absent(address site.Address, now time.Time) {
	key := address.String()
	m, known, _ := r.Store.Meta(key)
	m = m.until(now)
	r.answered(known)
	r.report.Absent++
	m.Asked, m.Error = now.UnixMilli(), ""
	if m.Gone == 0 {
		m.Gone = m.Asked
	}
	if known {
		r.Missed(key, m.Asked-m.Gone >= collect.Apart.Milliseconds())
	}
	r.Store.PutMeta(key, m)
}

func (r *refresher) answered(known bool) {
	r.report.Asked++
	r.Answered(known)
	r.o.Progress.Add(1)
}

// fail records a request without a usable answer. The account's kept profile stays.
func (r *refresher) fail(address site.Address, reason string, err error) {
	key := address.String()
	text := strings.ToValidUTF8(err.Error(), "\uFFFD")
	if len(text) > maxErrorText {
		text = strings.ToValidUTF8(text[:maxErrorText], "") + "…"
	}
	r.report.Failed[reason]++
	r.Failed()
	if len(r.report.Examples) < maxExamples {
		r.report.Examples = append(r.report.Examples, key+": "+text)
	}
	r.o.Progress.Add(1)
	m, _, _ := r.Store.Meta(key)
	m.Asked, m.Error = time.Now().UnixMilli(), text
	r.Store.PutMeta(key, m)
}

// forget drops accounts that are no longer wanted.
func (r *refresher) forget(now time.Time) {
	for _, key := range r.Store.Keys() {
		m, _, _ := r.Store.Meta(key)
		if m.Asked == 0 || now.UnixMilli()-m.Asked < forgotten.Milliseconds() {
			continue
		}
		if address, err := site.ParseAddress(key); err == nil {
			if _, wanted := r.o.Wanted[address]; !wanted {
				r.Store.Forget(key)
				r.report.Forgotten++
			}
		}
	}
}

func (r *refresher) count() {
	r.report.Known = r.Store.Bodies()
	for address := range r.o.Wanted {
		if m, hasBody, _ := r.Store.Meta(address.String()); m.Asked == 0 && !hasBody {
			r.report.NeverYet++
		}
	}
}
