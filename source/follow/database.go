package follow

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/source"
)

// DatabaseOptions say which database of an indexer is followed.
type DatabaseOptions struct {
	DSN      string        // as postgres.Options.DSN
	Poll     time.Duration // between two questions whether anything has changed; 0 means 2 s
	Tables   Tables        // for what the database does not have
	Progress source.Progress
	Log      *slog.Logger
}

// A Database makes rounds of the database of an indexer, with the methods of a Follower.
type Database struct{}

// OpenDatabase checks the options.
func OpenDatabase(DatabaseOptions) (*Database, error) { return nil, errors.New("not yet") }

// Next is that of Follower.
func (d *Database) Next(context.Context) (source.Round, error) {
	return source.Round{}, errors.New("not yet")
}

// Status is that of Follower.
func (d *Database) Status() Status { return Status{} }

// Renew is that of Follower.
func (d *Database) Renew() {}

// Finalized writes all tables of the database as it is: it does not tell which blocks are final.
func (d *Database) Finalized(context.Context, *snapshot.Writer) (snapshot.Meta, error) {
	return snapshot.Meta{}, errors.New("not yet")
}

// Close ends all requests.
func (d *Database) Close() error { return nil }
