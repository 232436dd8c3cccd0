package pipeline

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/transforms/top"

	"github.com/followpress/followpress/beam/internal/dofn"
	"github.com/followpress/followpress/beam/internal/wire"
	"github.com/followpress/followpress/generator/render"
	"github.com/followpress/followpress/internal/rawjson"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
)

func init() {
	dofn.Register4x0(&bucketFn{})
	dofn.Register4x0(&splitFn{})
	dofn.Register3x0(&ungroupFn{})
	dofn.Register3x0(&expectFn{})
	dofn.Register4x1(&collectFn{})
	dofn.Register2x1(&fixedFn{})
	dofn.Register3x0(&discoverFn{})
	dofn.Register3x0(&tagCountFn{})
	dofn.Register3x0(&topTagsFn{})
	register.Function2x1(followedBefore)
	register.Function2x1(usedLess)
}

// sums are all statistics except those of tags, a side input. A DoFn reads them once.
type sums map[string]int64

func (s *sums) read(stats func(*string, *int64) bool) {
	if *s != nil {
		return
	}
	*s = sums{}
	var name string
	var n int64
	for stats(&name, &n) {
		(*s)[name] += n
	}
}

func (s sums) of(name string) int { return int(s[name]) }

// userDigits returns the number of hexadecimal digits of the names of user buckets.
func (s sums) userDigits(c site.Config) int {
	if c.EFP() {
		return c.BucketDigits(s.of(statAccounts) + s.of(statNames))
	}
	return c.BucketDigits(s.of(statPrimaries) + s.of(statNames))
}

func (s sums) tokenDigits(c site.Config) int { return c.TokenDigits(s.of(statLists)) }

// A splitFn separates parts of some keys, its second output, from others.
type splitFn struct{ Keys []string }

func (f *splitFn) ProcessElement(key string, part []byte, parts, ofKey func(string, []byte)) {
	if slices.Contains(f.Keys, key) {
		ofKey(key, part)
	} else {
		parts(key, part)
	}
}

// An ungroupFn undoes a grouping.
type ungroupFn struct{}

func (*ungroupFn) ProcessElement(key string, parts func(*[]byte) bool, emit func(string, []byte)) {
	for part := []byte(nil); parts(&part); part = nil {
		emit(key, part)
	}
}

// A bucketFn finds the buckets of users and lists.
type bucketFn struct {
	Config site.Config

	sums sums
}

// ProcessElement passes a part on under the key of its object. The side input has the statistics.
func (f *bucketFn) ProcessElement(key string, part []byte, stats func(*string, *int64) bool, parts func(string, []byte)) {
	f.sums.read(stats)
	switch rest := key[1:]; key[:1] {
	case keyUser:
		parts(keyUserBucket+site.UserBucket(rest, f.sums.userDigits(f.Config)), part)
	case keyToken:
		parts(keyTokenBucket+site.UserBucket(rest, f.sums.tokenDigits(f.Config)), part)
	default:
		parts(key, part)
	}
}

// An expectFn emits the keys of objects that exist even if empty.
type expectFn struct {
	Config      site.Config
	Recommended int

	sums sums
}

// partNothing is an empty part.
const partNothing = 0xff

// ProcessElement emits all keys. The side input has the statistics.
func (f *expectFn) ProcessElement(_ []byte, stats func(*string, *int64) bool, emit func(string, []byte)) {
	f.sums.read(stats)
	c := f.Config
	expect := func(key string) { emit(key, []byte{partNothing}) }
	for _, bucket := range site.HashPrefixes(f.sums.userDigits(c)) {
		expect(keyUserBucket + bucket)
	}
	for _, board := range c.Boards() {
		expect(boardPart(render.BoardMeasure(board)))
	}
	if c.Explorer {
		expect(keyTop)
		expect(keyNetwork)
	}
	if !c.EFP() {
		return
	}
	for _, bucket := range site.HashPrefixes(f.sums.tokenDigits(c)) {
		expect(keyTokenBucket + bucket)
	}
	expect(keyRankedFirst)
	expect(keySummaries)
	for n := range render.ShardCount(f.sums.of(statRanked), site.SearchShardSize) {
		expect(rankedPart(n))
	}
	for _, sort := range site.RankedSorts() {
		for n := range render.ShardCount(f.sums.of(statRanked), site.RankedOrderSize) {
			expect(orderPart(sort, n))
		}
	}
	for n := range render.ShardCount(f.Recommended, site.SearchShardSize) {
		expect(recommendedPart(n))
	}
}

