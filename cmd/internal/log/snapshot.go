package log

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/op"
	"github.com/followpress/followpress/site/rules"
	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/source/replay"
)

// fromSnapshot reads the table ops of a snapshot.
func fromSnapshot(ctx context.Context, dir string, q *query) (lines []line, err error) {
	files, err := snapshot.Open(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, files.Close()) }()
	since, err := windowOfSnapshot(files, dir, q)
	if err != nil {
		return nil, err
	}
	user, err := q.find(accountsOf(files), "the snapshot")
	if err != nil {
		return nil, err
	}
	lists, err := readLists(ctx, files)
	if err != nil {
		return nil, err
	}
	if _, ok := lists[q.list]; q.list != "" && !ok {
		return nil, fmt.Errorf("--list=%s: the snapshot has no such list", q.list)
	}
	reader := snapshot.Reader[*line]{Snapshot: files, Done: func(b snapshot.Block[*line]) error {
		return b.Each(func(row snapshot.Row[*line]) error {
			if row.Value != nil {
				lines = append(lines, *row.Value)
			}
			return nil
		}, func(e *snapshot.RowError) error { return e })
	}}
	err = reader.Ops(ctx, func(o *snapshot.Op) (*line, error) {
		if account := lists[o.TokenID]; o.Time < since || !q.wants(o, user, account) {
			return nil, nil //nolint:nilnil // a row of no interest
		}
		l := &line{time: o.Time, place: &place{o.Chain, o.Block, o.LogIndex}, list: strings.Clone(o.TokenID), op: slices.Clone(o.Op)}
		if account, ok := lists[o.TokenID]; ok {
			l.by.address = account.String()
		}
		l.tell(replay.TellOp(l.op))
		return l, nil
	})
	if err != nil {
		return nil, err
	}
	return lines, name(lines, accountsOf(files))
}

// windowOfSnapshot is the time since when rows are wanted. It warns if the snapshot does not have all.
func windowOfSnapshot(files afero.Fs, dir string, q *query) (since int64, err error) {
	text, err := snapshot.ReadAsOf(files)
	if err != nil {
		return 0, err
	}
	asOf, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return 0, err
	}
	if _, err := snapshot.TableFiles(files, snapshot.TableOps); errors.Is(err, snapshot.ErrNoTable) {
		return 0, fmt.Errorf("%s has no table ops, so it does not know what happened: make the snapshot again with this version, or name a state or a site", dir)
	} else if err != nil {
		return 0, err
	}
	if since, err = q.since(asOf); err != nil {
		return 0, err
	}
	from, err := snapshot.ReadOpsFrom(files)
	if err != nil || from == "" {
		return since, err
	}
	complete, err := time.Parse(time.RFC3339, from)
	if err != nil {
		return 0, err
	}
	q.tellWindow("the snapshot", complete, since)
	return since, nil
}

// tellWindow warns that nothing is known of what was before a time.
func (q *query) tellWindow(of string, from time.Time, since int64) {
	if from.UnixMilli() > since {
		q.warn(fmt.Sprintf("%s knows what happened since %s only", of, from.UTC().Format(time.RFC3339)))
	}
}

// wants reports whether a query asks for a row of a list of an account.
func (q *query) wants(o *snapshot.Op, user *site.Address, account site.Address) bool {
	if q.list != "" && o.TokenID != q.list {
		return false
	}
	if user == nil || q.list == "" && account == *user {
		return true
	}
	what, ignored := op.Parse(o.Op)
	if ignored != "" {
		return false
	}
	about, ok := what.Address()
	return ok && about == *user
}

// readLists are the accounts of lists, by their token ids.
func readLists(ctx context.Context, files afero.Fs) (map[string]site.Address, error) {
	lists := map[string]site.Address{}
	reader := snapshot.Reader[snapshot.List]{Snapshot: files, Done: func(b snapshot.Block[snapshot.List]) error {
		for _, row := range b.Rows {
			lists[strings.Clone(row.Value.TokenID)] = rules.AccountOf(row.Value.Owner, row.Value.User)
		}
		return nil
	}}
	err := reader.Table(ctx, snapshot.TableLists, snapshot.ParseList)
	return lists, err
}

// accountsOf are the profiles of a snapshot.
func accountsOf(files afero.Fs) iter.Seq2[profile, error] {
	return func(yield func(profile, error) bool) {
		for a, err := range snapshot.Accounts(files) {
			p := profile{address: a.Address}
			if a.ENS != nil {
				p.name, p.fresh = a.ENS.Name, a.ENS.Fresh
			}
			if (err != nil || p.name != "") && !yield(p, err) {
				return
			}
		}
	}
}
