package store_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/internal/testenv/process"
	"github.com/followpress/followpress/internal/testenv/tempdir"
	"github.com/followpress/followpress/source/internal/store"
)

type meta struct {
	N int `json:"n,omitempty"`
}

// A value is the expected content under a key.
type value struct {
	meta meta
	body string
}

func contents(t testing.TB, s *store.Store[meta]) map[string]value {
	t.Helper()
	all := map[string]value{}
	for _, key := range s.Keys() {
		m, hasBody, ok := s.Meta(key)
		body, err := s.Body(key)
		if err != nil || !ok || hasBody != (body != nil) {
			t.Fatalf("%s: got %q, %v, %v, %v, want an entry", key, body, hasBody, ok, err)
		}
		all[key] = value{m, string(body)}
	}
	return all
}

func open(t testing.TB, folder string) *store.Store[meta] {
	t.Helper()
	s, err := store.Open[meta](folder)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func closed(t testing.TB, s *store.Store[meta]) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestStoreRandomly compares a store with a map, over random steps.
func TestStoreRandomly(t *testing.T) {
	for seed := range uint64(12) {
		random := rand.New(rand.NewPCG(seed, 2))
		folder := filepath.Join(t.TempDir(), "a", "store")
		want := map[string]value{}
		s := open(t, folder)
		for range 100 {
			key := "key " + strconv.Itoa(random.IntN(20))
			m := meta{random.IntN(5)}
			var err error
			switch random.IntN(20) {
			case 0:
				s.Forget(key)
				delete(want, key)
			case 1:
				closed(t, s)
				s = open(t, folder)
			case 2:
				err = s.Flush()
			case 3, 4:
				s.PutMeta(key, m)
				want[key] = value{m, want[key].body}
			case 5:
				err = s.Put(key, m, nil)
				want[key] = value{m, ""}
			default:
				body := fmt.Sprintf(`{"text":"<é\n%s>"}`, strings.Repeat("x", random.IntN(3000)))
				err = s.Put(key, m, json.RawMessage(body))
				want[key] = value{m, body}
			}
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if got := contents(t, s); !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d: got %v, want %v", seed, got, want)
			}
		}
		if err := s.Flush(); err != nil {
			t.Fatal(err)
		}
		reader, err := store.Read[meta](folder) // also while it is open for writing
		if err != nil {
			t.Fatal(err)
		}
		if got := contents(t, reader); !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d: read: got %v, want %v", seed, got, want)
		}
		closed(t, reader)
		closed(t, s)
	}
}

func TestBusy(t *testing.T) {
	folder := t.TempDir()
	s := open(t, folder)
	if _, err := store.Open[meta](folder); !errors.Is(err, store.ErrBusy) {
		t.Errorf("a second writer: got %v, want ErrBusy", err)
	}
	closed(t, s)
	closed(t, s) // nothing the second time
	closed(t, open(t, folder))
}

func TestReadNothing(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "none")
	s, err := store.Read[meta](folder)
	if err != nil {
		t.Fatal(err)
	}
	if got := contents(t, s); len(got) != 0 {
		t.Errorf("got %v, want nothing", got)
	}
	closed(t, s)
	if _, err := os.Stat(folder); err == nil {
		t.Error("reading made the folder, want no change")
	}
}

// TestDamaged: for a database truncated or changed anywhere, Open returns an error with a remedy,
// or the entries are intact. The process survives.
func TestDamaged(t *testing.T) {
	folder := t.TempDir()
	s := open(t, folder)
	for i := range 300 {
		if err := s.Put(strconv.Itoa(i), meta{i}, json.RawMessage(`"`+strings.Repeat("x", 200)+`"`)); err != nil {
			t.Fatal(err)
		}
	}
	closed(t, s)
	file := filepath.Join(folder, "store.db")
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(20261123, 1))
	refused := 0
	for i := range 300 {
		damaged := slices.Clone(whole)
		if at := random.IntN(len(damaged)); i == 0 {
			damaged = nil
		} else if random.IntN(2) == 0 {
			damaged = damaged[:at]
		} else {
			for i := range min(16, len(damaged)-at) {
				damaged[at+i] = byte(random.Uint32())
			}
		}
		// A file of its own: what a panic leaves open is locked until the process ends.
		if err := errors.Join(os.Remove(file), os.WriteFile(file, damaged, 0o644)); err != nil {
			t.Fatal(err)
		}
		err := use(folder)
		if err == nil {
			continue
		}
		refused++
		if !strings.Contains(err.Error(), "remove the folder") || !strings.Contains(err.Error(), folder) {
			t.Fatalf("got %v, want an error that names the folder, and what to do", err)
		}
	}
	if refused < 60 {
		t.Errorf("got %d errors of 300 damages, want more", refused)
	}
}

