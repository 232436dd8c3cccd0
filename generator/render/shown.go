package render

import (
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
)

// HeaderEnd is where the texts of an encoded profile end that the objects of other accounts show under
// the API efp: name, avatar and header. searchLen is that of the profile.
func HeaderEnd(ens []byte, searchLen uint32) int {
	return int(endsOf(Profile{ENS: ens, SearchLen: searchLen}).header)
}

// SortMeasure is the measure of one of site.RankedSorts.
func SortMeasure(sort string) rules.Measure { return sortMeasures[sort] }

// BoardMeasure is what a leaderboard counts.
func BoardMeasure(board site.Board) rules.Measure {
	m, _ := boardMember(board)
	return m
}
