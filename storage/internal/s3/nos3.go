package s3

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// A notS3Error means that the server is no S3 server, because it answered with a web page.
type notS3Error struct{ status int }

// Error returns the message, with what to check.
func (e *notS3Error) Error() string {
	return fmt.Sprintf("not an S3 server, it answers with a web page (status %d); check --endpoint", e.status)
}

// s3Only rejects web pages, which no S3 server sends. It accepts objects that are pages, and temporary errors, which
// may come from a proxy.
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
