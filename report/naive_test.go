package report_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/followpress/followpress/internal/rawjson"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/twin/memsite"
	"github.com/followpress/followpress/internal/twin/naive"
	"github.com/followpress/followpress/report"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/routes"
)

// TestNaive compares reports of random pairs of sites with what a second, naive comparison of all of
// their objects finds.
func TestNaive(t *testing.T) {
	t.Parallel()
	seeds := uint64(servers.Rounds(3, 6)) // number of seeds per configuration
	var seen [7]atomic.Int64              // how often a pair had something of each kind
	t.Cleanup(func() {
		for i := range seen {
			if seen[i].Load() < int64(seeds)/2 {
				t.Errorf("kind %d: only %d pairs of sites had such changes", i, seen[i].Load())
			}
		}
	})
	for _, c := range []site.Config{{}, {API: site.APIEFP}, {API: site.APIEFP, Names: site.NamesLookup}} {
		for seed := range seeds {
			t.Run(fmt.Sprintf("%s%s-%d", c.API, c.Names, seed), func(t *testing.T) {
				t.Parallel()
				before := read(t, naive.Random(seed))
				after := altered(before, seed)
				if seed%3 == 2 { // two independent random snapshots
					after = read(t, naive.Random(seed+1000))
				}
				from, to := generate(t, before, c), generate(t, after, c)
				o := report.Options{Concurrency: 1 + int(seed%7), Memory: 1 << (seed % 24)}
				got := compare(t, from, to, o)
				want := naively(t, from, to)
				for i, n := range []int{want.Lists.New + want.Lists.Gone, want.Follows.Follows, want.Follows.Unblocks + want.Follows.Mutes,
					want.Accounts.Changed, len(want.Boards), want.Tags.Changed, want.Profiles.Changed} {
					seen[i].Add(int64(min(n, 1)))
				}
				for what, pair := range map[string][2]any{
					"lists": {got.Lists, want.Lists}, "follows": {got.Follows, want.Follows}, "accounts": {got.Accounts, want.Accounts},
					"boards": {got.Boards, want.Boards}, "tags": {got.Tags, want.Tags}, "profiles": {got.Profiles, want.Profiles},
					"objects": {got.Objects, want.Objects},
				} {
					if !reflect.DeepEqual(pair[0], pair[1]) {
						t.Errorf("%s: got\n%+v, want\n%+v", what, pair[0], pair[1])
					}
				}
				if _, err := got.HTML(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// altered returns a snapshot with some rows removed, changed and added.
func altered(s snapshot, seed uint64) snapshot {
	random := rand.New(rand.NewPCG(seed, 15))
	next := maps.Clone(s)
	for name, rows := range s {
		if !strings.HasSuffix(name, ".ndjson") {
			continue
		}
		var kept []string
		for row := range strings.Lines(rows) {
			switch {
			case random.IntN(12) == 0 && name != "events.ndjson":
			case random.IntN(8) == 0:
				row = strings.Replace(row, `"tags":["block"`, `"tags":["friend"`, 1)
				row = strings.Replace(row, `"tags":["top8"`, `"tags":["mute"`, 1)
				row = strings.Replace(row, `"name":"`, `"name":"new `, 1)
				row = strings.Replace(row, `"avatar":"`, `"avatar":"https://new.example/`, 1)
				kept = append(kept, row)
			default:
				kept = append(kept, row)
			}
		}
		if random.IntN(3) == 0 && name == "records.ndjson" {
			random.Shuffle(len(kept), func(i, j int) { kept[i], kept[j] = kept[j], kept[i] })
		}
		next[name] = strings.Join(kept, "")
	}
	return next
}

// What a naive comparison reads.
type (
	naiveRecord struct {
		Version uint32   `json:"version"`
		Type    string   `json:"record_type"`
		Data    string   `json:"data"`
		Tags    []string `json:"tags"`
	}
	naiveDetails struct {
		Address string `json:"address"`
		ENS     struct {
			Name    string          `json:"name"`
			Avatar  string          `json:"avatar"`
			Header  string          `json:"header"`
			Display string          `json:"display"`
			Records json.RawMessage `json:"records"`
		} `json:"ens"`
		Ranks struct {
			Followers string `json:"followers_rank"`
		} `json:"ranks"`
		Primary *string `json:"primary_list"`
	}
)

// naively compares all objects of two sites.
func naively(t *testing.T, from, to memsite.Site) *report.Report {
	t.Helper()
	n := &naiveComparison{t: t, from: from, to: to, config: to.Root(t).Config}
	r := &report.Report{Boards: []report.Board{}, Objects: []report.ObjectKind{}}
	n.records(r)
	n.boards(r)
	n.profiles(r)
	n.objects(r)
	return r
}

type naiveComparison struct {
	t        *testing.T
	from, to memsite.Site
	config   site.Config
	names    map[string]string
}

var isAddress = regexp.MustCompile(`^0x[0-9a-f]{40}$`)

func (n *naiveComparison) decode(text string, into any) {
	n.t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		n.t.Fatal(err)
	}
}

// held returns the tags of the accounts that a list holds.
func (n *naiveComparison) held(text string) map[string][]string {
	var in struct{ Records []naiveRecord }
	if text != "" {
		n.decode(text, &in)
	}
	all := map[string][]string{}
	for _, r := range in.Records {
		if r.Version == 1 && r.Type == "address" && isAddress.MatchString(r.Data) {
			all[r.Data] = r.Tags
		}
	}
	return all
}

func union[K cmp.Ordered, V any](a, b map[K]V) []K {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

func (n *naiveComparison) details(s memsite.Site, key string) (d naiveDetails, known bool) {
	text, known := s[site.Key(key)]
	if known {
		n.decode(text, &d)
	}
	return d, known
}

// namesOf returns the names of the accounts that have a profile.
func (n *naiveComparison) namesOf(s memsite.Site) map[string]string {
	pattern := profileKeys(n.config)
	names := map[string]string{}
	for key := range s {
		if !pattern.MatchString(string(key)) {
			continue
		}
		var d naiveDetails
		if n.decode(s[key], &d); n.config.EFP() || d.Primary != nil {
			names[d.Address] = d.ENS.Name
		}
	}
	return names
}

// profileKeys matches the keys of details that count as an account's.
func profileKeys(c site.Config) *regexp.Regexp {
	if c.EFP() {
		return regexp.MustCompile(`^api/v1/users/0x[0-9a-f]{40}/details$`)
	}
	return regexp.MustCompile(`^api/v1/lists/[0-9]+/details$`)
}

// nameOf returns the name of an account, in the new site if that knows it.
func (n *naiveComparison) nameOf(address string) string {
	if n.names == nil {
		n.names = n.namesOf(n.from)
		maps.Copy(n.names, n.namesOf(n.to))
	}
	return n.names[address]
}

func short(text string) (shown report.Text) {
	if len(text) > 200 {
		cut := 200
		for text[cut]&0xC0 == 0x80 {
			cut--
		}
		text = text[:cut] + "…"
	}
	_ = shown.UnmarshalText([]byte(text)) // takes any text
	return shown
}

func (n *naiveComparison) records(r *report.Report) {
	lists := map[string]bool{}
	pattern := regexp.MustCompile(`^api/v1/lists/([0-9]+)/records$`)
	for _, s := range []memsite.Site{n.from, n.to} {
		for key := range s {
			if m := pattern.FindStringSubmatch(string(key)); m != nil {
				lists[m[1]] = true
			}
		}
	}
	accounts := map[string][2]int{}
	tags := map[string][2]int{}
	var changes []report.ListChange
	for list := range lists {
		key := site.Key("api/v1/lists/" + list + "/records")
		before, was := n.from[key]
		after, is := n.to[key]
		if before == after {
			continue
		}
		change := report.ListChange{List: report.Text(list), State: "changed"}
		details := n.to
		switch {
		case !was:
			change.State = "new"
			r.Lists.New++
		case !is:
			change.State = "gone"
			details = n.from
			r.Lists.Gone++
		default:
			r.Lists.Changed++
		}
		old, now := n.held(before), n.held(after)
		for _, address := range union(old, now) {
			oldTags, had := old[address]
			newTags, has := now[address]
			for _, tag := range []string{"block", "mute"} {
				begun, ended := &r.Follows.Blocks, &r.Follows.Unblocks
				if tag == "mute" {
					begun, ended = &r.Follows.Mutes, &r.Follows.Unmutes
				}
				x, y := slices.Contains(oldTags, tag), slices.Contains(newTags, tag)
				if y && !x {
					*begun++
				} else if x && !y {
					*ended++
				}
			}
			followed := had && !slices.Contains(oldTags, "block") && !slices.Contains(oldTags, "mute")
			follows := has && !slices.Contains(newTags, "block") && !slices.Contains(newTags, "mute")
			counts, counted := accounts[address]
			if follows && !followed {
				change.Follows++
				counts[0]++
				counted = true
			} else if followed && !follows {
				change.Unfollows++
				counts[1]++
				counted = true
			}
			if counted {
				accounts[address] = counts
			}
			seen := map[string]bool{}
			for _, tag := range append(slices.Clone(oldTags), newTags...) {
				if seen[tag] {
					continue
				}
				seen[tag] = true
				counts := tags[tag]
				if x, y := slices.Contains(oldTags, tag), slices.Contains(newTags, tag); y && !x {
					counts[0]++
					tags[tag] = counts
				} else if x && !y {
					counts[1]++
					tags[tag] = counts
				}
			}
		}
		r.Follows.Follows += change.Follows
		r.Follows.Unfollows += change.Unfollows
		switch change.State {
		case "new":
			r.Follows.OfNew += change.Follows
		case "gone":
			r.Follows.OfGone += change.Unfollows
		}
		if change.Follows+change.Unfollows > 0 {
			d, _ := n.details(details, "api/v1/lists/"+list+"/details")
			change.Address, change.Name = report.Text(d.Address), short(d.ENS.Name)
			changes = append(changes, change)
		}
	}
	slices.SortFunc(changes, func(a, b report.ListChange) int {
		return cmp.Or(cmp.Compare(b.Follows+b.Unfollows, a.Follows+a.Unfollows), cmp.Compare(len(a.List), len(b.List)), cmp.Compare(a.List, b.List))
	})
	r.Lists.Largest = append([]report.ListChange{}, changes[:min(len(changes), 20)]...)
	n.accounts(r, accounts)
	n.tags(r, tags)
}

func (n *naiveComparison) accounts(r *report.Report, counts map[string][2]int) {
	r.Accounts = report.Accounts{Changed: len(counts), Gained: []report.AccountChange{}, Lost: []report.AccountChange{}}
	addresses := slices.Sorted(maps.Keys(counts))
	for _, sign := range []int{1, -1} {
		list, which := &r.Accounts.Gained, 0
		if sign < 0 {
			list, which = &r.Accounts.Lost, 1
		}
		for _, a := range addresses {
			if c := counts[a]; sign*(c[0]-c[1]) > 0 {
				*list = append(*list, report.AccountChange{Address: report.Text(a), Follows: c[0], Unfollows: c[1]})
			}
		}
		slices.SortStableFunc(*list, func(a, b report.AccountChange) int {
			x, y := [2]int{a.Follows, a.Unfollows}, [2]int{b.Follows, b.Unfollows}
			return cmp.Or(cmp.Compare(sign*(y[0]-y[1]), sign*(x[0]-x[1])), cmp.Compare(y[which], x[which]))
		})
		*list = (*list)[:min(len(*list), 20)]
		for i := range *list {
			(*list)[i].Name = short(n.nameOf(string((*list)[i].Address)))
		}
	}
}

func (n *naiveComparison) tags(r *report.Report, counts map[string][2]int) {
	r.Tags = report.Tags{Changed: len(counts), More: []report.TagChange{}, Less: []report.TagChange{}}
	encoded := func(tag string) string { return string(rawjson.AppendString(nil, tag)) }
	tags := slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return strings.Compare(encoded(a), encoded(b)) })
	for _, sign := range []int{1, -1} {
		list, which := &r.Tags.More, 0
		if sign < 0 {
			list, which = &r.Tags.Less, 1
		}
		for _, tag := range tags {
			if c := counts[tag]; sign*(c[0]-c[1]) > 0 {
				*list = append(*list, report.TagChange{Tag: short(tag), Added: c[0], Removed: c[1]})
			}
		}
		slices.SortStableFunc(*list, func(a, b report.TagChange) int {
			x, y := [2]int{a.Added, a.Removed}, [2]int{b.Added, b.Removed}
			return cmp.Or(cmp.Compare(sign*(y[0]-y[1]), sign*(x[0]-x[1])), cmp.Compare(y[which], x[which]))
		})
		*list = (*list)[:min(len(*list), 20)]
	}
}

func (n *naiveComparison) board(s memsite.Site, board site.Board) (order []string, places map[string][2]int) {
	var rows []map[string]any
	n.decode(s[site.LeaderboardLimitKey(board, n.config.LeaderboardMax)], &rows)
	places = map[string][2]int{}
	for i, row := range rows {
		address := row["address"].(string)
		for name, value := range row {
			if strings.HasSuffix(name, "_count") {
				count, err := strconv.Atoi(value.(string))
				if err != nil {
					n.t.Fatal(err)
				}
				places[address] = [2]int{i + 1, count}
			}
		}
		order = append(order, address)
	}
	return order, places
}

func (n *naiveComparison) boards(r *report.Report) {
	for _, board := range n.config.Boards() {
		key := site.LeaderboardLimitKey(board, n.config.LeaderboardMax)
		if n.from[key] == n.to[key] {
			continue
		}
		oldOrder, old := n.board(n.from, board)
		order, now := n.board(n.to, board)
		b := report.Board{Board: board, Places: max(len(old), len(now)), Risen: []report.PlaceOnIt{}, Fallen: []report.PlaceOnIt{}, Entered: []report.PlaceOnIt{}, Left: []report.PlaceOnIt{}}
		placeOf := func(a string) report.PlaceOnIt {
			return report.PlaceOnIt{Address: report.Text(a), Name: short(n.nameOf(a)), From: old[a][0], To: now[a][0], FromCount: old[a][1], ToCount: now[a][1]}
		}
		for _, a := range order {
			_, was := old[a]
			if old[a] != now[a] {
				b.Changed++
			}
			switch {
			case !was:
				b.Entered = append(b.Entered, placeOf(a))
			case now[a][0] < old[a][0]:
				b.Risen = append(b.Risen, placeOf(a))
			}
		}
		for _, a := range oldOrder {
			if _, is := now[a]; !is {
				b.Changed++
				b.Left = append(b.Left, placeOf(a))
			} else if now[a][0] > old[a][0] {
				b.Fallen = append(b.Fallen, placeOf(a))
			}
		}
		slices.SortStableFunc(b.Risen, func(x, y report.PlaceOnIt) int { return cmp.Compare(y.From-y.To, x.From-x.To) })
		slices.SortStableFunc(b.Fallen, func(x, y report.PlaceOnIt) int { return cmp.Compare(y.To-y.From, x.To-x.From) })
		b.Totals = report.PlacesTotals{Risen: len(b.Risen), Fallen: len(b.Fallen), Entered: len(b.Entered), Left: len(b.Left)}
		for _, list := range []*[]report.PlaceOnIt{&b.Risen, &b.Fallen, &b.Entered, &b.Left} {
			*list = (*list)[:min(len(*list), 10)]
		}
		r.Boards = append(r.Boards, b)
	}
}

func (n *naiveComparison) profiles(r *report.Report) {
	pattern := profileKeys(n.config)
	found := map[string]report.ProfileChange{}
	primary := map[string]bool{}
	keys := slices.Collect(maps.Keys(n.from))
	slices.SortFunc(keys, func(a, b site.Key) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(string(a), string(b)))
	})
	for _, key := range keys {
		if !pattern.MatchString(string(key)) {
			continue
		}
		old, _ := n.details(n.from, string(key))
		now, is := n.details(n.to, string(key))
		if !is || old.Address != now.Address {
			continue
		}
		change := report.ProfileChange{Address: report.Text(now.Address), NameFrom: short(old.ENS.Name), NameTo: short(now.ENS.Name),
			AvatarFrom: short(old.ENS.Avatar), AvatarTo: short(now.ENS.Avatar)}
		rank, err := strconv.Atoi(now.Ranks.Followers)
		if err != nil {
			n.t.Fatal(err)
		}
		change.Rank = rank
		if old.ENS.Name != now.ENS.Name {
			change.Changed = append(change.Changed, "name")
		}
		if old.ENS.Avatar != now.ENS.Avatar {
			change.Changed = append(change.Changed, "avatar")
		}
		if old.ENS.Header != now.ENS.Header {
			change.Changed = append(change.Changed, "header")
		}
		if old.ENS.Display != now.ENS.Display || string(old.ENS.Records) != string(now.ENS.Records) {
			change.Changed = append(change.Changed, "texts")
		}
		isPrimary := now.Primary != nil && strings.Contains(string(key), "/lists/"+*now.Primary+"/")
		if _, known := found[now.Address]; change.Changed != nil && (!known || isPrimary && !primary[now.Address]) {
			found[now.Address], primary[now.Address] = change, isPrimary
		}
	}
	p := &r.Profiles
	p.Examples = []report.ProfileChange{}
	for _, address := range slices.Sorted(maps.Keys(found)) {
		change := found[address]
		p.Changed++
		for what, count := range map[report.Text]*int{"name": &p.Names, "avatar": &p.Avatars, "header": &p.Headers, "texts": &p.Texts} {
			if slices.Contains(change.Changed, what) {
				*count++
			}
		}
		p.Examples = append(p.Examples, change)
	}
	slices.SortStableFunc(p.Examples, func(a, b report.ProfileChange) int {
		last := func(rank int) int { return (rank + 1_000_000_000 - 1) % 1_000_000_000 }
		return cmp.Compare(last(a.Rank), last(b.Rank))
	})
	p.Examples = p.Examples[:min(len(p.Examples), 50)]
}

func (n *naiveComparison) objects(r *report.Report) {
	kinds := map[routes.ID]*report.ObjectKind{}
	for _, key := range union(n.from, n.to) {
		before, was := n.from[key]
		after, is := n.to[key]
		if before == after || key == site.RootKey {
			continue
		}
		route, ok := n.config.RouteOf(key)
		if !ok {
			n.t.Fatalf("%s: no route", key)
		}
		kind := kinds[route.ID]
		if kind == nil {
			kind = &report.ObjectKind{Kind: report.Text(route.Pattern), Summary: report.Text(route.Summary)}
			kinds[route.ID] = kind
		}
		count, body := &kind.Altered, after
		if !was {
			count = &kind.Added
		} else if !is {
			count, body = &kind.Removed, before
		}
		count.Objects++
		if route.ID != routes.Manifest {
			count.Bytes += int64(len(body))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(kinds)) {
		r.Objects = append(r.Objects, *kinds[id])
	}
}
