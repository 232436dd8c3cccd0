package render

import (
	"fmt"

	"github.com/followpress/followpress/site"
)

// A Leader is an account on a leaderboard.
type Leader struct {
	Address site.Address
	Count   uint32
}

func appendLeaderboard(b []byte, board site.Board, leaders []Leader) []byte {
	member := boardMembers[board].before
	b = append(b, '[')
	for i, leader := range leaders {
		b = fmt.Appendf(b, `{"rank":%d,"address":"%s%s%d"},`, i+1, leader.Address, member, leader.Count)
	}
	return append(WithoutComma(b), ']')
}

// appendRanked appends the answer to /leaderboard/ranked without parameters, with n accounts.
func appendRanked(b []byte, lastUpdated string, n int, account func(i int) *Account) []byte {
	b = append(b, `{"last_updated":"`...)
	b = append(b, lastUpdated...)
	b = append(b, `","results":[`...)
	for i := range n {
		b = append(account(i).appendRankedEntry(b, lastUpdated), ',')
	}
	return append(WithoutComma(b), "]}"...)
}

// Summaries are the contents of objects that exist once.
type Summaries struct {
	Ranked    int      // accounts on the board of ranked accounts
	Addresses int      // rows of accounts, accounts of lists, and addresses that a list holds
	Lists     int      // all lists
	Primaries int      // accounts with a primary list
	ListOps   uint64   // operations on lists
	Discover  [][]byte // entries of the accounts followed last, by AppendPerson
}

func (s *Summaries) appendCount(b []byte) []byte {
	return fmt.Appendf(b, `{"leaderboardCount":"%d"}`, s.Ranked)
}

func (s *Summaries) appendStats(b []byte) []byte {
	return fmt.Appendf(b, `{"stats":{"address_count":"%d","list_count":"%d","list_op_count":"%d","user_count":"%d"}}`,
		s.Addresses, s.Lists, s.ListOps, s.Primaries)
}

// appendDiscover appends the answer to /discover with a limit.
func (s *Summaries) appendDiscover(b []byte, limit int) []byte {
	b = append(b, `{"latestFollows":[`...)
	b = appendJoined(b, s.Discover[:min(limit, len(s.Discover))])
	return append(b, "]}"...)
}
