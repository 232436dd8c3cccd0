package publisher_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/followpress/followpress/internal/testenv/process"
	"github.com/followpress/followpress/publisher"
	"github.com/followpress/followpress/site/note"
	"github.com/followpress/followpress/storage"
)

// jobVariable makes the test binary a publisher in a separate process, which can be killed and
// stopped. It holds the job as JSON.
const jobVariable = "FOLLOWPRESS_TEST_JOB"

// A job is the task of a publisher process.
type job struct {
	Site     string
	At       storage.Location
	Endpoint string // "" means the endpoint of the place's server
	Bulk     publisher.Bulk
	Workers  int
	Lease    time.Duration
	Owner    string
	Sign     string // a secret key; "" for none
}

// init runs the job instead of a TestMain, which other tests of the package may need.
func init() {
	text := os.Getenv(jobVariable)
	if text == "" {
		return
	}
	if err := runJob(text); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func runJob(text string) error {
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		return err
	}
	from, err := storage.OpenSite(context.Background(), j.Site, storage.S3Options{})
	if err != nil {
		return err
	}
	ctx := context.Background()
	to, err := storage.OpenBucket(ctx, j.At, storage.S3Options{Endpoint: j.Endpoint})
	if err != nil {
		return err
	}
	o := publisher.Options{Bulk: j.Bulk, Concurrency: j.Workers, Lease: j.Lease, Owner: j.Owner, Progress: stageLines{}, AllowRollback: true}
	if j.Sign != "" {
		if o.Signing, err = signingBy(j.Sign); err != nil {
			return err
		}
	}
	_, err = publisher.Publish(ctx, from, to, o)
	return err
}

// signingBy returns the signing by secret keys.
func signingBy(privates ...string) (*publisher.Signing, error) {
	s := &publisher.Signing{}
	var publics []string
	for _, private := range privates {
		signer, err := note.ParsePrivate(private)
		if err != nil {
			return nil, err
		}
		public, err := note.Public(private)
		if err != nil {
			return nil, err
		}
		s.Signers, publics = append(s.Signers, signer), append(publics, public)
	}
	var err error
	s.Keys, err = note.ParseKeys(publics...)
	return s, err
}

// stageLines prints the stages for the parent process.
type stageLines struct{}

func (stageLines) Stage(name string, _ int64) { fmt.Println(name) }
func (stageLines) AddBytes(int64, int64)      {}

// A childPublisher publishes in a separate process, which prints the stages as they begin.
type childPublisher struct {
	*process.Process
	place place
}

// start publishes to the place in a separate process.
func (p place) start(t testing.TB, j job) childPublisher {
	t.Helper()
	j.At = p.at
	if j.Endpoint == "" {
		j.Endpoint = p.server.Endpoint
	}
	text, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	environment := []string{jobVariable + "=" + string(text)}
	for name, value := range credentialsOf(p.server) {
		environment = append(environment, name+"="+value)
	}
	return childPublisher{process.Start(t, process.Self(t, environment)), p}
}

// last returns the most recent stage.
func (c childPublisher) last() string {
	if lines := c.Lines(); len(lines) > 0 {
		return lines[len(lines)-1].Text
	}
	return "start"
}