// expected returns the number of objects made by expectFn and fixedFn.
func expected(c site.Config, s sums, recommended, fixed int) int {
	return fixed + render.SharedObjects(c, render.Tables{
		BucketDigits: s.userDigits(c), TokenDigits: s.tokenDigits(c), Ranked: s.of(statRanked), Recommended: recommended,
	})
}

// A collectFn renders the objects that show many accounts or lists.
type collectFn struct {
	Config      site.Config
	AsOf        string
	Events      []site.Event
	ListOps     *uint64
	Recommended int

	renderer *render.Renderer
	sums     sums
}

// Setup makes the renderer.
func (f *collectFn) Setup() (err error) {
	f.renderer, err = render.New(f.Config, f.AsOf, f.Events)
	return err
}

// ProcessElement renders an object. The side input has the statistics.
func (f *collectFn) ProcessElement(
	key string, values func(*[]byte) bool, stats func(*string, *int64) bool, objects func(string, []byte),
) error {
	f.sums.read(stats)
	var parts [][]byte
	var value []byte
	for values(&value) {
		if len(value) != 1 || value[0] != partNothing {
			parts = append(parts, value)
		}
		value = nil
	}
	emit := func(key site.Key, body []byte) { objects(string(key), body) }
	kind, rest := key[:1], key[1:]
	name, _, _ := strings.Cut(rest, "/")
	number, err := partNumber(kind, rest)
	if err != nil {
		return err
	}
	switch kind {
	case keyUserBucket:
		return f.userBucket(rest, parts, emit)
	case keyTokenBucket:
		return f.tokenBucket(rest, parts, emit)
	case keyBoard:
		return f.board(rules.Measure(number), parts, emit)
	case keyTop:
		return f.top(parts, emit)
	case keyRankedFirst:
		return f.rankedFirst(parts, emit)
	case keyFollowers:
		return f.followers(name, number, parts, emit)
	case keyHead:
		return f.head(rest, parts, emit)
	case keyNetwork:
		return f.network(parts, emit)
	case keySummaries:
		return f.summaries(parts, emit)
	case keyRanked:
		_, rows := sortPlaced(parts)
		emit(f.renderer.RankedShard(f.sums.of(statRanked), number, rows))
	case keyRecommended:
		_, rows := sortPlaced(parts)
		emit(f.renderer.RecommendedShard(f.Recommended, number, rows))
	case keyOrder:
		return f.order(name, number, parts, emit)
	default:
		return fmt.Errorf("no object has parts under %q", key)
	}
	return nil
}

func (f *collectFn) rankedFirst(parts [][]byte, emit render.Emit) error {
	first, err := persons(parts)
	if err == nil {
		f.renderer.Ranked(first, emit)
	}
	return err
}

func (f *collectFn) order(sort string, shard int, parts [][]byte, emit render.Emit) error {
	_, rows := sortPlaced(parts)
	places := make([]uint32, len(rows))
	for i, row := range rows {
		d := wire.Decode(row)
		places[i] = d.Uint32()
		if err := d.Err(); err != nil {
			return err
		}
	}
	emit(f.renderer.RankedOrder(sort, f.sums.of(statRanked), shard, places))
	return nil
}

// partNumber returns the number at the end of a key, 0 for kinds without one.
func partNumber(kind, rest string) (int, error) {
	switch kind {
	case keyBoard, keyFollowers, keyRanked, keyRecommended, keyOrder:
		n, err := strconv.Atoi(rest[strings.LastIndexByte(rest, '/')+1:])
		if err != nil {
			return 0, fmt.Errorf("the key %s%s of parts: %w", kind, rest, err)
		}
		return n, nil
	}
	return 0, nil
}

