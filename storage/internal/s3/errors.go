package s3

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/followpress/followpress/internal/plain"
	"github.com/followpress/followpress/internal/retry"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage/internal/object"
)

// permanent maps non-retryable error codes to what to check.
var permanent = map[string]string{
	"AccessDenied":                       "check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, whether they may do this to the bucket (also s3:ListBucket, without which missing objects return 403), and its policy",
	"AllAccessDisabled":                  "check the account of the bucket",
	"InvalidAccessKeyId":                 "check AWS_ACCESS_KEY_ID, the server does not know it",
	"XAdminUserNotFound":                 "check AWS_ACCESS_KEY_ID, the server does not know it", // versitygw
	"InvalidToken":                       "check AWS_SESSION_TOKEN",
	"ExpiredToken":                       "the credentials have expired, get new ones",
	"SignatureDoesNotMatch":              "check AWS_SECRET_ACCESS_KEY",
	"RequestTimeTooSkewed":               "check the clock of this machine",
	"AuthorizationHeaderMalformed":       "check --region",
	"IllegalLocationConstraintException": "check --region and --endpoint, the bucket is in another region",
	"InvalidRegion":                      "check --region",
	"PermanentRedirect":                  "check --region and --endpoint, the bucket is elsewhere",
	"InvalidBucketName":                  "check the name of the bucket",
	"QuotaExceeded":                      "the bucket is full",
	"XMinioStorageFull":                  "the server's disks are full",
	"EntityTooLarge":                     "the server does not accept objects of this size",
	"KeyTooLongError":                    "shorten the prefix in --dest, the server does not accept keys of this length",
}

// temporary lists error codes that are retryable in spite of a status 4xx or 501, or that appear without a status of
// their own inside a larger response.
var temporary = map[string]bool{
	"SlowDown": true, "RequestTimeout": true, "Throttling": true, "ThrottlingException": true, "RequestThrottled": true,
	"RequestLimitExceeded": true, "TooManyRequests": true, "ConditionalRequestConflict": true, "OperationAborted": true,
	"IncompleteBody": true, "XMinioServerNotInitialized": true, "InternalError": true, "ServiceUnavailable": true,
}

// explain converts an error of minio-go: it adds the request and what to check, and maps it to the errors of package
// object. No message contains credentials: requests are signed in a header, not in the URL.
func explain(verb string, key site.Key, err error) error {
	what := strings.TrimSpace(verb + " " + string(key))
	var page *notS3Error
	if errors.As(err, &page) {
		return fmt.Errorf("%s: %w", what, page)
	}
	var malformed *xml.SyntaxError
	if errors.As(err, &malformed) && verb == "list" {
		return fmt.Errorf("%s: %w; if keys contain characters that XML cannot hold, use a separate prefix for the site", what, err)
	}
	var answer minio.ErrorResponse
	if !errors.As(err, &answer) || answer.Code == "" && answer.StatusCode == 0 {
		return ExplainNoAnswer(fmt.Errorf("%s: %w", what, err))
	}
	switch answer.Code {
	case "NoSuchKey":
		return object.ErrNotFound
	case "NoSuchBucket":
		return fmt.Errorf("%s: bucket %q: %w; create it with followpress init, or check its name, --endpoint and --region", what, answer.BucketName, object.ErrNoBucket)
	case "NotImplemented":
		return fmt.Errorf("%s: %w: %w", what, object.ErrUnsupported, err)
	case "PreconditionFailed":
		return fmt.Errorf("%s: %w", what, object.ErrCondition)
	}
	reason := fmt.Errorf("%s: %s (%s, status %d)", what, firstLine(answer.Message), firstLine(answer.Code), answer.StatusCode)
	if hint, ok := permanent[answer.Code]; ok {
		return fmt.Errorf("%w; %s", reason, inRegion(hint, answer.Region))
	}
	switch {
	case answer.StatusCode == http.StatusPreconditionFailed:
		return fmt.Errorf("%s: %w", what, object.ErrCondition)
	case answer.StatusCode == http.StatusNotImplemented:
		return fmt.Errorf("%w: %w", reason, object.ErrUnsupported)
	case isUnanswered(answer):
		return &object.UnansweredError{Err: reason}
	case temporary[answer.Code], answer.StatusCode >= 500, answer.StatusCode == http.StatusTooManyRequests, answer.StatusCode == http.StatusRequestTimeout:
		return &object.TemporaryError{Err: reason}
	case answer.StatusCode == http.StatusForbidden, answer.StatusCode == http.StatusUnauthorized:
		return fmt.Errorf("%w; %s", reason, permanent["AccessDenied"])
	case answer.StatusCode == http.StatusMovedPermanently, answer.StatusCode == http.StatusTemporaryRedirect:
		return fmt.Errorf("%w; %s", reason, inRegion(permanent["PermanentRedirect"], answer.Region))
	}
	return reason
}

