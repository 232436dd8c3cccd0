package scan

import (
	"bytes"
	"fmt"
	"iter"
	"math"
	"strconv"
	"strings"

	"github.com/followpress/followpress/internal/rawjson"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
)

// This file reads the objects from which answers of APIEFP are computed. Their rows are JSON arrays. Elements are
// sliced without decoding, because answers contain most texts unchanged. Tests compare the results with those of a
// JSON decoder.

// StateOf is rules.StateOf for a JSON array of tags.
func StateOf(tags []byte) rules.State {
	s := rules.Follow
	for tag := range elements(tags) {
		if len(tag) > 2 { // including quotation marks
			s = rules.Tagged(s, tag[1:len(tag)-1])
		}
	}
	return s
}

// AppendState appends a state in the form of answers.
func AppendState(b []byte, s rules.State) []byte {
	b = strconv.AppendBool(append(b, `{"follow":`...), s&rules.Follow != 0)
	b = strconv.AppendBool(append(b, `,"block":`...), s&rules.Block != 0)
	b = strconv.AppendBool(append(b, `,"mute":`...), s&rules.Mute != 0)
	return append(b, '}')
}

// A TagFilter accepts records with at least one of its tags.
type TagFilter map[string]struct{} // tags as JSON; empty accepts all

// NewTagFilter returns a filter for tags separated by commas, as in Ask.Tags.
func NewTagFilter(tags string) TagFilter {
	f := TagFilter{}
	for tag := range strings.SplitSeq(tags, ",") {
		if tag != "" {
			f[string(rawjson.AppendString(nil, tag))] = struct{}{}
		}
	}
	return f
}

// Match reports whether a JSON array of tags contains one of the filter's.
func (f TagFilter) Match(tags []byte) bool {
	if len(f) == 0 {
		return true
	}
	for tag := range elements(tags) {
		if _, ok := f[string(tag)]; ok {
			return true
		}
	}
	return false
}

// A HeldRow is an account that a list holds. Its slices alias the object: Address has no quotation marks, Tags is a
// JSON array, the others are JSON strings.
type HeldRow struct {
	Version       uint32 // version of the record
	Address, Tags []byte
	Followers     int // followers of the address
	Name, Avatar  []byte
}

// A FollowerRow is an account whose list holds another one. List, without quotation marks, is its primary list. The
// other slices are as in HeldRow.
type FollowerRow struct {
	List, Address, Tags  []byte
	State                rules.State // state of the follower in the account's primary list
	Time                 int64       // time of the record, in milliseconds since the Unix epoch
	Followers            int         // number of followers of the follower
	Name, Avatar, Header []byte
	MutualsRank          int // mutuals rank of the follower; 0 is unranked
}

// A RankedRow is a ranked account. Ranks and counts are numbers.
type RankedRow struct {
	Address, Name, Avatar, Header []byte
	Ranks                         [5][]byte // by mutuals, followers, following, blocks, top8
	Counts                        [5][]byte // mutuals, following, followers, blocks, top8
}

// A RecommendedRow is a recommended account. Class is null or a JSON string, Records a JSON object.
type RecommendedRow struct {
	Address, Name, Avatar, Header, Class, Records []byte
	Followers, Following                          []byte    // numbers
	Ranks                                         [5][]byte // in the order of details
}

// An OperationRow is an operation on an address, or of a list; then List is "". List and Address have no quotation
// marks, the others are JSON strings.
type OperationRow struct {
	Time         int64 // time of the block, in milliseconds since the Unix epoch
	List         []byte
	Address      []byte // address of the list's account; in activity of a list, the target
	Name, Avatar []byte // of that address
	Opcode       byte   // 1 to 4
	Tag          []byte
}

// ParseHeldRow parses a HeldRow.
func ParseHeldRow(row []byte) (r HeldRow, err error) {
	e, err := cutSome(row, 5, 6)
	if err != nil {
		return HeldRow{}, err
	}
	version := rules.UsualVersion
	if e[5] != nil {
		version = e.number(5)
	}
	if version < 0 || version > math.MaxUint32 {
		return HeldRow{}, fmt.Errorf("version of a row: %w", site.ErrMalformed)
	}
	r = HeldRow{Version: uint32(version), Address: e.text(0), Tags: e[1], Followers: e.number(2), Name: e[3], Avatar: e[4]}
	return r, checkRow(r.Address, r.Followers, r.Tags)
}

