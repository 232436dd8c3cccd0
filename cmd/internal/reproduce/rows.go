package reproduce

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"unicode"

	"github.com/spf13/afero"
	"golang.org/x/sync/errgroup"

	"github.com/followpress/followpress/site"
	tables "github.com/followpress/followpress/snapshot"
)

// rows calls found with each row of a table, valid until found returns. It may be called repeatedly.
type rows func(ctx context.Context, found func(row []byte) error) error

// rowsOf returns the rows of a table in canonical form.
func rowsOf(from afero.Fs, t tables.Table, untimed bool) rows {
	return func(ctx context.Context, found func([]byte) error) error {
		return tables.Canonical(ctx, from, t, untimed, found)
	}
}

// primaryLists returns the accounts of a table that name a primary list, with that list. It does not check
// for repeated accounts: generate rejects them.
func primaryLists(from afero.Fs) rows {
	return func(ctx context.Context, found func([]byte) error) error {
		reader := tables.Reader[[]byte]{Snapshot: from, Done: func(b tables.Block[[]byte]) error {
			return b.Each(func(r tables.Row[[]byte]) error {
				if r.Value == nil {
					return nil
				}
				return found(r.Value)
			}, func(e *tables.RowError) error { return e })
		}}
		return reader.Accounts(ctx, func(a *tables.Account) ([]byte, error) {
			if a.Primary == "" {
				return nil, nil
			}
			return fmt.Appendf(nil, "account %s has the primary list %s", a.Address, a.Primary), nil
		})
	}
}

const (
	mostRows   = 3 // rows shown per side
	mostShown  = 240
	onlySite   = 0 // index of a side
	onlyChains = 1
	sides      = 2
)

// A rowDiff is the difference between the rows of two tables.
type rowDiff struct {
	count [sides]int // 0 if only the order differs
	first [sides][]string
}

// diffRows compares a site's rows with the chains'; nil if equal and in the same order. Its memory grows with
// the rows that differ, and with the distance between equal rows.
func diffRows(ctx context.Context, ofSite, ofChains rows) (*rowDiff, error) {
	pending := map[site.SHA256]int{} // occurrences in the chains minus those in the site
	same := true
	note := func(sum site.SHA256, n int) {
		if pending[sum] += n; pending[sum] == 0 {
			delete(pending, sum)
		}
	}
	err := together(ctx, ofSite, ofChains, func(a, b *site.SHA256) {
		if a != nil && b != nil && *a == *b {
			return
		}
		same = false
		if a != nil {
			note(*a, -1)
		}
		if b != nil {
			note(*b, 1)
		}
	})
	if err != nil || same {
		return nil, err
	}
	d := &rowDiff{}
	for _, n := range pending {
		if n < 0 {
			d.count[onlySite] -= n
		} else {
			d.count[onlyChains] += n
		}
	}
	for side, all := range []rows{ofSite, ofChains} {
		if err := d.show(ctx, side, all, pending); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// rowsAtOnce is the number of digests per message between goroutines.
const rowsAtOnce = 512

// together calls found with the row digests of two tables side by side; nil once the shorter one ends.
func together(ctx context.Context, a, b rows, found func(a, b *site.SHA256)) error {
	group, ctx := errgroup.WithContext(ctx)
	read := func(all rows) <-chan []site.SHA256 {
		sums := make(chan []site.SHA256, 1)
		group.Go(func() error {
			defer close(sums)
			var some []site.SHA256
			send := func() error {
				select {
				case sums <- some:
				case <-ctx.Done():
					return context.Cause(ctx)
				}
				some = make([]site.SHA256, 0, rowsAtOnce)
				return nil
			}
			err := all(ctx, func(row []byte) error {
				if some = append(some, site.Sum256(row)); len(some) < rowsAtOnce {
					return nil
				}
				return send()
			})
			return errors.Join(err, send())
		})
		return sums
	}
	left, right := read(a), read(b)
	group.Go(func() error {
		for x, y := range zip(left, right) {
			found(x, y)
		}
		return nil
	})
	return group.Wait()
}

// zip yields the elements of two channels side by side; nil once the shorter one ends.
func zip(a, b <-chan []site.SHA256) iter.Seq2[*site.SHA256, *site.SHA256] {
	return func(yield func(x, y *site.SHA256) bool) {
		next := func(some *[]site.SHA256, from <-chan []site.SHA256) *site.SHA256 {
			for len(*some) == 0 {
				more, ok := <-from
				if !ok {
					return nil
				}
				*some = more
			}
			first := &(*some)[0]
			*some = (*some)[1:]
			return first
		}
		var left, right []site.SHA256
		for {
			x, y := next(&left, a), next(&right, b)
			if x == nil && y == nil || !yield(x, y) {
				return
			}
		}
	}
}

// errShown stops reading a table once enough rows are shown.
var errShown = errors.New("enough rows are shown")

// show collects the first rows that only one side has.
func (d *rowDiff) show(ctx context.Context, side int, all rows, pending map[site.SHA256]int) error {
	if d.count[side] == 0 {
		return nil
	}
	sign, enough := 2*side-1, false
	err := all(ctx, func(row []byte) error {
		sum := site.Sum256(row)
		if pending[sum]*sign <= 0 {
			return nil
		}
		pending[sum] -= sign
		if d.first[side] = append(d.first[side], printableRow(row)); len(d.first[side]) < min(mostRows, d.count[side]) {
			return nil
		}
		enough = true
		return errShown
	})
	if enough {
		return nil
	}
	return err
}

// printableRow returns a row without terminal control codes, cut to mostShown bytes.
func printableRow(row []byte) string {
	text, more := string(row), ""
	if len(text) > mostShown {
		text, more = text[:mostShown], "…"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, strings.ToValidUTF8(text, "")) + more
}

func (d *rowDiff) sameRows() bool { return d.count == [sides]int{} }

// String counts the differing rows, and lists the first ones.
func (d *rowDiff) String() string {
	if d.sameRows() {
		return "the same rows, in another order"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d rows only in the site, %d only on the chains\n", d.count[onlySite], d.count[onlyChains])
	for side, who := range []string{"site:  ", "chains:"} {
		for _, row := range d.first[side] {
			fmt.Fprintf(&b, "  %s %s\n", who, row)
		}
		if d.count[side] > len(d.first[side]) {
			fmt.Fprintf(&b, "  %s and %d more\n", who, d.count[side]-len(d.first[side]))
		}
	}
	return b.String()
}
