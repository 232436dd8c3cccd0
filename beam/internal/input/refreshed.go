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
	"github.com/followpress/followpress/storage/refreshed"
)

func init() {
	dofn.Register6x1(&readRefreshed{})
}

// CheckRefreshed returns an error if there is no refreshed data at a location, like generate before
// it begins.
func CheckRefreshed(ctx context.Context, location Source) error {
	_, err := location.openRefreshed(ctx)
	return err
}

// Refreshed reads refreshed data, in the order of keys: wire.RefreshedObject by token ID. All
// emitted objects can be decoded. One worker reads it, many objects at a time. Its digest has the
// key TableRefreshed, if there is any object.
func (t *Tables) Refreshed(s beam.Scope, location Source) Rows {
	s = s.Scope("read refreshed")
	rows, counts, notes, digest := beam.ParDo4(s, &readRefreshed{reader{location, t.options}}, beam.Impulse(s))
	return Rows{rows, counts, notes, digest}
}

func (s Source) openRefreshed(ctx context.Context) (*refreshed.Data, error) {
	at, err := refreshed.Parse(s.Location)
	if err != nil {
		return nil, err
	}
	return refreshed.Open(ctx, at, s.s3())
}

type readRefreshed struct{ reader }

func (r *readRefreshed) ProcessElement(ctx context.Context, _ []byte, emit emitRow, count emitCount, note, digest emitRow) error {
	c := r.tally(TableRefreshed, count, note)
	refreshed, err := r.Source.openRefreshed(ctx)
	if err != nil {
		return c.end(ctx, err)
	}
	object := wire.RefreshedObject{}
	var rows snapshot.Digest
	var row []byte
	any := false
	err = refreshed.Each(ctx, func(key site.Key, body []byte) error {
		object.Number++
		object.Body = bytes.TrimSpace(body)
		c.counts[RowCount(c.table)]++
		var tokenID string
		var err error
		tokenID, row, err = decodeRefreshed(key, &object, row[:0])
		if err == nil {
			emit(tokenID, object.Append(nil))
			rows.Add(row)
			any = true
		} else { // as in generate, anyone with write access there must not be able to stop every run
			c.skip(wire.Position{Line: object.Number}, &snapshot.RowError{File: string(site.RefreshPrefix + key), Reason: err.Error()})
		}
		return nil
	})
	if err == nil && any {
		sum := rows.Sum()
		digest(string(TableRefreshed), sum[:])
	}
	return c.end(ctx, err)
}

// decodeRefreshed appends the row of an object, for the digest. It returns an error if an object
// cannot be decoded.
func decodeRefreshed(key site.Key, o *wire.RefreshedObject, b []byte) (tokenID string, row []byte, err error) {
	kind, tokenID, ok := site.ParseRefreshKey(key)
	if !ok {
		return "", nil, errors.New("the key is neither details/{token_id} nor badges/{token_id}")
	}
	if o.Badges = kind == site.Badges; o.Badges {
		kept, address, err := refresh.DecodeKeptBadges(o.Body)
		if err != nil {
			return "", nil, err
		}
		return tokenID, refresh.AppendBadgesRow(b, tokenID, &kept, address), nil
	}
	profile, address, err := refresh.DecodeKeptProfile(o.Body)
	if err != nil {
		return "", nil, err
	}
	return tokenID, refresh.AppendProfileRow(b, tokenID, &profile, address), nil
}