// persons decodes accounts in the order of their places.
func persons(parts [][]byte) (all []render.Account, err error) {
	_, rows := sortPlaced(parts)
	for _, row := range rows {
		d := wire.Decode(row)
		p := d.Person()
		if err := d.Err(); err != nil {
			return nil, err
		}
		all = append(all, person(&p))
	}
	return all, nil
}

func (f *collectFn) board(m rules.Measure, parts [][]byte, emit render.Emit) error {
	_, rows := sortPlaced(parts)
	first := make([]render.Leader, len(rows))
	for i, row := range rows {
		d := wire.Decode(row)
		first[i] = render.Leader{Address: d.Address(), Count: d.Uint32()}
		if err := d.Err(); err != nil {
			return err
		}
	}
	for _, board := range f.Config.Boards() {
		if render.BoardMeasure(board) == m {
			f.renderer.Leaderboards(board, first, emit)
		}
	}
	return nil
}

func (f *collectFn) top(parts [][]byte, emit render.Emit) error {
	first, err := persons(parts)
	top, start := render.Top(first, f.sums.of(statFollowed))
	emit(site.TopKey, top)
	emit(render.StartKey, start)
	return err
}

// userBucket renders a bucket of users.
func (f *collectFn) userBucket(name string, parts [][]byte, emit render.Emit) error {
	if !f.Config.EFP() {
		return f.simpleUserBucket(name, parts, emit)
	}
	type account struct {
		sizes []byte
		rows  [][]byte
	}
	accounts := map[site.Address]*account{}
	of := func(a site.Address) *account {
		if accounts[a] == nil {
			accounts[a] = &account{}
		}
		return accounts[a]
	}
	names := map[string][]byte{}
	for _, part := range parts {
		d := wire.Decode(part[1:])
		switch part[0] {
		case partAccount:
			a := of(d.Address())
			a.sizes = d.Rest()
		case partRow:
			a := of(d.Address())
			a.rows = append(a.rows, d.Rest())
		case partName:
			name := d.Text()
			entry := append(rawjson.AppendString(nil, name), `:["`...)
			names[name] = append(append(d.Address().Append(entry), `",`...), append(d.Rest(), ']')...)
		}
		if err := d.Err(); err != nil {
			return err
		}
	}
	var encodedNames, encodedAccounts [][]byte
	for _, name := range sortedKeys(names, strings.Compare) {
		encodedNames = append(encodedNames, names[name])
	}
	for _, address := range sortedKeys(accounts, func(a, b site.Address) int { return strings.Compare(string(a[:]), string(b[:])) }) {
		a := accounts[address]
		entry := append(address.Append([]byte{'"'}), `":[`...)
		entry = append(append(entry, a.sizes...), ",["...)
		_, rows := sortPlaced(a.rows)
		for i, row := range rows {
			if i > 0 {
				entry = append(entry, ',')
			}
			entry = append(entry, row...)
		}
		encodedAccounts = append(encodedAccounts, append(entry, "]]"...))
	}
	emit(site.UserBucketKey(name), render.UserBucketEFP(name, encodedNames, encodedAccounts))
	return nil
}

func sortedKeys[K comparable, V any](m map[K]V, compare func(a, b K) int) []K {
	keys := make([]K, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, compare)
	return keys
}

// simpleUserBucket renders a bucket of the API spec.
func (f *collectFn) simpleUserBucket(name string, parts [][]byte, emit render.Emit) error {
	tokens := map[string]string{}
	for _, part := range parts {
		d := wire.Decode(part[1:])
		user, token := d.Text(), d.Text()
		if err := d.Err(); err != nil {
			return err
		}
		tokens[user] = token
	}
	users := sortedKeys(tokens, strings.Compare)
	emit(site.UserBucketKey(name), render.AppendUserBucket(nil, name, users, func(user string) string { return tokens[user] }))
	return nil
}

func (f *collectFn) tokenBucket(name string, parts [][]byte, emit render.Emit) error {
	lists := map[string][]byte{}
	for _, part := range parts {
		d := wire.Decode(part)
		token := d.Text()
		lists[token] = d.Bytes()
		if err := d.Err(); err != nil {
			return err
		}
	}
	var entries [][]byte
	for _, token := range sortedKeys(lists, strings.Compare) {
		entries = append(entries, lists[token])
	}
	emit(site.TokenBucketKey(name), render.TokenBucket(name, entries))
	return nil
}

