package render

import (
	"fmt"
	"strconv"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/ranks"
	"github.com/followpress/followpress/site/rules"
)

const (
	// Measures is the number of measures in the member ranks, which come first.
	Measures = rules.Measure(ranks.Measures)
	// Boards is the number of measures with a leaderboard of the API efp: all.
	Boards = rules.Muting + 1
)

// A namedMeasure is a measure with its name in ranked entries.
type namedMeasure struct {
	name string
	rules.Measure
}

// Measures of ranked entries, in the order of their members.
var (
	rankedRanks  = []namedMeasure{{"mutuals", rules.Mutuals}, {"followers", rules.Followers}, {"following", rules.Following}, {"blocks", rules.Blocks}, {"top8", rules.Top8}}
	rankedCounts = []namedMeasure{{"mutuals", rules.Mutuals}, {"following", rules.Following}, {"followers", rules.Followers}, {"blocks", rules.Blocks}, {"top8", rules.Top8}}
)

// detailRanks are the ranks in the order of details.
var detailRanks = []namedMeasure{{"mutuals", rules.Mutuals}, {"followers", rules.Followers}, {"following", rules.Following}, {"top8", rules.Top8}, {"blocks", rules.Blocks}}

// sortMeasures are the measures of site.RankedSorts.
var sortMeasures = map[string]rules.Measure{"followers": rules.Followers, "following": rules.Following, "top8": rules.Top8, "blocks": rules.Blocks}

// SortMeasure returns the measure of one of site.RankedSorts.
func SortMeasure(sort string) rules.Measure { return sortMeasures[sort] }

// boardMembers are the measures of leaderboards, with the text before the count in their entries.
var boardMembers = map[site.Board]struct {
	rules.Measure
	before string
}{
	site.Followers: {rules.Followers, `","followers_count":"`},
	site.Following: {rules.Following, `","following_count":"`},
	site.Blocked:   {rules.Blocks, `","blocked_by_count":"`},
	site.Blocks:    {rules.Blocking, `","blocks_count":"`},
	site.Muted:     {rules.Muted, `","muted_by_count":"`},
	site.Mutes:     {rules.Muting, `","mutes_count":"`},
	site.Mutuals:   {rules.Mutuals, `","mutuals_count":"`},
}

// BoardMeasure returns the measure of a leaderboard.
func BoardMeasure(board site.Board) rules.Measure { return boardMembers[board].Measure }

// appendMeasure appends a member with a number as text.
func appendMeasure(b []byte, name string, n uint32) []byte {
	return fmt.Appendf(b, `,"%s":"%d"`, name, n)
}

// appendNumbers appends numbers of an account as an array, after a comma.
func appendNumbers(b []byte, all []namedMeasure, numbers []uint32) []byte {
	b = append(b, ",["...)
	for _, m := range all {
		b = append(strconv.AppendUint(b, uint64(numbers[m.Measure]), 10), ',')
	}
	return append(WithoutComma(b), ']')
}
