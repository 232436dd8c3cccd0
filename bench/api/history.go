package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/bench/measure"
	"github.com/followpress/followpress/bench/rig"
	"github.com/followpress/followpress/site"
)

// Buckets, files and size of a site with operations.
const (
	lately        = "lately"
	mostLately    = 200_000
	latelyFolder  = "lately-snapshot"
	latelyArchive = "lately.tar"
)

// notifications requests the notifications of the accounts with the most operations.
func (b *bench) notifications(ctx context.Context) error {
	busiest, err := b.writeOps()
	if err != nil {
		return err
	}
	_, err = measure.Run(exec.CommandContext(ctx, b.Built("followpress"), "generate", "--snapshot", b.Path(latelyFolder), "--api", "efp",
		"--rebuild", "--no-sync", "--out", b.Path(latelyArchive)))
	if err == nil {
		err = b.putLately(ctx)
	}
	if err != nil {
		return err
	}
	ours, _, err := b.fallback(ctx, lately)
	if err != nil {
		return err
	}
	defer ours.Stop()
	load := rig.Load{Rate: 2000, Time: 10 * time.Second}
	for _, address := range busiest {
		load.Paths = append(load.Paths, "/api/v1/users/"+address+"/notifications?interval=all")
	}
	if err := warm(ours.Addr, load.Paths); err != nil {
		return err
	}
	return b.Latency(ctx, fmt.Sprintf("notifications of the %d accounts with the most, warm, at 2,000/s", len(busiest)), ours.Addr, load, "≤ 5 ms")
}

// writeOps adds a table ops to the snapshot: follows of its lists at random times of the window. It
// returns the accounts with the most operations.
func (b *bench) writeOps() (busiest []string, err error) {
	folder := b.Path(latelyFolder)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	tables, err := filepath.Glob(filepath.Join(b.Snapshot, "*"))
	if err != nil {
		return nil, err
	}
	for _, table := range tables {
		whole, err := filepath.Abs(table)
		if err == nil && !strings.HasPrefix(filepath.Base(table), "ops.") {
			err = os.Symlink(whole, filepath.Join(folder, filepath.Base(table)))
		}
		if err != nil && !errors.Is(err, os.ErrExist) {
			return nil, err
		}
	}
	text, err := os.ReadFile(filepath.Join(b.Snapshot, "meta.json"))
	if err != nil {
		return nil, err
	}
	var meta struct {
		AsOf time.Time `json:"as_of"`
	}
	if err := json.Unmarshal(text, &meta); err != nil {
		return nil, err
	}
	type row struct {
		at          int64
		list, about string
	}
	var rows []row
	news := map[string]int{}
	for _, list := range slices.Sorted(maps.Keys(b.follows)) {
		if b.primary[b.account[list]] != list {
			continue
		}
		for _, about := range b.follows[list] {
			back := time.Duration(b.random.Int64N(int64(site.DefaultHistoryWindow)))
			rows = append(rows, row{meta.AsOf.Add(-back).UnixMilli(), list, about})
		}
	}
	b.random.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	rows = rows[:min(mostLately, len(rows))]
	slices.SortFunc(rows, func(a, b row) int { return cmp.Compare(a.at, b.at) })
	var ops bytes.Buffer
	for i, r := range rows {
		news[r.about]++
		fmt.Fprintf(&ops, `{"token_id":"%s","time":"%s","chain_id":8453,"block":%d,"log_index":0,"op":"0x01010101%s"}`+"\n",
			r.list, time.UnixMilli(r.at).UTC().Format("2006-01-02T15:04:05.000Z"), i, strings.TrimPrefix(r.about, "0x"))
	}
	busiest = slices.SortedFunc(maps.Keys(news), func(a, b string) int { return cmp.Or(cmp.Compare(news[b], news[a]), strings.Compare(a, b)) })
	busiest = busiest[:min(some, len(busiest))]
	return busiest, os.WriteFile(filepath.Join(folder, "ops.ndjson"), ops.Bytes(), 0o644)
}

// putLately puts the objects behind notifications into a bucket.
func (b *bench) putLately(ctx context.Context) error {
	there, err := b.server.Client.BucketExists(ctx, lately)
	if err == nil && !there {
		err = b.server.MakeBucket(ctx, lately)
	}
	if err != nil {
		return err
	}
	return b.put(ctx, lately, latelyArchive, func(key string) bool {
		return key == string(site.RootKey) || strings.HasPrefix(key, "_search/notifications/")
	})
}
