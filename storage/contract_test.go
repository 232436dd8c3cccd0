package storage_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/followpress/followpress/internal/testenv/fakes3"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
	"github.com/followpress/followpress/storage/internal/s3"
	"github.com/followpress/followpress/storage/internal/storetest"
)

// A fake server that answers like Amazon S3 keeps the promises about conditions and contexts. It runs without a real
// server.
func TestAFakeServerKeepsThePromises(t *testing.T) {
	for name, check := range map[string]func(*testing.T, storage.Bucket){
		"conditions": conditions, "races": races, "digests": wrongDigests, "contexts": endedContexts, "stopped listings": stoppedListing,
	} {
		t.Run(name, func(t *testing.T) {
			for _, lacks := range []fakes3.Lacks{
				{},
				{Match: fakes3.Quoted, ETag: fakes3.Weak},
				{Match: fakes3.Unquoted},
				{Match: fakes3.Unquoted, ETag: fakes3.Unquoted, PutETag: true},
				{Match: fakes3.Weak, ETag: fakes3.Weak},
			} {
				server := fakes3.Start(t, lacks)
				check(t, openS3With(t, storage.Location{Bucket: "bucket", Prefix: "a+site/ü/"}, storage.S3Options{Endpoint: server.Endpoint}))
			}
		})
	}
}

// TestEveryBucketKeepsThePromises runs one suite against a folder and real servers.
func TestEveryBucketKeepsThePromises(t *testing.T) {
	promises := []struct {
		name  string
		check func(*testing.T, storage.Bucket)
	}{
		{"objects with awkward keys come back", awkwardKeys},
		{"objects of any size come back", anySize},
		{"an absent object is ErrNotFound", absentObjects},
		{"a put replaces an object", replaced},
		{"an object that has not changed is not sent again", unchanged},
		{"a condition that does not hold changes nothing", conditions},
		{"one of many puts under a condition wins", races},
		{"a wrong digest is ErrDamaged and stores nothing", wrongDigests},
		{"an ended context stores nothing", endedContexts},
		{"many objects are listed and deleted", manyObjects},
		{"listing stops where it is told to", stoppedListing},
		{"a listing is in the order of keys", orderedListing},
		{"the clock is that of the objects", clocks},
		{"only the first create makes the bucket", createdOnce},
	}
	t.Run("folder", func(t *testing.T) {
		for _, promise := range promises {
			t.Run(promise.name, func(t *testing.T) {
				promise.check(t, storage.OpenLocal(filepath.Join(t.TempDir(), "a bucket")))
			})
		}
	})
	for _, kind := range servers.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			server := servers.Start(t, kind)
			server.Env(t)
			for _, prefix := range []string{"", "a+site/ü/"} {
				t.Run("below "+prefix, func(t *testing.T) {
					for _, promise := range promises {
						t.Run(promise.name, func(t *testing.T) {
							promise.check(t, openS3(t, server, storage.Location{Bucket: server.Bucket(t), Prefix: prefix}))
						})
					}
				})
			}
		})
	}
}

// Fixtures of tests of several stores.
var (
	openS3, openS3With, onServers = storetest.OpenS3, storetest.OpenS3With, storetest.OnServers
	object, awkward               = storetest.Object, storetest.Awkward
)

func put(t *testing.T, b storage.Bucket, objects ...storage.Object) {
	t.Helper()
	storetest.Put(t, b, objects...)
}

// holds checks that an object is stored unchanged, except for headers, which not every bucket keeps.
func holds(t *testing.T, b storage.Bucket, o storage.Object) {
	t.Helper()
	body, info, err := b.Read(t.Context(), o.Key)
	if err != nil {
		t.Errorf("read %q: got %v, want no error", o.Key, err)
		return
	}
	if !bytes.Equal(body, o.Body) {
		t.Errorf("body of %q: got %.100q, want %.100q", o.Key, body, o.Body)
	}
	checkInfo(t, b, info, o)
}

func checkInfo(t *testing.T, b storage.Bucket, info storage.Info, o storage.Object) {
	t.Helper()
	if info.Key != o.Key || info.Size != o.Size || info.ETag != o.MD5.String() {
		t.Errorf("info: got %+v, want that of %+v", info, o.Entry)
	}
	if age := b.Now().Sub(info.Modified); age < -2*time.Second || age > time.Minute {
		t.Errorf("age of %q by the bucket's clock: got %v, want about 0", o.Key, age)
	}
}

func lacks(t *testing.T, b storage.Bucket, key site.Key) {
	t.Helper()
	if _, _, err := b.Read(t.Context(), key); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("read %q: got %v, want ErrNotFound", key, err)
	}
}

