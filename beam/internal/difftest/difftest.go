// Package difftest compares sites of the pipeline with those of the generator, for tests. It makes
// random snapshots, and reports which objects differ.
package difftest

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/generator/summary"
	"github.com/followpress/followpress/internal/release"
	"github.com/followpress/followpress/internal/twin/memsite"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/storage"
	"github.com/followpress/followpress/storage/refreshed"
)

// A Case is a snapshot, and the options of its site.
type Case struct {
	Name        string // special features
	Snapshot    string // folder
	Refreshed   string // folder; "" for none
	Config      site.Config
	SkipInvalid bool
}

// Want generates the site of a case, and returns the generator's report.
func (c Case) Want(tb testing.TB) (memsite.Site, *summary.Report) {
	tb.Helper()
	want, report, err := c.generate(tb.Context())
	if err != nil {
		tb.Fatalf("%s: generate: %v", c.Name, err)
	}
	return want, report
}

// WantError returns the generator's error for a case without a site.
func (c Case) WantError(tb testing.TB) error {
	tb.Helper()
	_, _, err := c.generate(tb.Context())
	if err == nil {
		tb.Fatalf("%s: generate: got a site, want an error", c.Name)
	}
	return err
}

func (c Case) generate(ctx context.Context) (memsite.Site, *summary.Report, error) {
	o := generator.Options{Config: c.Config, SkipInvalid: c.SkipInvalid, Generator: release.Version()}
	if c.Refreshed != "" {
		opened, err := refreshed.Open(ctx, storage.Location{Folder: c.Refreshed}, storage.S3Options{})
		if err != nil {
			return nil, nil, err
		}
		o.Refreshed = opened
	}
	folder, err := snapshot.Open(c.Snapshot)
	if err != nil {
		return nil, nil, err
	}
	files, report, err := generator.ToMemory(ctx, folder, o)
	if err = errors.Join(err, folder.Close()); err != nil {
		return nil, nil, err
	}
	made, err := memsite.Read(files)
	return made, report, err
}

// Check fails the test unless the parts in a folder are the site of a case.
func (c Case) Check(tb testing.TB, parts string) {
	tb.Helper()
	want, _ := c.Want(tb)
	if diff := Diff(Read(tb, parts), want); diff != "" {
		tb.Errorf("%s: the site differs from the generator's:\n%s", c.Name, diff)
	}
}

// CheckSums is Check for sites too large for memory: it compares the digests of objects.
func (c Case) CheckSums(tb testing.TB, parts string) {
	tb.Helper()
	folder, err := snapshot.Open(c.Snapshot)
	if err != nil {
		tb.Fatal(err)
	}
	defer folder.Close()
	archive := filepath.Join(tb.TempDir(), "part-all.tar")
	o := generator.Options{Config: c.Config, SkipInvalid: c.SkipInvalid, Generator: release.Version()}
	if _, err := generator.ToPath(tb.Context(), folder, archive, o); err != nil {
		tb.Fatal(err)
	}
	got, want := sums(tb, parts), sums(tb, filepath.Dir(archive))
	differ := 0
	for key, sum := range want {
		if got[key] != sum {
			if differ++; differ <= mostKeys {
				tb.Errorf("%s: is another object than the generator's, or missing", key)
			}
		}
	}
	if differ > 0 || len(got) != len(want) {
		tb.Errorf("%s: got %d objects, want %d; %d of these differ", c.Name, len(got), len(want), differ)
	}
}

// sums returns the digests of the objects of the site whose parts are in a folder.
func sums(tb testing.TB, parts string) map[site.Key]site.MD5 {
	tb.Helper()
	all := map[site.Key]site.MD5{}
	err := eachObject(parts, func(key site.Key, body io.Reader) error {
		read, err := io.ReadAll(body)
		all[key] = site.Sum(read)
		return err
	})
	if err != nil {
		tb.Fatalf("site of %s: %v", parts, err)
	}
	return all
}

// Read reads the site whose parts are in a folder, or fails the test. The parts, joined as by cat
// part-*, must be one tar file: each object once, as a plain file with the time of the root, and
// then the root.
func Read(tb testing.TB, parts string) memsite.Site {
	tb.Helper()
	s, err := read(parts)
	if err != nil {
		tb.Fatalf("site of %s: %v", parts, err)
	}
	return s
}

func read(parts string) (memsite.Site, error) {
	s := memsite.Site{}
	return s, eachObject(parts, func(key site.Key, body io.Reader) error {
		read, err := io.ReadAll(body)
		s[key] = string(read)
		return err
	})
}

// eachObject calls do for each object of the site whose parts are in a folder.
func eachObject(parts string, do func(key site.Key, body io.Reader) error) error {
	names, err := filepath.Glob(filepath.Join(parts, "part-*"))
	if err != nil {
		return err
	}
	var all []io.Reader
	for _, name := range names { // sorted
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		defer file.Close()
		all = append(all, file)
	}
	last := site.Key("")
	seen := map[site.Key]bool{}
	times := map[int64]site.Key{}
	for archive := tar.NewReader(io.MultiReader(all...)); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		last = site.Key(header.Name)
		if seen[last] || header.Typeflag != tar.TypeReg || header.Mode != 0o644 {
			return fmt.Errorf("%s is duplicate, or not a regular file: %+v", last, header)
		}
		seen[last] = true
		if err := do(last, archive); err != nil {
			return fmt.Errorf("%s: %w", last, err)
		}
		times[header.ModTime.UnixNano()] = last
	}
	switch {
	case last != site.RootKey:
		return fmt.Errorf("%d parts end with %q, want the root", len(names), last)
	case len(times) > 1:
		return fmt.Errorf("the times of entries differ: %v", times)
	}
	return nil
}

