package live

import (
	"net/http"
	"strconv"
	"strings"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
)

// Paths that are no part of a site.
const (
	ownPrefix  = "/_live/"
	EventsPath = ownPrefix + "events" // a stream of rounds
	StatusPath = ownPrefix + "status" // Status as JSON
)

// ServeHTTP answers a request from the newest graph.
func (l *Live) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, ownPrefix) {
		l.serveOwn(w, r)
		return
	}
	if after := r.Header[headerAfter]; len(after) > 0 {
		blocks, err := parseAfter(after)
		if s := l.state.Load(); err == nil && s != nil {
			err = s.checkChains(blocks)
		}
		if err != nil {
			l.shared.Refuse(w, r, badRequest(err.Error()))
			return
		}
		l.wait(r.Context(), server.ClientOf(r, l.Server.Refresh.Proxies), blocks, preferredWait(r.Header, l.MaxWait))
		w = noStoreWriter{w}
	}
	s := l.use()
	if s == nil {
		l.shared.Refuse(w, r, site.Unavailable)
		return
	}
	header := w.Header()
	for i := range s.headers {
		header[s.headers[i].name] = s.headers[i].values
	}
	if s.lags(l.clock.now()) {
		s.graph.release()
		l.shared.Refuse(w, r, site.Unavailable)
		return
	}
	s.graph.handler.Answer(w, r, s.graph.released)
}

// use returns the newest state, whose graph the caller releases; nil if there is none.
func (l *Live) use() *state {
	for {
		s := l.state.Load()
		if s == nil || s.graph.use() {
			return s
		}
	}
}

// A noStoreWriter writes an answer that no cache may keep, because it depends on when it was asked for.
type noStoreWriter struct{ http.ResponseWriter }

// WriteHeader sends the headers.
func (w noStoreWriter) WriteHeader(status int) {
	w.Header()["Cache-Control"] = noStore
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (w noStoreWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

var noStore = []string{site.NoStore}

// badRequest returns the problem of a header that cannot be read.
func badRequest(detail string) *site.Problem {
	return &site.Problem{Name: "bad-request", Status: http.StatusBadRequest, Detail: detail, CacheControl: site.NoStore}
}

// serveOwn answers paths outside a site.
func (l *Live) serveOwn(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path != EventsPath && r.URL.Path != StatusPath:
		l.shared.Refuse(w, r, site.NoSuchRoute)
	case r.Method == http.MethodOptions:
		setHeaders(w.Header(), append(site.EveryHeader(), l.Generator.Config.PreflightHeaders()...))
		w.WriteHeader(http.StatusNoContent)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		l.shared.Refuse(w, r, site.MethodNotAllowed)
	case r.URL.Path == StatusPath:
		setHeaders(w.Header(), site.EveryHeader())
		w.Header()["Cache-Control"] = noStore
		l.serveStatus(w, r)
	default:
		l.serveEvents(w, r)
	}
}

func setHeaders(header http.Header, all []site.Header) {
	for _, h := range all {
		header.Set(h.Name, h.Value)
	}
}

func (l *Live) serveStatus(w http.ResponseWriter, r *http.Request) {
	body, err := json.Marshal(l.Status())
	if err != nil {
		l.shared.Refuse(w, r, site.InternalError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // an error means that the client is gone
	}
}

func (l *Live) serveEvents(w http.ResponseWriter, r *http.Request) {
	client := server.ClientOf(r, l.Server.Refresh.Proxies)
	if l.Ready() != nil || !l.streams.begin(client) {
		l.shared.Refuse(w, r, site.Unavailable)
		return
	}
	defer l.streams.end(client)
	setHeaders(w.Header(), site.EveryHeader())
	w.Header()["Cache-Control"] = noStore
	if r.Method == http.MethodHead {
		w.Header().Set("Content-Type", "text/event-stream")
		return
	}
	l.stream(w, r)
}