// headed separates the header from the parts of a shard or a head, and sorts the rows.
func headed(parts [][]byte) (header []uint64, places []int, rows [][]byte) {
	for _, part := range parts {
		if part[0] != partHeader {
			rows = append(rows, part[1:])
			continue
		}
		d := wire.Decode(part[1:])
		for d.More() {
			header = append(header, d.Uvarint())
		}
	}
	places, rows = sortPlaced(rows)
	return header, places, rows
}

func (f *collectFn) followers(address string, shard int, parts [][]byte, emit render.Emit) error {
	header, _, rows := headed(parts)
	if len(header) != 3 {
		return fmt.Errorf("the shard %d of the followers of %s has %d numbers, expected 3", shard, address, len(header))
	}
	emit(f.renderer.FollowerShard(address, int(header[0]), int(header[1]), int(header[2]), shard, rows))
	return nil
}

func (f *collectFn) head(address string, parts [][]byte, emit render.Emit) error {
	header, places, rows := headed(parts)
	if len(header) != 1 {
		return fmt.Errorf("the head of the followers of %s has %d numbers, expected 1", address, len(header))
	}
	numbers := make([]uint32, len(places))
	for i, place := range places {
		numbers[i] = uint32(place)
	}
	emit(f.renderer.FollowerHead(address, int(header[0]), numbers, rows))
	return nil
}

// counts returns the counts of the root.
func (s sums) counts(events int) site.Counts {
	return site.Counts{
		Accounts: s.of(statAccounts), Lists: s.of(statLists), Primary: s.of(statPrimaries), Records: s.of(statRecords),
		Follows: s.of(statFollows), Names: s.of(statNames), Events: events,
	}
}

func (f *collectFn) network(parts [][]byte, emit render.Emit) error {
	n := render.Network{AsOf: f.AsOf, Counts: f.sums.counts(len(f.Events))}
	n.Counts.Accounts = f.sums.of(statAddresses)
	for name, count := range f.sums {
		for _, degrees := range []struct {
			prefix string
			to     *[]render.DegreeCount
		}{{statFollowers, &n.Followers}, {statFollowing, &n.Following}} {
			if degree, ok := strings.CutPrefix(name, degrees.prefix); ok {
				number, err := strconv.Atoi(degree)
				if err != nil {
					return err
				}
				*degrees.to = append(*degrees.to, render.DegreeCount{Degree: number, Accounts: int(count)})
			}
		}
		if month, ok := strings.CutPrefix(name, statMonth); ok {
			ms, err := strconv.ParseInt(month, 10, 64)
			if err != nil {
				return err
			}
			n.Growth = append(n.Growth, render.LabelledCount{Label: time.UnixMilli(ms).UTC().Format("2006-01"), Records: int(count)})
		}
	}
	byDegree := func(a, b render.DegreeCount) int { return cmp.Compare(a.Degree, b.Degree) }
	slices.SortFunc(n.Followers, byDegree)
	slices.SortFunc(n.Following, byDegree)
	slices.SortFunc(n.Growth, func(a, b render.LabelledCount) int { return strings.Compare(a.Label, b.Label) })
	for _, part := range parts {
		d := wire.Decode(part)
		for d.More() {
			n.Tags = append(n.Tags, render.LabelledCount{Records: int(d.Uvarint()), Label: d.Text()})
		}
		if err := d.Err(); err != nil {
			return err
		}
	}
	emit(site.NetworkKey, n.Append(nil))
	return nil
}

func (f *collectFn) summaries(parts [][]byte, emit render.Emit) error {
	s := render.Summaries{
		Ranked: f.sums.of(statRanked), Addresses: f.sums.of(statAddresses), Lists: f.sums.of(statLists),
		Primaries: f.sums.of(statPrimaries), ListOps: uint64(f.sums.of(statRecords)),
	}
	if f.ListOps != nil {
		s.ListOps = *f.ListOps
	}
	for _, part := range parts {
		d := wire.Decode(part)
		for d.More() {
			s.Discover = append(s.Discover, d.Bytes())
		}
		if err := d.Err(); err != nil {
			return err
		}
	}
	f.renderer.Summaries(s, emit)
	return nil
}