// mostKeys bounds the keys of a kind that Diff names, mostBodies the bodies that it shows.
const (
	mostKeys   = 20
	mostBodies = 5
)

// Diff describes how a site differs from the wanted one: missing and extra keys, by kind, and where
// bodies differ. It returns "" if they are equal. It compares manifest and root only if nothing
// else differs, because they repeat it.
func Diff(got, want memsite.Site) string {
	if diff := diff(got.WithoutIndex(), want.WithoutIndex()); diff != "" {
		return diff
	}
	return diff(got, want)
}

func diff(got, want memsite.Site) string {
	var missing, extra, different []site.Key
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if body, ok := got[key]; !ok {
			missing = append(missing, key)
		} else if body != want[key] {
			different = append(different, key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[key]; !ok {
			extra = append(extra, key)
		}
	}
	var b strings.Builder
	list(&b, "missing", missing, len(want))
	list(&b, "extra", extra, len(got))
	list(&b, "different", different, len(want))
	for _, key := range spread(different, mostBodies) {
		at, g, w := around(got[key], want[key])
		fmt.Fprintf(&b, "%s: at byte %d of %d,\n got %s\nwant %s\n", key, at, len(want[key]), g, w)
	}
	return b.String()
}

// list writes the number of keys by kind, and some of them.
func list(b *strings.Builder, what string, keys []site.Key, of int) {
	if len(keys) == 0 {
		return
	}
	kinds := map[string]int{}
	for _, key := range keys {
		kinds[kind(key)]++
	}
	fmt.Fprintf(b, "%d of %d objects are %s:", len(keys), of, what)
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		fmt.Fprintf(b, " %d %s", kinds[kind], kind)
	}
	b.WriteString("\n")
	for _, key := range spread(keys, mostKeys) {
		fmt.Fprintf(b, "  %s\n", key)
	}
}

// spread returns some of the keys, of as many kinds as possible.
func spread(keys []site.Key, most int) (some []site.Key) {
	perKind := map[string][]site.Key{}
	for _, key := range keys {
		perKind[kind(key)] = append(perKind[kind(key)], key)
	}
	for round := 0; len(some) < min(most, len(keys)); round++ {
		for _, kind := range slices.Sorted(maps.Keys(perKind)) {
			if of := perKind[kind]; round < len(of) && len(some) < most {
				some = append(some, of[round])
			}
		}
	}
	return some
}

// kind returns a key without names of lists and users, and without numbers.
func kind(key site.Key) string {
	parts := strings.Split(string(key), "/")
	for i, part := range parts {
		switch {
		case i > 0 && (parts[i-1] == "users" || parts[i-1] == "lists" || parts[i-1] == "tokens" || parts[i-1] == "followers" && i == 2):
			parts[i] = "*"
		case strings.Trim(part, "0123456789") == "":
			parts[i] = "N"
		case parts[0] == "_manifest" && i == 1:
			parts[i] = "*"
		}
	}
	return strings.Join(parts, "/")
}

// around returns where two texts begin to differ, and the text there.
func around(got, want string) (at int, g, w string) {
	for at < min(len(got), len(want)) && got[at] == want[at] {
		at++
	}
	const before, after = 60, 120
	cut := func(text string) string {
		begin, end := max(0, at-before), min(len(text), at+after)
		cut := text[begin:end]
		if begin > 0 {
			cut = "…" + cut
		}
		if end < len(text) {
			cut += "…"
		}
		return cut
	}
	return at, cut(got), cut(want)
}

// Flags returns the flags of the command for a case, except the location of the parts.
func (c Case) Flags() []string {
	o := c.Config
	args := []string{
		"--snapshot=" + c.Snapshot, fmt.Sprintf("--explorer=%t", o.Explorer), fmt.Sprintf("--reports=%t", o.Reports),
	}
	for _, f := range []struct{ name, value string }{
		{"refreshed", c.Refreshed}, {"api", o.API}, {"names", o.Names}, {"base-path", o.BasePath}, {"profile-url", o.ProfileURL}, {"badges-field", o.BadgesField},
		{"pictures", o.Pictures}, {"explorer-key", o.ExplorerKeys},
	} {
		if f.value != "" {
			args = append(args, "--"+f.name+"="+f.value)
		}
	}
	for _, f := range []struct {
		name  string
		value int
	}{{"leaderboard-max", o.LeaderboardMax}, {"max-profile-text", o.MaxProfileText}, {"max-profile", o.MaxProfile}} {
		if f.value != 0 {
			args = append(args, fmt.Sprintf("--%s=%d", f.name, f.value))
		}
	}
	if o.API == site.APIEFP {
		args = append(args, "--history-window="+time.Duration(o.HistoryWindow).String())
	}
	if c.SkipInvalid {
		args = append(args, "--on-invalid=skip")
	}
	return args
}
