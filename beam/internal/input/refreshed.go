package input

import (
	"bytes"
	"context"
	"errors"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/followpress/followpress/beam/internal/dofn"
	"github.com/followpress/followpress/beam/internal/wire"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/refresh"
	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/storage"
)

func init() {
	dofn.Register5x1(&readRefreshed{})
}

// CheckRefreshed returns an error if there is no refreshed data at a location, as generate does before
// it begins.
func CheckRefreshed(ctx context.Context, location Source) error {
	_, err := location.openRefreshed(ctx)
	return err
}

// Refreshed reads refreshed data, in the order of keys: wire.RefreshedObject by token ID. All of it can
// be decoded. One worker reads it, which takes many objects at a time.
func (t *Tables) Refreshed(s beam.Scope, location Source) Rows {
	s = s.Scope("read refreshed")
	rows, counts, notes := beam.ParDo3(s, &readRefreshed{reader{location, t.options}}, beam.Impulse(s))
	return Rows{rows, counts, notes}
}

func (s Source) openRefreshed(ctx context.Context) (*storage.Refreshed, error) {
	at, err := storage.ParseRefreshed(s.Location)
	if err != nil {
		return nil, err
	}
	return storage.OpenRefreshed(ctx, at, s.s3())
}

type readRefreshed struct{ reader }

// ProcessElement reads all objects.
func (r *readRefreshed) ProcessElement(ctx context.Context, _ []byte, emit emitRow, count emitCount, note emitRow) error {
	c := r.tally(TableRefreshed, count, note)
	refreshed, err := r.Source.openRefreshed(ctx)
	if err != nil {
		return c.end(ctx, err)
	}
	object := wire.RefreshedObject{}
	return c.end(ctx, refreshed.Each(ctx, func(key site.Key, body []byte) error {
		object.Number++
		object.Body = bytes.TrimSpace(body)
		c.counts[RowCount(c.table)]++
		tokenID, err := decodeRefreshed(key, &object)
		if err != nil {
			return c.rejectAt(wire.Position{Line: object.Number}, &snapshot.RowError{File: string(site.RefreshPrefix + key), Reason: err.Error()})
		}
		emit(tokenID, object.Append(nil))
		return nil
	}))
}

// decodeRefreshed returns an error if an object cannot be decoded.
func decodeRefreshed(key site.Key, o *wire.RefreshedObject) (tokenID string, err error) {
	kind, tokenID, ok := site.ParseRefreshKey(key)
	if !ok {
		return "", errors.New("the key is neither details/{token_id} nor badges/{token_id}")
	}
	if o.Badges = kind == site.Badges; o.Badges {
		_, _, err = refresh.DecodeKeptBadges(o.Body)
	} else {
		_, _, err = refresh.DecodeKeptProfile(o.Body)
	}
	return tokenID, err
}