func list(t *testing.T, b storage.Bucket, prefix, after site.Key) map[site.Key]storage.Info {
	t.Helper()
	found := map[site.Key]storage.Info{}
	err := b.List(t.Context(), prefix, after, func(info storage.Info) error {
		if _, ok := found[info.Key]; ok {
			t.Errorf("%q: got listed twice, want once", info.Key)
		}
		found[info.Key] = info
		return nil
	})
	if err != nil {
		t.Errorf("list %q after %q: got %v, want no error", prefix, after, err)
	}
	return found
}

// listsOnly checks that a listing shows these objects and no others.
func listsOnly(t *testing.T, b storage.Bucket, prefix, after site.Key, objects ...storage.Object) {
	t.Helper()
	found := list(t, b, prefix, after)
	for _, o := range objects {
		info, ok := found[o.Key]
		if !ok {
			t.Errorf("list %q after %q: got no %q, want it", prefix, after, o.Key)
			continue
		}
		checkInfo(t, b, info, o)
		delete(found, o.Key)
	}
	for key := range found {
		t.Errorf("list %q after %q: got %q, want no such object", prefix, after, key)
	}
}

func awkwardKeys(t *testing.T, b storage.Bucket) {
	var objects []storage.Object
	for _, key := range awkward() {
		if !key.Valid() {
			t.Fatalf("%q: got an invalid key, want a valid one", key)
		}
		objects = append(objects, object(key, "the object at "+string(key)))
	}
	put(t, b, objects...)
	for _, o := range objects {
		holds(t, b, o)
	}
	listsOnly(t, b, "", "", objects...)

	half := len(objects) / 2
	for _, o := range objects[:half] { // one by one, and all at once
		if err := b.Delete(t.Context(), []site.Key{o.Key}); err != nil {
			t.Error(err)
		}
		lacks(t, b, o.Key)
	}
	listsOnly(t, b, "", "", objects[half:]...)
	if err := b.Delete(t.Context(), awkward()[half:]); err != nil {
		t.Error(err)
	}
	listsOnly(t, b, "", "")
}

func anySize(t *testing.T, b storage.Bucket) {
	for _, size := range []int{0, 1, 511, 512, 513, 128 << 10, 1<<20 + 1, 6 << 20} {
		o := object(site.Key(fmt.Sprintf("size/%d", size)), strings.Repeat("followpress", size/11+1)[:size])
		put(t, b, o)
		holds(t, b, o)
	}
}

func absentObjects(t *testing.T, b storage.Bucket) {
	lacks(t, b, "nothing")
	put(t, b, object("folder/key", "{}"))
	lacks(t, b, "folder/other")
	lacks(t, b, "other/key")
	lacks(t, b, "folder")
	lacks(t, b, site.Key(strings.Repeat("n", 255)))
	listsOnly(t, b, "nothing", "")
	if err := b.Delete(t.Context(), []site.Key{"nothing"}); err != nil {
		t.Error(err)
	}
	if err := b.Delete(t.Context(), []site.Key{"nothing", "other/key"}); err != nil {
		t.Error(err)
	}
	listsOnly(t, b, "", "", object("folder/key", "{}"))
}

func replaced(t *testing.T, b storage.Bucket) {
	for i := range 5 {
		o := object("key", strings.Repeat("x", 5-i))
		put(t, b, o)
		holds(t, b, o)
		listsOnly(t, b, "", "", o)
	}
}

func unchanged(t *testing.T, b storage.Bucket) {
	o, next := object("k", "one"), object("k", "two")
	put(t, b, o)
	_, info, err := b.Read(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	put(t, b, next)
	if body, after, err := b.Read(t.Context(), "k"); err != nil || string(body) != "two" || after.ETag == info.ETag {
		t.Errorf("replaced object: got %q, %+v, %v, want the new body and another ETag", body, after, err)
	}
	if s, ok := b.(*s3.Bucket); ok {
		_, read, err := b.Read(t.Context(), "k")
		looked, err2 := s.Stat(t.Context(), "k")
		if err := errors.Join(err, err2); err != nil || looked != read {
			t.Errorf("Stat: got %+v, %v, want the same as Read: %+v", looked, err, read)
		}
	}
	if body, err := b.Get(t.Context(), "k"); err != nil || string(body) != "two" {
		t.Errorf("Get: got %q, %v, want the body that was put", body, err)
	}
	for _, absent := range []func() error{
		func() error { _, _, err := b.Read(t.Context(), "absent"); return err },
		func() error {
			if s, ok := b.(*s3.Bucket); ok {
				_, err := s.Stat(t.Context(), "absent")
				return err
			}
			return storage.ErrNotFound
		},
		func() error { _, err := b.Get(t.Context(), "absent"); return err },
	} {
		if err := absent(); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("an absent object: got %v, want ErrNotFound", err)
		}
	}
}

