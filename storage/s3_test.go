package storage_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	json "github.com/goccy/go-json"
	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/cors"

	"github.com/followpress/followpress/internal/testenv/fakes3"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
	"github.com/followpress/followpress/storage/internal/s3"
)

// onServersAndFake is onServers that also runs the test on fakes3, wherever tests run.
func onServersAndFake(t *testing.T, check func(t *testing.T, endpoint, bucket string)) {
	t.Run("fake", func(t *testing.T) { check(t, fakes3.Start(t, fakes3.Lacks{}).Endpoint, "bucket") })
	onServers(t, func(t *testing.T, server *servers.Server) { check(t, server.Endpoint, server.Bucket(t)) })
}

func TestS3KeepsHeaders(t *testing.T) {
	onServers(t, func(t *testing.T, server *servers.Server) {
		name := server.Bucket(t)
		b := openS3(t, server, storage.Location{Bucket: name, Prefix: "p/"})
		for _, o := range headersOf() {
			put(t, b, o)
			checkHeaders(t, server, name, "p/", o)
		}
	})
}

// headersOf returns objects with the headers of sites.
func headersOf() []storage.Object {
	plain, problem, bare := object("a", "{}"), object("_errors/not-found", "{}"), object("bare", "{}")
	problem.ContentType, problem.CacheControl = "application/problem+json", "public, max-age=300, stale-while-revalidate=3600, stale-if-error=86400"
	bare.ContentType, bare.CacheControl = "application/octet-stream", "" // a server sets a type of its own where there is none
	return []storage.Object{plain, problem, bare}
}

func checkHeaders(t *testing.T, server *servers.Server, bucket, prefix string, o storage.Object) {
	t.Helper()
	info, err := server.Client().StatObject(t.Context(), bucket, prefix+string(o.Key), minio.StatObjectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if cache := info.Metadata.Get("Cache-Control"); info.ContentType != o.ContentType || cache != o.CacheControl || info.ETag != o.MD5.String() {
		t.Errorf("%s: got %q, %q, %q, want %q, %q, %q", o.Key, info.ContentType, cache, info.ETag, o.ContentType, o.CacheControl, o.MD5)
	}
	if len(info.UserMetadata) > 0 {
		t.Errorf("metadata of %s: got %v, want none", o.Key, info.UserMetadata)
	}
}

// Digest works whether the ETag is the MD5 or not, and however the object was put.
func TestDigest(t *testing.T) {
	check := func(t *testing.T, server *servers.Server, plain bool) {
		b := openS3(t, server, storage.Location{Bucket: server.Bucket(t), Prefix: "a+site/ü/"})
		for i, key := range []site.Key{"the first one has no metadata", "a/second", "ü"} {
			o := object(key, "the object at "+string(key))
			etag, err := b.Put(t.Context(), o, storage.Always)
			if err != nil || (etag == o.MD5.String()) != plain {
				t.Fatalf("put %q: got the ETag %s for the MD5 %s: %v", key, etag, o.MD5, err)
			}
			before := b.Requests()
			digest, err := b.Digest(t.Context(), key)
			if err != nil || digest != o.MD5 {
				t.Errorf("%q: got %s, %v, want %s", key, digest, err, o.MD5)
			}
			after, reads := b.Requests(), 0
			if i == 0 || plain { // an ETag that is not the expected digest proves nothing
				reads = 1
			}
			if heads, gets := after[storage.Head]-before[storage.Head], after[storage.Get]-before[storage.Get]; heads != 1 || gets != reads {
				t.Errorf("%q: got %d heads and %d gets, want 1 and %d", key, heads, gets, reads)
			}
		}
		if _, err := b.Digest(t.Context(), "absent"); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("an absent object: got %v, want ErrNotFound", err)
		}
	}
	onServers(t, func(t *testing.T, server *servers.Server) { check(t, server, true) })
	t.Run("encrypting", func(t *testing.T) {
		server := servers.StartEncrypting(t)
		server.Env(t)
		check(t, server, false)
	})
}

