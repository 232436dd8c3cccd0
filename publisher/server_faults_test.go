package publisher_test

import (
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/followpress/followpress/internal/testenv/badway"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/publisher"
	"github.com/followpress/followpress/storage"
)

// A harm is a fault of connections, permanent or intermittent.
type harm struct {
	name      string
	fault     badway.Fault
	now, then time.Duration // duration of the fault and of each pause; 0 means permanent
}

// do injects the fault until stop is called.
func (h harm) do(way *badway.Way) (stop func()) {
	way.Set(h.fault)
	if h.now == 0 {
		return func() {}
	}
	ended := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		for {
			time.Sleep(h.now)
			way.Set(badway.Fault{})
			select {
			case <-time.After(h.then):
			case <-ended:
				return
			}
			way.Set(h.fault)
		}
	})
	return func() { close(ended); group.Wait() }
}

// wayTo returns a proxy to a server that can inject faults.
func wayTo(t testing.TB, server *servers.Server) *badway.Way {
	t.Helper()
	return badway.To(t, strings.TrimPrefix(server.Endpoint, "http://"))
}

// Over a bad connection a run takes longer but succeeds.
func TestABadConnection(t *testing.T) {
	first := demo(t)
	second := first.Changed(t, 2, " ").WithoutLists(t, 3)
	harms := []harm{
		{"slow answers", badway.Fault{Latency: 20 * time.Millisecond}, 0, 0},
		{"few bytes a second up", badway.Fault{Up: true, Rate: 200_000}, 0, 0},
		{"few bytes a second down", badway.Fault{Rate: 50_000}, 0, 0},
		{"answers that break off", badway.Fault{Cut: 10_000}, 0, 0},
		{"requests that break off", badway.Fault{Up: true, Cut: 30_000}, 0, 0},
		{"resets", badway.Fault{Reset: true}, 50 * time.Millisecond, 2 * time.Second},
		{"answers that never come", badway.Fault{Hang: true}, 100 * time.Millisecond, 2 * time.Second},
	}
	onServers(t, func(t *testing.T, server *servers.Server) {
		var group sync.WaitGroup
		for _, h := range harms {
			p, way := newPlace(t, server, ""), wayTo(t, server)
			group.Go(func() {
				stop := h.do(way)
				defer stop()
				var retries int64
				runs := []memory{first, second, second}
				if h.fault.Cut > 0 { // the third run would doubt the first's requests, and list: no answer may be as long
					runs = runs[:2]
				}
				for _, m := range runs {
					report, err := publisher.Publish(t.Context(), m, p.openAt(t, way.Endpoint(), nil), publisher.Options{Bulk: publisher.BulkOff, Concurrency: 16})
					if err != nil {
						t.Errorf("%s: got %v, want no error", h.name, err)
						return
					}
					retries += report.Retries
					p.holds(t, m)
				}
				if breaks := h.fault.Latency == 0 && h.fault.Rate == 0; breaks && retries == 0 {
					t.Errorf("%s: got no retries, want some", h.name)
				}
			})
		}
		group.Wait()
	})
}

// A run survives an outage of the server, even one longer than the lease, if no other publisher
// took the lock.
func TestAServerThatIsAwayForAWhile(t *testing.T) {
	first := demo(t)
	onServers(t, func(t *testing.T, server *servers.Server) {
		var begun, group sync.WaitGroup
		var places []place
		for _, lease := range []time.Duration{time.Second, publisher.DefaultLease} {
			p := newPlace(t, server, "")
			places = append(places, p)
			bucket := p.open(t, nil)
			begun.Add(1)
			group.Go(func() {
				o := publisher.Options{Lease: lease, Concurrency: 1, Bulk: publisher.BulkOff, Progress: onStage{"upload", begun.Done}}
				if report, err := publisher.Publish(t.Context(), first, bucket, o); err != nil || report.Retries == 0 {
					t.Errorf("with a lease of %v: got %v, %d retries, want success after retries", lease, err, report.Retries)
				}
			})
		}
		begun.Wait()
		server.Stop()
		time.Sleep(10 * time.Second)
		server.Start()
		group.Wait()
		for _, p := range places {
			p.holds(t, first)
		}
	})
}

