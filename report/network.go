package report

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/site"
)

// Networks has the sizes of both networks, and the distributions of degrees.
type Networks struct {
	From      NetworkSizes `json:"from"`
	To        NetworkSizes `json:"to"`
	Followers []Degrees    `json:"followers"` // accounts by number of followers
	Following []Degrees    `json:"following"` // accounts by number of accounts that they follow
	Growth    []Month      `json:"growth"`    // growth of the new site, last 36 months
}

// NetworkSizes are the sizes of a network.
type NetworkSizes struct {
	Accounts int `json:"accounts"`
	Lists    int `json:"lists"`
	Primary  int `json:"primary_lists"`
	Records  int `json:"records"`
	Follows  int `json:"follows"`
	Names    int `json:"names"`
}

// Degrees counts the accounts with a degree from Least to below the Least of the next element.
type Degrees struct {
	Least int `json:"least"`
	From  int `json:"from"`
	To    int `json:"to"`
}

// A Month counts the records of primary lists added in that month.
type Month struct {
	Month Text `json:"month"` // such as 2026-01
	Count int  `json:"count"`
}

const mostMonths = 36

type network struct {
	AsOf string `json:"as_of"`
	NetworkSizes
	Followers [][2]int `json:"followers"`
	Following [][2]int `json:"following"`
	Growth    [][2]any `json:"growth"`
}

// compareNetworks compares the networks, if both sites describe theirs.
func (c *comparison) compareNetworks(ctx context.Context) error {
	was, err := readNetwork(ctx, c.from)
	if was == nil || err != nil {
		return err
	}
	is, err := readNetwork(ctx, c.to)
	if is == nil || err != nil {
		return err
	}
	n := &Networks{
		From: was.NetworkSizes, To: is.NetworkSizes,
		Followers: binned(was.Followers, is.Followers), Following: binned(was.Following, is.Following), Growth: []Month{},
	}
	for _, month := range is.Growth[max(0, len(is.Growth)-mostMonths):] {
		name, isText := month[0].(string)
		count, isNumber := month[1].(float64)
		if !isText || !isNumber {
			return c.to.explain(site.NetworkKey, fmt.Errorf("growth: %w", site.ErrMalformed))
		}
		n.Growth = append(n.Growth, Month{shorten(name), int(count)})
	}
	c.report.Network = n
	return nil
}

// readNetwork reads the description of a site's network, nil if it has none.
func readNetwork(ctx context.Context, s *source) (*network, error) {
	if !s.root.Config.Explorer {
		return nil, nil
	}
	body, err := s.readUnlisted(ctx, site.NetworkKey, maxNetwork)
	if body == nil || err != nil {
		return nil, err
	}
	n := &network{}
	if err := json.Unmarshal(body, n); err != nil {
		return nil, s.explain(site.NetworkKey, fmt.Errorf("%w: %w", site.ErrMalformed, err))
	}
	if n.AsOf != s.root.AsOf { // this object is read without its digest
		return nil, s.explain(site.NetworkKey, fmt.Errorf("%w: it is as of %.40q, the site as of %s", site.ErrMalformed, n.AsOf, s.root.AsOf))
	}
	return n, nil
}

// binsPerDecade determines the bins: degrees from 1, 2, 3, 4, 6, 8, 10, 14, …
const binsPerDecade = 8

// mostDegree exceeds any degree.
const mostDegree = 1_000_000_000

// binned counts accounts by degree, in logarithmic bins. It omits empty bins.
func binned(from, to [][2]int) []Degrees {
	bins := map[int]*Degrees{}
	add := func(degrees [][2]int, count func(*Degrees) *int) {
		for _, d := range degrees {
			if d[0] < 1 {
				continue
			}
			least := leastOf(min(d[0], mostDegree))
			if bins[least] == nil {
				bins[least] = &Degrees{Least: least}
			}
			*count(bins[least]) += d[1]
		}
	}
	add(from, func(d *Degrees) *int { return &d.From })
	add(to, func(d *Degrees) *int { return &d.To })
	all := make([]Degrees, 0, len(bins))
	for _, d := range bins {
		all = append(all, *d)
	}
	slices.SortFunc(all, func(a, b Degrees) int { return cmp.Compare(a.Least, b.Least) })
	return all
}

// leastOf returns the smallest degree in the bin of a degree.
func leastOf(degree int) int {
	begin := func(bin int) int { return int(math.Ceil(math.Pow(10, float64(bin)/binsPerDecade) - 1e-9)) }
	bin := int(math.Log10(float64(degree)) * binsPerDecade)
	for begin(bin+1) <= degree {
		bin++
	}
	for begin(bin) > degree {
		bin--
	}
	return begin(bin)
}