func conditions(t *testing.T, b storage.Bucket) {
	ctx := t.Context()
	first, second, third := object("folder/key", "first"), object("folder/key", "second"), object("folder/key", "third")
	refused := func(o storage.Object, condition storage.Condition) {
		t.Helper()
		if _, err := b.Put(ctx, o, condition); !errors.Is(err, storage.ErrCondition) || storage.Temporary(err) {
			t.Errorf("put %q if %q: got %v, want ErrCondition", o.Body, condition, err)
		}
	}
	taken := func(o storage.Object, condition storage.Condition) storage.Condition {
		t.Helper()
		etag, err := b.Put(ctx, o, condition)
		if err != nil || etag != o.MD5.String() {
			t.Fatalf("put %q if %q: got %q, %v, want the ETag of the body", o.Body, condition, etag, err)
		}
		return storage.Condition(etag)
	}

	refused(first, storage.Condition(first.MD5.String())) // no object has any ETag yet
	lacks(t, b, first.Key)
	etag := taken(first, storage.IfAbsent)
	refused(second, storage.IfAbsent)
	refused(first, storage.IfAbsent)
	refused(second, storage.Condition(second.MD5.String()))
	holds(t, b, first)
	next := taken(second, etag)
	holds(t, b, second)
	refused(third, etag)
	holds(t, b, second)
	taken(second, next) // the same bytes again, as a lock that is renewed
	taken(third, storage.Always)
	refused(first, next)
	holds(t, b, third)
	if err := b.Delete(ctx, []site.Key{third.Key}); err != nil {
		t.Fatal(err)
	}
	refused(third, storage.Condition(third.MD5.String()))
	taken(first, storage.IfAbsent)
}

func races(t *testing.T, b storage.Bucket) {
	condition := storage.IfAbsent
	for round := range 3 {
		var won atomic.Int64
		var winner storage.Object
		var group sync.WaitGroup
		begin := make(chan struct{})
		for i := range 20 {
			o := object("_lock", fmt.Sprintf("round %d, taker %d", round, i))
			group.Go(func() {
				<-begin
				_, err := b.Put(t.Context(), o, condition)
				if err == nil {
					won.Add(1)
					winner = o // the race detector would report a second winner
				} else if !errors.Is(err, storage.ErrCondition) && !storage.Temporary(err) {
					t.Errorf("put if %q: got %v, want success or ErrCondition", condition, err)
				}
			})
		}
		close(begin)
		group.Wait()
		if n := won.Load(); n != 1 {
			t.Fatalf("successes of 20 puts: got %d if %q, want 1", n, condition)
		}
		holds(t, b, winner)
		condition = storage.Condition(winner.MD5.String())
	}
}

func wrongDigests(t *testing.T, b storage.Bucket) {
	good := object("there", "before")
	put(t, b, good)
	for _, key := range []site.Key{"new", "there"} {
		damaged := object(key, "what the manifest names")
		damaged.Body = []byte("what the manifest namex")
		for _, condition := range []storage.Condition{storage.Always, storage.IfAbsent} {
			_, err := b.Put(t.Context(), damaged, condition)
			if key == "there" && condition == storage.IfAbsent && errors.Is(err, storage.ErrCondition) {
				continue // the order of checks depends on the server
			}
			if !errors.Is(err, storage.ErrDamaged) || storage.Temporary(err) {
				t.Errorf("put %q if %q: got %v, want ErrDamaged", key, condition, err)
			} else if !strings.Contains(err.Error(), string(key)) {
				t.Errorf("error: got %q, want one that names the object", err)
			}
		}
	}
	lacks(t, b, "new")
	holds(t, b, good)
	listsOnly(t, b, "", "", good)
}

func endedContexts(t *testing.T, b storage.Bucket) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, condition := range []storage.Condition{storage.Always, storage.IfAbsent} {
		if _, err := b.Put(ctx, object("key", "{}"), condition); !errors.Is(err, context.Canceled) || storage.Temporary(err) {
			t.Errorf("put: got %v, want Canceled", err)
		}
	}
	listsOnly(t, b, "", "")
	put(t, b, object("key", "{}"))
	if err := b.Delete(ctx, []site.Key{"key"}); !errors.Is(err, context.Canceled) {
		t.Errorf("delete one: got %v, want Canceled", err)
	}
	if err := b.Delete(ctx, []site.Key{"key", "other"}); !errors.Is(err, context.Canceled) {
		t.Errorf("delete two: got %v, want Canceled", err)
	}
	if err := b.List(ctx, "", "", func(storage.Info) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("list: got %v, want Canceled", err)
	}
	holds(t, b, object("key", "{}"))
}

