package s3

import (
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/followpress/followpress/storage/internal/object"
)

// Only a host unknown to DNS is reported as such; other failures to reach a server have other causes.
func TestUnknownHosts(t *testing.T) {
	unknown := &net.DNSError{Err: "no such host", Name: "s3.exmaple.org", IsNotFound: true}
	for _, c := range []struct {
		cause error
		want  string
	}{
		{&net.OpError{Op: "dial", Err: unknown}, "check --endpoint and --region (DNS does not know s3.exmaple.org)"},
		{&net.OpError{Op: "dial", Err: &net.AddrError{Err: "invalid port", Addr: "99999"}}, "invalid port; check --endpoint"},
		{errors.New("x509: certificate signed by unknown authority"), "check --endpoint, HTTPS_PROXY and the server's certificate"},
	} {
		err := ExplainNoAnswer(&url.Error{Op: "Get", URL: "https://x/", Err: c.cause})
		if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "certificate") != strings.Contains(c.want, "certificate") || object.Temporary(err) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}

// A server that answers with web pages is not an S3 server. An object may be a page, and a proxy may be busy.
func TestPagesAreNoS3(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		header http.Header
		want   string
	}{
		"a page":             {200, http.Header{"Content-Type": {"text/html; charset=utf-8"}}, "not an S3 server, it answers with a web page"},
		"a console":          {400, http.Header{"Content-Type": {"text/html"}}, "not an S3 server, it answers with a web page"},
		"a wall":             {403, http.Header{"Content-Type": {"text/html"}}, "not an S3 server, it answers with a web page"},
		"another method":     {405, http.Header{"Content-Type": {"text/html"}}, "not an S3 server, it answers with a web page"},
		"a proxy that waits": {503, http.Header{"Content-Type": {"text/html"}}, ""},
		"a redirect": {301, http.Header{"Content-Type": {"application/xml"}, "X-Amz-Bucket-Region": {"eu-west-3"}},
			"the server names --region eu-west-3"},
		"a listing that breaks": {200, http.Header{"Content-Type": {"application/xml"}}, "characters that XML cannot hold"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			maps.Copy(w.Header(), c.header)
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, "<ListBucketResult><Key>a\bb</Key>")
		}))
		t.Setenv("AWS_ACCESS_KEY_ID", "x")
		t.Setenv("AWS_SECRET_ACCESS_KEY", "y")
		b, err := Open(t.Context(), "bucket", "", Options{Endpoint: server.URL})
		if err != nil {
			t.Fatal(err)
		}
		err = b.List(t.Context(), "", "", func(object.Info) error { return nil })
		if err == nil || !strings.Contains(err.Error(), c.want) || object.Temporary(err) != (c.status == 503) {
			t.Errorf("%s: got %v (temporary: %v), want %q", name, err, object.Temporary(err), c.want)
		}
		server.Close()
	}
}

// Responses to HEAD have no body with a reason. Requests for a bucket or an object still report it.
func TestHeadsSayWhy(t *testing.T) {
	const malformed = `<Error><Code>AuthorizationHeaderMalformed</Code><Message>the region is wrong</Message><Region>eu-west-3</Region></Error>`
	for name, c := range map[string]struct {
		status int
		region string // in a header
		body   string
		want   string
	}{
		"a wrong region":                  {400, "", malformed, "check --region (the server names --region eu-west-3)"},
		"a wrong region, named in header": {400, "eu-west-3", strings.Replace(malformed, "<Region>eu-west-3</Region>", "", 1), "the server names --region eu-west-3"},
		"another region":                  {301, "eu-west-3", "", "the server names --region eu-west-3"},
		"an expired token":                {400, "eu-west-3", "<Error><Code>ExpiredToken</Code></Error>", "the credentials have expired"},
		"an unknown key":                  {403, "", "<Error><Code>InvalidAccessKeyId</Code></Error>", "the server does not know it"},
		"no right":                        {403, "", "", "s3:ListBucket"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/xml")
			if c.region != "" {
				w.Header().Set("X-Amz-Bucket-Region", c.region)
			}
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.body)
		}))
		t.Setenv("AWS_ACCESS_KEY_ID", "x")
		t.Setenv("AWS_SECRET_ACCESS_KEY", "y")
		b, err := Open(t.Context(), "bucket", "", Options{Endpoint: server.URL})
		if err != nil {
			t.Fatal(err)
		}
		for what, look := range map[string]func() error{
			"an object": func() error { _, err := b.Stat(t.Context(), "key"); return err },
			"a digest":  func() error { _, err := b.Digest(t.Context(), "key"); return err },
			"a bucket":  func() error { _, err := b.Create(t.Context()); return err },
		} {
			if err := look(); err == nil || !strings.Contains(err.Error(), c.want) || object.Temporary(err) {
				t.Errorf("%s, %s: got %v, want %q", name, what, err, c.want)
			}
		}
		server.Close()
	}
}
