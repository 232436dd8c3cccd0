package s3

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage/internal/object"
)

// A recorder keeps the body of the last request instead of sending it.
type recorder struct {
	body   []byte
	header http.Header
}

func (r *recorder) RoundTrip(request *http.Request) (response *http.Response, err error) {
	r.header = request.Header
	r.body, err = io.ReadAll(request.Body)
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody, Request: request}, err
}

func TestPackIsTheArchiveOfPutObjectsSnowball(t *testing.T) {
	var sent recorder
	client, err := minio.New("host.invalid", &minio.Options{
		Creds: credentials.NewStaticV4("somebody", "a-secret-key", ""), Region: "us-east-1", Transport: &sent,
	})
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 1))
		s := &Bucket{prefix: []string{"", "p/", "a+site/ü/"}[random.IntN(3)], meter: newMeter(nil, nil)}
		objects := randomObjects(random)
		packed, err := s.pack(objects)
		if err != nil {
			t.Fatal(err)
		}
		ours := entries(t, packed)

		input := make(chan minio.SnowballObject, len(objects))
		for i, o := range objects {
			input <- minio.SnowballObject{
				Key: s.name(o.Key), Size: o.Size, ModTime: ours[i].header.ModTime, Content: bytes.NewReader(o.Body),
				Headers: http.Header{"Content-Type": {o.ContentType}, "Cache-Control": {o.CacheControl}},
			}
		}
		close(input)
		options := minio.SnowballOptions{Opts: minio.PutObjectOptions{DisableContentSha256: true}, InMemory: true}
		if err := client.PutObjectsSnowball(t.Context(), "bucket", options, input); err != nil {
			t.Fatal(err)
		}
		theirs := entries(t, sent.body)

		if len(ours) != len(objects) || len(theirs) != len(objects) {
			t.Fatalf("seed %d: %d objects: got %d entries, want %d as the library", seed, len(objects), len(ours), len(theirs))
		}
		for i, o := range objects {
			our, their := ours[i], theirs[i]
			if our.header.Name != s.name(o.Key) || !bytes.Equal(our.body, o.Body) {
				t.Errorf("seed %d: body of %q: differs from the object", seed, o.Key)
			}
			if our.header.Name != their.header.Name || our.header.Size != their.header.Size || our.header.Typeflag != their.header.Typeflag ||
				our.header.Format != their.header.Format || !maps.Equal(our.header.PAXRecords, their.header.PAXRecords) || !bytes.Equal(our.body, their.body) {
				t.Errorf("seed %d: header: got %+v, want %+v as the library", seed, our.header, their.header)
			}
		}
		if !bytes.Equal(packed, sent.body) {
			t.Errorf("seed %d: archive: got the same entries but other bytes, want the same bytes as the library", seed)
		}
		if sent.header.Get("X-Amz-Meta-Snowball-Auto-Extract") != "true" {
			t.Fatalf("headers of the library: got %v, want ours", sent.header)
		}
	}
}

func TestPackChecksEveryDigest(t *testing.T) {
	s := &Bucket{meter: newMeter(nil, nil)}
	objects := randomObjects(rand.New(rand.NewPCG(1, 1)))
	last := &objects[len(objects)-1]
	last.MD5[3] ^= 1
	if _, err := s.pack(objects); !errors.Is(err, object.ErrDamaged) || !strings.Contains(err.Error(), string(last.Key)) {
		t.Errorf("got %v, want object.ErrDamaged", err)
	}
}

func randomObjects(random *rand.Rand) []object.Object {
	letters := []string{"a", "B", "-", "+", "%", " ", ".x", "ü", "日", "🦜", "=", "\"", "&", "long" + strings.Repeat("n", 60)}
	text := func(n int) string {
		var b strings.Builder
		for range 1 + random.IntN(n) {
			b.WriteString(letters[random.IntN(len(letters))])
		}
		return b.String()
	}
	objects := make([]object.Object, 1+random.IntN(20))
	for i := range objects {
		body := make([]byte, []int{0, 1, 511, 512, 513, random.IntN(5000)}[random.IntN(6)])
		for j := range body {
			body[j] = byte(random.Uint32())
		}
		objects[i] = object.Object{
			Entry: site.Entry{Key: site.Key(fmt.Sprintf("%s/%d/%s", text(3), i, text(8))), Size: int64(len(body)), MD5: site.Sum(body)}, Body: body,
			ContentType: []string{"", "application/json", "text/html; charset=utf-8"}[random.IntN(3)], CacheControl: []string{"", "no-store", "public, max-age=60"}[random.IntN(3)],
		}
	}
	return objects
}

type entry struct {
	header *tar.Header
	body   []byte
}

func entries(t *testing.T, archive []byte) (all []entry) {
	t.Helper()
	for reader := tar.NewReader(bytes.NewReader(archive)); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, entry{header, body})
	}
}
