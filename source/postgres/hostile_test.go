package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/followpress/followpress/internal/testenv/databases"
	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/postgres"
)

// TestProfilesThatNoRowCanHold has profiles as anybody can make them, with a resolver that answers what it
// likes. They must not stop the snapshot.
func TestProfilesThatNoRowCanHold(t *testing.T) {
	server := databases.Start(t)
	for _, c := range []struct{ name, set, names string }{
		{"long avatar", `avatar = repeat('x', 17 << 20)`, "a.eth b.eth "},
		{"long escapes", `avatar = repeat(E'\x01', 3 << 20)`, "a.eth b.eth "},
		{"many escapes", `avatar = repeat(E'\x01', 512 << 10), header = repeat(E'\x01', 512 << 10), display = repeat(E'\x01', 512 << 10), records = json_build_object('a', repeat('x', (512 << 10) - 10))`, "a.eth b.eth "},
		{"long name", `name = repeat('x', 17 << 20)`, "b.eth "},
		{"long records", `records = json_build_object('a', repeat('x', 17 << 20))`, "a.eth b.eth "},
		{"lone surrogate", `records = '{"a":"\ud800"}'`, "a.eth b.eth "},
		{"deep records", `records = ('{"a":' || repeat('[', 3000) || repeat(']', 3000) || '}')::json`, "a.eth b.eth "},
		{"records twice", `records = '{"a":"1","a":"2"}'`, "a.eth b.eth "},
		{"a number", `records = '{"a":1e999999}'`, "a.eth b.eth "},
		{"no object", `records = '[]'`, "a.eth b.eth "},
		{"one newline", `avatar = E'a\nb\u2028'`, "a.eth b.eth "},
	} {
		t.Run(c.name, func(t *testing.T) {
			dsn := server.Database(t)
			databases.FillV1(t, dsn, chain(mint(0, 1)))
			databases.Exec(t, dsn, fmt.Sprintf(`ALTER TABLE ens_metadata DROP CONSTRAINT ens_metadata_name_key;
INSERT INTO ens_metadata (address, name) VALUES ('0x%x', 'a.eth'), ('0x%x', 'b.eth');
UPDATE ens_metadata SET %s WHERE name = 'a.eth'`, account(1), account(2), c.set))
			dir := filepath.Join(t.TempDir(), "snapshot")
			if err := whole(t.Context(), dsn, dir); err != nil {
				t.Fatalf("got %.300v, want a snapshot", err)
			}
			names := ""
			for a, err := range snapshot.Accounts(openFolder(t, dir)) {
				if err != nil {
					t.Fatalf("read again: %v", err)
				}
				names += a.ENS.Name + " "
			}
			if want := c.names; names != want {
				t.Errorf("profiles: got %.100q, want %q", names, want)
			}
		})
	}
}

// TestFunctionsOfPublic has functions that fit the columns' types better than those of PostgreSQL do. None of
// them may run, since whoever made them need not be who reads.
func TestFunctionsOfPublic(t *testing.T) {
	dsn := databases.Start(t).Database(t)
	databases.FillV1(t, dsn, chain(mint(0, 1)))
	for _, f := range []string{"left(varchar, int)", "lower(varchar)", "octet_length(varchar)"} {
		databases.Exec(t, dsn, "CREATE FUNCTION public."+f+` RETURNS text LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'a function of public has run'; END $$`)
	}
	if err := whole(t.Context(), dsn, filepath.Join(t.TempDir(), "snapshot")); err != nil {
		t.Errorf("got %v, want a snapshot", err)
	}
}

// whole makes a snapshot as the command does.
func whole(ctx context.Context, dsn, dir string) (err error) {
	w, err := snapshot.Create(dir, snapshot.WriteOptions{NoSync: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	r, err := postgres.Open(ctx, postgres.Options{DSN: dsn, Progress: quiet{}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	g, err := r.Write(ctx, w)
	if err == nil {
		err = source.WriteAccounts(w, g, r.Profiles())
	}
	if err == nil {
		err = w.Commit(snapshot.Meta{AsOf: g.AsOf})
	}
	return err
}

func openFolder(t *testing.T, dir string) *snapshot.Folder {
	t.Helper()
	folder, err := snapshot.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := folder.Close(); err != nil {
			t.Error(err)
		}
	})
	return folder
}
