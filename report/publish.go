package report

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/routes"
	"github.com/followpress/followpress/storage"
)

// A Bucket is the part of object storage that publishing needs. Package storage documents the methods and their
// errors.
type Bucket interface {
	Read(ctx context.Context, key site.Key) ([]byte, storage.Info, error)
	Put(ctx context.Context, o storage.Object, condition storage.Condition) (etag string, err error)
}

// An Index lists the published reports, newest first.
type Index struct {
	Reports []IndexEntry `json:"reports"`
}

// An IndexEntry is the summary of a report.
type IndexEntry struct {
	Date      string `json:"date"` // date of the report, as in its key
	From      string `json:"from"` // time of the old snapshot
	To        string `json:"to"`   // time of the new snapshot
	Follows   int    `json:"follows"`
	Unfollows int    `json:"unfollows"`
	NewLists  int    `json:"new_lists"`
	GoneLists int    `json:"gone_lists"`
}

// MaxIndexEntries is the maximum length of the index. Older reports stay in the bucket.
const MaxIndexEntries = 1_000

// Publish puts a report into a bucket, as a page and as JSON, and then adds it to the index. It replaces a report of
// the same date. Concurrent runs for different days keep each other's entries, unless it returns ErrUnsafe.
func Publish(ctx context.Context, to Bucket, r *Report, patience time.Duration) error {
	shown := *r
	shown.From.Site, shown.To.Site = "", "" // may be local paths
	r = &shown
	explorer := Text("")
	if r.Explorer { // in the same bucket as the reports
		explorer = Text("../" + string(site.ExplorerKey("index.html")))
	}
	page, err := r.page(explorer)
	if err != nil {
		return err
	}
	figures, err := r.JSON()
	if err != nil {
		return err
	}
	p := &publication{to, retrying(cmp.Or(patience, DefaultPatience))}
	for _, o := range []storage.Object{
		object(site.ReportKey(string(r.Date), "html"), page, routes.ReportPage),
		object(site.ReportKey(string(r.Date), "json"), figures, routes.ReportData),
	} {
		if err := p.put(ctx, o, storage.Always); err != nil {
			return err
		}
	}
	return p.addToIndex(ctx, IndexEntry{string(r.Date), string(r.From.AsOf), string(r.To.AsOf), r.Follows.Follows, r.Follows.Unfollows, r.Lists.New, r.Lists.Gone})
}

// ErrUnsafe means that the report was published, but its index entry was written without a condition.
var ErrUnsafe = errors.New("the server has no conditional writes: if two runs publish reports at the same time, an entry of the index may be lost")

func object(key site.Key, body []byte, id routes.ID) storage.Object {
	route := site.RouteBy(id)
	return storage.Object{
		Entry: site.Entry{Key: key, Size: int64(len(body)), MD5: site.Sum(body)}, Body: body,
		ContentType: route.ContentType, CacheControl: route.CacheControl,
	}
}

// A publication writes to a bucket, and retries temporary failures.
type publication struct {
	bucket Bucket
	retry  storage.Retry
}

func (p *publication) put(ctx context.Context, o storage.Object, condition storage.Condition) error {
	return p.retry.Do(ctx, func(ctx context.Context) error {
		_, err := p.bucket.Put(ctx, o, condition)
		return err
	})
}

// mostConflicts is the maximum number of attempts to write the index. Each conflict means that another run has
// written it.
const mostConflicts = 100

// addToIndex writes the index if nobody else has changed it since it was read, and otherwise reads it again. This
// also handles a write whose response was lost: the entry is already there.
func (p *publication) addToIndex(ctx context.Context, entry IndexEntry) error {
	for range mostConflicts {
		index, condition, err := p.readIndex(ctx)
		if err != nil {
			return err
		}
		if !index.add(entry) {
			return nil
		}
		body, err := json.MarshalWithOption(index, json.DisableHTMLEscape())
		if err != nil {
			return fmt.Errorf("encode %s: %w", site.ReportsKey, err)
		}
		o := object(site.ReportsKey, body, routes.Reports)
		switch err = p.put(ctx, o, condition); {
		case errors.Is(err, storage.ErrCondition):
			continue
		case errors.Is(err, storage.ErrUnsupported):
			if err := p.put(ctx, o, storage.Always); err != nil {
				return err
			}
			return ErrUnsafe
		}
		return err
	}
	return fmt.Errorf("put %s: %d conflicts with other runs; the report is in the bucket, publish it again to list it", site.ReportsKey, mostConflicts)
}

// readIndex reads the index, and returns the condition for replacing it.
func (p *publication) readIndex(ctx context.Context) (index Index, condition storage.Condition, err error) {
	var body []byte
	var info storage.Info
	err = p.retry.Do(ctx, func(ctx context.Context) error {
		body, info, err = p.bucket.Read(ctx, site.ReportsKey)
		return err
	})
	if errors.Is(err, storage.ErrNotFound) {
		return Index{}, storage.IfAbsent, nil
	} else if err != nil {
		return Index{}, "", err
	}
	if index, err = ParseIndex(body); err != nil {
		return Index{}, "", fmt.Errorf("%w; remove it to start a new index", err)
	}
	return index, storage.Condition(info.ETag), nil
}

// ParseIndex decodes an index. It fails unless every entry has a date and the dates are sorted.
func ParseIndex(body []byte) (Index, error) {
	var index Index
	if err := json.Unmarshal(body, &index); err != nil {
		return Index{}, fmt.Errorf("read %s: %w", site.ReportsKey, err)
	}
	for i, e := range index.Reports {
		if !validDate(e.Date) || i > 0 && index.Reports[i-1].Date <= e.Date {
			return Index{}, fmt.Errorf("read %s: entry %d, of %q, is malformed or out of order", site.ReportsKey, i, e.Date)
		}
	}
	return index, nil
}

func validDate(text string) bool {
	_, err := time.Parse(dateFormat, text)
	return err == nil
}

// add adds an entry, or replaces one of the same date. changed is false if it exists already, or if there are enough
// newer ones.
func (x *Index) add(entry IndexEntry) (changed bool) {
	at, found := slices.BinarySearchFunc(x.Reports, entry, func(a, b IndexEntry) int { return strings.Compare(b.Date, a.Date) })
	switch {
	case found && x.Reports[at] == entry, at >= MaxIndexEntries:
		return false
	case found:
		x.Reports[at] = entry
	default:
		x.Reports = slices.Insert(x.Reports, at, entry)
	}
	x.Reports = x.Reports[:min(len(x.Reports), MaxIndexEntries)]
	return true
}
