package publish

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/internal/secret"
	"github.com/followpress/followpress/publisher"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/settings"
	"github.com/followpress/followpress/storage"
)

// edges are the flags of verify about edges.
type edges struct {
	Edge []string `sep:"none" placeholder:"URL" help:"Also check that the edge at this URL matches the site's settings; repeatable."`
}

func (e *edges) checkURLs() error {
	for _, address := range e.Edge {
		if !storage.IsWeb(address) {
			return fmt.Errorf("--edge=%s: want http://HOST or https://HOST", secret.URL(address))
		}
	}
	return nil
}

// checkEdges returns an error for each edge that is not configured for the settings of the site.
func (e *edges) checkEdges(ctx context.Context, from publisher.Site) error {
	if len(e.Edge) == 0 {
		return nil
	}
	config, err := publisher.ConfigOf(ctx, from)
	if err != nil {
		return err
	}
	var errs []error
	for _, address := range e.Edge {
		if err := checkEdge(ctx, address, settings.Digest(config)); err != nil {
			errs = append(errs, fmt.Errorf("--edge=%s: %w", secret.URL(address), err))
		}
	}
	return errors.Join(errs...)
}

// edgeTimeout bounds the request to an edge.
const edgeTimeout = 15 * time.Second

func checkEdge(ctx context.Context, address, want string) error {
	ctx, cancel := context.WithTimeout(ctx, edgeTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, strings.TrimRight(address, "/")+site.RootKey.URLPath(), nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	var failed *url.Error
	if errors.As(err, &failed) {
		return failed.Err // without the URL, which the caller names
	}
	response.Body.Close()
	switch got := response.Header.Get(settings.Header); got {
	case want:
		return nil
	case "":
		return fmt.Errorf("no header %s: not an edge, or configured by an earlier version; then %s", settings.Header, configureAgain)
	default:
		return fmt.Errorf("stale: configured for settings %s, the site has %s; %s", got, want, configureAgain)
	}
}

const configureAgain = "run followpress edge again and load what it writes"

// warnOfEdges warns that a publish changed settings that edges are configured for.
func warnOfEdges(s session, r *publisher.Report) {
	known := r.Before.BasePath != "" && (r.Live || r.Outcome == publisher.Planned)
	if known && settings.Digest(r.Before) != settings.Digest(r.Config) {
		command.Warn(s.stderr, "the settings of the site change, and edges are stale until you "+configureAgain)
	}
}
