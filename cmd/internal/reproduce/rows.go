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

// rows calls found with each row of a table, which is valid until found returns. It may be called again.
type rows func(ctx context.Context, found func(row []byte) error) error

// rowsOf are the rows of a table in canonical form.
func rowsOf(from afero.Fs, t tables.Table, untimed bool) rows {
	return func(ctx context.Context, found func([]byte) error) error {
		return tables.Canonical(ctx, from, t, untimed, found)
	}
}

// primaryLists are the accounts of a table that name a primary list, and that list. A table with an account twice makes no
// site, so it need not be looked for here.
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
	mostRows   = 3 // of each side that are shown
	mostShown  = 240
	onlySite   = 0 // the number of a side
	onlyChains = 1
	sides      = 2 // sides
)

// A rowDiff says in which rows two tables differ.
type rowDiff struct {
	count [sides]int // none if the rows are the same, in another order
	first [sides][]string
}

// diffRows compares the rows of a site with those of the chains; nil if they are the same in the same order. Its memory is
// in proportion to the rows that differ, and to how far those that are in both are apart.
func diffRows(ctx context.Context, ofSite, ofChains rows) (*rowDiff, error) {
	pending := map[site.SHA256]int{} // how much more often the chains have a row
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

// rowsAtOnce is how many digests go from the goroutine that reads a table to that which compares.
const rowsAtOnce = 512

// together calls found with the digests of the rows of two tables side by side; nil for the shorter one's.
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

// zip are the elements of two channels side by side; nil for the shorter one's.
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

// errShown ends the reading of a table of which enough is shown.
var errShown = errors.New("enough rows are shown")

// show finds the first rows that only one side has.
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

// printableRow is a row that steers no terminal.
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

// String says how many rows differ, and shows the first ones, a line each.
func (d *rowDiff) String() string {
	if d.sameRows() {
		return "the same rows, in another order"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d rows only the site has, %d only the chains\n", d.count[onlySite], d.count[onlyChains])
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
