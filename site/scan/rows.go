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

// This file reads the objects from which answers of APIEFP are computed. Their rows are JSON arrays, whose
// elements are cut out of the object without decoding them: an answer shows most texts as they are. Tests
// compare the results with those of a JSON decoder. Errors wrap ErrMalformed.

// StateOf is rules.StateOf for tags as a JSON array.
func StateOf(tags []byte) rules.State {
	s := rules.Follow
	for tag := range elements(tags) {
		if len(tag) > 2 { // with its quotation marks
			s = rules.Tagged(s, tag[1:len(tag)-1])
		}
	}
	return s
}

// AppendState appends a state as answers show it.
func AppendState(b []byte, s rules.State) []byte {
	b = strconv.AppendBool(append(b, `{"follow":`...), s&rules.Follow != 0)
	b = strconv.AppendBool(append(b, `,"block":`...), s&rules.Block != 0)
	b = strconv.AppendBool(append(b, `,"mute":`...), s&rules.Mute != 0)
	return append(b, '}')
}

// A TagFilter accepts records that carry one of some tags.
type TagFilter map[string]struct{} // the tags as JSON; empty accepts all

// NewTagFilter returns a filter for tags with commas between them, as in Ask.Tags.
func NewTagFilter(tags string) TagFilter {
	f := TagFilter{}
	for tag := range strings.SplitSeq(tags, ",") {
		if tag != "" {
			f[string(rawjson.AppendString(nil, tag))] = struct{}{}
		}
	}
	return f
}

// Match reports whether one of the tags is among those of a record, a JSON array.
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

// A HeldRow is a row of what a list holds. Its slices are parts of the object: Address and Tags hold an
// address without quotation marks and a JSON array, the others JSON strings.
type HeldRow struct {
	Version       uint32 // of the record
	Address, Tags []byte
	Followers     int // of the address
	Name, Avatar  []byte
}

// A FollowerRow is a row of who holds an account. List, without quotation marks, is the primary list of
// the follower. The other slices are as in HeldRow.
type FollowerRow struct {
	List, Address, Tags  []byte
	State                rules.State // what the primary list of the account says of the follower
	Time                 int64       // of the record, in milliseconds since the Unix epoch
	Followers            int         // of the follower
	Name, Avatar, Header []byte
	MutualsRank          int // of the follower; 0 is unranked
}

// A RankedRow is a row of the ranked accounts. Ranks and counts are numbers.
type RankedRow struct {
	Address, Name, Avatar, Header []byte
	Ranks                         [5][]byte // by mutuals, followers, following, blocks, top8
	Counts                        [5][]byte // of mutuals, following, followers, blocks, top8
}

// A RecommendedRow is a row of the recommended accounts. Class is null or a JSON string, Records a JSON
// object.
type RecommendedRow struct {
	Address, Name, Avatar, Header, Class, Records []byte
	Followers, Following                          []byte    // numbers
	Ranks                                         [5][]byte // in the order of details
}

// An OperationRow is a row of what was done to an address, or of what a list did: List is "" then. List and Address
// are without quotation marks, the others are JSON strings.
type OperationRow struct {
	Time         int64 // of the block, in milliseconds since the Unix epoch
	List         []byte
	Address      []byte // of the list's account; of what a list did: whom it did it to
	Name, Avatar []byte // of that address
	Opcode       byte   // from 1 to 4
	Tag          []byte
}

// ParseHeldRow parses a row of what a list holds.
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

// ParseFollowerRow parses a row of who holds an account.
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

// ParseRankedRow parses a row of the ranked accounts.
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

// ParseRecommendedRow parses a row of the recommended accounts.
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

// ParseNotificationRow parses a row of what was done to an address.
func ParseNotificationRow(row []byte) (OperationRow, error) {
	e, err := cut(row, 7)
	if err != nil {
		return OperationRow{}, err
	}
	list := e.text(1)
	if !site.ValidTokenID(string(list)) {
		return OperationRow{}, fmt.Errorf("list of an operation: %w", site.ErrMalformed)
	}
	copy(e[1:], e[2:]) // as the rows of a list are
	r, err := operationRow(e)
	r.List = list
	return r, err
}

// ParseActivityRow parses a row of what a list did.
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

// Text decodes a JSON string of a row.
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

// mostElements is the number of elements of the longest row.
const mostElements = 10

// elementsOf are the elements of a row.
type elementsOf [mostElements][]byte

// cut cuts a JSON array into its n elements.
func cut(array []byte, n int) (elementsOf, error) { return cutSome(array, n, n) }

// cutSome cuts a JSON array into its elements, of which the last ones may be missing.
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