// ParseFollowerRow parses a FollowerRow.
func ParseFollowerRow(row []byte) (r FollowerRow, err error) {
	e, err := cut(row, 10)
	if err != nil {
		return FollowerRow{}, err
	}
	r = FollowerRow{
		List: e.text(0), Address: e.text(1), Tags: e[2], State: rules.State(e.number(3)), Followers: e.number(5),
		Name: e[6], Avatar: e[7], Header: e[8], MutualsRank: e.number(9),
	}
	if r.Time, err = strconv.ParseInt(string(e[4]), 10, 64); err != nil {
		return FollowerRow{}, fmt.Errorf("time of a row: %w", site.ErrMalformed)
	}
	return r, checkRow(r.Address, min(r.Followers, r.MutualsRank), r.Tags)
}

// ParseRankedRow parses a RankedRow.
func ParseRankedRow(row []byte) (r RankedRow, err error) {
	e, err := cut(row, 6)
	if err != nil {
		return RankedRow{}, err
	}
	r = RankedRow{Address: e.text(0), Name: e[1], Avatar: e[2], Header: e[3]}
	if r.Ranks, err = fiveNumbers(e[4]); err == nil {
		r.Counts, err = fiveNumbers(e[5])
	}
	return r, err
}

// ParseRecommendedRow parses a RecommendedRow.
func ParseRecommendedRow(row []byte) (r RecommendedRow, err error) {
	e, err := cut(row, 9)
	if err != nil {
		return RecommendedRow{}, err
	}
	r = RecommendedRow{
		Address: e.text(0), Name: e[1], Avatar: e[2], Header: e[3], Class: e[4], Records: e[5], Followers: e[6], Following: e[7],
	}
	r.Ranks, err = fiveNumbers(e[8])
	return r, err
}

// ParseNotificationRow parses an operation on an address.
func ParseNotificationRow(row []byte) (OperationRow, error) {
	e, err := cut(row, 7)
	if err != nil {
		return OperationRow{}, err
	}
	list := e.text(1)
	if !site.ValidTokenID(string(list)) {
		return OperationRow{}, fmt.Errorf("list of an operation: %w", site.ErrMalformed)
	}
	copy(e[1:], e[2:]) // to the layout of activity rows
	r, err := operationRow(e)
	r.List = list
	return r, err
}

// ParseActivityRow parses an operation of a list.
func ParseActivityRow(row []byte) (OperationRow, error) {
	e, err := cut(row, 6)
	if err != nil {
		return OperationRow{}, err
	}
	return operationRow(e)
}

func operationRow(e elementsOf) (r OperationRow, err error) {
	if r.Time, err = strconv.ParseInt(string(e[0]), 10, 64); err != nil {
		return OperationRow{}, fmt.Errorf("time of an operation: %w", site.ErrMalformed)
	}
	opcode := e.number(4)
	r.Address, r.Name, r.Avatar, r.Opcode, r.Tag = e.text(1), e[2], e[3], byte(opcode), e[5]
	if opcode < 1 || opcode > 4 || len(r.Address) != site.AddressTextLen || !isText(r.Name) || !isText(r.Avatar) || !isText(r.Tag) {
		return OperationRow{}, fmt.Errorf("operation: %w", site.ErrMalformed)
	}
	return r, nil
}

func isText(value []byte) bool { return len(value) >= 2 && value[0] == '"' }

// Text decodes a JSON string of a row, or returns nil for anything else.
func Text(value []byte) []byte {
	if !isText(value) {
		return nil
	}
	return jsonText(value[1:])
}

func checkRow(address []byte, number int, tags []byte) error {
	if len(address) != site.AddressTextLen || number < 0 || tags[0] != '[' {
		return fmt.Errorf("row: %w", site.ErrMalformed)
	}
	return nil
}

