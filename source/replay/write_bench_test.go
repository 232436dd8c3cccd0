package replay_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/followpress/followpress/fixtures/history"
	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/source/replay"
)

// withoutOps leaves the table ops out.
type withoutOps struct{ *snapshot.Writer }

func (withoutOps) Begin(snapshot.Table) error { return nil }
func (withoutOps) WriteOp(snapshot.Op) error  { return nil }

// BenchmarkWrite replays 1.38 million events of a network of the real size, and writes the snapshot with the table ops and
// without.
func BenchmarkWrite(b *testing.B) {
	h := &history.History{Chains: history.Production()}
	d := deploymentOf(h)
	events := collect(eventsOf(d, history.Usual(1, history.Real())))
	for _, ops := range []bool{false, true} {
		b.Run(map[bool]string{false: "without ops", true: "ops"}[ops], func(b *testing.B) {
			for n := 0; b.Loop(); n++ {
				w, err := snapshot.Create(filepath.Join(b.TempDir(), "snapshot"), snapshot.WriteOptions{NoSync: true})
				if err != nil {
					b.Fatal(err)
				}
				r := replay.New(d)
				for _, e := range events {
					if err := r.Add(e); err != nil {
						b.Fatal(err)
					}
				}
				var to replay.Writer = w
				if !ops {
					to = withoutOps{w}
				}
				if _, err := r.Write(b.Context(), to); err != nil {
					b.Fatal(err)
				}
				if err := w.Commit(snapshot.Meta{AsOf: time.Unix(1, 0)}); err != nil {
					b.Fatal(err)
				}
				if err := w.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