// text is a JSON string without its quotation marks; nil for something else.
func (e *elementsOf) text(i int) []byte {
	if b := e[i]; len(b) >= 2 && b[0] == '"' {
		return b[1 : len(b)-1]
	}
	return nil
}

// number is a whole number, -1 for something else. It does not allocate.
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

// elements iterates over the elements of a compact JSON array that begins at array. It ends at the closing
// bracket, or where the array is malformed.
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

// valueLen is the length of the compact JSON value that b begins with; 0 if there is none, or if it has no
// end.
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

// stringLen is the length of the JSON string that b begins with; 0 if it has no end.
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

// A Shard is a part of a long table, or its head, without its rows.
type Shard struct {
	Owner   string // the list or the address that the rows belong to; "" if they are of the whole site
	Total   int    // rows of the table
	Follows int    // those of them that are follows
	Before  int    // follows in the shards before this one
	Shard   int    // number of this shard, from 0
	Shards  int    // number of shards of the table
	Size    int    // rows in every shard but the last

	rows []byte // JSON array
}

// ParseShard parses a shard of rows, or a head.
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

// ParseHistory parses a shard of operations: what was done to an address, or what a list did. It does not say its
// size, which is HistoryShardSize, and shard 0 not its number.
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

// First is the index of the first row of a shard in its table.
func (s Shard) First() int { return s.Shard * s.Size }

// Rows iterates over the rows of a shard: JSON arrays, or the numbers of a shard RankedOrderKey.
func (s Shard) Rows() iter.Seq[[]byte] { return elements(s.rows) }

// RowsOf iterates over the elements of a JSON array, as UserNode.Rows and ListNode.Rows are.
func RowsOf(rows []byte) iter.Seq[[]byte] { return elements(rows) }

// members iterates over the members of a compact JSON object: names with their quotation marks, and values.
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

// A UserNode is what a user bucket says of a user.
type UserNode struct {
	Address   string // of the account
	List      string // its primary list, "" for none
	Held      int    // accounts that the primary list holds
	Followers int    // primary lists that hold the account
	Rows      []byte // JSON array of the FollowerRows, if there are at most PackedRows and the user is an address
}

// FindUserNode looks up an address in lower case or a name in its normal form in a user bucket of APIEFP.
// known is false if it is not there.
func FindUserNode(bucket []byte, user string) (node UserNode, known bool, err error) {
	value := find(bucket, user)
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

// A ListNode is what a token bucket says of a list.
type ListNode struct {
	Account   string
	Primary   bool   // whether it is the primary list of the account
	Held      int    // accounts that it holds
	Followers int    // primary lists that hold its account
	Rows      []byte // JSON array of the HeldRows, if there are at most PackedRows
}

// FindListNode looks up a list in a token bucket. known is false if it is not there.
func FindListNode(bucket []byte, tokenID string) (node ListNode, known bool, err error) {
	value := find(bucket, tokenID)
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

// find returns the array that is the value of a key of a bucket; nil if there is none. No text in a bucket
// can be taken for the key: within a string a quotation mark has a backslash before it.
func find(bucket []byte, key string) (value []byte) {
	member := append(rawjson.AppendString(nil, key), `:[`...)
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

// MatchText reports whether an address or a name, a JSON string, contains the term, regardless of letter
// case.
func (m *Matcher) MatchText(address, name []byte) bool {
	return len(m.term) == 0 || bytes.Contains(address, m.term) || len(name) > 2 && bytes.Contains(m.fold(jsonText(name[1:])), m.term)
}

// A HeldRecord is a record by which a list holds an account: the address in lower case, and tags, a JSON
// array.
type HeldRecord struct {
	Version       uint32
	Address, Tags []byte
}

// HeldRecords iterates over the held records of an answer to /records.
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

// An AccountFile is what computed answers show of an answer to /account. Address is without quotation
// marks, the texts are JSON strings, Records is a JSON object.
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

// AppendEntry appends the profile of an account with a name as entries show it.
func (a AccountFile) AppendEntry(b []byte) []byte {
	b = append(append(b, `{"name":`...), a.Name...)
	b = append(append(b, `,"address":"`...), a.Address...)
	b = append(append(b, `","avatar":`...), a.Avatar...)
	b = append(append(b, `,"records":`...), a.Records...)
	return append(append(append(b, `,"updated_at":`...), a.UpdatedAt...), '}')
}

// DiscoverEntries iterates over the entries of the object DiscoverShardKey, each a JSON object.
func DiscoverEntries(object []byte) (iter.Seq[[]byte], error) {
	for _, entries := range members(object) {
		return elements(entries), nil
	}
	return nil, fmt.Errorf("%s: %w", site.DiscoverShardKey, site.ErrMalformed)
}