// operations returns all methods that send requests.
func operations() map[string]func(context.Context, *s3.Bucket) error {
	return map[string]func(context.Context, *s3.Bucket) error{
		"read": func(ctx context.Context, b *s3.Bucket) error { _, _, err := b.Read(ctx, "there"); return err },
		"put": func(ctx context.Context, b *s3.Bucket) error {
			_, err := b.Put(ctx, object("new", "{}"), "")
			return err
		},
		"put if": func(ctx context.Context, b *s3.Bucket) error {
			_, err := b.Put(ctx, object("lock", "{}"), "*")
			return err
		},
		"delete one": func(ctx context.Context, b *s3.Bucket) error { return b.Delete(ctx, []site.Key{"x"}) },
		"delete two": func(ctx context.Context, b *s3.Bucket) error { return b.Delete(ctx, []site.Key{"x", "y"}) },
		"list": func(ctx context.Context, b *s3.Bucket) error {
			return b.List(ctx, "", "", func(storage.Info) error { return nil })
		},
		"put many": func(ctx context.Context, b *s3.Bucket) error {
			return b.PutMany(ctx, []storage.Object{object("m", "{}")})
		},
		"allow read":   func(ctx context.Context, b *s3.Bucket) error { return b.AllowRead(ctx, []string{"*"}) },
		"allow origin": func(ctx context.Context, b *s3.Bucket) error { return b.AllowOrigins(ctx) },
		"create":       func(ctx context.Context, b *s3.Bucket) error { _, err := b.Create(ctx); return err },
	}
}

func TestS3WithoutBucketIsErrNoBucket(t *testing.T) {
	onServers(t, func(t *testing.T, server *servers.Server) {
		b := openS3(t, server, storage.Location{Bucket: "no-such-bucket"})
		for name, operation := range operations() {
			if name == "create" {
				continue
			}
			err := operation(t.Context(), b)
			if name == "allow origin" && errors.Is(err, storage.ErrUnsupported) {
				continue
			}
			if !errors.Is(err, storage.ErrNoBucket) || storage.Temporary(err) {
				t.Errorf("%s: got %v, want ErrNoBucket", name, err)
			} else if !strings.Contains(err.Error(), `"no-such-bucket"`) || !strings.Contains(err.Error(), "followpress init") {
				t.Errorf("%s: got %q, want an error that names the bucket and says what to do", name, err)
			}
		}
	})
}

func TestWrongCredentialsSayWhatToCheck(t *testing.T) {
	onServers(t, func(t *testing.T, server *servers.Server) {
		bucket := server.Bucket(t)
		for variable, wrong := range map[string]string{"AWS_ACCESS_KEY_ID": "an-unknown-user", "AWS_SECRET_ACCESS_KEY": "a-wrong-secret"} {
			t.Run(variable, func(t *testing.T) {
				t.Setenv(variable, wrong)
				b := openS3(t, server, storage.Location{Bucket: bucket})
				for name, operation := range operations() {
					err := operation(t.Context(), b)
					if err == nil || storage.Temporary(err) {
						t.Errorf("%s: got %v, Temporary %t, want a permanent error", name, err, storage.Temporary(err))
						continue
					}
					if !strings.Contains(err.Error(), variable) {
						t.Errorf("%s: got %q, want an error that names %s", name, err, variable)
					}
					holdsNoSecret(t, err.Error(), wrong, server.SecretKey)
				}
			})
		}
	})
}

func holdsNoSecret(t *testing.T, text string, secrets ...string) {
	t.Helper()
	for _, secret := range append(secrets, "Signature=", "Credential=", "AWS4-HMAC") {
		if strings.Contains(text, secret) && secret != "an-unknown-user" {
			t.Errorf("secret %q: got it in %s, want it hidden", secret, text)
		}
	}
}