// A followed is an account with its newest follow.
type followed struct {
	added  int64
	token  string
	record uint32
	person []byte
}

func parseFollowed(part []byte) followed {
	d := wire.Decode(part[1:])
	return followed{d.Varint(), d.Text(), d.Uint32(), d.Bytes()}
}

// followedBefore is the reverse order of discover.
func followedBefore(x, y []byte) bool {
	a, b := parseFollowed(x), parseFollowed(y)
	return cmp.Or(cmp.Compare(a.added, b.added), site.CompareTokenIDs(a.token, b.token), cmp.Compare(a.record, b.record)) < 0
}

// A discoverFn packs the persons for discover.
type discoverFn struct{}

func (*discoverFn) ProcessElement(_ string, newest [][]byte, emit func(string, []byte)) {
	var packed []byte
	for _, part := range newest {
		packed = wire.AppendText(packed, parseFollowed(part).person)
	}
	emit(keySummaries, packed)
}

// A tagCountFn selects the statistics of tags.
type tagCountFn struct{}

func (*tagCountFn) ProcessElement(name string, n int64, emit func(string, []byte)) {
	if tag, ok := strings.CutPrefix(name, statTag); ok {
		emit(keyNetwork, append(binary.AppendUvarint(nil, uint64(n)), tag...))
	}
}

// usedLess is the reverse order of the most used tags.
func usedLess(x, y []byte) bool {
	a, b := wire.Decode(x), wire.Decode(y)
	if n, m := a.Uvarint(), b.Uvarint(); n != m {
		return n < m
	}
	return string(a.Rest()) > string(b.Rest())
}

// A topTagsFn packs the most used tags.
type topTagsFn struct{}

func (*topTagsFn) ProcessElement(key string, tags [][]byte, emit func(string, []byte)) {
	var packed []byte
	for _, tag := range tags {
		d := wire.Decode(tag)
		packed = wire.AppendText(binary.AppendUvarint(packed, d.Uvarint()), d.Rest())
	}
	emit(key, packed)
}

// A fixedFn renders the objects that depend on the configuration only.
type fixedFn struct {
	Config site.Config
	AsOf   string
	Events []site.Event
}

func (f *fixedFn) ProcessElement(_ []byte, objects func(string, []byte)) error {
	r, err := render.New(f.Config, f.AsOf, f.Events)
	if err == nil {
		r.Fixed(func(key site.Key, body []byte) { objects(string(key), body) })
	}
	return err
}

// collect renders the objects made of parts. Parts of accounts come from the stages that count;
// parts of units do not.
func collect(s beam.Scope, o *Options, ofAccounts, ofUnits, allStats, stats beam.PCollection) beam.PCollection {
	s = s.Scope("collect")
	side := beam.SideInput{Input: stats}
	split, discovered := beam.ParDo2(s, &splitFn{[]string{keyDiscover}}, ofAccounts)
	// Statistics are complete when a stage that also makes parts has ended, and buckets are not
	// known before. Flink would wait for both forever; a group waits for the parts only.
	waiting := beam.ParDo(s, &ungroupFn{}, beam.GroupByKey(s, split))
	all := beam.ParDo(s, &bucketFn{Config: o.Config}, beam.Flatten(s, waiting, ofUnits), side)
	kinds := []beam.PCollection{all, beam.ParDo(s, &expectFn{Config: o.Config, Recommended: len(o.Recommended)}, beam.Impulse(s), side)}
	if o.Config.EFP() {
		newest := top.LargestPerKey(s, discovered, site.DiscoverMax, followedBefore)
		kinds = append(kinds, beam.ParDo(s, &discoverFn{}, newest))
	}
	if o.Config.Explorer {
		used := top.LargestPerKey(s, beam.ParDo(s, &tagCountFn{}, allStats), render.NetworkTags, usedLess)
		kinds = append(kinds, beam.ParDo(s, &topTagsFn{}, used))
	}
	return beam.ParDo(s, &collectFn{
		Config: o.Config, AsOf: o.AsOf, Events: o.Events, ListOps: o.ListOps, Recommended: len(o.Recommended),
	}, grouped(s, kinds...), side)
}