func fiveNumbers(array []byte) (numbers [5][]byte, err error) {
	e, err := cut(array, len(numbers))
	if err != nil {
		return numbers, err
	}
	copy(numbers[:], e[:])
	return numbers, nil
}

// mostElements is the length of the longest row.
const mostElements = 10

// elementsOf are the elements of a row.
type elementsOf [mostElements][]byte

// cut splits a JSON array into n elements.
func cut(array []byte, n int) (elementsOf, error) { return cutSome(array, n, n) }

// cutSome splits a JSON array into least to most elements.
func cutSome(array []byte, least, most int) (e elementsOf, err error) {
	i := 0
	for element := range elements(array) {
		if i == most {
			return e, fmt.Errorf("row of more than %d elements: %w", most, site.ErrMalformed)
		}
		e[i] = element
		i++
	}
	if i < least {
		return e, fmt.Errorf("row of %d elements instead of %d: %w", i, least, site.ErrMalformed)
	}
	return e, nil
}

// text returns a JSON string without its quotation marks, or nil for anything else.
func (e *elementsOf) text(i int) []byte {
	if b := e[i]; len(b) >= 2 && b[0] == '"' {
		return b[1 : len(b)-1]
	}
	return nil
}

// number returns a whole number, or -1 for anything else. It does not allocate.
func (e *elementsOf) number(i int) int {
	text := e[i]
	if len(text) == 0 || len(text) > site.MaxNumberDigits {
		return -1
	}
	n := 0
	for _, c := range text {
		if c < '0' || c > '9' {
			return -1
		}
		n = 10*n + int(c-'0')
	}
	return n
}

// elements yields the elements of the compact JSON array at the start of array. It stops at the closing bracket, or
// where the array is malformed.
func elements(array []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if len(array) < 2 || array[0] != '[' {
			return
		}
		for rest := array[1:]; ; {
			n := valueLen(rest)
			if n == 0 || n == len(rest) || !yield(rest[:n]) || rest[n] != ',' {
				return
			}
			rest = rest[n+1:]
		}
	}
}

// valueLen returns the length of the compact JSON value at the start of b, or 0 if there is none or it has no end.
func valueLen(b []byte) int {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			n := stringLen(b[i:])
			if n == 0 {
				return 0
			}
			i += n - 1
			if depth == 0 {
				return i + 1
			}
		case '[', '{':
			depth++
		case ']', '}':
			if depth == 0 {
				return i
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',':
			if depth == 0 {
				return i
			}
		}
	}
	return 0
}

// stringLen returns the length of the JSON string at the start of b, or 0 if it has no end.
func stringLen(b []byte) int {
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
	}
	return 0
}

// A Shard is a shard of a long table, or its head.
type Shard struct {
	Owner   string // list or address of the rows; "" for the whole site
	Total   int    // rows of the table
	Follows int    // rows of the table that are follows
	Before  int    // follows in the shards before this one
	Shard   int    // number of this shard, from 0
	Shards  int    // number of shards of the table
	Size    int    // rows in every shard except the last

	rows []byte // JSON array
}

// ParseShard parses a shard or head.
func ParseShard(object []byte) (Shard, error) {
	s, isHead, err := parseShard(object)
	switch {
	case err != nil || isHead:
		return s, err
	case s.Size < 1 || s.Shard >= s.Shards || s.Total > s.Shards*s.Size:
		return Shard{}, fmt.Errorf("shard %d of %d: %w", s.Shard, s.Shards, site.ErrMalformed)
	}
	return s, nil
}

// ParseHistory parses a shard of operations. Such shards omit their size, HistoryShardSize, and shard 0 omits its
// number.
func ParseHistory(object []byte) (Shard, error) {
	s, _, err := parseShard(object)
	s.Size = site.HistoryShardSize
	if err == nil && (s.Shard >= s.Shards || s.Total > s.Shards*s.Size || s.Total <= (s.Shards-1)*s.Size) {
		err = fmt.Errorf("%d operations in %d shards: %w", s.Total, s.Shards, site.ErrMalformed)
	}
	return s, err
}