func TestS3KeepsToItsPrefix(t *testing.T) {
	onServers(t, func(t *testing.T, server *servers.Server) {
		bucket := server.Bucket(t)
		whole, one, two := openS3(t, server, storage.Location{Bucket: bucket}), openS3(t, server, storage.Location{Bucket: bucket, Prefix: "one/"}), openS3(t, server, storage.Location{Bucket: bucket, Prefix: "one-two/"})
		put(t, one, object("key", "1"))
		put(t, two, object("key", "2"))
		listsOnly(t, one, "", "", object("key", "1"))
		listsOnly(t, two, "k", "", object("key", "2"))
		listsOnly(t, whole, "", "", object("one/key", "1"), object("one-two/key", "2"))
		if err := one.Delete(t.Context(), []site.Key{"key", "other"}); err != nil {
			t.Error(err)
		}
		listsOnly(t, whole, "", "", object("one-two/key", "2"))
	})
}

func TestMinIOUnpacksArchives(t *testing.T) {
	server := servers.Start(t, servers.MinIO)
	server.Env(t)
	for _, prefix := range []string{"", "a+site/ü/"} {
		t.Run("below "+prefix, func(t *testing.T) {
			name := server.Bucket(t)
			b := openS3(t, server, storage.Location{Bucket: name, Prefix: prefix})
			objects := headersOf()
			if yes, err := b.Unpacks(t.Context(), objects); !yes || err != nil {
				t.Fatalf("Unpacks: got %v, %v, want true", yes, err)
			}
			for _, key := range awkward() {
				objects = append(objects, object("more/"+key, "the object at "+string(key)))
			}
			for _, size := range []int{0, 1, 511, 512, 513, 1<<20 - 1, 1 << 20, 1<<20 + 1, 3 << 20} {
				objects = append(objects, object(site.Key(fmt.Sprintf("size/%d", size)), strings.Repeat("z", size)))
			}
			// Existing objects are replaced, even by an archive of the same second.
			for _, o := range objects {
				put(t, b, object(o.Key, "before"))
			}
			if err := b.PutMany(t.Context(), objects); err != nil {
				t.Fatal(err)
			}
			listsOnly(t, b, "", "", objects...)
			for _, o := range objects {
				holds(t, b, o)
				checkHeaders(t, server, name, prefix, o)
			}
			put(t, b, object("size/0", "after"))
			holds(t, b, object("size/0", "after"))
		})
	}
}

func TestVersityGWDoesNotUnpackAndKeepsNoArchive(t *testing.T) {
	server := servers.Start(t, servers.VersityGW)
	server.Env(t)
	for _, prefix := range []string{"", "a+site/ü/"} {
		b := openS3(t, server, storage.Location{Bucket: server.Bucket(t), Prefix: prefix})
		if yes, err := b.Unpacks(t.Context(), headersOf()); yes || err != nil {
			t.Errorf("Unpacks: got %v, %v, want false", yes, err)
		}
		listsOnly(t, b, "", "")
	}
}

func TestPutManyRefusesAWrongDigestBeforeItSends(t *testing.T) {
	onServers(t, func(t *testing.T, server *servers.Server) {
		b := openS3(t, server, storage.Location{Bucket: server.Bucket(t)})
		damaged := object("damaged", "what the manifest names")
		damaged.Body = []byte("what the manifest namex")
		if err := b.PutMany(t.Context(), []storage.Object{object("good", "{}"), damaged}); !errors.Is(err, storage.ErrDamaged) {
			t.Errorf("got %v, want ErrDamaged", err)
		}
		if n := len(b.Requests()); n != 0 {
			t.Errorf("requests: got %v, want none", b.Requests())
		}
	})
}

