package storage

import (
	"errors"
	"net"
	"net/url"
	"strings"
	"testing"
)

// A host that DNS does not know is called that; what else keeps a request from its server has other causes.
func TestUnknownHosts(t *testing.T) {
	unknown := &net.DNSError{Err: "no such host", Name: "s3.exmaple.org", IsNotFound: true}
	for _, c := range []struct {
		cause error
		want  string
	}{
		{&net.OpError{Op: "dial", Err: unknown}, "DNS knows no host s3.exmaple.org: check --endpoint"},
		{errors.New("x509: certificate signed by unknown authority"), "check --endpoint, HTTPS_PROXY and the server's certificate"},
	} {
		err := explainNoAnswer(&url.Error{Op: "Get", URL: "https://x/", Err: c.cause})
		if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "certificate") != strings.Contains(c.want, "certificate") {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}