// explainHead is explain for HEAD requests, whose responses have no body. If the status is ambiguous, it asks for the
// reason with a listing.
func (s *Bucket) explainHead(ctx context.Context, verb string, key site.Key, err error) error {
	switch minio.ToErrorResponse(err).StatusCode {
	case http.StatusBadRequest, http.StatusForbidden, http.StatusMovedPermanently, http.StatusTemporaryRedirect:
		errFound := errors.New("found")
		told := s.List(ctx, key, "", func(object.Info) error { return errFound })
		if told != nil && !errors.Is(told, errFound) {
			return fmt.Errorf("%s: %w", strings.TrimSpace(verb+" "+string(key)), told)
		}
	}
	return explain(verb, key, err)
}

// inRegion appends the region that the server reports, if any, to a hint to check the region.
func inRegion(hint, region string) string {
	if region = firstLine(region); region != "" && strings.Contains(hint, "--region") {
		return fmt.Sprintf("%s (the server names --region %s)", hint, region)
	}
	return hint
}

// ExplainNoAnswer classifies an error of a request without a response, and adds what to check.
func ExplainNoAnswer(err error) error {
	var address *net.AddrError
	switch {
	case object.IsNetworkError(err) && wasSent(err):
		return &object.UnansweredError{Err: err}
	case object.IsNetworkError(err):
		return &object.TemporaryError{Err: err}
	case object.UnknownHost(err) != "":
		return fmt.Errorf("%w; check --endpoint and --region (DNS does not know %s)", err, object.UnknownHost(err))
	case errors.As(err, &address):
		return fmt.Errorf("%w; check --endpoint", err)
	case unreachable(err):
		return fmt.Errorf("%w; check --endpoint, HTTPS_PROXY and the server's certificate", err)
	}
	return err
}

// isUnanswered reports whether a request may still take effect in spite of an error response. For example, a proxy
// may have given up on a server that continues.
func isUnanswered(answer minio.ErrorResponse) bool {
	switch answer.StatusCode {
	case http.StatusNotImplemented, http.StatusServiceUnavailable, http.StatusInsufficientStorage:
		return false
	}
	return answer.Code == "InternalError" || !temporary[answer.Code] && (answer.StatusCode >= 500 || answer.StatusCode == http.StatusRequestTimeout)
}

// wasSent reports whether a request without a response may have reached the server.
func wasSent(err error) bool {
	var operation *net.OpError
	return !errors.As(err, &operation) || operation.Op != "dial"
}

// unreachable reports whether a request failed without a response, for a reason other than its context.
func unreachable(err error) bool {
	var request *url.Error
	return errors.As(err, &request) && !errors.Is(err, context.Canceled)
}

// firstLine returns the first line of a text, shortened and without terminal control sequences. Proxies answer with
// whole pages.
func firstLine(text string) string {
	const maxBytes = 200
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	text = plain.Line(text)
	return strings.TrimSuffix(strings.ToValidUTF8(text[:min(len(text), maxBytes)], ""), ".")
}

// explainDelete is explain for Delete. Some servers report missing objects as errors, and some answer an unsupported
// request with "method not allowed".
func explainDelete(key site.Key, err error) error {
	if err == nil {
		return nil
	}
	explained := explain("delete", key, err)
	switch {
	case errors.Is(explained, object.ErrNotFound):
		return nil
	case minio.ToErrorResponse(err).StatusCode == http.StatusMethodNotAllowed:
		return fmt.Errorf("%w: %w", explained, object.ErrUnsupported)
	}
	return explained
}

// errOnItsWay means that the server computed another MD5 than the request states.
var errOnItsWay = errors.New("damaged on its way")

// explainPut is explain for requests whose body the server checks.
func explainPut(doing string, err error) error {
	if err == nil {
		return nil
	}
	switch minio.ToErrorResponse(err).Code {
	case "BadDigest", "InvalidDigest", "XAmzContentChecksumMismatch":
		return &object.TemporaryError{Err: fmt.Errorf("%s: %w: %w", doing, errOnItsWay, err)}
	}
	return explain(doing, "", err)
}

// ExplainRead adds the place that was read, and what to check.
func ExplainRead(place string, err error) error {
	if errors.Is(err, object.ErrNoBucket) {
		return fmt.Errorf("read %s: %w; check its name, --endpoint and --region", place, object.ErrNoBucket)
	}
	return fmt.Errorf("read %s: %w", place, err)
}

// ReadRetry retries reads of snapshots and refreshed data. Tests shorten its waits.
var ReadRetry = retry.Policy{
	Retryable: object.Temporary, First: 200 * time.Millisecond, Longest: 5 * time.Second, Attempts: 7,
	Hint: "check --endpoint, and that the server is up",
}
