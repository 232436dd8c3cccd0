// Package describe answers requests for the description of the API of a site that does not hold it.
package describe

import (
	"bytes"
	"log/slog"
	"net/http"
	"time"

	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/templates"
)

// Path is where the description is.
const Path = "/" + string(site.OpenAPIKey)

// Handler answers requests to read Path for the site that api serves, and passes all others on to next. If
// the description is an object of the site, next answers too.
func Handler(api *server.Handler, next http.Handler, log *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		root := api.Root()
		if r.URL.Path != Path || r.Method != http.MethodGet && r.Method != http.MethodHead || root == nil || root.Config.EFP() {
			next.ServeHTTP(w, r)
			return
		}
		body, err := templates.OpenAPI(root.Config)
		if err != nil {
			log.Error("description failed", "path", Path, "error", err)
			http.Error(w, "the API cannot be described", http.StatusInternalServerError)
			return
		}
		route, header := site.RouteOpenAPI.Route(), w.Header()
		for _, h := range site.EveryHeader() {
			header.Set(h.Name, h.Value)
		}
		header.Set("Cache-Control", route.CacheControl)
		header.Set("Content-Type", route.ContentType)
		header.Set("Etag", `"`+site.Sum(body).String()+`"`)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
	})
}