// use reads all of a store, and puts an entry.
func use(folder string) error {
	reader, err := store.Read[meta](folder)
	if err != nil {
		return err
	}
	for _, key := range reader.Keys() {
		if _, err := reader.Body(key); err != nil {
			return err
		}
	}
	if err := reader.Close(); err != nil {
		return err
	}
	s, err := store.Open[meta](folder)
	if err != nil {
		return err
	}
	return errors.Join(s.Put("new", meta{9}, nil), s.Close())
}

// TestDiskFull: after a write that failed, no entry counts as flushed that the next run would not find.
func TestDiskFull(t *testing.T) {
	folder := t.TempDir()
	s := open(t, folder)
	put := func(key string) error {
		return errors.Join(s.Put(key, meta{1}, json.RawMessage(`"`+strings.Repeat("x", 50_000)+`"`)), s.Flush())
	}
	if err := put("a"); err != nil {
		t.Fatal(err)
	}
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 90_000, Max: limit.Max}); err != nil {
		t.Fatal(err)
	}
	full := put("b")
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	if full == nil {
		t.Fatal("a full disk: got no error, want one")
	}
	if err := put("c"); err == nil {
		t.Error("after it: got no error, want the same")
	}
	if err := s.Close(); err == nil {
		t.Error("close: got no error, want the same")
	}
	s = open(t, folder)
	if got := s.Keys(); !slices.Equal(got, []string{"a"}) {
		t.Errorf("entries: got %v, want a", got)
	}
	closed(t, s)
}

// Set in the environment, this makes the test binary a writer that can be killed.
const childFolder = "FOLLOWPRESS_TEST_STORE"

func TestMain(m *testing.M) {
	tempdir.InMemory()
	if folder := os.Getenv(childFolder); folder != "" {
		fmt.Fprintln(os.Stderr, write(folder))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// write counts the entries of a store up for ever, and prints each count that it has flushed.
func write(folder string) error {
	s, err := store.Open[meta](folder)
	if err != nil {
		return err
	}
	m, _, _ := s.Meta("0")
	for n := m.N + 1; ; n++ {
		for key := range 30 {
			body := fmt.Sprintf(`{"n":%d,"text":"%s"}`, n, strings.Repeat("x", 500))
			if err := s.Put(strconv.Itoa(key), meta{n}, json.RawMessage(body)); err != nil {
				return err
			}
		}
		if err := s.Flush(); err != nil {
			return err
		}
		fmt.Println(n)
	}
}

// TestKilled: flushed entries survive a kill at any time, completely.
func TestKilled(t *testing.T) {
	folder := t.TempDir()
	random := rand.New(rand.NewPCG(20261122, 3))
	for range 12 {
		p := process.Start(t, process.Self(t, []string{childFolder + "=" + folder}))
		p.Line(0)
		time.Sleep(time.Duration(random.Int64N(int64(20 * time.Millisecond))))
		p.Signal(syscall.SIGKILL)
		if _, killed := p.Wait(); !killed {
			t.Fatalf("writer: got an end, want none: %s", p.Stderr())
		}
		lines := p.Lines()
		flushed, err := strconv.Atoi(lines[len(lines)-1].Text)
		if err != nil {
			t.Fatal(err)
		}
		s := open(t, folder)
		for key, v := range contents(t, s) {
			if v.meta.N < flushed || v.meta.N > flushed+1 || !strings.HasPrefix(v.body, fmt.Sprintf(`{"n":%d,`, v.meta.N)) {
				t.Fatalf("key %s: got %d, %.20s, want %d or the next", key, v.meta.N, v.body, flushed)
			}
		}
		closed(t, s)
	}
}