// get sends an anonymous request.
func get(t *testing.T, server *servers.Server, path string, headers map[string]string) *http.Response {
	t.Helper()
	method := http.MethodGet
	if headers["Access-Control-Request-Method"] != "" {
		method = http.MethodOptions
	}
	request, err := http.NewRequestWithContext(t.Context(), method, server.Endpoint+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for header, value := range headers {
		request.Header.Set(header, value)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return response
}

func TestAllowReadOpensTheSiteAndNothingElse(t *testing.T) {
	config, err := site.Config{}.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	public := []site.Key{
		site.RootKey, site.ManifestKey("0"), config.ListKey("1", site.Details), config.UserKey("ü+name"), site.SearchShardKey("1", 0),
		site.UserBucketKey("00"), site.LeaderboardLimitKey(site.Followers, 5), "_errors/not-found",
	}
	private := []site.Key{site.LockKey, site.MarkKey, site.PackKey, "_site2", "other/key"}
	onServers(t, func(t *testing.T, server *servers.Server) {
		bucket, client := server.Bucket(t), server.Client()
		before := `{"Version":"2012-10-17","Statement":[{"Sid":"Before","Effect":"Allow","Principal":{"AWS":["*"]},` +
			`"Action":["s3:GetObject"],"Resource":["arn:aws:s3:::` + bucket + `/one/other/*"]}]}`
		if err := client.SetBucketPolicy(t.Context(), bucket, before); err != nil {
			t.Fatal(err)
		}
		status := func(prefix string, key site.Key) int {
			t.Helper()
			return get(t, server, "/"+bucket+"/"+prefix+strings.ReplaceAll(string(key), "+", "%2B"), nil).StatusCode
		}
		prefixes := []string{"one/", "two/", ""}
		for _, prefix := range prefixes {
			b := openS3(t, server, storage.Location{Bucket: bucket, Prefix: prefix})
			for _, key := range slices.Concat(public, private) {
				put(t, b, object(key, "{}"))
			}
			for _, key := range public {
				if got := status(prefix, key); got != http.StatusForbidden {
					t.Errorf("before: status of %s%s: got %d, want 403", prefix, key, got)
				}
			}
			for range 2 {
				if err := b.AllowRead(t.Context(), config.PublicKeys()); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, prefix := range prefixes {
			for _, key := range public {
				if got := status(prefix, key); got != http.StatusOK {
					t.Errorf("status of %s%s: got %d, want 200", prefix, key, got)
				}
			}
			for _, key := range private {
				want := http.StatusForbidden
				if prefix+string(key) == "one/other/key" { // by the statement that was there
					want = http.StatusOK
				}
				if got := status(prefix, key); got != want {
					t.Errorf("status of %s%s: got %d, want %d", prefix, key, got, want)
				}
			}
		}
		if got := get(t, server, "/"+bucket+"?list-type=2", nil).StatusCode; got != http.StatusForbidden {
			t.Errorf("status of a listing: got %d, want 403", got)
		}
		text, err := client.GetBucketPolicy(t.Context(), bucket)
		if err != nil {
			t.Fatal(err)
		}
		var policy struct{ Statement []struct{ Sid string } }
		if err := json.Unmarshal([]byte(text), &policy); err != nil {
			t.Fatal(err)
		}
		if len(policy.Statement) != 1+len(prefixes) || policy.Statement[0].Sid != "Before" {
			t.Errorf("policy: got %s, want one statement per site and the foreign one", text)
		}
	})
}

func TestAllowOriginsOnVersityGW(t *testing.T) {
	server := servers.Start(t, servers.VersityGW)
	server.Env(t)
	bucket, client := server.Bucket(t), server.Client()
	other := cors.Rule{ID: "before", AllowedOrigin: []string{"https://example.com"}, AllowedMethod: []string{http.MethodPut}}
	if err := client.SetBucketCors(t.Context(), bucket, cors.NewConfig([]cors.Rule{other})); err != nil {
		t.Fatal(err)
	}
	b := openS3(t, server, storage.Location{Bucket: bucket})
	put(t, b, object("key", "{}"))
	if err := b.AllowRead(t.Context(), []string{"*"}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := b.AllowOrigins(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	origin := map[string]string{"Origin": "https://reader.example"}
	response := get(t, server, "/"+bucket+"/key", origin)
	if allowed, exposed := response.Header.Get("Access-Control-Allow-Origin"), response.Header.Get("Access-Control-Expose-Headers"); allowed != "*" || !strings.Contains(exposed, "ETag") {
		t.Errorf("GET: got %s, allowed %q, exposed %q, want any origin and ETag", response.Status, allowed, exposed)
	}
	origin["Access-Control-Request-Method"], origin["Access-Control-Request-Headers"] = http.MethodGet, "if-none-match"
	response = get(t, server, "/"+bucket+"/key", origin)
	if allowed := response.Header.Get("Access-Control-Allow-Origin"); response.StatusCode != http.StatusOK || allowed != "*" {
		t.Errorf("preflight: got %s, allowed %q, want any origin", response.Status, allowed)
	}
	config, err := client.GetBucketCors(t.Context(), bucket)
	if err != nil {
		t.Fatal(err)
	}
	if len(config.CORSRules) != 2 || config.CORSRules[0].ID != "before" {
		t.Errorf("rules: got %+v, want ours once and the foreign one", config.CORSRules)
	}
}

// MinIO has no CORS rules per bucket: it allows every origin.
func TestAllowOriginsOnMinIOIsErrUnsupported(t *testing.T) {
	server := servers.Start(t, servers.MinIO)
	server.Env(t)
	bucket := server.Bucket(t)
	b := openS3(t, server, storage.Location{Bucket: bucket})
	put(t, b, object("key", "{}"))
	if err := b.AllowRead(t.Context(), []string{"*"}); err != nil {
		t.Fatal(err)
	}
	if err := b.AllowOrigins(t.Context()); !errors.Is(err, storage.ErrUnsupported) || storage.Temporary(err) {
		t.Errorf("got %v, want ErrUnsupported", err)
	}
	response := get(t, server, "/"+bucket+"/key", map[string]string{"Origin": "https://reader.example"})
	if allowed := response.Header.Get("Access-Control-Allow-Origin"); allowed != "*" && allowed != "https://reader.example" {
		t.Errorf("GET: got %s, allowed %q, want any origin", response.Status, allowed)
	}
}

func TestLocalHasNoPolicyAndNoRules(t *testing.T) {
	b := storage.OpenLocal(t.TempDir())
	for _, err := range []error{b.AllowRead(t.Context(), []string{"*"}), b.AllowOrigins(t.Context())} {
		if !errors.Is(err, storage.ErrUnsupported) {
			t.Errorf("got %v, want ErrUnsupported", err)
		}
	}
}

func TestRequestsAreCountedByKind(t *testing.T) {
	server := servers.Start(t, servers.MinIO)
	server.Env(t)
	b := openS3(t, server, storage.Location{Bucket: "counted"})
	if created, err := b.Create(t.Context()); !created || err != nil { // a HEAD and a PUT
		t.Fatal(created, err)
	}
	put(t, b, object("one", "{}"), object("two", "{}"))
	holds(t, b, object("one", "{}"))
	lacks(t, b, "three")
	list(t, b, "", "")
	for _, keys := range [][]site.Key{{"one"}, {"one", "two"}} {
		if err := b.Delete(t.Context(), keys); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.PutMany(t.Context(), headersOf()); err != nil {
		t.Fatal(err)
	}
	if err := b.AllowRead(t.Context(), []string{"*"}); err != nil { // one asks, one sets
		t.Fatal(err)
	}
	want := map[storage.Request]int{
		storage.Head: 1, storage.Put: 4, storage.Get: 2, storage.List: 1, storage.Delete: 2, "set_up": 2,
	}
	if got := b.Requests(); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// shifted makes a server's clock wrong by a fixed offset.
type shifted struct{ by time.Duration }

func (s shifted) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := http.DefaultTransport.RoundTrip(r)
	if err == nil {
		response.Header.Set("Date", time.Now().Add(s.by).UTC().Format(http.TimeFormat))
	}
	return response, err
}

func TestNowFollowsTheServersClock(t *testing.T) {
	server := servers.Start(t, servers.VersityGW)
	server.Env(t)
	at := storage.Location{Bucket: server.Bucket(t)}
	for _, by := range []time.Duration{-time.Hour, 10 * time.Minute} {
		b := openS3With(t, at, storage.S3Options{Endpoint: server.Endpoint, Transport: shifted{by}})
		lacks(t, b, "nothing")
		if d := b.Now().Sub(time.Now().Add(by)).Abs(); d > 2*time.Second {
			t.Errorf("offset of the clock: got %v, want about 0", d)
		}
	}
}

func TestLogHoldsEveryRequestAndNoSecret(t *testing.T) {
	onServers(t, func(t *testing.T, server *servers.Server) {
		var text bytes.Buffer // requests come one after another
		log := slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug}))
		b := openS3With(t, storage.Location{Bucket: server.Bucket(t)}, storage.S3Options{Endpoint: server.Endpoint, Log: log})
		for _, operation := range operations() {
			_ = operation(t.Context(), b) // some fail: that is logged too
		}
		server.Stop()
		for _, operation := range operations() {
			if err := operation(t.Context(), b); err == nil {
				t.Error("an unreachable server: got no error, want one")
			} else {
				holdsNoSecret(t, err.Error(), server.SecretKey)
			}
		}
		requests := 0
		for _, n := range b.Requests() {
			requests += n
		}
		if lines := strings.Count(text.String(), "\n"); lines != requests || requests < 2*len(operations()) {
			t.Errorf("log: got %d lines, want one for each of %d requests", lines, requests)
		}
		holdsNoSecret(t, text.String(), server.SecretKey, server.AccessKey)
		for _, want := range []string{"kind=list", "kind=put", "status=404", "connection refused", "took="} {
			if !strings.Contains(text.String(), want) {
				t.Errorf("log: want %q in it, got:\n%s", want, text.String())
			}
		}
	})
}

func TestOpenS3RefusesWhatCannotWork(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "somebody")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "a-secret-key")
	for _, endpoint := range []string{
		"localhost:9000", "ftp://host", "http://", "https://host/path", "https://host?a=b", "https://user:a-secret-key@host", "https://user:a-secret-key@host/bucket", "http://[::1", "://",
	} {
		_, err := s3.Open(t.Context(), "bucket", "", storage.S3Options{Endpoint: endpoint})
		if err == nil || !strings.Contains(err.Error(), "endpoint") {
			t.Errorf("endpoint %q: got %v, want an error about the endpoint", endpoint, err)
			continue
		}
		holdsNoSecret(t, err.Error(), "a-secret-key")
	}
	_, err := s3.Open(t.Context(), "bucket", "", storage.S3Options{Endpoint: "http://host:9000/bucket/"})
	if want := `the path "bucket"; use http://host:9000, and name the bucket as s3://BUCKET`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("endpoint with a path: got %v, want %q", err, want)
	}
	for _, endpoint := range []string{"", "https://s3.eu-central-1.amazonaws.com", "http://localhost:9000/", "https://host:1234"} {
		if _, err := s3.Open(t.Context(), "bucket", "", storage.S3Options{Endpoint: endpoint}); err != nil {
			t.Errorf("endpoint %q: got %v, want no error", endpoint, err)
		}
	}
}

func TestOpenS3WithoutCredentialsSaysWhatToSet(t *testing.T) {
	for _, name := range []string{
		"AWS_ACCESS_KEY_ID", "AWS_ACCESS_KEY", "AWS_SECRET_ACCESS_KEY", "AWS_SECRET_KEY", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE",
		"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
	} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", t.TempDir()+"/none")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	_, err := s3.Open(t.Context(), "bucket", "", storage.S3Options{})
	if err == nil || !strings.Contains(err.Error(), "AWS_ACCESS_KEY_ID") {
		t.Errorf("error: got %v, want one that says what to set", err)
	}
}
