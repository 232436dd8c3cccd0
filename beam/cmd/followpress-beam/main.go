// Command followpress-beam makes the site of a snapshot on Apache Beam, for snapshots that are too
// large for one machine, or that are already in a cluster. beam/README.md explains when it is
// worthwhile.
package main

import (
	"flag"
	"os"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/runners/dataflow"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/runners/prism"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/runners/universal"

	"github.com/followpress/followpress/beam/internal/launch"
	"github.com/followpress/followpress/beam/internal/worker"
)

func main() {
	if launch.IsWorker(os.Args[1:]) { // an engine started this program as a worker
		flag.Parse()
		worker.Tidy()
		beam.Init() // does not return
	}
	os.Exit(launch.Main(os.Args[1:], os.Stdout, os.Stderr))
}
