package generator_test

import (
	"context"
	"fmt"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/generator"
)

// The site of a snapshot is a file system whose paths are the paths of the API.
func ExampleToMemory() {
	snapshot := afero.FromIOFS{FS: fixtures.Demo()}
	files, report, err := generator.ToMemory(context.Background(), snapshot, generator.Options{})
	if err != nil {
		panic(err)
	}
	fmt.Println(report.Counts.Accounts, "accounts,", report.Counts.Lists, "lists")
	board, err := afero.ReadFile(files, "api/v1/leaderboard/followers")
	if err != nil {
		panic(err)
	}
	fmt.Printf("%.64s…\n", board)
	// Output:
	// 47 accounts, 32 lists
	// [{"rank":1,"address":"0x974b780c0cfb5343cbb4a44384cf9a10f80eb9cd…
}