func manyObjects(t *testing.T, b storage.Bucket) {
	const n = 1_100 // more than a page of a listing
	var objects, inFolder []storage.Object
	var keys []site.Key
	for i := range n {
		o := object(site.Key(fmt.Sprintf("many/%04d", i)), fmt.Sprint(i))
		objects, inFolder, keys = append(objects, o), append(inFolder, o), append(keys, o.Key)
	}
	for _, key := range []site.Key{"many-more/1", "man", "zebra"} {
		objects = append(objects, object(key, "{}"))
	}
	put(t, b, objects...)
	listsOnly(t, b, "", "", objects...)
	listsOnly(t, b, "many/", "", inFolder...)
	listsOnly(t, b, "many/", "many/0999", inFolder[1000:]...)
	listsOnly(t, b, "many/", "many/05", inFolder[500:]...)
	listsOnly(t, b, "many/000", "", inFolder[:10]...)
	listsOnly(t, b, "many/", "many/zzz")
	listsOnly(t, b, "", "many/0000", slices.Concat(inFolder[1:], objects[n+2:])...)

	for range 2 { // deleting a missing object succeeds
		if err := b.Delete(t.Context(), keys[:storage.MaxDelete]); err != nil {
			t.Fatal(err)
		}
		listsOnly(t, b, "", "", objects[storage.MaxDelete:]...)
	}
}

func stoppedListing(t *testing.T, b storage.Bucket) {
	for i := range 5 {
		put(t, b, object(site.Key(fmt.Sprint("key", i)), "{}"))
	}
	stop, calls := errors.New("enough"), 0
	err := b.List(t.Context(), "", "", func(storage.Info) error {
		calls++
		if calls == 2 {
			return stop
		}
		return nil
	})
	if !errors.Is(err, stop) || calls != 2 {
		t.Errorf("error of found: got %v after %d calls, want that error after 2", err, calls)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	calls = 0
	err = b.List(ctx, "", "", func(storage.Info) error {
		calls++
		cancel()
		return nil
	})
	if calls < 5 && !errors.Is(err, context.Canceled) {
		t.Errorf("context that ends: got %v after %d of 5 calls, want Canceled", err, calls)
	}
}

// An interrupted listing is resumed after its last key, so no smaller key may follow. The order is that of bytes, not
// of folders.
func orderedListing(t *testing.T, b storage.Bucket) {
	keys := append(awkward(), "a-b/c", "a-", "a0", "a0/b", "a/b0", "a/c-d", "a/c.d/e", "a/c/d", "a!/b", "ab/c", "b/a/a/a", "b/a-a/a", "b/a.a", "b/a0", "c/\uE000", "c/\U00010000", "c/\uFFFD")
	// A folder and a file cannot share a name, so buckets need not support both.
	keys = slices.DeleteFunc(keys, func(key site.Key) bool {
		return slices.ContainsFunc(keys, func(other site.Key) bool { return strings.HasPrefix(string(other), string(key)+"/") })
	})
	for _, key := range keys {
		put(t, b, object(key, "{}"))
	}
	slices.Sort(keys)
	places := slices.Concat([]site.Key{"", "a", "a/", "a/c", "a/c/", "a0/", "b/a", "c/", "zzz", "\U0010FFFD"}, keys)
	for _, prefix := range []site.Key{"", "a", "a/", "a/c", "b/a", "b/a/", "users/", "none"} {
		for _, after := range places {
			var want, got []site.Key
			for _, key := range keys {
				if strings.HasPrefix(string(key), string(prefix)) && key > after {
					want = append(want, key)
				}
			}
			err := b.List(t.Context(), prefix, after, func(info storage.Info) error {
				got = append(got, info.Key)
				return nil
			})
			if err != nil || !slices.Equal(got, want) {
				t.Fatalf("list %q after %q: %v: got %q, want %q", prefix, after, err, got, want)
			}
		}
	}
}

func clocks(t *testing.T, b storage.Bucket) {
	put(t, b, object("key", "{}"))
	if d := time.Until(b.Now()).Abs(); d > 2*time.Second {
		t.Errorf("offset of the bucket's clock: got %v, want about 0", d)
	}
	_, info, err := b.Read(t.Context(), "key")
	if err != nil {
		t.Fatal(err)
	}
	if d := b.Now().Sub(info.Modified).Abs(); d > 2*time.Second {
		t.Errorf("age of a new object: got %v, want about 0", d)
	}
}

func createdOnce(t *testing.T, b storage.Bucket) {
	if _, err := b.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	put(t, b, object("key", "{}"))
	if created, err := b.Create(t.Context()); created || err != nil {
		t.Errorf("second Create: got %v, %v, want false and no error", created, err)
	}
	holds(t, b, object("key", "{}"))
}
