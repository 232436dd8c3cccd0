package secret

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"html"
	"log/slog"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/followpress/followpress/internal/plain"
)

// shortest keeps short words of a message readable, in bytes: a shorter credential is hidden only where one stands.
const shortest = 6

// A Hider replaces the credentials that were used in texts. The zero value hides nothing yet. It is safe for concurrent
// use.
type Hider struct {
	mu    sync.Mutex
	known map[string]bool // in all spellings
	match *regexp.Regexp  // nil if known has changed, or is empty
	short map[string]*regexp.Regexp
}

// Use returns a credential for a request, and hides it from then on. One of less than 6 bytes is hidden where URLs and
// headers have credentials: before an @, and after a colon, an equals sign or Bearer.
func (h *Hider) Use(t Text) string {
	h.hide(string(t))
	h.hideShort(string(t))
	return string(t)
}

// UseURL hides all parts of a URL, or of a template of one, but its scheme and host: they may be credentials. Braces end
// a part as slashes do.
func (h *Hider) UseURL(text string) {
	_, rest, ok := strings.Cut(text, "://")
	if !ok {
		rest = text
	}
	end := strings.IndexAny(rest+"/", "/?#{")
	if user, _, ok := strings.Cut(rest[:end], "@"); ok {
		for part := range strings.SplitSeq(user, ":") {
			h.hide(part)
			h.hideShort(part)
		}
	}
	parts := strings.FieldsFunc(rest[end:], func(r rune) bool { return strings.ContainsRune("/?#&={}", r) })
	for _, part := range parts {
		h.hide(part)
	}
	_, query, _ := strings.Cut(rest[end:], "?")
	for pair := range strings.SplitSeq(query, "&") { // a value may have slashes
		_, value, _ := strings.Cut(pair, "=")
		h.hide(value)
		h.hideShort(value)
	}
}

// hideShort hides a credential that is too short to be replaced everywhere.
func (h *Hider) hideShort(text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if text == "" || len(text) >= shortest || h.short[text] != nil {
		return
	}
	if h.short == nil {
		h.short = map[string]*regexp.Regexp{}
	}
	is := regexp.QuoteMeta(strings.ToValidUTF8(text, "\ufffd"))
	h.short[text] = regexp.MustCompile(`(?i)(//|[:=]["']?\s?|\b(?:bearer|basic|token)\s)` + is + `([@:&#\s"'<>,;)]|$)`)
}

// hide adds the spellings in which a server may repeat a text.
func (h *Hider) hide(text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(text) < shortest || h.known[text] {
		return
	}
	if h.known == nil {
		h.known = map[string]bool{}
	}
	plain := []string{text}
	for _, unescape := range []func(string) (string, error){url.QueryUnescape, url.PathUnescape} {
		if p, err := unescape(text); err == nil {
			plain = append(plain, p)
		}
	}
	for _, p := range plain {
		for _, s := range spellings(p) {
			if len(s) >= shortest {
				h.known[s] = true
			}
		}
	}
	h.match = nil
}

// spellings of a text: as it is, escaped, and encoded.
func spellings(p string) []string {
	all := []string{
		p, url.QueryEscape(p), url.PathEscape(p), html.EscapeString(p), strings.ReplaceAll(p, "/", `\/`), hex.EncodeToString([]byte(p)),
		"%" + strings.ReplaceAll(fmt.Sprintf("% x", p), " ", "%"),
	}
	// A text has three forms in base64, depending on its offset. The letters that depend on
	// neighboring bytes are left out.
	for offset, first := range []int{0, 2, 3} {
		for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			text := encoding.EncodeToString([]byte(strings.Repeat("\x00", offset) + p))
			last := len(text)
			if (offset+len(p))%3 != 0 {
				last--
			}
			all = append(all, text[first:last])
		}
	}
	return all
}

// Replace returns a text with all that was used replaced, in whatever spelling and case.
func (h *Hider) Replace(text string) string {
	h.mu.Lock()
	if h.match == nil && len(h.known) > 0 {
		all := make([]string, 0, len(h.known))
		for s := range h.known {
			all = append(all, regexp.QuoteMeta(strings.ToValidUTF8(s, "\ufffd")))
		}
		// Longest first: one may be the beginning of another, and the first match wins.
		slices.SortFunc(all, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a, b)) })
		h.match = regexp.MustCompile("(?i)" + strings.Join(all, "|"))
	}
	match := h.match
	for _, short := range h.short {
		text = short.ReplaceAllString(text, "${1}"+hidden+"${2}")
	}
	h.mu.Unlock()
	if match == nil {
		return text
	}
	return match.ReplaceAllString(strings.ToValidUTF8(text, "\ufffd"), hidden)
}

// Error returns an error that wraps err. Its text is one line that is safe for a terminal
// (plain.Line), with all used credentials replaced. It returns nil if err is nil.
func (h *Hider) Error(err error) error {
	if err == nil {
		return nil
	}
	return &hiddenError{plain.Line(h.Replace(err.Error())), err}
}

type hiddenError struct {
	text string
	err  error
}

func (e *hiddenError) Error() string { return e.text }
func (e *hiddenError) Unwrap() error { return e.err }

// Logger returns a logger that replaces all that was used in messages and attributes.
func (h *Hider) Logger(log *slog.Logger) *slog.Logger { return slog.New(&handler{log.Handler(), h}) }

type handler struct {
	slog.Handler
	hider *Hider
}

func (l *handler) Handle(ctx context.Context, r slog.Record) error {
	clean := slog.NewRecord(r.Time, r.Level, l.hider.Replace(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		clean.AddAttrs(l.clean(a))
		return true
	})
	return l.Handler.Handle(ctx, clean)
}

// clean makes texts of attributes that are not numbers.
func (l *handler) clean(a slog.Attr) slog.Attr {
	switch v := a.Value.Resolve(); v.Kind() {
	case slog.KindString, slog.KindAny:
		return slog.String(a.Key, l.hider.Replace(v.String()))
	case slog.KindGroup:
		var all []slog.Attr
		for _, inner := range v.Group() {
			all = append(all, l.clean(inner))
		}
		return slog.Attr{Key: a.Key, Value: slog.GroupValue(all...)}
	default:
		return a
	}
}

func (l *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	clean := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		clean[i] = l.clean(a)
	}
	return &handler{l.Handler.WithAttrs(clean), l.hider}
}

func (l *handler) WithGroup(name string) slog.Handler {
	return &handler{l.Handler.WithGroup(name), l.hider}
}
