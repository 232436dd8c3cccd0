package preview

import (
	"fmt"
	"net/http"
	"path"
	"strings"

	"github.com/klauspost/compress/gzhttp"

	"github.com/followpress/followpress/site/data"
)

var dataFolder = path.Dir(data.PackageKey.URLPath()) + "/"

// compressed compresses text for clients that accept gzip, as edges do. The graph's data files stay
// uncompressed, since clients read parts of them.
func compressed(next http.Handler) (http.Handler, error) {
	wrap, err := gzhttp.NewWrapper(gzhttp.ContentTypeFilter(isText))
	if err != nil {
		return nil, fmt.Errorf("compress answers: %w", err)
	}
	zipped := wrap(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, dataFolder) {
			next.ServeHTTP(w, r)
			return
		}
		zipped.ServeHTTP(&weakTags{w, strings.Contains(r.Header.Get("If-None-Match"), "W/")}, r)
	}), nil
}

func isText(contentType string) bool {
	kind, _, _ := strings.Cut(contentType, ";")
	return strings.HasPrefix(kind, "text/") || strings.HasSuffix(kind, "json") || strings.HasSuffix(kind, "xml")
}

// A weakTags makes the ETags of compressed answers weak, since they name the uncompressed bytes.
type weakTags struct {
	http.ResponseWriter
	weakKnown bool // the client has a compressed answer
}

// WriteHeader runs once the wrapper has decided whether to compress.
func (w *weakTags) WriteHeader(status int) {
	h := w.Header()
	if tag := h.Get("ETag"); tag != "" && (h.Get("Content-Encoding") != "" || status == http.StatusNotModified && w.weakKnown) {
		h.Set("ETag", "W/"+tag)
	}
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *weakTags) Unwrap() http.ResponseWriter { return w.ResponseWriter }
