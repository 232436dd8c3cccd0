package publisher_test

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/publisher"
	"github.com/followpress/followpress/storage"
)

// Publishing uploads what changed. A second run finds nothing to do.
func ExamplePublish() {
	folder, err := os.MkdirTemp("", "bucket")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	ctx := context.Background()
	files, _, err := generator.ToMemory(ctx, afero.FromIOFS{FS: fixtures.Demo()}, generator.Options{})
	if err != nil {
		panic(err)
	}

	site, bucket := storage.NewFolder(files), storage.OpenLocal(folder)
	for range 2 {
		report, err := publisher.Publish(ctx, site, bucket, publisher.Options{})
		if err != nil {
			panic(err)
		}
		fmt.Println(report.Outcome, report.Done.Put, "objects")
	}
	found, err := publisher.Verify(ctx, bucket, publisher.Options{})
	if err != nil {
		panic(err)
	}
	fmt.Println("the bucket equals its manifest:", found.Good())
	// Output:
	// published 439 objects
	// unchanged 0 objects
	// the bucket equals its manifest: true
}
