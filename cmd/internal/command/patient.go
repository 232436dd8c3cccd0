package command

import (
	"context"
	"log/slog"
	"time"

	"github.com/followpress/followpress/internal/retry"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// attemptTime bounds one request for an object.
const attemptTime = 2 * time.Minute

// A Patient site makes requests again that fail temporarily.
type Patient struct {
	storage.Site
	policy retry.Policy
}

// NewPatient returns a site whose GetAdmitted makes requests again for so long. It tells the logger of each, unless that is nil.
func NewPatient(s storage.Site, patience time.Duration, log *slog.Logger) Patient {
	return Patient{s, retry.Policy{
		Retryable: storage.Temporary, First: 200 * time.Millisecond, Longest: 5 * time.Second, Patience: patience, Log: log,
		Hint: "check the address, and that the server is up",
	}}
}

// GetAdmitted reads an object. It may call admit again for each attempt.
func (p Patient) GetAdmitted(ctx context.Context, key site.Key, admit func(ctx context.Context, size int64) error) (body []byte, err error) {
	err = p.policy.Do(ctx, func() error {
		attempt, cancel := context.WithTimeout(ctx, attemptTime)
		defer cancel()
		body, err = p.Site.GetAdmitted(attempt, key, admit)
		return err
	}, "key", key)
	return body, err
}
