package postgres_test

import (
	"strings"
	"testing"

	"github.com/followpress/followpress/internal/secret"
	"github.com/followpress/followpress/source/postgres"
)

// TestMalformedDSN: an error describes the fault, and contains no part of a password (pa55, w0rd).
func TestMalformedDSN(t *testing.T) {
	for dsn, want := range map[string]string{
		"u:pa55@w0rd@127.0.0.1/db":                     "neither a URL",
		"mysql://u:pa55w0rd@127.0.0.1/db":              "neither a URL",
		"host=127.0.0.1 password=pa55 w0rd":            "neither a URL",
		"host=127.0.0.1 password='pa55 w0rd":           "neither a URL",
		"host=127.0.0.1 port=x password = pa55w0rd":    "invalid port",
		`host=127.0.0.1 port=x password='pa55\'w0rd'`:  "invalid port",
		"postgres://u:pa55@w0rd@127.0.0.1:x/db":        "invalid port",
		"postgres://u:pa55/w0rd@127.0.0.1:1/db":        "invalid port",
		"postgres://u:pa55%w0rd@127.0.0.1:1/db":        "percent",
		"postgres://u:pa55 w0rd@127.0.0.1:1/db":        "spaces",
		"postgres://u:pa55w0rd@127.0.0.1/db?sslmode=x": "sslmode",
		"postgres://u:pa55w0rd@127.0.0.1:1/db":         "check the host and the port of the DSN", // nobody listens there
	} {
		_, err := postgres.Open(t.Context(), postgres.Options{DSN: secret.Text(dsn), Progress: quiet{}})
		if err == nil {
			t.Errorf("%s: got no error", dsn)
		} else if text := err.Error(); !strings.Contains(text, want) || strings.Contains(text, "pa55") || strings.Contains(text, "w0rd") {
			t.Errorf("%s: got %v, want %q and nothing of the password", dsn, err, want)
		}
	}
}
