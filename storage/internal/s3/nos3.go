package s3

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// A notS3Error says that a server is none of S3: it has answered with a web page.
type notS3Error struct{ status int }

// Error says what to do.
func (e *notS3Error) Error() string {
	return fmt.Sprintf("the server answers with a web page (status %d), so this is no S3 API: check --endpoint", e.status)
}

// s3Only refuses answers that no S3 server gives: pages, but for an object that is one, and for errors that pass, which
// may be those of a proxy.
type s3Only struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (s s3Only) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := s.next.RoundTrip(r)
	if err != nil || !strings.HasPrefix(response.Header.Get("Content-Type"), "text/html") {
		return response, err
	}
	switch status := response.StatusCode; {
	case status/100 == 2 && response.Header.Get("ETag") != "":
		return response, nil // an object
	case status/100 == 2, status == http.StatusBadRequest, status == http.StatusUnauthorized, status == http.StatusForbidden,
		status == http.StatusNotFound, status == http.StatusMethodNotAllowed:
		return nil, errors.Join(&notS3Error{status}, response.Body.Close())
	}
	return response, nil
}
