package storage_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// A conditional Put creates an object only once.
func ExampleLocal() {
	folder, err := os.MkdirTemp("", "bucket")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	ctx := context.Background()
	bucket := storage.OpenLocal(folder)

	body := []byte(`{"hello":"world"}`)
	object := storage.Object{
		Entry: site.Entry{Key: "greetings/1", Size: int64(len(body)), MD5: site.Sum(body)},
		Body:  body, ContentType: "application/json",
	}
	etag, err := bucket.Put(ctx, object, storage.IfAbsent)
	fmt.Println(etag, err)
	_, err = bucket.Put(ctx, object, storage.IfAbsent)
	fmt.Println("again:", errors.Is(err, storage.ErrCondition))

	err = bucket.List(ctx, "greetings/", "", func(info storage.Info) error {
		fmt.Println(info.Key, info.Size, "bytes")
		return nil
	})
	if err != nil {
		panic(err)
	}
	// Output:
	// fbc24bcc7a1794758fc1327fcfebdaf6 <nil>
	// again: true
	// greetings/1 17 bytes
}

// A location is a bucket of an S3-compatible server, or a local folder.
func ExampleParseLocation() {
	location, err := storage.ParseLocation("s3://example-bucket/graphs/main")
	fmt.Println(location.Bucket, location.Prefix, err)
	_, err = storage.ParseLocation("ftp://example.org")
	fmt.Println(err)
	// Output:
	// example-bucket graphs/main/ <nil>
	// ftp://example.org: use s3://BUCKET, s3://BUCKET/PREFIX or file:///FOLDER
}
