package servers_test

import (
	"bytes"
	"context"
	"io"
	"testing"

	"github.com/minio/minio-go/v7"

	"github.com/followpress/followpress/internal/testenv/servers"
)

func TestServersKeepTheirDataAndAddress(t *testing.T) {
	for _, kind := range servers.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			s := servers.Start(t, kind)
			bucket, ctx := s.Bucket(t), context.Background()
			want := []byte("what a crash must not lose")
			if _, err := s.Client().PutObject(ctx, bucket, "key", bytes.NewReader(want), int64(len(want)), minio.PutObjectOptions{}); err != nil {
				t.Fatal(err)
			}
			s.Stop()
			if _, err := s.Client().ListBuckets(ctx); err == nil {
				t.Error("a stopped server: got an answer, want none")
			}
			s.Start()
			object, err := s.Client().GetObject(ctx, bucket, "key", minio.GetObjectOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(object); err != nil || !bytes.Equal(got, want) {
				t.Errorf("the object: got %q, %v, want %q", got, err, want)
			}
		})
	}
}

func TestServersEndWithTheirTest(t *testing.T) {
	for _, kind := range servers.Kinds() {
		var gone *minio.Client
		t.Run(string(kind), func(t *testing.T) { gone = servers.Start(t, kind).Client() })
		if gone == nil {
			continue // skipped
		}
		if _, err := gone.ListBuckets(context.Background()); err == nil {
			t.Errorf("%s after its test: got an answer, want none", kind)
		}
	}
}