// onStage calls a function when a stage begins.
type onStage struct {
	name string
	do   func()
}

func (s onStage) Stage(name string, _ int64) {
	if name == s.name {
		s.do()
	}
}
func (onStage) AddBytes(int64, int64) {}

// Errors that a retry cannot fix end a run at once, with a message that names the remedy.
func TestWhatCannotGoAwayStopsTheRun(t *testing.T) {
	first := demo(t)
	onServers(t, func(t *testing.T, server *servers.Server) {
		p := newPlace(t, server, "")
		publish(t, first, p.open(t, nil), publisher.Options{})
		second := first.Changed(t, 2, " ")
		for _, c := range []struct {
			name   string
			env    map[string]string
			at     storage.Location
			option storage.S3Options
			says   string
		}{
			{"a wrong secret", map[string]string{"AWS_SECRET_ACCESS_KEY": "a-wrong-secret"}, p.at, storage.S3Options{}, "AWS_SECRET_ACCESS_KEY"},
			{"an unknown user", map[string]string{"AWS_ACCESS_KEY_ID": "nobody"}, p.at, storage.S3Options{}, "AWS_ACCESS_KEY_ID"},
			{"no bucket", nil, storage.Location{Bucket: "no-such-bucket"}, storage.S3Options{}, "followpress init"},
			{"a wrong region", nil, p.at, storage.S3Options{Region: "eu-elsewhere-7"}, "--region"}, // any is right for MinIO
			{"no server", nil, p.at, storage.S3Options{Endpoint: "http://no-such-host.invalid"}, "--endpoint"},
			{"the wrong scheme", nil, p.at, storage.S3Options{Endpoint: strings.Replace(server.Endpoint, "http:", "https:", 1)}, "--endpoint"},
			{"credentials that may only read", readOnly(t, p), p.at, storage.S3Options{}, "may do this"},
		} {
			if c.name == "credentials that may only read" && c.env == nil || c.name == "a wrong region" && server.Kind == servers.MinIO {
				continue
			}
			env := credentialsOf(server)
			maps.Copy(env, c.env)
			if c.option.Endpoint == "" {
				c.option.Endpoint = server.Endpoint
			}
			bucket, err := openAs(env, c.at, c.option)
			if err != nil {
				t.Fatal(err)
			}
			begun := time.Now()
			_, err = publisher.Publish(t.Context(), second, bucket, publisher.Options{})
			if took := time.Since(begun); took > time.Minute { // retries would take longer
				t.Errorf("%s: got an error after %v, want it at once", c.name, took)
			}
			if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: got %v, want one line with %q", c.name, err, c.says)
			}
			p.holds(t, first)
		}
	})
}

// readOnly returns credentials that may read the bucket but not write to it, or nil if the server
// cannot create them.
func readOnly(t *testing.T, p place) map[string]string {
	t.Helper()
	if p.server.Kind != servers.MinIO {
		return nil
	}
	assumed, err := credentials.NewSTSAssumeRole(p.server.Endpoint, credentials.STSAssumeRoleOptions{
		AccessKey: p.server.AccessKey, SecretKey: p.server.SecretKey,
		Policy: `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["s3:GetObject","s3:ListBucket"],"Resource":["arn:aws:s3:::*"]}]}`,
	})
	if err != nil {
		t.Fatal(err)
	}
	value, err := assumed.GetWithContext(nil)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{"AWS_ACCESS_KEY_ID": value.AccessKeyID, "AWS_SECRET_ACCESS_KEY": value.SecretAccessKey, "AWS_SESSION_TOKEN": value.SessionToken}
}
