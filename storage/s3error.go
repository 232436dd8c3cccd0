package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"

	"github.com/minio/minio-go/v7"

	"github.com/followpress/followpress/site"
)

// permanent are answers that trying again does not change, and what to check.
var permanent = map[string]string{
	"AccessDenied":                       "check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, whether they may do this to the bucket (s3:ListBucket too: without it what is absent is forbidden), and its policy",
	"AllAccessDisabled":                  "check the account of the bucket",
	"InvalidAccessKeyId":                 "check AWS_ACCESS_KEY_ID: the server does not know it",
	"XAdminUserNotFound":                 "check AWS_ACCESS_KEY_ID: the server does not know it", // versitygw
	"InvalidToken":                       "check AWS_SESSION_TOKEN",
	"ExpiredToken":                       "the credentials have expired: get new ones",
	"SignatureDoesNotMatch":              "check AWS_SECRET_ACCESS_KEY",
	"RequestTimeTooSkewed":               "check the clock of this machine",
	"AuthorizationHeaderMalformed":       "check --region",
	"IllegalLocationConstraintException": "check --region and --endpoint: the bucket is in another region",
	"InvalidRegion":                      "check --region",
	"PermanentRedirect":                  "check --region and --endpoint: the bucket is elsewhere",
	"InvalidBucketName":                  "check the name of the bucket",
	"QuotaExceeded":                      "the bucket is full",
	"XMinioStorageFull":                  "the server's disks are full",
	"EntityTooLarge":                     "the server takes no object of this size",
	"KeyTooLongError":                    "the server takes no key of this length: shorten the prefix in --dest",
}

// temporary are codes that may go away though they come with a 4xx or 501 status, or
// inside of an answer that has none of its own.
var temporary = map[string]bool{
	"SlowDown": true, "RequestTimeout": true, "Throttling": true, "ThrottlingException": true, "RequestThrottled": true,
	"RequestLimitExceeded": true, "TooManyRequests": true, "ConditionalRequestConflict": true, "OperationAborted": true,
	"IncompleteBody": true, "XMinioServerNotInitialized": true, "InternalError": true, "ServiceUnavailable": true,
}

// explain says what failed, makes one of our errors of it where there is one, adds
// what to check where that is known, and marks what may go away by itself. No
// message of ours or of the library holds a credential: requests are signed, so that
// none is in a URL.
func explain(verb string, key site.Key, err error) error {
	what := strings.TrimSpace(verb + " " + string(key))
	var answer minio.ErrorResponse
	if !errors.As(err, &answer) || answer.Code == "" && answer.StatusCode == 0 {
		return explainSilence(fmt.Errorf("%s: %w", what, err))
	}
	switch answer.Code {
	case "NoSuchKey":
		return ErrNotFound
	case "NoSuchBucket":
		return fmt.Errorf("%s: bucket %q: %w: followpress init creates it; or check its name, --endpoint and --region", what, answer.BucketName, ErrNoBucket)
	case "NotImplemented":
		return fmt.Errorf("%s: %w: %w", what, ErrUnsupported, err)
	case "PreconditionFailed":
		return fmt.Errorf("%s: %w", what, ErrCondition)
	}
	reason := fmt.Errorf("%s: %s (%s, status %d)", what, firstLine(answer.Message), firstLine(answer.Code), answer.StatusCode)
	if hint, ok := permanent[answer.Code]; ok {
		return fmt.Errorf("%w: %s", reason, hint)
	}
	switch {
	case answer.StatusCode == http.StatusPreconditionFailed:
		return fmt.Errorf("%s: %w", what, ErrCondition)
	case answer.StatusCode == http.StatusNotImplemented:
		return fmt.Errorf("%w: %w", reason, ErrUnsupported)
	case inDoubt(answer):
		return &UnansweredError{reason}
	case temporary[answer.Code], answer.StatusCode >= 500, answer.StatusCode == http.StatusTooManyRequests, answer.StatusCode == http.StatusRequestTimeout:
		return &temporaryError{reason}
	case answer.StatusCode == http.StatusForbidden, answer.StatusCode == http.StatusUnauthorized:
		return fmt.Errorf("%w: %s", reason, permanent["AccessDenied"])
	case answer.StatusCode == http.StatusMovedPermanently, answer.StatusCode == http.StatusTemporaryRedirect:
		return fmt.Errorf("%w: %s", reason, permanent["PermanentRedirect"])
	}
	return reason
}

// explainSilence is explain where the server gave no answer.
func explainSilence(err error) error {
	switch {
	case isNetworkError(err) && wasSent(err):
		return &UnansweredError{err}
	case isNetworkError(err):
		return &temporaryError{err}
	case unreachable(err):
		return fmt.Errorf("%w: check --endpoint, HTTPS_PROXY and the server's certificate", err)
	}
	return err
}

// inDoubt reports whether an answer leaves open what became of the request: those of
// proxies too, whose server may go on with it.
func inDoubt(answer minio.ErrorResponse) bool {
	switch answer.StatusCode {
	case http.StatusNotImplemented, http.StatusServiceUnavailable, http.StatusInsufficientStorage:
		return false
	}
	return answer.Code == "InternalError" || !temporary[answer.Code] && (answer.StatusCode >= 500 || answer.StatusCode == http.StatusRequestTimeout)
}

// wasSent reports whether a request that failed on its way may have reached the server.
func wasSent(err error) bool {
	var operation *net.OpError
	return !errors.As(err, &operation) || operation.Op != "dial"
}

// unreachable reports whether a request failed before there was an answer.
func unreachable(err error) bool {
	var request *url.Error
	return errors.As(err, &request) && !errors.Is(err, context.Canceled)
}

// firstLine keeps the pages that proxies answer with out of messages.
func firstLine(text string) string {
	const most = 200
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	return strings.TrimSuffix(text[:min(len(text), most)], ".")
}

// explainDelete is explain for deleting: some servers miss what is not there.
func explainDelete(key site.Key, err error) error {
	if err == nil {
		return nil
	}
	if err = explain("delete", key, err); errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// isDigestError reports whether the server found another MD5 than the one named.
func isDigestError(err error) bool {
	code := minio.ToErrorResponse(err).Code
	return code == "BadDigest" || code == "InvalidDigest" || code == "XAmzContentChecksumMismatch"
}

// isNetworkError reports whether a request failed on its way rather than by its answer.
func isNetworkError(err error) bool {
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return false
	case errors.Is(err, context.Canceled):
		return false
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.EPIPE), errors.Is(err, net.ErrClosed):
		return true
	}
	var operation *net.OpError
	var network net.Error
	if errors.As(err, &operation) || errors.As(err, &network) && network.Timeout() {
		return true
	}
	// net/http has no types for answers that broke off in their headers, and the library
	// makes a text of its own of an end of file.
	return strings.Contains(err.Error(), "transport connection broken") || strings.Contains(err.Error(), "malformed HTTP") ||
		strings.Contains(err.Error(), "server closed idle connection") || strings.Contains(err.Error(), "Connection closed by foreign host")
}