func parseShard(object []byte) (s Shard, isHead bool, err error) {
	for name, value := range members(object) {
		switch string(name) {
		case `"list"`, `"address"`:
			e := elementsOf{value}
			s.Owner = string(e.text(0))
		case `"places"`:
			isHead = true
		case `"entries"`:
			s.rows = value
		default:
			e := elementsOf{value}
			n := e.number(0)
			if n < 0 {
				return Shard{}, false, fmt.Errorf("member %s of a shard: %w", name, site.ErrMalformed)
			}
			switch string(name) {
			case `"total"`:
				s.Total = n
			case `"follows"`:
				s.Follows = n
			case `"before"`:
				s.Before = n
			case `"shard"`:
				s.Shard = n
			case `"shards"`:
				s.Shards = n
			case `"shard_size"`:
				s.Size = n
			}
		}
	}
	if s.rows == nil {
		return Shard{}, false, fmt.Errorf("shard without rows: %w", site.ErrMalformed)
	}
	return s, isHead, nil
}

// First returns the index in the table of the shard's first row.
func (s Shard) First() int { return s.Shard * s.Size }

// Rows yields the rows of a shard: JSON arrays, or numbers in a shard of RankedOrderKey.
func (s Shard) Rows() iter.Seq[[]byte] { return elements(s.rows) }

// RowsOf yields the elements of a JSON array, such as UserNode.Rows and ListNode.Rows.
func RowsOf(rows []byte) iter.Seq[[]byte] { return elements(rows) }

// members yields the members of a compact JSON object: quoted names, and values.
func members(object []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		if len(object) < 2 || object[0] != '{' {
			return
		}
		for rest := object[1:]; ; {
			n := stringLen(rest)
			if n == 0 || n == len(rest) || rest[0] != '"' || rest[n] != ':' {
				return
			}
			name := rest[:n]
			rest = rest[n+1:]
			n = valueLen(rest)
			if n == 0 || n == len(rest) || !yield(name, rest[:n]) || rest[n] != ',' {
				return
			}
			rest = rest[n+1:]
		}
	}
}

// A UserNode is a user's entry in a user bucket.
type UserNode struct {
	Address   string // address of the account
	List      string // its primary list, "" for none
	Held      int    // accounts that the primary list holds
	Followers int    // primary lists that hold the account
	Rows      []byte // JSON array of FollowerRows, if the user is an address with at most PackedRows of them
}

// FindUserNode finds a lower-case address or a normalized name in a user bucket of APIEFP. known is false if it is
// missing.
func FindUserNode(bucket []byte, user string) (node UserNode, known bool, err error) {
	value := find(bucket, user, '[')
	if value == nil {
		return UserNode{}, false, nil
	}
	if _, notAddress := site.ParseAddress(user); notAddress != nil {
		e, err := cut(value, 4)
		node = UserNode{Address: string(e.text(0)), List: string(e.text(1)), Held: e.number(2), Followers: e.number(3)}
		return node, true, checkNode(err, node.Address, node.List, node.Held, node.Followers)
	}
	e, err := cut(value, 4)
	node = UserNode{Address: user, List: string(e.text(0)), Held: e.number(1), Followers: e.number(2), Rows: e[3]}
	return node, true, checkNode(err, node.Address, node.List, node.Held, node.Followers)
}

// A ListNode is a list's entry in a token bucket.
type ListNode struct {
	Account   string
	Primary   bool   // primary list of the account
	Held      int    // accounts that the list holds
	Followers int    // primary lists that hold its account
	Rows      []byte // JSON array of HeldRows, if there are at most PackedRows
}

// FindListNode finds a list in a token bucket. known is false if it is missing.
func FindListNode(bucket []byte, tokenID string) (node ListNode, known bool, err error) {
	value := find(bucket, tokenID, '[')
	if value == nil {
		return ListNode{}, false, nil
	}
	e, err := cut(value, 5)
	node = ListNode{Account: string(e.text(0)), Primary: string(e[1]) == "true", Held: e.number(2), Followers: e.number(3), Rows: e[4]}
	return node, true, checkNode(err, node.Account, tokenID, node.Held, node.Followers)
}

