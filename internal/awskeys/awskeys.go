// Package awskeys finds the keys of AWS and of services that take such keys.
package awskeys

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"
)

// roleTimeout is short: the credentials server of a machine with a role is nearby.
const roleTimeout = 3 * time.Second

// New returns credentials from the environment (AWS_ACCESS_KEY_ID and so on), the shared
// credentials file, or the role of the machine. They are cached and renewed when they expire.
func New() *credentials.Credentials {
	return credentials.NewChainCredentials([]credentials.Provider{
		&credentials.EnvAWS{},
		&credentials.FileAWSCredentials{},
		&credentials.IAM{Client: &http.Client{Timeout: roleTimeout, Transport: &http.Transport{}}}, // not through a proxy
	})
}

// Get returns the keys. It is an error if there are none.
func Get(ctx context.Context, creds *credentials.Credentials) (credentials.Value, error) {
	type result struct {
		value credentials.Value
		err   error
	}
	got := make(chan result, 1)
	go func() {
		value, err := creds.GetWithContext(nil)
		if err == nil && (value.AccessKeyID == "" || value.SecretAccessKey == "") {
			err = errors.New("no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE to one that is in the shared credentials file, or run on a machine with a role")
		}
		got <- result{value, err}
	}()
	select {
	case r := <-got:
		return r.value, r.err
	case <-ctx.Done():
		return credentials.Value{}, ctx.Err()
	}
}
