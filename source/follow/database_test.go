package follow

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/afero"

	"github.com/followpress/followpress/fixtures/history"
	"github.com/followpress/followpress/internal/testenv/databases"
	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/postgres"
)

// Rounds of a database are what `snapshot postgres` makes of it, one for each change.
func TestRoundsOfADatabase(t *testing.T) {
	server := databases.Start(t)
	dsn := server.Database(t)
	databases.FillV2(t, dsn, history.Random(3, history.Options{Transactions: 200}), 10)
	d, err := OpenDatabase(DatabaseOptions{DSN: dsn, Poll: 100 * time.Millisecond, Pause: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}()
	next := func() source.Round {
		t.Helper()
		for {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			r, err := d.Next(ctx)
			cancel()
			if err != nil {
				t.Fatal(err)
			}
			if r.Snapshot != nil {
				return r
			}
		}
	}
	check := func(r source.Round) {
		t.Helper()
		dir := filepath.Join(t.TempDir(), "snapshot")
		w, err := snapshot.Create(dir, snapshot.WriteOptions{Compression: "none", NoSync: true})
		if err != nil {
			t.Fatal(err)
		}
		reader, err := postgres.Open(t.Context(), postgres.Options{DSN: dsn, Progress: noProgress{}})
		if err != nil {
			t.Fatal(err)
		}
		g, err := reader.Write(t.Context(), w)
		if err == nil {
			err = source.WriteAccounts(w, g, reader.Profiles())
		}
		if err = errors.Join(err, reader.Close()); err == nil {
			err = w.Commit(g.Meta())
		}
		if err != nil {
			t.Fatal(err)
		}
		want, got := filesOf(t, afero.NewBasePathFs(afero.NewOsFs(), dir)), map[string]string{}
		for name := range want {
			text, err := afero.ReadFile(r.Snapshot, name)
			if err != nil {
				t.Fatal(err)
			}
			got[name] = string(text)
		}
		if !maps.Equal(got, want) {
			t.Fatal(describe(got, want))
		}
	}
	first := next()
	check(first)
	if first.Lists != nil || len(first.Heads) == 0 {
		t.Errorf("the first round: got lists %v, heads %v, want none, and some", first.Lists, first.Heads)
	}
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	const owner = "0x00000000000000000000000000000000000000ff"
	var id string
	err = conn.QueryRow(t.Context(), `UPDATE efp_lists SET owner = $1
WHERE token_id = (SELECT max(token_id) FROM efp_lists) RETURNING token_id::text`, owner).Scan(&id)
	if err != nil {
		t.Fatal(err)
	}
	second := next()
	check(second)
	if !slices.Equal(second.Lists, []string{id}) || len(second.Accounts) == 0 {
		t.Errorf("got lists %v, accounts %v, want list %s, and its account", second.Lists, second.Accounts, id)
	}
}