func checkNode(err error, address, tokenID string, held, followers int) error {
	if err != nil {
		return err
	}
	if len(address) != site.AddressTextLen || tokenID != "" && !site.ValidTokenID(tokenID) || min(held, followers) < 0 {
		return fmt.Errorf("bucket: %w", site.ErrMalformed)
	}
	return nil
}

// find returns the value of a key in a bucket, which begins with the given byte, or nil. No text in a bucket can pass for
// the key, because quotation marks in strings are escaped.
func find(bucket []byte, key string, begins byte) (value []byte) {
	member := append(rawjson.AppendString(nil, key), ':', begins)
	for at := 0; ; at++ {
		i := bytes.Index(bucket[at:], member)
		if i < 0 {
			return nil
		}
		at += i
		if at > 0 && (bucket[at-1] == '{' || bucket[at-1] == ',') {
			value := bucket[at+len(member)-1:]
			return value[:valueLen(value)]
		}
	}
}

// MatchText reports whether an address or a name, as a JSON string, contains the term, regardless of letter case.
func (m *Matcher) MatchText(address, name []byte) bool {
	return len(m.term) == 0 || bytes.Contains(address, m.term) || len(name) > 2 && bytes.Contains(m.fold(jsonText(name[1:])), m.term)
}

// A HeldRecord is a record that holds an account: its lower-case address, and tags as a JSON array.
type HeldRecord struct {
	Version       uint32
	Address, Tags []byte
}

// HeldRecords yields the records in an answer to /records that hold accounts.
func HeldRecords(records []byte) iter.Seq[HeldRecord] {
	return func(yield func(HeldRecord) bool) {
		for entry := range Entries(records) {
			version, data, ok := cutHeldStart(entry)
			if !ok {
				continue
			}
			address := data[:site.AddressTextLen]
			tags, ok := bytes.CutPrefix(data[site.AddressTextLen:], []byte(`"`+tagsMember[:len(tagsMember)-1]))
			if _, err := site.ParseAddress(address); ok && err == nil && !yield(HeldRecord{version, address, tags[:valueLen(tags)]}) {
				return
			}
		}
	}
}

// An AccountFile has the parts of an answer to /account that computed answers show. Address has no quotation marks,
// Records is a JSON object, and the others are JSON strings.
type AccountFile struct {
	Address, Name, Avatar, Records, UpdatedAt []byte
}

// ParseAccount parses an answer to /account.
func ParseAccount(account []byte) (a AccountFile, err error) {
	for name, value := range members(account) {
		switch string(name) {
		case `"address"`:
			e := elementsOf{value}
			a.Address = e.text(0)
		case `"ens"`:
			for name, value := range members(value) {
				switch string(name) {
				case `"name"`:
					a.Name = value
				case `"avatar"`:
					a.Avatar = value
				case `"records"`:
					a.Records = value
				case `"updated_at"`:
					a.UpdatedAt = value
				}
			}
		}
	}
	if a.Address == nil || a.Name == nil || a.Avatar == nil || a.Records == nil || a.UpdatedAt == nil {
		return AccountFile{}, fmt.Errorf("account: %w", site.ErrMalformed)
	}
	return a, nil
}

// HasName reports whether the account has a name.
func (a AccountFile) HasName() bool { return string(a.Name) != `""` }

// AppendEntry appends the profile of an account with a name in the form of entries.
func (a AccountFile) AppendEntry(b []byte) []byte {
	b = append(append(b, `{"name":`...), a.Name...)
	b = append(append(b, `,"address":"`...), a.Address...)
	b = append(append(b, `","avatar":`...), a.Avatar...)
	b = append(append(b, `,"records":`...), a.Records...)
	return append(append(append(b, `,"updated_at":`...), a.UpdatedAt...), '}')
}

// DiscoverEntries yields the entries of the object DiscoverShardKey, which are JSON objects.
func DiscoverEntries(object []byte) (iter.Seq[[]byte], error) {
	for _, entries := range members(object) {
		return elements(entries), nil
	}
	return nil, fmt.Errorf("%s: %w", site.DiscoverShardKey, site.ErrMalformed)
}
